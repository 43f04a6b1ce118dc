"""Tests of GaussCloud: nu-SVM against other solvers, stages against their definition, replay against itself."""

from __future__ import annotations

import itertools
import pickle
import sys

import numpy as np
import pytest
import scipy
from scipy.optimize import linprog, minimize

from helpers.refusals import missing_extra, refused
from pairseek.core.types import Event, Query
from pairseek.model.items import Items
from pairseek.model.priors import UniformBox
from pairseek.pairs.strategies.baselines import nusvm as _nusvm
from pairseek.pairs.strategies.baselines.cache import LRUCache
from pairseek.pairs.strategies.baselines.facet import Facet
from pairseek.pairs.strategies.baselines.gausscloud import GaussCloud, separating_point
from pairseek.pairs.strategies.baselines.nearest import nearest_pairs
from pairseek.pairs.strategies.baselines.nusvm import _margins, extended_nu_svm, least_nu, linear_programme, nu_svm


def asked(items, pair, outcome="answer", winner=None):
    left, right = (items.ids[row] for row in pair)
    won = None if winner is None else items.ids[winner]
    return Event(left, right, outcome, won, Query("q", left, right))


def observed(items, winner, loser):
    return Event(items.ids[winner], items.ids[loser], "answer", items.ids[winner])


def nearer(items, user, pair):
    return min(pair, key=lambda row: float(np.sum((items.coordinates[row] - user) ** 2)))


def interview(strategy, items, choose, *, seed=0):
    history = []
    while (pair := strategy.next(items, history, np.random.default_rng(seed))) is not None:
        history.append(asked(items, pair, winner=choose(pair)))
    return history


def noisy_rows(m, k, wrong, seed):
    """Return examples around a random direction, some with reversed sign."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(m, k))
    rows *= np.sign(rows @ rng.normal(size=k))[:, None]
    rows[rng.permutation(m)[:wrong]] *= -1
    return rows


def primal(rows, nu, towards):
    """min -nu rho + mean(ξ), Zw >= rho - ξ, ξ >= 0, w̃·w = 2, written out."""
    m, k = rows.shape
    found = linprog(
        np.concatenate([np.zeros(k), np.full(m, 1 / m), [-nu]]),
        A_ub=np.hstack([-rows, -np.eye(m), np.ones((m, 1))]),
        b_ub=np.zeros(m),
        A_eq=np.concatenate([towards, np.zeros(m + 1)])[None],
        b_eq=[2.0],
        bounds=[(None, None)] * k + [(0, None)] * m + [(None, None)],
    )
    return found.x[:k], found.x[-1]


class TestNuSvm:
    def test_the_least_nu_is_the_limit_for_hard_margins(self):
        # for infinite C the dual becomes: maximise mean(β) with Z'β = 0, 0 <= β <= 1
        for seed, wrong in itertools.product(range(3), (3, 8)):
            rows = noisy_rows(30, 4, wrong, seed)
            limit = linprog(-np.full(30, 1 / 30), A_eq=rows.T, b_eq=np.zeros(4), bounds=(0, 1))
            assert limit.fun < -0.1
            # the next term is of the order |w|²/(C m), here below 1e-4
            assert least_nu(rows) == pytest.approx(-limit.fun, abs=1e-4)

    def test_the_least_nu_of_separable_examples_is_the_squared_weight_over_c_m(self):
        rows = noisy_rows(12, 3, 0, 1)
        hard = minimize(
            lambda w: w @ w / 2,
            np.linalg.lstsq(rows, np.ones(12) * 3, rcond=None)[0],
            jac=lambda w: w,
            constraints={"type": "ineq", "fun": lambda w: rows @ w - 1, "jac": lambda w: rows},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert np.min(rows @ hard.x) == pytest.approx(1.0, abs=1e-6)
        assert least_nu(rows) == pytest.approx(hard.x @ hard.x / (1e6 * 12), rel=1e-2)

    @pytest.mark.parametrize(("nu", "wrong"), [(0.5, 0), (0.8, 2), (0.95, 4)])
    def test_the_plain_nu_svm_is_that_of_another_solver(self, nu, wrong):
        rows = noisy_rows(14, 3, wrong, 3)
        assert nu > least_nu(rows)
        # the dual: min |Z'α|²/2 with 0 <= α <= 1/m and Σα >= nu; w = Z'α
        found = minimize(
            lambda a: np.sum((rows.T @ a) ** 2) / 2,
            np.full(14, nu / 14),
            jac=lambda a: rows @ (rows.T @ a),
            bounds=[(0, 1 / 14)] * 14,
            constraints={"type": "ineq", "fun": lambda a: a.sum() - nu, "jac": lambda a: np.ones(14)},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        separator = nu_svm(rows, nu)
        np.testing.assert_allclose(separator.weights, rows.T @ found.x, atol=1e-5)

    def test_the_plain_nu_svm_meets_its_optimality_conditions(self):
        rows = noisy_rows(40, 5, 6, 4)
        nu = 0.9
        weights, margin = nu_svm(rows, nu)
        excess = rows @ weights - margin
        # Z'α = w with α = 1/m under the margin, 0 above it and in between on it, Σα = nu as rho > 0
        on = np.abs(excess) < 1e-7
        under = excess < -1e-7
        shares = np.linalg.lstsq(
            np.vstack([rows[on].T, np.ones(on.sum())]),
            np.append(weights - rows[under].sum(axis=0) / 40, nu - under.sum() / 40),
            rcond=None,
        )[0]
        assert margin > 0
        np.testing.assert_allclose(rows[on].T @ shares + rows[under].sum(axis=0) / 40, weights, atol=1e-7)
        assert shares.sum() + under.sum() / 40 == pytest.approx(nu, abs=1e-7)
        assert np.all((shares > -1e-7) & (shares < 1 / 40 + 1e-7))

    def test_the_linear_programme_is_the_one_written_out(self):
        rows = noisy_rows(40, 5, 14, 5)
        towards = np.random.default_rng(0).normal(size=5)
        weights, margin = primal(rows, 0.5, towards)
        found = linear_programme(rows, 0.5, towards)
        np.testing.assert_allclose(found.weights, weights, atol=1e-9)
        assert found.margin == pytest.approx(margin, abs=1e-9)

    @pytest.mark.parametrize("seed", range(6))
    def test_a_facet_turned_towards_another_direction_solves_its_linear_programme(self, seed):
        rows = noisy_rows(50, 4, 18, seed)
        assert least_nu(rows) > 0.55
        rng = np.random.default_rng(seed)
        towards = rng.normal(size=4)
        facet = Facet.of_solution(rows, linear_programme(rows, 0.5, towards))
        for turn in (0.05, 0.3, 0.5):
            towards = towards + turn * rng.normal(size=4)
            facet, separator = facet.pivoted(rows, 0.5, towards)
            weights, margin = primal(rows, 0.5, towards)
            np.testing.assert_allclose(separator.weights, weights, rtol=1e-7, atol=1e-9)
            assert separator.margin == pytest.approx(margin, abs=1e-9)

    def test_a_facet_is_not_turned_right_round(self):
        rows = noisy_rows(50, 4, 18, 0)
        towards = np.random.default_rng(0).normal(size=4)
        facet = Facet.of_solution(rows, linear_programme(rows, 0.5, towards))
        assert facet.pivoted(rows, 0.5, 3 * towards) is not None
        assert facet.pivoted(rows, 0.5, -towards) is None

    @pytest.mark.parametrize("rho", [False, True])
    def test_the_constraints_are_the_blocks_written_out(self, rho):
        rows = noisy_rows(7, 3, 2, 0)
        eye = scipy.sparse.eye(7)
        blocks = [[-rows, -eye], [None, -eye]]
        if rho:
            blocks = [[-rows, -eye, np.ones((7, 1))], [None, -eye, None], [None, None, -np.ones((1, 1))]]
        np.testing.assert_array_equal(_margins(rows, rho=rho).toarray(), scipy.sparse.bmat(blocks).toarray())

    @pytest.mark.parametrize("seed", range(4))
    def test_the_extended_nu_svm_is_its_definition(self, seed, monkeypatch):
        rows = noisy_rows(30, 4, 10, seed)
        least = least_nu(rows)
        assert least >= 0.5
        towards = nu_svm(rows, 1.01 * least).weights
        for _ in range(600):
            weights, _ = primal(rows, 0.5, towards)
            if np.linalg.norm(towards - weights) <= 1e-3 * np.linalg.norm(weights):
                break
            towards = 0.7 * towards + 0.3 * weights
        found, extended = extended_nu_svm(rows, 0.5)
        assert extended
        np.testing.assert_allclose(found.weights, weights, atol=1e-8)
        assert np.linalg.norm(found.weights) == pytest.approx(np.sqrt(2), rel=2e-3)
        monkeypatch.setattr(Facet, "pivoted", lambda *_: None)
        again, _ = extended_nu_svm(rows, 0.5)
        np.testing.assert_allclose(again.weights, weights, atol=1e-8)

    def test_above_the_least_nu_the_plain_one_is_taken(self):
        rows = noisy_rows(30, 4, 2, 0)
        found, extended = extended_nu_svm(rows, 0.5)
        assert not extended
        np.testing.assert_allclose(found.weights, nu_svm(rows, 0.5).weights)

    def test_examples_that_cancel_have_no_direction(self):
        row = np.array([[1.0, 2.0, -0.5]])
        assert least_nu(np.concatenate([row, -row])) == pytest.approx(1.0)
        found, extended = extended_nu_svm(np.concatenate([row, -row]), 0.5)
        assert extended
        assert found is None

    def test_the_missing_solver_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "clarabel", None)
        items = Items([[0.0, 1.0], [1.0, 0.0]])
        with missing_extra("baselines"):
            GaussCloud(1, 5).estimate(items, [observed(items, 0, 1)])


class TestEstimate:
    def test_true_answers_lead_to_the_user(self):
        rng = np.random.default_rng(0)
        items = Items(rng.uniform(-1.5, 1.5, (4000, 2)))
        errors = []
        for number in range(8):
            user = rng.uniform(-0.8, 0.8, 2)
            row = []
            for stages in (1, 4):
                strategy = GaussCloud(stages, 120, box=(-1.0, 1.0))
                history = interview(strategy, items, lambda pair, u=user: nearer(items, u, pair), seed=number)
                row.append(np.linalg.norm(strategy.estimate(items, history) - user))
            errors.append(row)
        # the last of four clouds has spread 0.87/8 = 0.11, which its 30 planes cover densely
        one, four = np.median(errors, axis=0)
        assert np.max(errors, axis=0)[1] < 0.11
        assert four < 0.05
        assert one > 1.5 * four

    def test_one_answer_that_points_outwards_is_at_infinity_and_the_middle_is_kept(self):
        items = Items([[0.5, 0.0], [0.1, 0.0], [-0.9, 0.2]])
        strategy = GaussCloud(1, 5, box=(-1.0, 1.0))
        outwards = [observed(items, 0, 1)]
        assert strategy.status(items, outwards) == "the estimate lies at infinity: the previous one is kept"
        np.testing.assert_array_equal(strategy.estimate(items, outwards), [0.0, 0.0])

    def test_one_answer_that_points_inwards_is_the_margin_of_one_example(self):
        items = Items([[0.5, 0.0], [0.8, 0.4]])
        strategy = GaussCloud(1, 5, box=(-5.0, 5.0))
        # in units of 5 the only example is z = (a, -b) and w is its multiple, so x = a/(-b)
        p, q = items.coordinates / 5
        expected = 5 * (p - q) / ((q @ q - p @ p) / 2)
        assert np.all(np.abs(expected) > 5)
        np.testing.assert_allclose(strategy.estimate(items, [observed(items, 0, 1)]), np.clip(expected, -5, 5))
        assert strategy.status(items, [observed(items, 0, 1)]) is None

    def test_an_answer_that_leads_to_infinity_leaves_the_estimate_as_it_was(self):
        rng = np.random.default_rng(1)
        items = Items(rng.uniform(-1, 1, (40, 2)))
        strategy = GaussCloud(1, 50, box=(-1.0, 1.0))
        kept = 0
        for _ in range(60):
            history = []
            for _ in range(3):
                winner, loser = rng.choice(40, 2, replace=False).tolist()
                before = strategy.estimate(items, history)
                history.append(observed(items, winner, loser))
                if strategy.status(items, history) is not None:
                    kept += 1
                    np.testing.assert_array_equal(strategy.estimate(items, history), before)
        assert kept > 5

    def test_the_extended_point_is_shrunk_into_the_ball_around_the_box(self):
        rng = np.random.default_rng(2)
        shrunk, kept = 0, 0
        for _ in range(40):
            winners, losers = rng.normal(size=(2, 30, 2))
            normals, thresholds = winners - losers, (np.sum(winners**2, axis=1) - np.sum(losers**2, axis=1)) / 2
            found, extended = extended_nu_svm(np.column_stack([normals, -thresholds]), 0.5)
            point = separating_point(winners, losers)
            if found.weights[2] <= 0:
                assert point is None
                continue
            expected = found.weights[:2] / found.weights[2]
            if extended and np.linalg.norm(expected) > np.sqrt(2):
                expected *= np.sqrt(2) / np.linalg.norm(expected)
                shrunk += 1
            else:
                kept += 1
            np.testing.assert_allclose(point, expected)
        assert shrunk > 0
        assert kept > 5

    def test_answers_at_random_keep_the_estimate_inside_the_box(self):
        rng = np.random.default_rng(2)
        items = Items(rng.normal(size=(60, 3)))
        strategy = GaussCloud(1, 80, box=(-0.2, 0.3))
        history = [observed(items, *rng.choice(60, 2, replace=False).tolist()) for _ in range(60)]
        estimates = np.array([strategy.estimate(items, history[:length]) for length in range(1, 61, 6)])
        assert np.all((estimates >= -0.2) & (estimates <= 0.3))
        assert np.any(estimates == 0.3)

    def test_origin_and_unit_are_those_of_the_box(self):
        rng = np.random.default_rng(3)
        points = rng.normal(size=(30, 2))
        plain, moved = Items(points), Items(7.0 + 40.0 * points)
        pairs = [tuple(rng.choice(30, 2, replace=False).tolist()) for _ in range(25)]
        gauss_cloud = GaussCloud(2, 30, box=(-1.0, 1.0))
        two = GaussCloud(2, 30, box=(-33.0, 47.0))
        for length in (5, 15, 25):
            first = gauss_cloud.estimate(plain, [observed(plain, *pair) for pair in pairs[:length]])
            second = two.estimate(moved, [observed(moved, *pair) for pair in pairs[:length]])
            np.testing.assert_allclose(7.0 + 40.0 * first, second, rtol=1e-5, atol=1e-4)

    def test_before_the_first_answer_it_is_the_middle_of_the_box(self):
        items = Items([[0.0, 1.0], [2.0, 5.0]])
        np.testing.assert_array_equal(GaussCloud(1, 5).estimate(items, []), [1.0, 3.0])
        np.testing.assert_array_equal(GaussCloud(1, 5, box=(0, 4)).estimate(items, []), [2.0, 2.0])


class TestStages:
    def test_the_last_stage_takes_the_rest(self):
        strategy = GaussCloud(4, 83)
        assert [strategy.size(stage) for stage in range(4)] == [20, 20, 20, 23]
        assert GaussCloud(1, 7).size(0) == 7

    def test_the_spread_is_the_largest_of_a_coordinate_and_halves(self):
        points = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 3.0, 2.0]
        spreads = [GaussCloud(3, 30).spread(Items(points), stage) for stage in range(3)]
        largest = max(np.sqrt(sum((x - column.mean()) ** 2 for x in column) / 49) for column in points.T)
        np.testing.assert_allclose(spreads, [largest, largest / 2, largest / 4])

    def test_each_stage_asks_about_items_of_its_cloud(self):
        rng = np.random.default_rng(1)
        items = Items(rng.uniform(-2, 2, (20_000, 2)))
        user = np.array([0.3, -0.2])
        strategy = GaussCloud(3, 360, box=(-1.0, 1.0))
        history = interview(strategy, items, lambda pair: nearer(items, user, pair))
        for stage in (1, 2):
            part = history[120 * stage : 120 * (stage + 1)]
            centre = strategy.estimate(items, history[: 120 * stage])
            rows = [items.index(side) for event in part for side in (event.left, event.right)]
            offsets = items.coordinates[rows] - centre
            spread = strategy.spread(items, stage)
            # 480 normal draws: the standard error of their standard deviation is spread/31, of their mean spread/22
            assert np.sqrt(np.mean(offsets**2)) == pytest.approx(spread, rel=4 / 31)
            assert np.all(np.abs(offsets.mean(axis=0)) < 4 * spread / np.sqrt(240))

    def test_as_many_distinct_pairs_are_asked_as_were_announced(self):
        rng = np.random.default_rng(2)
        items = Items(rng.normal(size=(60, 2)), ids=[f"n{i}" for i in range(60)])
        strategy = GaussCloud(3, 50, box=(-1.0, 1.0))
        history = interview(strategy, items, lambda pair: nearer(items, np.array([0.2, 0.1]), pair))
        assert len(history) == 50
        assert len({frozenset((event.left, event.right)) for event in history}) == 50
        assert all(event.left != event.right for event in history)
        assert strategy.status(items, history) == "all 50 queries were asked"
        assert strategy.status(items, history[:-1]) is None

    def test_ties_and_skips_count_as_asked_and_tell_nothing(self):
        items = Items(np.random.default_rng(3).normal(size=(40, 2)))
        strategy = GaussCloud(2, 12, box=(-1.0, 1.0))
        history = []
        for outcome in ["tie", "skip"] * 6:
            pair = strategy.next(items, history, np.random.default_rng(0))
            history.append(asked(items, pair, outcome))
        assert strategy.next(items, history, np.random.default_rng(0)) is None
        assert len({frozenset((event.left, event.right)) for event in history}) == 12
        np.testing.assert_array_equal(strategy.estimate(items, history), [0.0, 0.0])

    def test_observed_answers_enter_the_estimate_and_do_not_count(self):
        rng = np.random.default_rng(4)
        items = Items(rng.normal(size=(40, 2)))
        user = np.array([0.6, 0.5])
        strategy = GaussCloud(2, 10, box=(-1.0, 1.0))
        seen = []
        for _ in range(30):
            pair = tuple(rng.choice(40, 2, replace=False).tolist())
            winner = nearer(items, user, pair)
            seen.append(observed(items, winner, sum(pair) - winner))
        assert np.linalg.norm(strategy.estimate(items, seen) - user) < np.linalg.norm(user) / 2
        history = list(seen)
        while (pair := strategy.next(items, history, np.random.default_rng(0))) is not None:
            history.append(asked(items, pair, winner=nearer(items, user, pair)))
        assert len(history) == 40

    def test_few_items_are_asked_about_again_but_not_at_once(self):
        items = Items([[0.0, 0.0], [1.0, 0.2], [0.1, 1.0]])
        strategy = GaussCloud(2, 12)
        history = interview(strategy, items, min)
        assert len(history) == 12
        pairs = [frozenset((event.left, event.right)) for event in history]
        assert len(set(pairs)) == 3
        assert all(one != two for one, two in itertools.pairwise(pairs))

    def test_the_only_pair_is_asked_again_unless_it_was_skipped(self):
        items = Items([[0.0], [1.0], [1.0]])
        strategy = GaussCloud(1, 5)
        pair = strategy.next(items, [], np.random.default_rng(0))
        assert set(pair) == {0, 1}
        again = strategy.next(items, [asked(items, pair, winner=0)], np.random.default_rng(0))
        assert set(again) == {0, 1}
        assert strategy.next(items, [asked(items, pair, "skip")], np.random.default_rng(0)) is None

    def test_points_are_replaced_by_their_nearest_items_at_distinct_places(self):
        rng = np.random.default_rng(5)
        points = rng.normal(size=(30, 3))
        items = Items(np.concatenate([points, points[:10]]))
        first, second = rng.normal(size=(2, 200, 3))
        second[:50] = first[:50]
        for one, two, pair in zip(first, second, nearest_pairs(items, first, second), strict=True):
            near = int(np.argmin(np.linalg.norm(points - one, axis=1)))
            distance = np.linalg.norm(points - two, axis=1)
            distance[near] = np.inf
            assert pair == (near, int(np.argmin(distance)))


class TestReplay:
    @pytest.fixture
    def search(self):
        rng = np.random.default_rng(7)
        items = Items(rng.normal(size=(80, 3)))
        strategy = GaussCloud(3, 30, box=(-1.0, 1.0))
        user = rng.uniform(-1, 1, 3)
        history, said = [], []
        while (pair := strategy.next(items, history, np.random.default_rng(5))) is not None:
            said.append((pair, strategy.estimate(items, history).tolist()))
            turn = rng.random()
            if turn < 0.1:
                history.append(asked(items, pair, "skip"))
            elif turn < 0.2:
                one, two = rng.choice(80, 2, replace=False).tolist()
                history.append(observed(items, one, two))
            else:
                history.append(asked(items, pair, winner=nearer(items, user, pair)))
        return items, strategy, history, said

    def test_who_sees_the_whole_history_at_once_says_the_same(self, search):
        items, _, history, said = search
        for length in (0, 1, 11, 20, len(history) - 1):
            fresh = GaussCloud(3, 30, box=(-1.0, 1.0))
            pair = fresh.next(items, tuple(history[:length]), np.random.default_rng(5))
            assert (pair, fresh.estimate(items, history[:length]).tolist()) == said[length]

    def test_a_shortened_history_gives_what_it_gave_before(self, search):
        items, strategy, history, said = search
        for length in range(len(history) - 1, -1, -5):
            pair = strategy.next(items, history[:length], np.random.default_rng(5))
            assert (pair, strategy.estimate(items, history[:length]).tolist()) == said[length]

    def test_another_generator_gives_other_pairs(self, search):
        items, strategy, _, _ = search
        assert len({strategy.next(items, [], np.random.default_rng(seed)) for seed in range(6)}) == 6

    def test_an_estimate_is_solved_for_once(self, search, monkeypatch):
        items, strategy, history, _ = search
        before = strategy.estimate(items, history)

        def fail(*_):
            raise AssertionError("solved again")

        monkeypatch.setattr(_nusvm, "least_nu", fail)
        np.testing.assert_array_equal(strategy.estimate(items, history), before)
        twin = pickle.loads(pickle.dumps(strategy))
        assert twin == strategy
        with pytest.raises(AssertionError, match="solved again"):
            twin.estimate(items, history)

    def test_the_newest_results_are_remembered_and_no_more(self):
        cache = LRUCache(3)
        for key in range(5):
            assert cache.recall(key, lambda key=key: key * 10) == key * 10
        assert [cache.recall(key, lambda: None) for key in (2, 3, 4)] == [20, 30, 40]
        assert cache.recall(0, lambda: "new") == "new"


class TestParameters:
    def test_the_box_comes_from_the_prior(self):
        items = Items(np.eye(2))
        assert GaussCloud(2, 20).resolved(items, UniformBox()).box == ((-1.0, -1.0), (1.0, 1.0))
        given = GaussCloud(2, 20, box=(0.0, 1.0))
        assert given.resolved(items, UniformBox()) is given

    @pytest.mark.parametrize("value", [0, 2.0, "4", True])
    def test_stages_and_answers_must_be_whole_numbers(self, value):
        with refused("stages") as caught:
            GaussCloud(value, 20)
        assert f"stages of GaussCloud is {value!r}: give a whole number, at least 1" in str(caught.value)
        with refused("answers"):
            GaussCloud(1, value)

    def test_every_stage_needs_an_answer(self):
        with refused("answers") as caught:
            GaussCloud(4, 3)
        assert "4 stages but only 3 answers: give at least one per stage" in str(caught.value)

    def test_a_bad_box_is_refused(self):
        with refused("box"):
            GaussCloud(2, 20, box=(1.0, 0.0))
