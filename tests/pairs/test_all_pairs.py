"""Tests of AllPairs: against brute force, certificates, threads, memory, and bad input."""

from __future__ import annotations

import gc
import math
import tracemalloc
import weakref
from dataclasses import dataclass, replace
from functools import partial

import numba
import numpy as np
import pytest

from helpers import situations
from helpers.reference import naive_best_pair, naive_gaussian_information, naive_mcmv
from helpers.refusals import refused
from pairseek.errors import InvalidParameter
from pairseek.model.noise import NOISES
from pairseek.model.responses import Logistic, Probit
from pairseek.numerics.tables import S_MAX, look_up, tables
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.rest import Resting
from pairseek.pairs.sources import AllPairs, SampledPairs, WeightedPairs
from pairseek.pairs.sources.all_pairs import median_score
from pairseek.pairs.sources.branch_and_bound import search as _branch
from pairseek.pairs.sources.branch_and_bound import tree as _tree
from pairseek.pairs.sources.branch_and_bound.bounds import bound_pairs
from pairseek.pairs.sources.branch_and_bound.finalists import exact_value
from pairseek.pairs.sources.branch_and_bound.scan import scan_tiles
from pairseek.pairs.sources.branch_and_bound.tree import Tree, tree_of
from pairseek.pairs.sources.branch_and_bound.view import CatalogueView
from pairseek.pairs.sources.sampled import pair_rows
from pairseek.pairs.strategies import EPMV, MCMV, GreedyMSE, GreedyVolume, InfoGain, Random
from pairseek.pairs.strategies.shape import UtilityShape

STRATEGIES = (InfoGain(), EPMV(0.8), MCMV(), GreedyMSE(), GreedyVolume())
SIGNED = ("epmv", "mcmv")


def rng_of(*seed):
    return np.random.default_rng(list(seed))


def belief_of(mean, covariance):
    """Return a belief whose samples do not matter."""
    mean = np.asarray(mean, dtype=float)
    return situations.belief_of(np.zeros((2, len(mean))), np.full(2, 0.5), mean, np.array(covariance, float))


def scene_of(points, *, covariance=None, mean=None, noise="constant", k=1.0, strategy=None, **more):
    """Return a context of simple parts; by default with an identity covariance at the origin."""
    points = np.asarray(points, dtype=float)
    n, d = points.shape
    belief = belief_of(np.zeros(d) if mean is None else mean, np.eye(d) if covariance is None else covariance)
    response = more.get("response") or Logistic(k=k, noise=noise)
    appeal = np.zeros(n) if more.get("appeal") is None else more["appeal"]
    return SelectionContext(
        points, appeal, belief, response, strategy or InfoGain(), more.get("resting") or Resting.of(n, [], [])
    )


def random_scene(rng, n, d, *, strategy, noise, plain=False):
    """Return items with duplicates, grids, outlying axes and an offset, and a belief that may be flat."""
    scale = 10.0 ** rng.uniform(-2, 2)
    points = rng.standard_normal((n, d)) * scale
    root = rng.standard_normal((d, d)) * scale
    appeal = np.zeros(n)
    shown, resting = [], []
    if not plain:
        if rng.random() < 0.3:
            points *= 10.0 ** rng.uniform(-1, 1, size=d)
        if rng.random() < 0.3:
            points = np.round(points / scale * 2) / 2 * scale
        if rng.random() < 0.5:
            points[rng.integers(0, n, n // 3)] = points[rng.integers(0, n, n // 3)]
        if rng.random() < 0.2:
            points += rng.standard_normal(d) * 10 * scale
        if rng.random() < 0.3:
            root[:, rng.integers(0, d) :] = 0.0
        appeal = rng.standard_normal(n) * rng.choice([0.0, 0.1, 3.0])
        shown = [tuple(rng.integers(0, n, 2)) for _ in range(rng.integers(0, 6))]
        resting = [tuple(rng.integers(0, n, 2)) for _ in range(rng.integers(0, 3))]
    covariance = root @ root.T * 10.0 ** rng.uniform(-3, 0.5)
    mean = points.mean(axis=0) + rng.standard_normal(d) * scale * 10.0 ** rng.uniform(-2, 0.5)
    spread = scale * 10.0 ** rng.uniform(-2, 1)
    k = {"constant": 1 / (spread * scale), "decaying": 10.0 ** rng.uniform(-1, 2)}.get(noise, 1 / spread)
    response = (Logistic, Probit)[rng.integers(2)](k=0.0 if rng.random() < 0.02 else k, noise=noise)
    return SelectionContext(
        points, appeal, belief_of(mean, covariance), response, strategy, Resting.of(n, shown, resting)
    )


def listed(scene):
    """Return rows and scores of every permitted pair."""
    n = len(scene.points)
    first, second = pair_rows(np.arange(n * (n - 1) // 2), n)
    free = scene.resting.allows(first, second)
    first, second = first[free], second[free]
    scores = scene.scores(scene.features(first, second))
    usable = scores > -np.inf
    return first[usable], second[usable], scores[usable]


def tolerance(scene, scores):
    """Return the rounding error: a few units in the last place of the largest term of a score."""
    size = np.max(np.abs(scores))
    return 1e-12 * size if scene.strategy.name not in SIGNED else 1e-12 * max(size, 1e-3)


@pytest.fixture
def small_cells(monkeypatch):
    """Use tiny cells and short rounds, so that small catalogues also have deep trees and long searches."""
    monkeypatch.setattr(_tree, "MAX_LEAF_ITEMS", 4)
    monkeypatch.setattr(_branch, "_ROUND", 16)
    monkeypatch.setattr(_branch, "_FIRST_ROUND", 3)


def assert_best(scene, choice):
    first, second, scores = listed(scene)
    if not len(scores):
        assert choice is None
        return
    best = scores.max()
    assert choice is not None
    assert choice.first < choice.second
    assert scene.resting.allows(np.array([choice.first]), np.array([choice.second]))[0]
    row = np.flatnonzero((first == choice.first) & (second == choice.second))
    assert choice.utility == scores[row[0]]
    assert abs(choice.utility - best) <= tolerance(scene, scores)
    assert choice.gap == 0.0
    runners = np.sort(scores)[-2:]
    if len(runners) < 2 or runners[1] - runners[0] > tolerance(scene, scores):
        assert choice.utility == best


# Agreement with brute force


@pytest.mark.parametrize("d", [1, 2, 4, 12])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
def test_the_best_of_all_is_that_of_brute_force_on_small_catalogues(strategy, noise, d, small_cells):
    # Four states for each of 60 combinations.
    for seed, most in enumerate((8, 40, 40, 160)):
        rng = rng_of(seed, d, NOISES.index(noise), len(strategy.name))
        scene = random_scene(rng, int(rng.integers(2, most)), d, strategy=strategy, noise=noise)
        assert_best(scene, AllPairs().choose(scene, rng))


@pytest.mark.parametrize(
    ("n", "d", "noise", "strategy"),
    [
        (3000, 12, "constant", InfoGain()),
        (2000, 4, "normalized", InfoGain()),
        (1500, 4, "decaying", GreedyMSE()),
        (1200, 2, "normalized", EPMV(0.8)),
        (1200, 12, "decaying", MCMV()),
        (1000, 1, "constant", GreedyVolume()),
    ],
)
def test_the_best_of_all_is_that_of_brute_force_on_larger_catalogues(n, d, noise, strategy):
    rng = rng_of(n, d)
    scene = random_scene(rng, n, d, strategy=strategy, noise=noise)
    choice = AllPairs(budget=10**9).choose(scene, rng)
    assert_best(scene, choice)


def test_the_best_by_information_is_that_of_a_twin_that_knows_no_tables():
    # Interpolation is accurate to a few parts in ten thousand.
    for seed in range(12):
        rng = rng_of(seed, 99)
        noise, link = NOISES[seed % 3], (Logistic, Probit)[seed % 2]
        n, d, k = 14, 1 + seed % 3, {"constant": 0.6, "normalized": 2.0, "decaying": 8.0}[noise]
        points, appeal = rng.standard_normal((n, d)), 0.3 * rng.standard_normal(n)
        root = rng.standard_normal((d, d))
        belief = belief_of(0.3 * rng.standard_normal(d), 0.2 * root @ root.T)
        resting = Resting.of(n, [(0, 1), (3, 7)], [(2, 2)])
        scene = SelectionContext(points, appeal, belief, link(k=k, noise=noise), InfoGain(), resting)

        def utility(i, j, scene=scene):
            a = 2 * (scene.points[i] - scene.points[j])
            b = float(scene.points[i] @ scene.points[i] - scene.points[j] @ scene.points[j])
            length = float(np.linalg.norm(a))
            k = scene.response.k
            ratio = {"constant": 1, "normalized": 1 / length, "decaying": math.exp(-length)}[scene.response.noise]
            m = ratio * (k * (float(a @ scene.belief.mean) - b) + scene.appeal[i] - scene.appeal[j])
            s = ratio * k * math.sqrt(a @ scene.belief.covariance @ a)
            return naive_gaussian_information(m, s, scene.response.name)

        def allowed(i, j):
            return (i, j) not in {(0, 1), (3, 7)} and 2 not in (i, j)

        best, _, _ = naive_best_pair(n, utility, allowed)
        choice = AllPairs().choose(scene, rng)
        assert allowed(choice.first, choice.second)
        assert utility(choice.first, choice.second) == pytest.approx(best, rel=1e-3)


def test_the_best_by_mcmv_is_that_of_the_twin(small_cells):
    for seed in range(9):
        rng = rng_of(seed, 7)
        noise, n, d = NOISES[seed % 3], 40, 1 + seed % 4
        points, appeal = rng.standard_normal((n, d)), 0.2 * rng.standard_normal(n) * (seed % 2)
        root = rng.standard_normal((d, d))
        belief = belief_of(0.3 * rng.standard_normal(d), root @ root.T)
        strategy = MCMV(0.5)
        scene = SelectionContext(points, appeal, belief, Logistic(k=1.3, noise=noise), strategy, Resting.of(n, [], []))

        def utility(i, j, scene=scene, strategy=strategy):
            p, q = scene.points[i], scene.points[j]
            difference = scene.appeal[i] - scene.appeal[j]
            moments = scene.belief.mean, scene.belief.covariance
            return naive_mcmv(*moments, p, q, 1.3, scene.response.noise, difference, penalty=strategy.penalty)

        best = naive_best_pair(n, utility, lambda i, j: True)
        choice = AllPairs().choose(scene, rng)
        assert (choice.first, choice.second) == best[1:]
        assert choice.utility == pytest.approx(best[0], rel=1e-9)


@numba.njit
def utility_of(i, j, points, model):
    """`exact_value` is only called by kernels."""
    _, _, _, rows, mean, root, _ = points
    return exact_value(i, j, rows, mean, root, 0.0, model, np.empty(rows.shape[1]))


@pytest.mark.parametrize("noise", NOISES)
def test_pairs_that_nearly_coincide_are_not_lost_in_rounding(noise):
    # Rotated coordinates do not determine the direction of such a pair; the scan must find it at its own utility.
    for seed, apart in enumerate(10.0 ** np.linspace(-14, -4, 60)):
        rng = rng_of(seed, 3)
        points = rng.standard_normal((40, 3)) + 0.3
        points[7] = points[8] + apart * rng.standard_normal(3)
        root = rng.standard_normal((3, 3))
        scene = scene_of(points, covariance=root @ root.T, mean=points[8], noise=noise, k=2.0)
        view = CatalogueView.of(scene, scene.strategy.shape())
        order = view.points[2]
        i, j = sorted(np.flatnonzero((order == 7) | (order == 8)).tolist())
        u = utility_of(i, j, view.points, view.model)
        utilities, keys, counts = np.full((1, 780), -np.inf), np.full((1, 780), -1), np.zeros((1, 3), dtype=np.int64)
        plain = (view.model, view.cells, view.points, view.scale)
        tile, goal = np.array([[0, 0, 0, 40, 0, 40]]), (u, 1e-12 * u, 780.0, 10**9)
        scan_tiles(0, 1, 1, tile, plain, scene.resting.pairs, goal, (utilities, keys, counts))
        assert 7 * 40 + 8 in keys


def test_equal_pairs_are_told_apart_by_their_keys():
    # Two squares far apart, whose cross pairs come in sets of equal utility.
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    scene = scene_of(np.concatenate([square, square]), noise="constant")
    first, second, scores = listed(scene)
    ties = np.flatnonzero(scores == scores.max())
    assert len(ties) > 1
    choice = AllPairs().choose(scene, rng_of(0))
    assert (choice.first, choice.second) == min(zip(first[ties].tolist(), second[ties].tolist(), strict=True))


# Certificates


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
@pytest.mark.parametrize("noise", NOISES)
def test_a_certified_gap_holds(strategy, noise, small_cells):
    stopped_early = 0
    for seed in range(5):
        rng = rng_of(seed, NOISES.index(noise), 5)
        scene = random_scene(rng, 150, (2, 4, 12)[seed % 3], strategy=strategy, noise=noise, plain=True)
        best = listed(scene)[2].max()
        zero = median_score(scene) if strategy.name in SIGNED else 0.0
        choice = AllPairs(gap=0.05).choose(scene, rng)
        assert choice.gap <= 0.05
        assert best - choice.utility <= (choice.gap + 1e-9) * (best - zero)
        assert choice.bound >= best - 1e-9 * abs(best)
        stopped_early += choice.considered < AllPairs().choose(scene, rng).considered
    assert stopped_early


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
@pytest.mark.parametrize("noise", NOISES)
def test_when_the_budget_ends_the_bound_still_holds(strategy, noise, small_cells):
    uncertain = 0
    for seed in range(6):
        rng = rng_of(seed, NOISES.index(noise), 6)
        scene = random_scene(rng, 200, (2, 4, 12)[seed % 3], strategy=strategy, noise=noise, plain=True)
        best = listed(scene)[2].max()
        zero = median_score(scene) if strategy.name in SIGNED else 0.0
        choice = AllPairs(budget=(1, 500, 20_000)[seed % 3]).choose(scene, rng)
        assert choice.bound >= best - 1e-9 * abs(best)
        assert choice.gap == np.inf or best - choice.utility <= (choice.gap + 1e-9) * (best - zero)
        assert ("exact" in choice.words) == (choice.gap == 0.0)
        uncertain += 0.0 < choice.gap < np.inf
    assert uncertain


def test_the_budget_bounds_the_pairs_visited():
    scene = scene_of(rng_of(1).standard_normal((3000, 4)), noise="normalized", k=2.0)
    visited = [AllPairs(budget=budget).choose(scene, rng_of(0)).considered for budget in (1, 10**5, 10**6, 10**7)]
    # At least one tile is scanned, and every piece of a round finishes the tile it has started.
    assert visited[0] <= 64 * 64 * 16
    assert all(x <= budget + 32 * 64 * 64 for x, budget in zip(visited[1:], (10**5, 10**6, 10**7), strict=True))
    assert visited == sorted(visited)
    assert visited[0] < visited[-1]


def test_most_pairs_are_not_visited():
    rng = rng_of(2)
    points, covariance = rng.standard_normal((5000, 4)), np.diag([1.0, 0.3, 0.2, 0.1])
    share = {}
    for noise, k in (("constant", 0.3), ("normalized", 2.0), ("decaying", 9.0)):
        scene = scene_of(points, covariance=covariance, noise=noise, k=k)
        choice = AllPairs().choose(scene, rng)
        assert choice.gap == 0.0
        share[noise] = choice.considered / (5000 * 4999 / 2)
    assert share["constant"] < 0.02
    assert share["normalized"] < 0.2
    assert share["decaying"] < 0.3


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
@pytest.mark.parametrize("noise", NOISES)
def test_no_pair_of_two_cells_exceeds_their_bound(strategy, noise, small_cells):
    for seed in range(4):
        rng = rng_of(seed, 8, NOISES.index(noise))
        scene = random_scene(rng, 60, (1, 2, 4, 12)[seed], strategy=strategy, noise=noise)
        view = CatalogueView.of(scene, strategy.shape())
        scores = np.full((60, 60), -np.inf)
        first, second, values = listed(scene)
        scores[first, second] = scores[second, first] = values
        cells = np.array([(a, b) for a in range(len(view.tree.centre)) for b in range(a, len(view.tree.centre))])
        bounds = np.empty(len(cells))
        bound_pairs(0, len(cells), *np.ascontiguousarray(cells.T), view.cells, view.model, bounds)
        for (a, b), bound in zip(cells, bounds, strict=True):
            (i, j), (p, q) = view.tree.spans(np.array([a, b]))
            inside = scores[np.ix_(view.tree.order[i:j], view.tree.order[p:q])].max(initial=-np.inf)
            assert bound >= inside - tolerance(scene, values)


@pytest.mark.parametrize("link", [0, 1])
def test_tables_are_monotone_between_their_nodes_and_beyond_them(link):
    rng = rng_of(link)
    m = 10.0 ** rng.uniform(-6, 5, size=20_000)
    s = 10.0 ** rng.uniform(-6, 5, size=20_000)
    m[:100], s[100:200] = 0.0, 0.0
    s[200:400] = S_MAX * (1 + 1e-3 * rng.standard_normal(200))
    more_m, more_s = (x * (1 + 10.0 ** rng.uniform(-9, 1, size=len(x))) for x in (m, s))

    def at(table, m, s):
        out = np.empty(len(m))
        look_up(0, len(m), getattr(tables(link), table), m, s, out)
        return out

    for table, sign in (("information", 1), ("explained", 1), ("log_volume", -1), ("probability", -1)):
        here, nearer, wider = (sign * at(table, *x) for x in ((more_m, s), (m, s), (more_m, more_s)))
        slack = 1e-12 * np.abs(here) + (1e-11 if table == "probability" else 0.0)
        assert np.all(nearer >= here - slack)
        assert np.all(wider >= here - slack)


# Rest, several best pairs, rescoring


def test_what_rests_is_never_chosen_and_the_best_of_the_others_is():
    rng = rng_of(4)
    points = rng.standard_normal((400, 3))
    resting = Resting.of(400, [], [])
    for _ in range(12):
        scene = scene_of(points, noise="constant", resting=resting)
        choice = AllPairs().choose(scene, rng)
        assert_best(scene, choice)
        shown = (choice.first, choice.second)
        pairs = [divmod(int(key), 400) for key in resting.pairs]
        resting = Resting.of(400, [*pairs, shown], [(row, row) for row in resting.items[-2:].tolist()] + [shown][:1])


def test_a_sample_of_one_is_the_most_telling_pair():
    scene = scene_of(rng_of(1).standard_normal((200, 2)))
    choice = WeightedPairs(count=1).choose(scene, rng_of(0))
    assert choice.utility == listed(scene)[2].max()
    assert choice.considered == 1


@pytest.mark.parametrize("wanted", [1, 5, 60])
def test_rescoring_takes_the_best_by_samples_among_exactly_the_best_by_score(wanted, small_cells):
    rng = rng_of(9)
    points = rng.standard_normal((80, 2))
    samples = np.exp(0.5 * rng.standard_normal((400, 2))) - 1.0
    weights = np.full(400, 1 / 400)
    belief = situations.belief_of(samples, weights, samples.mean(axis=0), np.cov(samples.T))
    resting = Resting.of(80, [], [])
    scene = SelectionContext(points, np.zeros(80), belief, Logistic(k=1.0, noise="constant"), InfoGain(), resting)
    first, second, scores = listed(scene)
    top = np.argsort(-scores)[:wanted]
    again = scene.rescored(scene.features(first[top], second[top]))
    choice = AllPairs(rescore=wanted).choose(scene, rng)
    assert (choice.first, choice.second) == (first[top[again.argmax()]], second[top[again.argmax()]])
    assert choice.utility == pytest.approx(again.max(), rel=1e-12)
    assert f"the best {wanted} scored again" in choice.words


# Reproducibility and memory


@pytest.mark.parametrize("source", [AllPairs(), AllPairs(budget=300_000), AllPairs(gap=0.02), AllPairs(rescore=40)])
def test_the_number_of_threads_changes_nothing(source, on_threads):
    for noise, strategy in (("constant", InfoGain()), ("normalized", EPMV(0.5)), ("decaying", GreedyMSE())):
        scene = random_scene(rng_of(12), 2500, 4, strategy=strategy, noise=noise, plain=True)
        one, two = (on_threads(count, partial(source.choose, scene, rng_of(1))) for count in (1, 2))
        assert one == two


def test_a_weighted_sample_does_not_depend_on_the_number_of_threads(on_threads):
    scene = replace(random_scene(rng_of(12), 2500, 4, strategy=InfoGain(), noise="decaying"), strategy=Longest())
    one, two = (on_threads(count, partial(WeightedPairs(5000).choose, scene, rng_of(1))) for count in (1, 2))
    assert one == two


def test_memory_grows_with_the_items_and_not_with_the_pairs():
    peaks = []
    for n in (10_000, 40_000):
        scene = scene_of(rng_of(n).standard_normal((n, 4)), noise="decaying", k=9.0)
        source = AllPairs(budget=2_000_000)
        source.choose(scene, rng_of(0))
        tracemalloc.start()
        source.choose(scene, rng_of(0))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # There are sixteen times as many pairs. One bit for each of 800 million pairs would take 100 megabytes.
    assert peaks[1] < 6 * peaks[0]
    assert peaks[1] < 60_000_000


# The tree


def test_every_item_is_in_one_leaf_and_in_the_boxes_above_it():
    points = rng_of(5).standard_normal((1000, 3)) * [3.0, 1.0, 0.2]
    tree = Tree.of(points)
    assert sorted(tree.order.tolist()) == list(range(1000))
    assert np.array_equal(points[tree.order], tree.points)
    cells = np.arange(len(tree.centre))
    spans = tree.spans(cells)
    assert spans[0].tolist() == [0, 1000]
    assert spans[tree.leaves :, 0].tolist() == [0, *spans[tree.leaves : -1, 1].tolist()]
    assert np.max(spans[tree.leaves :, 1] - spans[tree.leaves :, 0]) <= _tree.MAX_LEAF_ITEMS
    for cell, (start, stop) in zip(cells, spans, strict=True):
        away = np.abs(tree.columns[:, start:stop].T - tree.centre[cell]) - tree.half[cell]
        assert np.all(away <= 0.0)


def test_the_tree_of_a_read_only_catalogue_is_built_once_and_goes_with_it():
    points = rng_of(5).standard_normal((100, 2))
    assert tree_of(points) is not tree_of(points)
    points.flags.writeable = False
    tree = tree_of(points)
    assert tree_of(points) is tree
    other = points.copy()
    other.flags.writeable = False
    assert tree_of(other) is not tree
    gone = weakref.ref(tree)
    del points, tree
    gc.collect()
    assert gone() is None


# Strategies without a shape, and Random


@dataclass(frozen=True)
class Longest:
    name = "longest"

    def score(self, candidates, belief):
        return candidates.length


@dataclass(frozen=True)
class Quietest(InfoGain):
    def score(self, candidates, belief):
        return -candidates.tabulated("information")


def test_a_strategy_without_a_surface_is_asked_for_every_pair():
    points = rng_of(8).standard_normal((900, 2))
    scene = scene_of(points, strategy=Longest(), resting=Resting.of(900, [(1, 2)], [(5, 5)]))
    choice = AllPairs().choose(scene, rng_of(0))
    assert choice.utility == listed(scene)[2].max()
    assert choice.words == "all 404,550 pairs, each scored"
    assert (choice.gap, choice.bound) == (0.0, choice.utility)
    assert choice.considered == 404_550


def test_a_strategy_without_a_surface_gets_a_weighted_sample_where_pairs_are_too_many():
    scene = scene_of(rng_of(8).standard_normal((900, 2)), strategy=Longest())
    choice = AllPairs(budget=404_549).choose(scene, rng_of(0))
    assert "drawn where good pairs are likely" in choice.words
    assert choice.utility > np.quantile(listed(scene)[2], 0.999)


def test_a_subclass_with_its_own_score_does_not_inherit_the_surface():
    assert InfoGain().shape() == UtilityShape("table", "information")
    assert Quietest().shape() is None
    scene = scene_of(rng_of(8).standard_normal((50, 2)), strategy=Quietest())
    assert AllPairs().choose(scene, rng_of(0)).utility == listed(scene)[2].max()


def test_equals_of_a_strategy_without_a_surface_are_told_apart_by_the_order_of_the_items():
    @dataclass(frozen=True)
    class Even:
        name = "even"

        def score(self, candidates, belief):
            return np.zeros(len(candidates))

    scene = scene_of(np.arange(8.0)[:, None], strategy=Even(), resting=Resting.of(8, [(0, 1)], []))
    for source in (AllPairs(), WeightedPairs(), SampledPairs(rate=1.0)):
        chosen = {(c.first, c.second) for c in (source.choose(scene, rng_of(seed)) for seed in range(20))}
        assert chosen == {(0, 2)}


def test_random_draws_any_pair_that_may_be_asked():
    points = np.arange(6.0)[:, None]
    points[5] = points[4]
    resting = Resting.of(6, [(0, 1)], [(2, 2)])
    scene = scene_of(points, strategy=Random(), resting=resting)
    drawn = [AllPairs().choose(scene, rng_of(seed)) for seed in range(300)]
    pairs = [tuple(sorted((c.first, c.second))) for c in drawn]
    expected = {(0, 3), (0, 4), (0, 5), (1, 3), (1, 4), (1, 5), (3, 4), (3, 5)}
    assert set(pairs) == expected
    # Binomial(300, 1/8): mean 37.5, standard deviation 5.7; four of them are allowed.
    assert all(abs(pairs.count(pair) - 37.5) < 23 for pair in expected)
    assert drawn[0].words == "any of 15 pairs, drawn at random"


def test_random_finds_the_only_two_points_that_differ():
    points = np.zeros((3000, 2))
    points[1234] = 1.0
    choice = AllPairs().choose(scene_of(points, strategy=Random()), rng_of(0))
    assert 1234 in (choice.first, choice.second)


def test_a_weighted_sample_is_better_than_a_uniform_one_of_the_same_size():
    points = rng_of(3).standard_normal((3000, 4))
    for noise, k in (("constant", 0.3), ("decaying", 9.0)):
        scene = scene_of(points, covariance=np.diag([1.0, 0.3, 0.2, 0.1]), noise=noise, k=k)
        weighted = WeightedPairs(5000).choose(scene, rng_of(0)).utility
        uniform = max(SampledPairs(count=5000, rescore=0).choose(scene, rng_of(seed)).utility for seed in range(5))
        assert weighted > uniform


def test_few_pairs_are_listed_and_many_searched():
    for n, words in ((400, "all 79,800 pairs, each scored"), (500, "best of all 124,750 pairs, ")):
        scene = scene_of(rng_of(n).standard_normal((n, 2)), noise="constant")
        choice = AllPairs(listed=100_000).choose(scene, rng_of(0))
        assert choice.words.startswith(words)
        assert_best(scene, choice)


def test_the_best_are_scored_again_by_samples_where_that_serves():
    points = rng_of(1).standard_normal((1000, 2))
    for strategy, again in ((InfoGain(), True), (GreedyMSE(), True), (EPMV(1.0), False), (MCMV(), False)):
        choice = AllPairs(rescore=32).choose(scene_of(points, strategy=strategy), rng_of(0))
        assert choice.words.endswith("; the best 32 scored again by samples") == again


# Descriptions


def test_the_words_say_what_was_used():
    points = rng_of(1).standard_normal((1000, 2))
    exact = AllPairs().choose(scene_of(points), rng_of(0))
    assert exact.words.startswith("best of all 499,500 pairs, exact; ")
    assert exact.words.endswith(" % visited")
    short = AllPairs(budget=1).choose(scene_of(points, noise="normalized"), rng_of(0))
    assert "to within" in short.words


# Bad input


@pytest.mark.parametrize("value", [0, 1.5, True])
def test_a_budget_out_of_range_is_refused(value):
    with refused("budget") as caught:
        AllPairs(budget=value)
    assert str(caught.value) == f"AllPairs(budget={value!r}) is invalid: give a whole number of pairs, at least 1"


@pytest.mark.parametrize("value", [1.0, -0.1, float("nan")])
def test_a_gap_out_of_range_is_refused(value):
    with refused("gap") as caught:
        AllPairs(gap=value)
    assert str(caught.value) == f"AllPairs(gap={value!r}) is invalid: give at least 0 (exact) and below 1"


@pytest.mark.parametrize(("field", "value"), [("rescore", -1), ("listed", -1), ("listed", 0.5)])
def test_other_settings_out_of_range_are_refused(field, value):
    with refused(field):
        AllPairs(**{field: value})


def test_a_weighted_sample_without_pairs_is_refused():
    with refused("count") as caught:
        WeightedPairs(count=0)
    assert str(caught.value) == "WeightedPairs(count=0) is invalid: give a whole number of pairs, at least 1"


@pytest.mark.parametrize("strategy", [*STRATEGIES, Random(), Longest()], ids=lambda s: s.name)
@pytest.mark.parametrize("source", [AllPairs(), AllPairs(listed=1000), WeightedPairs()], ids=repr)
def test_nothing_is_chosen_where_every_pair_rests(source, strategy):
    points = rng_of(1).standard_normal((20, 2))
    everything = [(i, j) for i in range(20) for j in range(i)]
    for resting in (Resting.of(20, everything, []), Resting.of(20, [], [(i, i) for i in range(19)])):
        assert source.choose(scene_of(points, strategy=strategy, resting=resting), rng_of(0)) is None


@pytest.mark.parametrize("strategy", [*STRATEGIES, Random(), Longest()], ids=lambda s: s.name)
def test_identical_items_are_never_a_pair(strategy):
    points = np.repeat([[0.0, 1.0], [0.5, 0.2]], [150, 2], axis=0)
    for source in (AllPairs(), AllPairs(listed=20_000), WeightedPairs(count=200)):
        choice = source.choose(scene_of(points, strategy=strategy), rng_of(0))
        assert np.any(points[choice.first] != points[choice.second])
    same = scene_of(np.zeros((100, 2)), strategy=strategy)
    assert AllPairs().choose(same, rng_of(0)) is None


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
@pytest.mark.parametrize("noise", NOISES)
def test_a_flat_covariance_gives_the_right_answer(strategy, noise):
    points = rng_of(1).standard_normal((200, 3))
    for covariance in (np.zeros((3, 3)), np.diag([1.0, 0.0, 0.0]), -1e-18 * np.eye(3)):
        scene = scene_of(points, covariance=covariance, noise=noise, strategy=strategy)
        assert_best(scene, AllPairs().choose(scene, rng_of(0)))


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e308])
def test_a_covariance_that_cannot_be_compared_by_is_an_error(value):
    points = rng_of(1).standard_normal((200, 3)) * 1e3
    scene = scene_of(points, covariance=np.diag([1.0, value, 1.0]))
    with pytest.raises(InvalidParameter):
        AllPairs().choose(scene, rng_of(0))
