"""Tests of branch and bound and of rest rules against an enumeration of all pairs."""

from dataclasses import replace

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from helpers.situations import belief_of
from pairseek.errors import InvalidParameter, NoPairLeft
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.rest import Resting
from pairseek.pairs.sources import WeightedPairs

STRATEGIES = [ps.InfoGain(), ps.EPMV(1.3), ps.MCMV(), ps.GreedyMSE(), ps.GreedyVolume()]
NOISES = ("constant", "normalized", "decaying")


def state(seed):
    """Return a random context: any size, dimension, scale, link, noise and belief, with duplicates, appeal and rest."""
    rng = np.random.default_rng(seed)
    d = int(rng.choice([1, 2, 4, 12]))
    n = int(rng.choice([2, 3, 5, 17, 60, 200]))
    points = rng.standard_normal((n, d)) * rng.choice([0.2, 1.0, 3.0])
    if rng.random() < 0.3 and n > 3:
        points[rng.integers(0, n, n // 3)] = points[0]
    factor = rng.standard_normal((d, d)) * rng.choice([0.05, 0.4, 1.0])
    if rng.random() < 0.2:
        factor[:, 0] = 0.0
    belief = belief_of(np.zeros((2, d)), np.full(2, 0.5), 0.5 * rng.standard_normal(d), factor @ factor.T)
    k = float(rng.choice([0.0, 0.3, 2.0, 50.0]))
    link = ps.Logistic if rng.random() < 0.7 else ps.Probit
    response = link(k, str(rng.choice(NOISES)))
    appeal = rng.standard_normal(n) if rng.random() < 0.4 else np.zeros(n)
    pairs = [tuple(rng.choice(n, 2, replace=False)) for _ in range(rng.integers(0, 4))]
    rested = [tuple(rng.choice(n, 2, replace=False))] if n > 10 and rng.random() < 0.4 else []
    resting = Resting.of(n, pairs, rested)
    strategy = STRATEGIES[seed % len(STRATEGIES)]
    return SelectionContext(points, appeal, belief, response, strategy, resting)


def listed(scene):
    """Return every permitted pair with its score."""
    n = len(scene.points)
    first, second = np.triu_indices(n, 1)
    pairs, rows, points = set(scene.resting.pairs.tolist()), set(scene.resting.items.tolist()), scene.points.tolist()
    free = [
        i * n + j not in pairs and i not in rows and j not in rows and points[i] != points[j]
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    ]
    first, second = first[free], second[free]
    if not len(first):
        return first, second, np.empty(0)
    return first, second, scene.strategy.score(scene.features(first, second), scene.belief)


@pytest.mark.parametrize("block", range(20))
def test_exact_equals_the_list_in_200_random_states(block):
    for seed in range(10 * block, 10 * block + 10):
        scene = state(seed)
        first, second, scores = listed(scene)
        choice = ps.AllPairs().choose(scene, np.random.default_rng(0))
        if not len(first):
            assert choice is None
            continue
        best = scores.max()
        assert choice.utility == pytest.approx(best, rel=1e-9, abs=1e-12)
        match = (first == min(choice.first, choice.second)) & (second == max(choice.first, choice.second))
        assert scores[match] == pytest.approx([best], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
def test_a_larger_catalogue_with_a_real_belief(noise, strategy):
    rng = np.random.default_rng(1)
    items = ps.Items(rng.standard_normal((900, 3)))
    response = ps.Logistic(noise=noise).for_spread(0.6)
    search = ps.Search(items, response=response, posterior=ps.Particles(800), strategy=strategy, rng=1)
    user = ps.SimulatedUser(rng.uniform(-1, 1, 3), response, rng=1)
    for _ in range(6):
        query = search.ask()
        search.tell(query, winner=user.answer(items, query))
    scene = SelectionContext.of(items, search.belief, response, search.strategy)
    _, _, scores = listed(scene)
    exact = ps.AllPairs().choose(scene, rng)
    assert exact.utility == pytest.approx(scores.max(), rel=1e-9)
    assert exact.gap == 0.0
    near = ps.AllPairs(gap=0.05).choose(scene, rng)
    spread = scores.max() - (np.median(scores) if strategy.name in ("epmv", "mcmv") else 0.0)
    # The median is estimated from a sample, hence the tolerance of a tenth.
    assert near.utility >= scores.max() - 0.05 * 1.1 * spread
    short = ps.AllPairs(budget=2000).choose(scene, rng)
    assert short.utility <= scores.max() * (1 + 1e-12) <= short.bound * (1 + 1e-9)


def test_the_default_looks_at_a_fraction_and_says_so():
    items = ps.Items(np.random.default_rng(0).standard_normal((3000, 4)))
    response = ps.Logistic(0.4, "constant")
    query = ps.Search(items, response=response, posterior=ps.Particles(500), rng=1).ask()
    total = 3000 * 2999 // 2
    assert query.info.considered < total / 5
    assert query.info.candidates.startswith(f"best of all {total:,} pairs")


def test_a_strategy_without_a_surface_gets_the_list_or_a_weighted_sample():
    class Nearest:
        name = "nearest"

        def score(self, candidates, belief):
            return -candidates.length

    few = ps.Items(np.random.default_rng(0).standard_normal((50, 2)))
    parts = {"response": ps.Logistic(), "strategy": Nearest(), "posterior": ps.Particles(200)}
    query = ps.Search(few, **parts, rng=1).ask()
    distances = np.linalg.norm(few.coordinates[:, None] - few.coordinates, axis=2) + 9 * np.eye(50)
    assert distances[query.left, query.right] == distances.min()
    many = ps.Items(np.random.default_rng(0).standard_normal((3000, 2)))
    query = ps.Search(many, **parts, rng=1).ask()
    assert "drawn where good pairs are likely" in query.info.candidates


def test_when_every_pair_rests_the_search_says_which_rule():
    items = ps.Items(np.random.default_rng(0).standard_normal((6, 2)))
    search = ps.Search(items, posterior=ps.Particles(100), rng=1, rest=ps.Rest(item=3), candidates=ps.AllPairs())
    for _ in range(3):
        search.tell(search.ask(), tie=True)
    with pytest.raises(NoPairLeft) as caught:
        search.ask()
    assert caught.value.rule == "an item rests 3 questions"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_covariance_that_is_not_finite_is_an_error_and_no_hang(bad):
    scene = state(3)
    d = scene.points.shape[1]
    belief = belief_of(np.zeros((2, d)), np.full(2, 0.5), np.zeros(d), np.full((d, d), bad))
    broken = SelectionContext(scene.points, scene.appeal, belief, scene.response, scene.strategy, scene.resting)
    with pytest.raises((InvalidParameter, ValueError, np.linalg.LinAlgError)):
        ps.AllPairs().choose(broken, np.random.default_rng(0))


def test_rest_counts_from_the_first_question_on():
    shown = [(0, 1), (2, 3), (4, 5), (6, 7)]
    (resting,) = ps.Rest(pair=5, item=5).after(shown, 100)
    assert resting.items.tolist() == list(range(8))
    assert resting.pairs.tolist() == [1, 203, 405, 607]
    (resting,) = ps.Rest(pair=2, item=1).after(shown, 100)
    assert (resting.items.tolist(), resting.pairs.tolist()) == ([6, 7], [405, 607])


def test_a_pair_that_rests_five_questions_is_not_asked_in_the_first_five():
    search = ps.Search(np.arange(3.0)[:, None], posterior=ps.Particles(100), rng=1, rest=ps.Rest(pair=5))
    for _ in range(3):
        search.tell(search.ask(), tie=True)
    with pytest.raises(NoPairLeft) as caught:
        search.ask()
    assert caught.value.rule == "a pair rests 5 questions"


def test_by_default_pairs_return_in_the_order_in_which_they_were_shown():
    items = ps.Items(np.random.default_rng(0).standard_normal((4, 2)))
    search = ps.Search(items, posterior=ps.Particles(100), rng=1)
    asked = []
    for _ in range(30):
        query = search.ask()
        asked.append(frozenset((query.left, query.right)))
        search.tell(query, tie=True)
    assert len(set(asked[:6])) == 6
    assert asked == asked[:6] * 5


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e160])
def test_items_whose_squares_are_no_numbers_are_refused(scale):
    points = scale * np.random.default_rng(0).standard_normal((10, 2))
    with refused("items"):
        ps.Search(points, rng=1)


def test_a_belief_that_is_not_finite_is_refused():
    items = ps.Items(np.random.default_rng(0).standard_normal((10, 2)))
    belief = ps.Search(items, response=ps.Logistic(), rng=1).belief
    for changed in ({"covariance": np.diag([np.inf, 1.0])}, {"mean": np.array([np.nan, 0.0])}):
        scene = SelectionContext.of(items, replace(belief, **changed), ps.Logistic(1.0), ps.InfoGain())
        for source in (ps.AllPairs(), ps.AllPairs(listed=100), WeightedPairs(), ps.SampledPairs(count=5)):
            with (
                np.errstate(invalid="ignore"),
                pytest.raises(InvalidParameter, match=r"not finite|overflows? double precision|NaN"),
            ):
                source.choose(scene, np.random.default_rng(0))


@pytest.mark.parametrize("noise", ["constant", "normalized", "decaying"])
@pytest.mark.parametrize("d", [1, 3])
def test_items_far_from_zero_are_told_apart_as_well_as_near_it(noise, d):
    near = 1e-3 * np.random.default_rng(d).standard_normal((60, d))
    # Both places have the same spacing of doubles, so only the arithmetic can differ.
    near = (near + 1e6) - 1e6
    chosen = []
    for offset in (0.0, 1e6):
        items = ps.Items(near + offset)
        search = ps.Search(items, response=ps.Logistic(1e3, noise), candidates=ps.AllPairs(), rng=1)
        query = search.ask()
        chosen.append(query.info.utility)
    assert chosen[1] == pytest.approx(chosen[0], rel=1e-6)
