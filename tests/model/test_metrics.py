"""Tests of metrics against textbook loops and scipy's Kendall tau."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kendalltau

from pairseek.errors import InvalidParameter
from pairseek.model import metrics
from pairseek.model.items import Items


def some_items(n=40, d=3, seed=0, **more):
    return Items(np.random.default_rng(seed).normal(size=(n, d)), **more)


def naive_tau_distance(items, estimate, point):
    """All pairs in a loop: 1 if reversed, 1/2 if tied in one ranking only."""
    said = [sum((x - y) ** 2 for x, y in zip(row, estimate, strict=True)) for row in items.coordinates.tolist()]
    true = [sum((x - y) ** 2 for x, y in zip(row, point, strict=True)) for row in items.coordinates.tolist()]
    wrong, pairs = 0.0, 0
    for i, j in itertools.combinations(range(len(said)), 2):
        one = (said[i] > said[j]) - (said[i] < said[j])
        other = (true[i] > true[j]) - (true[i] < true[j])
        wrong += 1.0 if one * other < 0 else 0.5 if one != other else 0.0
        pairs += 1
    return wrong / pairs


class TestSquaredError:
    def test_is_the_squared_distance(self):
        assert metrics.squared_error([1.0, -2.0, 0.5], np.array([0.0, 1.0, 0.5])) == pytest.approx(10.0)

    @pytest.mark.parametrize(
        ("estimate", "point", "message"),
        [
            ([1.0, 2.0], [1.0, 2.0, 3.0], "estimate has 2 dimensions, point has 3: give the same number"),
            ([[1.0]], [1.0], r"estimate has shape \(1, 1\): give \(d,\) numbers"),
            ([], [], r"estimate has shape \(0,\)"),
            ([1.0], [math.nan], r"point is nan at \(0,\): give finite numbers"),
            (["a"], [1.0], r"estimate is \['a'\]: give \(d,\) numbers"),
        ],
    )
    def test_says_what_is_wrong(self, estimate, point, message):
        with pytest.raises(InvalidParameter, match=message):
            metrics.squared_error(estimate, point)


class TestKendallTauDistance:
    def test_is_zero_at_the_point_itself_even_with_ties(self):
        items = Items([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [2.0, 1.0]])
        assert metrics.kendall_tau_distance(items, [0.0, 0.0], [0.0, 0.0], batches=None) == 0.0
        assert metrics.kendall_tau_distance(items, [0.0, 0.0], [0.0, 0.0], batch=3, rng=0) == 0.0

    def test_is_one_when_the_order_is_reversed(self):
        items = Items(np.arange(20.0)[:, None])
        assert metrics.kendall_tau_distance(items, [-1.0], [30.0], rng=0) == 1.0
        assert metrics.kendall_tau_distance(items, [-1.0], [30.0], batches=None) == 1.0

    def test_counts_a_pair_tied_in_one_ranking_as_half(self):
        items = Items([[-1.0], [1.0]])
        assert metrics.kendall_tau_distance(items, [0.0], [0.3], batches=None) == 0.5
        assert metrics.kendall_tau_distance(items, [0.3], [0.0], batch=2, rng=0) == 0.5

    @pytest.mark.parametrize("seed", range(4))
    def test_over_all_pairs_is_scipys_tau_where_nothing_is_tied(self, seed):
        items = some_items(n=60, seed=seed)
        estimate, point = np.random.default_rng(seed + 100).normal(size=(2, 3))
        said, true = (np.linalg.norm(items.coordinates - x, axis=1) for x in (estimate, point))
        expected = (1 - kendalltau(said, true).statistic) / 2
        kendall_tau_distance = metrics.kendall_tau_distance(items, estimate, point, batches=None)
        assert kendall_tau_distance == pytest.approx(expected, abs=1e-12)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(2, 12), st.integers(1, 2), st.integers(0, 2**31))
    def test_over_all_pairs_is_the_textbook_loop_with_ties(self, n, d, seed):
        rng = np.random.default_rng(seed)
        grid = rng.integers(-2, 3, size=(n, d)).astype(float)  # many ties, exact in floating point
        grid[0], grid[1] = 0.0, 1.0  # never all at one point
        items = Items(grid)
        estimate, point = rng.integers(-2, 3, size=(2, d)).astype(float)
        expected = naive_tau_distance(items, estimate.tolist(), point.tolist())
        assert metrics.kendall_tau_distance(items, estimate, point, batches=None) == pytest.approx(expected, abs=1e-12)
        # one batch that holds all the items is all the pairs
        whole = metrics.kendall_tau_distance(items, estimate, point, batch=n, batches=1, rng=seed)
        assert whole == pytest.approx(expected, abs=1e-12)

    def test_over_batches_estimates_that_over_all_pairs_without_bias(self):
        items = some_items(n=300, d=4, seed=3)
        estimate, point = np.zeros(4), np.full(4, 0.3)
        exact = metrics.kendall_tau_distance(items, estimate, point, batches=None)
        # one batch of 15 has a standard deviation below 0.05, 20,000 of them below 4e-4
        kendall_tau_distance = metrics.kendall_tau_distance(items, estimate, point, batches=20_000, rng=5)
        assert kendall_tau_distance == pytest.approx(exact, abs=4 * 4e-4)
        assert kendall_tau_distance != exact

    def test_over_chunks_is_that_over_one_piece(self, monkeypatch):
        items = some_items(n=50, d=2, seed=4)
        whole = metrics.kendall_tau_distance(items, [0.0, 0.0], [0.5, 0.1], batches=None)
        monkeypatch.setattr(metrics, "_ROWS_PER_CHUNK", 120)
        assert metrics.kendall_tau_distance(items, [0.0, 0.0], [0.5, 0.1], batches=None) == pytest.approx(whole)
        exact_batch = metrics.kendall_tau_distance(items, [0.0, 0.0], [0.5, 0.1], batch=50, batches=7, rng=1)
        assert exact_batch == pytest.approx(whole)

    def test_draws_every_subset_as_often_and_no_item_twice(self):
        drawn = metrics._subsets(6, 3, 40_000, np.random.default_rng(2))
        ordered = np.sort(drawn, axis=1)
        assert np.all(np.diff(ordered, axis=1) > 0)
        _, counts = np.unique(ordered, axis=0, return_counts=True)
        assert len(counts) == math.comb(6, 3)
        assert chisquare(counts).pvalue > 1e-3

    def test_ignores_appeal(self):
        appeal = np.linspace(-5, 5, 40)
        plain, appealing = some_items(), some_items(appeal=appeal)
        distances = [
            metrics.kendall_tau_distance(items, np.zeros(3), np.ones(3), rng=1) for items in (plain, appealing)
        ]
        assert distances[0] == distances[1] > 0

    def test_depends_on_the_seed_only(self):
        items = some_items()
        one, same, generator, other = (
            metrics.kendall_tau_distance(items, np.zeros(3), np.ones(3), rng=rng)
            for rng in (1, 1, np.random.default_rng(1), 2)
        )
        assert one == same == generator != other

    def test_stays_within_a_few_megabytes(self):
        items = some_items(n=3000, d=2)
        tracemalloc.start()
        metrics.kendall_tau_distance(items, np.zeros(2), np.ones(2), batch=200, batches=200, rng=1)
        metrics.kendall_tau_distance(items, np.zeros(2), np.ones(2), batches=None)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20e6  # 32 MB for all the pairs of the batches at once, 72 MB for all the items

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"rng": None}, "rng is None, but batches are random: give a seed, or batches=None"),
            ({"batch": 41}, "batch is 41: give a whole number from 2 to 40, the number of items"),
            ({"batch": 1}, "batch is 1"),
            ({"batch": 2.5}, "batch is 2.5: give a whole number"),
            ({"batches": 0}, "batches is 0: give a whole number at least 1"),
            ({"batches": True}, "batches is True"),
            ({"estimate": [0.0, 0.0]}, "estimate has 2 dimensions but the items have 3: give 3"),
            ({"point": [0.0, math.inf, 0.0]}, r"point is inf at \(1,\)"),
        ],
    )
    def test_says_what_is_wrong(self, change, message):
        arguments = {"estimate": np.zeros(3), "point": np.ones(3), "rng": 0} | change
        with pytest.raises(InvalidParameter, match=message):
            metrics.kendall_tau_distance(some_items(), **arguments)


class TestTripletError:
    @pytest.mark.parametrize("d", [1, 3])
    def test_is_that_of_a_loop_with_ties_as_half(self, d):
        rng = np.random.default_rng(d)
        points = rng.integers(-3, 4, size=(25, d)).astype(float)
        triplets = rng.integers(0, 25, size=(500, 3))
        wrong = 0.0
        for anchor, near, far in triplets:
            to_near = sum((points[anchor] - points[near]) ** 2)
            to_far = sum((points[anchor] - points[far]) ** 2)
            wrong += 1.0 if to_near > to_far else 0.5 if to_near == to_far else 0.0
        assert metrics.triplet_error(points, triplets) == pytest.approx(wrong / 500, abs=1e-12)
        assert metrics.triplet_error(Items(points), triplets) == pytest.approx(wrong / 500, abs=1e-12)

    def test_of_swapped_triplets_is_the_rest(self):
        rng = np.random.default_rng(5)
        points, triplets = rng.normal(size=(30, 2)), rng.integers(0, 30, size=(200, 3))
        one, other = metrics.triplet_error(points, triplets), metrics.triplet_error(points, triplets[:, [0, 2, 1]])
        assert one + other == pytest.approx(1.0, abs=1e-12)

    def test_over_chunks_is_that_over_one_piece(self, monkeypatch):
        rng = np.random.default_rng(6)
        points, triplets = rng.normal(size=(30, 2)), rng.integers(0, 30, size=(101, 3))
        whole = metrics.triplet_error(points, triplets)
        monkeypatch.setattr(metrics, "_ROWS_PER_CHUNK", 20)
        assert metrics.triplet_error(points, triplets) == pytest.approx(whole, abs=1e-12)

    @pytest.mark.parametrize(
        ("points", "triplets", "message"),
        [
            ([[0.0], [1.0]], [[0, 1]], r"triplets have shape \(1, 2\): give \(m, 3\)"),
            ([[0.0], [1.0]], np.empty((0, 3), dtype=int), r"triplets have shape \(0, 3\)"),
            ([[0.0], [1.0]], [[0.0, 1.0, 1.0]], "triplets have type float64: give whole numbers"),
            ([[0.0], [1.0]], [[0, 1, 1], [0, 1, 2]], r"triplet 1 is \[0, 1, 2\]: there are 2 items"),
            ([[0.0], [1.0]], [[0, -1, 1]], r"triplet 0 is \[0, -1, 1\]"),
            ([0.0, 1.0], [[0, 1, 1]], r"coordinates has shape \(2,\): give \(n, d\) numbers"),
            ([[0.0], [math.nan]], [[0, 1, 1]], r"coordinates is nan at \(1, 0\)"),
        ],
    )
    def test_says_what_is_wrong(self, points, triplets, message):
        with pytest.raises(InvalidParameter, match=message):
            metrics.triplet_error(points, triplets)


class TestCoverage:
    def test_is_the_share_inside_and_its_binomial_error(self):
        coverage = metrics.coverage([0.0, 0.5, 1.0, 2.0, 3.0], [1.0, 0.4, 1.0, 2.5, 1.0])
        assert coverage.share == pytest.approx(0.6)
        assert coverage.standard_error == pytest.approx(math.sqrt(0.6 * 0.4 / 5))
        assert coverage.count == 5

    def test_takes_one_radius_for_all(self):
        assert metrics.coverage([0.1, 0.2, 0.9], 0.5).share == pytest.approx(2 / 3)

    def test_has_no_error_where_all_are_inside(self):
        assert metrics.coverage([0.1, 0.2], [1.0, 1.0]) == metrics.Coverage(1.0, 0.0, 2)

    def test_of_a_normal_at_its_own_quantile_is_the_level(self):
        gaps = np.abs(np.random.default_rng(1).normal(size=4000))
        coverage = metrics.coverage(gaps, 1.959964)
        assert coverage.share == pytest.approx(0.95, abs=4 * coverage.standard_error)
        assert coverage.standard_error == pytest.approx(math.sqrt(0.95 * 0.05 / 4000), rel=0.1)

    @pytest.mark.parametrize(
        ("distances", "radii", "message"),
        [
            ([1.0, 2.0], [1.0, 2.0, 3.0], "3 radii for 2 distances: give one per distance, or a single one"),
            ([], [], r"distances has shape \(0,\)"),
            ([1.0, math.nan], 1.0, r"distances is nan at \(1,\)"),
            ([1.0], [[1.0]], r"radii has shape \(1, 1\): give one or \(1,\) numbers"),
            ([1.0], [[1.0], [1.0, 2.0]], "give one or"),
            ([-1.0], 1.0, "the smallest of distances is -1: give lengths of at least 0"),
            ([1.0], -2.0, "the smallest of radii is -2"),
        ],
    )
    def test_says_what_is_wrong(self, distances, radii, message):
        with pytest.raises(InvalidParameter, match=message):
            metrics.coverage(distances, radii)
