"""Active similarity judgements: the uncertainty of positions, the choice of triplets, and its benefit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, xlogy

from helpers.refusals import refused
from pairseek.embed import ActiveTriplets, Placement, Triplets
from pairseek.embed.active import most_informative
from pairseek.embed.placement import random_triplets
from pairseek.errors import InvalidItems, InvalidParameter, UnknownQuery


def judged(truth, rows, rng, k=1.0):
    anchor, first, second = (truth[column] for column in rows.T)
    logits = k * (((anchor - second) ** 2).sum(1) - ((anchor - first) ** 2).sum(1))
    return np.where((rng.random(len(rows)) > expit(logits))[:, None], rows[:, [0, 2, 1]], rows)


def material(n=12, d=2, count=150, seed=0, k=1.0):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((n, d))
    return truth, Triplets(judged(truth, random_triplets(n, count, rng), rng, k), range(n)), rng


def test_random_triplets_have_different_items_and_cover_all():
    rows = random_triplets(4, 2000, np.random.default_rng(0))
    assert all(len(set(row)) == 3 for row in rows.tolist())
    assert len({tuple(row) for row in rows.tolist()}) == 4 * 3 * 2
    assert set(random_triplets(5, 50, np.random.default_rng(1), anchor=3)[:, 0].tolist()) == {3}


def test_gradients_and_information_agree_with_finite_differences_of_the_likelihood():
    _, triplets, _ = material(n=6, count=40)
    placement = Placement.fit(triplets, 2)

    def logits(points):
        a, i, j = (points.reshape(6, 2)[column] for column in triplets.rows.T)
        return ((a - j) ** 2).sum(1) - ((a - i) ** 2).sum(1)

    flat, step = placement.coordinates.ravel(), 1e-6
    slopes = np.array([(logits(flat + h) - logits(flat - h)) / (2 * step) for h in step * np.eye(12)]).T
    chance = expit(logits(flat))
    expected = slopes.T @ (slopes * (chance * (1 - chance))[:, None])
    np.testing.assert_allclose(placement.fisher_information, expected, atol=1e-6)
    covariance = np.linalg.inv(expected + 2 * placement.shrinkage * np.eye(12))
    np.testing.assert_allclose(placement.covariance, covariance, atol=1e-6)
    np.testing.assert_allclose(
        placement.logit_variance(triplets.rows), np.einsum("mi,ij,mj->m", slopes, covariance, slopes), rtol=1e-5
    )


def test_asked_triplets_add_their_information():
    _, triplets, rng = material(n=8, count=60)
    placement = Placement.fit(triplets, 2)
    asked, rows = random_triplets(8, 5, rng), random_triplets(8, 30, rng)
    # The variances from all triplets at once.
    more = Placement(placement.ids, placement.coordinates, placement.shrinkage, np.concatenate([triplets.rows, asked]))
    np.testing.assert_allclose(placement.logit_variance(rows, asked), more.logit_variance(rows), rtol=1e-8)


def test_information_is_the_mutual_information_of_answer_and_logit():
    _, triplets, rng = material(n=8, count=60)
    placement = Placement.fit(triplets, 2)
    rows = random_triplets(8, 20, rng)
    information = placement.information(rows)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def entropy(p):
        return -(xlogy(p, p) + xlogy(1 - p, 1 - p)) / np.log(2)

    deviation = np.sqrt(placement.logit_variance(rows))
    chance = expit(placement.logits(rows)[:, None] + deviation[:, None] * nodes)
    expected = entropy(chance @ weights) - entropy(chance) @ weights
    # The tables are accurate to about 1e-3 bits.
    np.testing.assert_allclose(information, expected, atol=2e-3)


def test_the_scale_matches_the_noise_of_the_judges():
    # 3,000 judgements of 12 items determine the mean squared distance to a few percent.
    truth, triplets, _ = material(n=12, count=3000)
    placement = Placement.fit(triplets, 2)
    estimated, true = (points - points.mean(axis=0) for points in (placement.coordinates, truth))
    assert np.sum(estimated**2) == pytest.approx(np.sum(true**2), rel=0.15)


def test_the_most_informative_candidate_is_chosen_and_none_is_repeated():
    _, triplets, rng = material(n=5, count=40)
    placement = Placement.fit(triplets, 2)
    asked = np.empty((0, 3), dtype=np.int64)
    for seed in range(30):
        row, bits = most_informative(placement, np.random.default_rng(seed), asked=asked)
        every = random_triplets(5, 4000, rng)
        others = [row for row in every.tolist() if _key(row) not in {_key(previous) for previous in asked.tolist()}]
        if others:
            assert bits == pytest.approx(placement.information(np.array(others), asked).max(), rel=1e-9)
            assert _key(row.tolist()) not in {_key(previous) for previous in asked.tolist()}
        asked = np.concatenate([asked, row[None]])
    # All 5 * 6 = 30 different questions were asked.
    assert len({_key(row) for row in asked.tolist()}) == 30


def _key(row):
    return row[0], frozenset(row[1:])


def test_an_unseen_item_is_asked_about_first():
    truth, _, rng = material(n=10)
    rows = random_triplets(9, 300, rng)
    placement = Placement.fit(Triplets(judged(truth, rows, rng), range(10)), 2)
    row, _ = most_informative(placement, np.random.default_rng(0))
    assert 9 in row.tolist()
    assert placement.undecided().argmax() == 9


def test_questions_depend_only_on_the_seed_and_the_answers():
    def asked(seed):
        active = ActiveTriplets(8, rng=seed)
        out = []
        for _ in range(20):
            query = active.ask()
            assert active.ask() is query
            out.append((query.anchor, query.left, query.right, query.kind))
            active.tell(query.left)
        return out

    assert asked(3) == asked(3)
    assert asked(3) != asked(4)


def test_held_out_triplets_measure_the_error():
    truth, _, rng = material(n=10)
    active = ActiveTriplets(10, share=0.25, rng=1)
    assert active.held_out_error() is None
    for _ in range(120):
        query = active.ask()
        row = judged(truth, np.array([[query.anchor, query.left, query.right]]), rng, k=3.0)
        active.tell(int(row[0, 1]))
    apart = active.apart
    # 120 draws with probability 1/4: 30 with a standard deviation of 4.7.
    assert 15 <= len(apart) <= 45
    assert len(active.triplets) == 120
    # Judges with k = 3 contradict the true positions in 6 % of triplets; 30 of them have a standard error of 0.05.
    assert active.held_out_error() < 0.3
    assert active.embedding().error(apart) < 0.3


def test_positions_stay_finite_for_random_and_one_sided_answers():
    for answer in ("left", "coin"):
        rng, active = np.random.default_rng(0), ActiveTriplets(6, rng=0)
        for _ in range(60):
            query = active.ask()
            active.tell(query.left if answer == "left" or rng.random() < 0.5 else query.right)
        placement = active.embedding()
        assert np.all(np.isfinite(placement.coordinates))
        assert np.all(np.isfinite(placement.undecided()))


def test_a_placement_round_trips_through_its_record():
    _, triplets, rng = material()
    placement = Placement.fit(triplets, 2)
    back = Placement.from_record(placement.record())
    rows = random_triplets(12, 100, rng)
    assert np.array_equal(back.information(rows), placement.information(rows))


def test_the_forecast_of_a_finished_map_is_its_number_of_judgements():
    _, triplets, _ = material(n=10, count=60)
    few = Placement.fit(triplets, 2)
    _, triplets, _ = material(n=10, count=2000)
    many = Placement.fit(triplets, 2)
    assert few.undecided().mean() > many.undecided().mean()
    assert few.forecast() is None or few.forecast() > 60
    assert many.forecast() == 2000


def test_invalid_settings_and_answers_are_refused():
    for count, message in (
        (3, "3 items: an embedding from judgements needs at least 4"),
        (5000, "5,000 items need about 75,000 judgements .* judge a sample"),
    ):
        with pytest.raises(InvalidItems, match=message):
            ActiveTriplets(count)
    with refused("share"):
        ActiveTriplets(5, share=1)
    with pytest.raises(InvalidItems):
        Placement.fit(Triplets([[0, 1, 2]], range(5)), 4)
    active = ActiveTriplets(5)
    with pytest.raises(UnknownQuery):
        active.tell(0)
    query = active.ask()
    with pytest.raises(InvalidParameter, match="was not asked"):
        active.tell(query.anchor)


@pytest.mark.long
def test_active_judgements_beat_a_third_more_random_ones():
    """300 active judgements of 30 items leave less error than 400 random ones: two dimensions, k = 1, 6 seeds.

    `benchmarks/similarity.py` has the full comparison. There, random triplets needed 1.6 times as many judgements;
    1.33 leaves three standard errors.
    """
    differences = []
    for seed in range(6):
        rng = np.random.default_rng([seed, 5])
        truth = rng.standard_normal((30, 2))
        test = Triplets(judged(truth, random_triplets(30, 20_000, rng), rng), range(30))
        chance = Triplets(judged(truth, random_triplets(30, 400, rng), rng), range(30))
        active = ActiveTriplets(30, rng=seed)
        for _ in range(300):
            query = active.ask()
            row = judged(truth, np.array([[query.anchor, query.left, query.right]]), rng)
            active.tell(int(row[0, 1]))
        differences.append(active.embedding().error(test) - Placement.fit(chance, 2).error(test))
    assert np.mean(differences) < 0.0
