"""Group ranking and segments: formulas, simulated groups with known truth, and unusable input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import pairseek as ps
from helpers.refusals import refused
from pairseek.core.types import FloatArray
from pairseek.errors import InvalidChoices, InvalidItems
from pairseek.people.population.data import PairData
from pairseek.people.population.fit import fit
from pairseek.people.population.model import FitOptions, start_of
from pairseek.people.population.predictive import trend_covariance
from pairseek.people.ranking import find_segments, segments
from pairseek.people.ranking.segments import _Likelihoods, _Mixture
from pairseek.people.ranking.utilities import marginal_information, mean_utilities


def group(
    seed: int, n: int = 12, people: int = 20, answers: int = 15, *, centres: FloatArray | None = None, random: int = 0
) -> tuple[ps.Items, ps.Choices, FloatArray]:
    """Return items, choices and true mean utilities; the first `random` people toss a coin."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2))
    middle = np.zeros((1, 2)) if centres is None else centres
    user = middle[rng.integers(len(middle), size=people)] + 0.5 * rng.normal(size=(people, 2))
    utility = -2.0 * np.sum((points - user[:, None]) ** 2, axis=2)
    rows = []
    for person in range(people):
        for _ in range(answers):
            first, second = rng.choice(n, 2, replace=False)
            logit = 0.0 if person < random else utility[person, first] - utility[person, second]
            won = rng.uniform() < 1.0 / (1.0 + np.exp(-logit))
            rows.append((f"p{person}", *((int(first), int(second)) if won else (int(second), int(first)))))
    items = ps.Items(points)
    truth = -2.0 * (np.sum(points**2, axis=1) - 2.0 * points @ middle.mean(axis=0))
    return items, ps.Choices.from_pairs(rows, ids=items.ids), truth


def held(ranking: ps.Ranking, truth: FloatArray) -> float:
    """Return the share of items whose true rank is within its interval."""
    true = {int(item): place for place, item in enumerate(np.argsort(-truth), 1)}
    return float(np.mean([one.rank_low <= true[int(one.id)] <= one.rank_high for one in ranking]))


def test_the_information_with_tastes_integrated_out_is_that_of_the_plain_loop() -> None:
    items, choices, _ = group(1)
    data = PairData.of(choices)
    start = start_of(data, FitOptions(), items)
    state = fit(data, start)
    prior = np.diag(np.where(np.isnan(start.prior_deviation), state.scale, start.prior_deviation) ** -2.0)
    assert start.basis is not None
    inverse = np.linalg.inv(marginal_information(data, start, state, sparse.csr_array(start.basis)) + prior)
    assert np.allclose(inverse, trend_covariance(data, start, state, state.trust), rtol=1e-6, atol=1e-9)


def test_the_evidence_of_a_segment_is_an_integral() -> None:
    data = _Likelihoods(np.array([[0.7]]), np.array([[[1.3]]]), np.ones(1))
    mixture = _Mixture(np.array([0.4, 0.6]), np.array([[-1.0], [2.0]]), np.array([[0.8]]))
    z = np.linspace(-15.0, 15.0, 20001)
    density = sum(
        share * np.exp(-0.5 * (z - centre) ** 2 / 0.8) / np.sqrt(2 * np.pi * 0.8)
        for share, centre in ((0.4, -1.0), (0.6, 2.0))
    )
    expected = np.log(np.sum(density * np.exp(0.7 * z - 0.65 * z**2)) * (z[1] - z[0]))
    assert np.isclose(mixture.scores(data)[0], expected, atol=1e-8)
    assert np.isclose(mixture.membership(data).sum(), 1.0)


@pytest.mark.parametrize("given", [True, False])
def test_intervals_hold_the_true_ranks_and_get_narrower_with_people(given: bool) -> None:
    widths = []
    for people, worlds in ((5, 12), (40, 6)):
        shares, width = [], []
        for seed in range(worlds):
            items, choices, truth = group(seed, people=people)
            ranking = ps.rank(choices, items if given else None)
            shares.append(held(ranking, truth))
            width.append(np.mean([one.rank_high - one.rank_low for one in ranking]))
        # The errors of one world's items are dependent. With a standard deviation of 0.15 between worlds the mean of 6
        # has a standard error of 0.06, and 0.9 is expected.
        assert np.mean(shares) > 0.75
        widths.append(np.mean(width))
    assert widths[1] < 0.7 * widths[0]


def test_a_table_has_ids_probabilities_and_counts() -> None:
    items, choices, _ = group(3, people=30)
    ranking = ps.rank(choices, items)
    assert sorted(map(int, ranking.ids)) == list(range(12))
    assert [one.place for one in ranking] == list(range(1, 13))
    assert ranking.people == 30
    assert sum(one.answers for one in ranking) == 2 * ranking.answers == 2 * 450
    assert np.isclose(sum(one.top_1 for one in ranking), 1.0)
    assert np.isclose(sum(one.top_5 for one in ranking), 5.0)
    assert np.isclose(np.mean([one.share for one in ranking]), 0.5, atol=1e-6)
    assert all(
        one.rank_low - 1 < one.rank < one.rank_high + 1 and one.share_low <= one.share <= one.share_high
        for one in ranking
    )
    assert ranking[ranking.ids[0]].place == 1
    assert ranking.csv().splitlines()[0].startswith("id,label,place,tier,share")
    assert ps.rank(choices, items).csv() == ranking.csv()
    with pytest.raises(InvalidItems, match="there is no item 99"):
        ranking[99]


def test_the_share_is_how_often_people_choose_an_item() -> None:
    # 2000 people answer every pair of three items with known logits, and no tastes of their own.
    rng = np.random.default_rng(0)
    utility = np.array([1.0, 0.0, -0.5])
    rows = []
    for person in range(400):
        for a, b in ((0, 1), (0, 2), (1, 2)):
            won = rng.uniform() < 1.0 / (1.0 + np.exp(utility[b] - utility[a]))
            rows.append((person, *((a, b) if won else (b, a))))
    ranking = ps.rank(ps.Choices.from_pairs(rows))
    wins = {item: np.mean([row[1] == item for row in rows if item in row[1:]]) for item in range(3)}
    for one in ranking:
        assert one.share == pytest.approx(wins[int(one.id)], abs=0.03)
    assert ranking.ids == (0, 1, 2)
    assert ranking.tiers == 3


def test_few_random_clickers_hardly_move_the_top() -> None:
    items, choices, _ = group(5, people=40)
    same, moved, _ = group(5, people=40, random=8)
    before, after = ps.rank(choices, items), ps.rank(moved, same)
    for item in before.items[:5]:
        assert item.rank_low <= after[item.id].rank <= item.rank_high


@pytest.mark.parametrize("deviation", [0.1, 0.3, 0.6, 1.0])
def test_people_who_vary_less_than_expected_are_not_divided(deviation) -> None:
    points = deviation * np.random.default_rng(5).normal(size=(40, 2))
    precision = np.broadcast_to(25.0 * np.eye(2), (40, 2, 2)).copy()
    data = _Likelihoods(25.0 * points, precision, np.ones(40))
    rng = np.random.default_rng(0)
    assert segments._best_count(segments._scores_by_count(data, 3, np.arange(40) % 8, rng)) == 1


def test_segments_that_lie_apart_are_found_and_one_is_one() -> None:
    # Their centres are four standard deviations within a segment apart.
    apart = np.array([[1.16, 0.0], [-0.58, 1.0], [-0.58, -1.0]])
    items, choices, _ = group(7, n=20, people=90, centres=apart)
    found = find_segments(choices, items)
    assert len(found) == 3
    assert sum(segment.share for segment in found.segments) == pytest.approx(1.0)
    assert np.allclose(found.membership.sum(axis=1), 1.0)
    points = np.asarray(items.coordinates)
    for one in found.segments:
        # The favourite of a segment lies on its side.
        best = points[int(one.favourites[0])]
        assert np.min(np.sum((apart - best) ** 2, axis=1)) < 1.0
        assert one.distinctive
    items, choices, _ = group(8, n=20, people=90)
    assert len(find_segments(choices, items)) == 1


def test_choices_that_make_no_ranking_are_rejected_with_the_reason() -> None:
    pairs = [("a", 0, 1), ("b", 1, 0), ("c", 0, 1)]
    with pytest.raises(InvalidChoices):
        ps.rank(ps.Choices.from_pairs([("a", 0, 1)]))
    with pytest.raises(InvalidChoices):
        ps.rank(ps.Choices.from_pairs([], tied=pairs))
    with refused("choices") as caught:
        ps.rank([("a", 0, 1)])  # type: ignore[arg-type]
    assert "give Choices" in str(caught.value)
    two = ps.rank(ps.Choices.from_pairs(pairs))
    assert len(two) == 2
    assert two.tiers == 1
    assert "do not distinguish any item" in two.notes[-1]
    unseen = ps.rank(ps.Choices.from_pairs(pairs, ids=[0, 1, 2]))
    assert unseen[2].answers == 0
    assert (unseen[2].rank_low, unseen[2].rank_high) == (1, 3)
    assert "1 item was never shown" in unseen.notes[0]
    assert len(find_segments(ps.Choices.from_pairs(pairs))) == 1


def test_items_without_coordinates_and_many_items_are_ranked() -> None:
    _, choices, truth = group(9, people=30)
    bare = ps.rank(choices, ps.Items(ids=list(range(12))))
    assert held(bare, truth) > 0.6
    rng = np.random.default_rng(0)
    many = ps.Items(rng.normal(size=(2000, 2)))
    rows = []
    for person in range(10):
        for a, b in rng.integers(2000, size=(15, 2)):
            near = np.sum(np.asarray(many.coordinates)[[a, b]] ** 2, axis=1)
            if a != b:
                rows.append((person, *((int(a), int(b)) if near[0] < near[1] else (int(b), int(a)))))
    ranking = ps.rank(ps.Choices.from_pairs(rows, ids=many.ids), many)
    best = np.asarray(many.coordinates)[[int(item) for item in ranking.ids[:50]]]
    assert np.mean(np.sum(best**2, axis=1)) < 0.5


def test_mean_utilities_agree_with_a_population() -> None:
    items, choices, _ = group(11, people=60)
    base, _ = ps.Population.fit(choices, items, residual=0.0).utilities()
    found = mean_utilities(choices, items).base
    # A population is more cautious by one factor; the order is that of the same fit.
    assert np.corrcoef(base, found)[0, 1] > 0.999
