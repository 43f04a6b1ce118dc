"""Tests of ActRank: the region against linear programmes, the ranking against the truth, replay against itself."""

from __future__ import annotations

import copy
import itertools
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import expit

from helpers.refusals import refused
from pairseek.core.types import Event, Query
from pairseek.model.items import Items
from pairseek.model.priors import GaussianPrior, UniformBox
from pairseek.pairs.strategies.baselines import region as _region
from pairseek.pairs.strategies.baselines.actrank import ActRank
from pairseek.pairs.strategies.baselines.cache import CAPACITY, FoldCache
from pairseek.pairs.strategies.baselines.planes import bisector
from pairseek.pairs.strategies.baselines.region import Region
from pairseek.pairs.strategies.baselines.simplex import maximise


def asked(items, pair, outcome="answer", winner=None):
    left, right = (items.ids[row] for row in pair)
    won = None if winner is None else items.ids[winner]
    return Event(left, right, outcome, won, Query("q", left, right))


def observed(items, winner, loser):
    return Event(items.ids[winner], items.ids[loser], "answer", items.ids[winner])


def nearer(items, user, pair):
    return min(pair, key=lambda row: float(np.sum((items.coordinates[row] - user) ** 2)))


def interview(strategy, items, choose, *, seed=0, most=10_000):
    """Return the history of a search in which `choose(pair)` returns the row of the winner."""
    history = []
    while len(history) < most:
        pair = strategy.next(items, history, np.random.default_rng(seed))
        if pair is None:
            break
        history.append(asked(items, pair, winner=choose(pair)))
    return history


def extremes(normals, offsets, direction):
    """Return the minimum and maximum of direction·w in {normals w <= offsets}, by HiGHS."""
    low, high = (linprog(sign * direction, A_ub=normals, b_ub=offsets, bounds=(None, None)).fun for sign in (1, -1))
    return low, -high


def rows_of(history, items, low, high):
    """Return box and answers as rows normals w <= offsets."""
    d = items.d
    normals, offsets = [*np.eye(d), *-np.eye(d)], [*np.full(d, high), *np.full(d, -low)]
    for event in history:
        winner, loser = items.index(event.winner), items.index(event.loser)
        normal, offset = bisector(items.coordinates[winner], items.coordinates[loser])
        normals.append(-normal)
        offsets.append(-offset)
    return np.array(normals), np.array(offsets)


def random_region(d, cuts, rng):
    """Return a region around a user point, and its rows."""
    low, high = -rng.uniform(0.5, 2, d), rng.uniform(0.5, 2, d)
    user = rng.uniform(low, high)
    region = Region(low, high)
    normals, offsets = np.concatenate([np.eye(d), -np.eye(d)]), np.concatenate([high, -low])
    for size in 0.85 ** np.arange(cuts):
        normal, offset = bisector(*(user + size * rng.uniform(-2, 2, (2, d))))
        if normal @ user < offset:
            normal, offset = -normal, -offset
        region = region.cut(normal, offset)
        normals, offsets = np.vstack([normals, -normal]), np.append(offsets, -offset)
    return region, normals, offsets, user


def expected_side(normals, offsets, normal, offset):
    low, high = extremes(normals, offsets, normal)
    if low < offset - 1e-8 and high > offset + 1e-8:
        return 0
    return 1 if low + high > 2 * offset else -1


class TestRegion:
    @pytest.mark.parametrize("d", [1, 2, 4, 9])
    def test_a_plane_divides_the_region_just_where_two_linear_programmes_say_so(self, d):
        rng = np.random.default_rng(d)
        region, normals, offsets, user = random_region(d, 14, rng)
        sides = []
        for size in np.geomspace(2, 0.02, 50):
            normal, offset = bisector(*(user + size * rng.uniform(-1, 1, (2, d))))
            sides.append(region.side(normal, offset))
            assert sides[-1] == expected_side(normals, offsets, normal, offset)
        assert set(sides) == {-1, 0, 1}

    def test_planes_through_corners_and_edges_are_decided_as_well(self):
        rng = np.random.default_rng(0)
        corners = np.array(list(itertools.product((0.0, 1.0), repeat=4)))
        region = Region(np.zeros(4), np.ones(4))
        normals, offsets = np.concatenate([np.eye(4), -np.eye(4)]), np.repeat([1.0, 0.0], 4)
        user = np.array([0.31, 0.42, 0.77, 0.05])
        for first, second in rng.permutation(list(itertools.combinations(range(16), 2))):
            normal, offset = bisector(corners[first], corners[second])
            assert region.side(normal, offset) == expected_side(normals, offsets, normal, offset)
            if normal @ user < offset:
                normal, offset = -normal, -offset
            region = region.cut(normal, offset)
            normals, offsets = np.vstack([normals, -normal]), np.append(offsets, -offset)
        assert not region.is_empty

    def test_without_a_walk_along_the_edges_linear_programmes_decide_the_same(self, monkeypatch):
        walked, normals, offsets, user = random_region(3, 10, np.random.default_rng(5))
        monkeypatch.setattr(_region, "maximise", lambda *_: None)
        solved, *_ = random_region(3, 10, np.random.default_rng(5))
        np.testing.assert_allclose(solved.low, walked.low, atol=1e-6)
        np.testing.assert_allclose(solved.high, walked.high, atol=1e-6)
        rng = np.random.default_rng(6)
        for size in np.geomspace(2, 0.05, 20):
            normal, offset = bisector(*(user + size * rng.uniform(-1, 1, (2, 3))))
            assert solved.side(normal, offset) == expected_side(normals, offsets, normal, offset)

    def test_the_box_around_the_region_is_tight(self):
        region, normals, offsets, _ = random_region(3, 8, np.random.default_rng(1))
        for axis, unit in enumerate(np.eye(3)):
            low, high = extremes(normals, offsets, unit)
            assert region.low[axis] == pytest.approx(low, abs=1e-8)
            assert region.high[axis] == pytest.approx(high, abs=1e-8)

    def test_every_known_vertex_is_within_reach_of_a_centre_inside(self):
        region, normals, offsets, _ = random_region(4, 12, np.random.default_rng(2))
        assert np.all(normals @ region.centre < offsets)
        distances = np.linalg.norm(region._vertices - region.centre, axis=1)
        assert len(distances) > 4
        assert distances.max() <= region.reach

    def test_a_cut_leaves_the_region_it_came_from_as_it_was(self):
        region = Region(-np.ones(2), np.ones(2))
        part = region.cut(np.array([1.0, 0.0]), 0.5)
        assert region.side(np.array([1.0, 0.0]), 0.0) == 0
        assert part.side(np.array([1.0, 0.0]), 0.0) == 1
        np.testing.assert_allclose(part.low, [0.5, -1.0], atol=1e-9)

    def test_a_cut_that_misses_changes_nothing_and_one_that_takes_all_leaves_nothing(self):
        region = Region(-np.ones(2), np.ones(2))
        along = np.array([1.0, 0.0])
        assert region.cut(along, -1.5) is region
        nothing = region.cut(along, 1.5)
        assert nothing.is_empty
        assert nothing.side(along, 7.0) == 0
        assert nothing.cut(along, 0.0) is nothing

    def test_a_climb_ends_at_the_optimum_and_may_stop_half_way(self):
        rng = np.random.default_rng(3)
        normals = rng.normal(size=(30, 5))
        normals = np.concatenate([np.eye(5), -np.eye(5), normals / np.linalg.norm(normals, axis=1)[:, None]])
        offsets = np.concatenate([np.ones(10), np.full(30, 2.5)])
        corner = np.arange(5)
        assert np.all(normals @ np.ones(5) <= offsets + 1e-12)  # so the start is a vertex
        direction = -np.ones(5) + 0.3 * rng.normal(size=5)
        _, top = extremes(normals, offsets, direction)
        walk = maximise(normals, offsets, corner, direction)
        assert walk.objective == pytest.approx(top, abs=1e-9)
        assert np.all(normals @ np.array(walk.vertices).T <= offsets[:, None] + 1e-9)
        early = maximise(normals, offsets, corner, direction, 0.0)
        assert 0.0 < early.objective < top
        assert len(early.vertices) < len(walk.vertices)


class TestChebyshevCentre:
    @pytest.mark.parametrize("d", [1, 2, 4, 8])
    def test_it_is_the_centre_of_the_largest_ball(self, d):
        region, normals, offsets, _ = random_region(d, 10, np.random.default_rng(10 + d))
        goal = np.append(np.zeros(d), -1.0)
        table = np.column_stack([normals, np.ones(len(offsets))])
        found = linprog(goal, A_ub=table, b_ub=offsets, bounds=(None, None))
        depth = np.min(offsets - normals @ region.chebyshev_centre)
        assert depth == pytest.approx(found.x[d], rel=1e-6)
        np.testing.assert_allclose(region.chebyshev_centre, found.x[:d], atol=1e-6)

    def test_of_a_cube_it_is_the_middle(self):
        np.testing.assert_allclose(Region(np.zeros(6), np.ones(6)).chebyshev_centre, 0.5)

    def test_of_a_long_box_with_an_end_cut_off_it_is_still_half_way(self):
        region = Region(np.array([0.0, 0.0, 0.0]), np.array([1.0, 4.0, 9.0]))
        part = region.cut(np.array([0.0, 0.0, 1.0]), 2.0)
        np.testing.assert_allclose(part.chebyshev_centre, [0.5, 2.0, 5.5], atol=1e-7)

    def test_of_a_tiny_region_it_is_found_in_units_of_the_region(self):
        rng = np.random.default_rng(4)
        user = rng.uniform(-1, 1, 3)
        region = Region(-np.ones(3), np.ones(3))
        for direction in [*np.eye(3), *-np.eye(3), *rng.normal(size=(6, 3))]:
            normal = direction / np.linalg.norm(direction)
            region = region.cut(normal, float(normal @ user) - 1e-8)
        slack = region.offsets - region.normals @ region.chebyshev_centre
        # the ball around the user touches all twelve planes, so it is the largest
        assert np.min(slack) == pytest.approx(1e-8, rel=1e-3)

    def test_of_a_slanting_thin_slice_it_is_in_the_middle(self):
        normal = np.array([1.0, 2.0, -2.0]) / 3
        region = Region(-np.ones(3), np.ones(3)).cut(normal, 0.1).cut(-normal, -0.1 - 2e-8)
        assert np.min(region.high - region.low) > 1
        slack = region.offsets - region.normals @ region.chebyshev_centre
        assert np.min(slack) == pytest.approx(1e-8, rel=1e-2)


class TestRanking:
    @pytest.mark.parametrize(("d", "seed"), [(1, 0), (2, 1), (3, 2), (5, 3)])
    def test_true_answers_give_the_true_order_at_every_step_and_in_the_end(self, d, seed):
        rng = np.random.default_rng(seed)
        items = Items(rng.normal(size=(40, d)), ids=[f"item {i}" for i in range(40)])
        user = rng.uniform(-1, 1, d)
        strategy = ActRank(box=(-1.0, 1.0))
        history = interview(strategy, items, lambda pair: nearer(items, user, pair), seed=seed)
        distance = np.linalg.norm(items.coordinates - user, axis=1)
        for length in range(0, len(history), 5):
            placed = strategy.ranking(items, history[:length], np.random.default_rng(seed))
            assert np.all(np.diff(distance[placed]) > 0)
        final = strategy.ranking(items, history, np.random.default_rng(seed))
        assert final == np.argsort(distance).tolist()
        assert len(history) < 40 * np.log2(40)

    def test_only_what_the_answers_leave_open_is_asked(self):
        rng = np.random.default_rng(8)
        items = Items(rng.normal(size=(30, 2)))
        user = np.array([0.4, -0.3])
        history = interview(ActRank(box=(-1.0, 1.0)), items, lambda pair: nearer(items, user, pair))
        for length, event in enumerate(history):
            normals, offsets = rows_of(history[:length], items, -1.0, 1.0)
            plane = bisector(items.coordinates[event.left], items.coordinates[event.right])
            assert expected_side(normals, offsets, *plane) == 0

    def test_items_at_the_same_place_are_never_asked_about(self):
        points = np.random.default_rng(0).normal(size=(12, 2))
        items = Items(np.concatenate([points, points]))
        history = interview(ActRank(), items, lambda pair: nearer(items, np.zeros(2), pair))
        assert all(event.left % 12 != event.right % 12 for event in history)
        placed = ActRank().ranking(items, history, np.random.default_rng(0))
        assert sorted(placed) == list(range(24))

    def test_a_grid_whose_planes_meet_in_many_points_is_ranked(self):
        items = Items(list(itertools.product(range(4), repeat=3)))
        user = np.array([0.9, 2.2, 1.37])
        history = interview(ActRank(), items, lambda pair: nearer(items, user, pair))
        placed = ActRank().ranking(items, history, np.random.default_rng(0))
        assert np.all(np.diff(np.linalg.norm(items.coordinates[placed] - user, axis=1)) >= -1e-12)

    def test_flat_items_without_a_box_are_ranked(self):
        points = np.random.default_rng(1).normal(size=(30, 3))
        points[:, 1] = 2.5
        items = Items(points)
        user = np.array([0.2, 2.5, -0.4])
        history = interview(ActRank(), items, lambda pair: nearer(items, user, pair))
        placed = ActRank().ranking(items, history, np.random.default_rng(0))
        assert placed == np.argsort(np.linalg.norm(points - user, axis=1)).tolist()

    def test_another_generator_gives_another_order(self):
        items = Items(np.random.default_rng(0).normal(size=(50, 2)))
        firsts = {ActRank().next(items, [], np.random.default_rng(seed)) for seed in range(8)}
        assert len(firsts) > 4

    def test_many_items_need_no_linear_programme_but_the_walks(self, monkeypatch):
        def fail(*_, **__):
            raise AssertionError("HiGHS was called")

        monkeypatch.setattr(_region.scipy.optimize, "linprog", fail)
        rng = np.random.default_rng(2)
        items = Items(rng.normal(size=(3000, 4)))
        user = rng.uniform(-1, 1, 4)
        strategy = ActRank(box=(-1.0, 1.0))
        history = interview(strategy, items, lambda pair: nearer(items, user, pair))
        placed = strategy.ranking(items, history, np.random.default_rng(0))
        assert placed == np.argsort(np.linalg.norm(items.coordinates - user, axis=1)).tolist()


class TestVotes:
    def test_a_comparison_is_asked_so_many_times_in_a_row_and_the_majority_wins(self):
        rng = np.random.default_rng(4)
        items = Items(rng.normal(size=(20, 2)))
        user = np.array([0.3, 0.1])
        turns = itertools.count()

        def second_of_three_wrong(pair):
            right = nearer(items, user, pair)
            return sum(pair) - right if next(turns) % 3 == 1 else right

        strategy = ActRank(votes=3, box=(-2.0, 2.0))
        history = interview(strategy, items, second_of_three_wrong)
        assert len(history) % 3 == 0
        groups = [history[start : start + 3] for start in range(0, len(history), 3)]
        assert all(len({(event.left, event.right) for event in group}) == 1 for group in groups)
        placed = strategy.ranking(items, history, np.random.default_rng(0))
        assert placed == np.argsort(np.linalg.norm(items.coordinates - user, axis=1)).tolist()

    def test_the_estimate_waits_for_the_last_vote(self):
        items = Items([[-1.0], [1.0], [3.0]])
        strategy = ActRank(votes=3, box=(-4.0, 4.0))
        pair = strategy.next(items, [], np.random.default_rng(0))
        vote = asked(items, pair, winner=pair[0])
        assert strategy.estimate(items, [vote, vote]) == pytest.approx([0.0])
        assert strategy.estimate(items, [vote, vote, vote]) != pytest.approx([0.0])

    def test_even_votes_are_decided_by_a_coin_that_falls_the_same_way_again(self):
        items = Items([[-1.0], [1.0]])
        strategy = ActRank(votes=2, box=(-1.0, 1.0))
        pair = (0, 1)
        split = [asked(items, pair, winner=0), asked(items, pair, winner=1)]
        idle = Event(0, 1, "skip")
        estimates = [float(strategy.estimate(items, [idle] * n + split)[0]) for n in range(20)]
        assert {round(value, 6) for value in estimates} == {-0.5, 0.5}
        again = [float(ActRank(2, (-1.0, 1.0)).estimate(items, [idle] * n + split)[0]) for n in range(20)]
        assert again == estimates

    def test_a_tie_is_half_a_vote_each_way(self):
        items = Items([[-1.0], [1.0]])
        strategy = ActRank(votes=2, box=(-1.0, 1.0))
        for idle, winner in itertools.product(range(6), (0, 1)):
            votes = [asked(items, (0, 1), "tie"), asked(items, (0, 1), winner=winner)]
            estimate = strategy.estimate(items, [Event(0, 1, "skip")] * idle + votes)
            assert estimate == pytest.approx([winner - 0.5])

    def test_a_vote_that_has_begun_goes_on_even_if_the_answer_is_known_meanwhile(self):
        items = Items([[-1.0], [1.0], [3.0]])
        strategy = ActRank(votes=3, box=(-4.0, 4.0))
        pair = strategy.next(items, [], np.random.default_rng(0))
        elsewhere = [observed(items, *pair)]
        assert strategy.next(items, elsewhere, np.random.default_rng(0)) != pair
        begun = [asked(items, pair, winner=pair[0]), *elsewhere]
        assert strategy.next(items, begun, np.random.default_rng(0)) == pair

    def test_votes_for_a_pair_that_is_left_alone_still_count(self):
        items = Items([[-1.0], [1.0], [-3.0]])
        strategy = ActRank(votes=3, box=(-4.0, 4.0))
        left = [asked(items, (0, 1), winner=1), asked(items, (0, 2), winner=0)]
        assert strategy.estimate(items, left) == pytest.approx([2.0])


class TestSkipsAndObservations:
    def test_a_skipped_comparison_is_inferred_from_the_side_of_the_estimate(self):
        items = Items([[-0.2], [0.9], [0.5]])
        strategy = ActRank(box=(-1.0, 1.0))
        pair = strategy.next(items, [], np.random.default_rng(0))
        history = [asked(items, pair, "skip")]
        assert strategy.next(items, history, np.random.default_rng(0)) not in (pair, pair[::-1])
        placed = strategy.ranking(items, history, np.random.default_rng(0))
        assert placed == sorted(placed, key=lambda row: abs(items.coordinates[row, 0]))
        assert strategy.estimate(items, history) == pytest.approx([0.0])

    def test_skipping_everything_ranks_by_the_first_estimate(self):
        items = Items(np.random.default_rng(3).normal(size=(15, 2)))
        strategy = ActRank(box=(-1.0, 1.0))
        history = []
        while (pair := strategy.next(items, history, np.random.default_rng(1))) is not None:
            assert not history or set(pair) != {history[-1].left, history[-1].right}
            history.append(asked(items, pair, "skip"))
        placed = strategy.ranking(items, history, np.random.default_rng(1))
        assert placed == np.argsort(np.linalg.norm(items.coordinates, axis=1)).tolist()

    def test_an_observed_answer_cuts_the_region_and_its_pair_is_not_asked(self):
        items = Items([[-1.0], [1.0]])
        strategy = ActRank(box=(-1.0, 1.0))
        history = [observed(items, 1, 0)]
        assert strategy.estimate(items, history) == pytest.approx([0.5])
        assert strategy.next(items, history, np.random.default_rng(0)) is None
        assert strategy.ranking(items, history, np.random.default_rng(0)) == [1, 0]

    def test_observed_ties_and_skips_change_nothing(self):
        items = Items([[-1.0], [1.0], [2.0]])
        strategy = ActRank(box=(-3.0, 3.0))
        first = strategy.next(items, [], np.random.default_rng(0))
        for outcome in ("tie", "skip"):
            history = [Event(0, 1, outcome)]
            assert strategy.next(items, history, np.random.default_rng(0)) == first
            assert strategy.estimate(items, history) == pytest.approx([0.0])

    def test_contradicting_answers_are_reported_and_the_ranking_goes_on(self):
        rng = np.random.default_rng(6)
        items = Items(rng.normal(size=(12, 2)))
        strategy = ActRank(box=(-2.0, 2.0))
        history = [observed(items, 0, 1)]
        before = strategy.estimate(items, history)
        assert strategy.status(items, history) is None
        history.append(observed(items, 1, 0))
        assert "contradict each other" in strategy.status(items, history)
        np.testing.assert_array_equal(strategy.estimate(items, history), before)
        user = np.array([0.5, 0.5])
        while (pair := strategy.next(items, history, np.random.default_rng(0))) is not None:
            history.append(asked(items, pair, winner=nearer(items, user, pair)))
        placed = strategy.ranking(items, history, np.random.default_rng(0))
        assert placed == np.argsort(np.linalg.norm(items.coordinates - user, axis=1)).tolist()
        assert "contradict each other" in strategy.status(items, history)

    def test_even_then_items_at_the_same_place_are_not_asked_about(self):
        points = np.random.default_rng(2).normal(size=(6, 2))
        items = Items(np.concatenate([points, points]))
        history = [observed(items, 0, 1), observed(items, 1, 0)]
        pairs = []
        while (pair := ActRank().next(items, history, np.random.default_rng(0))) is not None:
            pairs.append(pair)
            history.append(asked(items, pair, winner=min(pair)))
        assert len(pairs) > 20
        assert all(one % 6 != two % 6 for one, two in pairs)
        assert "complete; the answers contradict" in ActRank().status(items, history, np.random.default_rng(0))

    def test_a_complete_ranking_is_reported_to_who_brings_the_generator(self):
        items = Items(np.random.default_rng(0).normal(size=(6, 2)))
        strategy = ActRank()
        history = interview(strategy, items, min)
        assert strategy.status(items, history) is None
        assert strategy.status(items, history, np.random.default_rng(0)) == "the ranking of all 6 items is complete"
        assert strategy.status(items, history[:-1], np.random.default_rng(0)) is None


class TestReplay:
    @pytest.fixture
    def search(self):
        rng = np.random.default_rng(11)
        items = Items(rng.normal(size=(60, 3)))
        strategy = ActRank(votes=2, box=(-1.0, 1.0))
        user = rng.uniform(-1, 1, 3)
        history, said = [], []
        while (pair := strategy.next(items, history, np.random.default_rng(5))) is not None:
            said.append((pair, strategy.estimate(items, history).tolist()))
            turn = rng.random()
            if turn < 0.1:
                history.append(asked(items, pair, "skip"))
            elif turn < 0.2:
                history.append(asked(items, pair, "tie"))
            elif turn < 0.3:
                one, two = rng.choice(60, 2, replace=False).tolist()
                winner = nearer(items, user, (one, two))
                history.append(observed(items, winner, one + two - winner))
            else:
                history.append(asked(items, pair, winner=nearer(items, user, pair)))
        return items, strategy, history, said

    def test_who_sees_the_whole_history_at_once_says_the_same(self, search):
        items, strategy, history, said = search
        assert len(history) > 30
        for length in (0, 1, len(history) // 2, len(history) - 1):
            fresh = ActRank(votes=2, box=(-1.0, 1.0))
            pair = fresh.next(items, tuple(history[:length]), np.random.default_rng(5))
            assert (pair, fresh.estimate(items, history[:length]).tolist()) == said[length]
        assert strategy.next(items, history, np.random.default_rng(5)) is None

    def test_a_shortened_history_gives_what_it_gave_before(self, search):
        items, strategy, history, said = search
        for length in range(len(history) - 1, -1, -7):
            pair = strategy.next(items, history[:length], np.random.default_rng(5))
            assert (pair, strategy.estimate(items, history[:length]).tolist()) == said[length]

    def test_either_answer_can_be_looked_into_first(self, search):
        items, strategy, history, said = search
        length = next(n for n in range(10, len(history)) if history[n].winner is not None)
        event = history[length]
        other = Event(event.left, event.right, "answer", event.loser, event.query)
        strategy.next(items, [*history[:length], other], np.random.default_rng(5))
        pair = strategy.next(items, history[: length + 1], np.random.default_rng(5))
        assert pair == said[length + 1][0]

    def test_what_is_remembered_is_no_part_of_the_strategy(self, search):
        items, strategy, history, _ = search
        assert strategy == ActRank(votes=2, box=(-1.0, 1.0))
        assert "_" not in repr(strategy)
        for twin in (pickle.loads(pickle.dumps(strategy)), copy.deepcopy(strategy)):
            assert twin == strategy
            assert len(twin._rankings._entries) == 0
            np.testing.assert_array_equal(twin.estimate(items, history), strategy.estimate(items, history))

    def test_only_new_events_are_worked_on(self):
        steps = []

        def step(state, event, position):
            steps.append(position)
            return [*state, event]

        cache = FoldCache()
        events = [Event(0, n, "skip") for n in range(1, 20)]
        for length in range(20):
            assert cache.fold("key", events[:length], list, step) == events[:length]
        assert steps == list(range(19))
        assert cache.fold("key", events[:-3], list, step) == events[:-3]
        assert len(steps) == 19
        assert cache.fold("other", events, list, step) == events
        assert len(steps) == 38
        assert len(cache._entries) == CAPACITY


class TestParameters:
    def test_the_box_comes_from_the_prior(self):
        items = Items(np.eye(2))
        uniform = ActRank().resolved(items, UniformBox(-2.0, 3.0))
        assert uniform.box == ((-2.0, -2.0), (3.0, 3.0))
        gaussian = ActRank().resolved(items, GaussianPrior(np.array([1.0, 0.0]), np.array([4.0, 0.25])))
        assert gaussian.box == ((-7.0, -2.0), (9.0, 2.0))
        given = ActRank(box=(0, 1))
        assert given.resolved(items, UniformBox()) is given
        assert given.estimate(items, []) == pytest.approx([0.5, 0.5])

    def test_without_a_box_the_items_give_it(self):
        items = Items([[0.0, 1.0], [2.0, 5.0], [1.0, 4.0]])
        assert ActRank().estimate(items, []) == pytest.approx([1.0, 3.0])

    @pytest.mark.parametrize("votes", [0, -1, 1.5, "3", True, None])
    def test_votes_must_be_a_whole_number(self, votes):
        with refused("votes") as caught:
            ActRank(votes=votes)
        assert f"votes of ActRank is {votes!r}: give a whole number, at least 1" in str(caught.value)

    @pytest.mark.parametrize(
        ("box", "text"),
        [
            (3.0, "give (low, high)"),
            ((1.0,), "give (low, high)"),
            ("ab", "give (low, high)"),
            ((1.0, 0.0), "low must be below high"),
            (((0.0, 0.0), (1.0, 0.0)), "low must be below high"),
            (((0.0, 0.0), (1.0, 1.0, 1.0)), "2 lower and 3 upper bounds"),
            ((0.0, np.inf), "give finite numbers"),
            ((0.0, "x"), "give finite numbers"),
            ((0.0, [[1.0]]), "give finite numbers"),
        ],
    )
    def test_an_invalid_box_is_refused(self, box, text):
        with refused("box") as caught:
            ActRank(box=box)
        assert text in str(caught.value)

    def test_a_box_of_other_dimensions_than_the_items_is_refused(self):
        with refused("box") as caught:
            ActRank(box=((0, 0, 0), (1, 1, 1))).estimate(Items(np.eye(2)), [])
        assert "has 3 dimensions, but the items have 2" in str(caught.value)


@pytest.mark.slow
@pytest.mark.skipif("PAIRSEEK_DATA" not in os.environ, reason="PAIRSEEK_DATA does not name the folder of data")
def test_accuracy_on_food10k_agrees_with_the_authors_program():
    folder = Path(os.environ["PAIRSEEK_DATA"])
    reference = json.loads((folder / "reference" / "accuracy.json").read_text())["d4 matched normalized"]["ActRank-1"]
    noise = json.loads((folder / "data" / "food10k" / "noise.json").read_text())["4"]
    k = noise["k"]["logistic"]["normalized"]["k"]
    items = Items(np.load(folder / "data" / "food10k" / "items-d04.npy")).scaled()
    marks = (5, 10, 20)
    errors = np.empty((40, len(marks)))
    for number in range(len(errors)):
        rng = np.random.default_rng([1, number])
        user = rng.uniform(-1, 1, 4)

        def choose(pair, user=user, rng=rng):
            plane = bisector(*items.coordinates[list(pair)])
            return pair[0] if rng.random() < expit(k * (plane[0] @ user - plane[1])) else pair[1]

        strategy = ActRank(box=(-1.0, 1.0))
        history = interview(strategy, items, choose, seed=number, most=marks[-1])
        for column, mark in enumerate(marks):
            errors[number, column] = np.sum((strategy.estimate(items, history[:mark]) - user) ** 2)
    for column, mark in enumerate(marks):
        theirs = reference[str(mark)]
        own = errors[:, column].std(ddof=1) / np.sqrt(len(errors))
        assert abs(errors[:, column].mean() - theirs["mse"]) < 3 * np.hypot(own, theirs["se"])
