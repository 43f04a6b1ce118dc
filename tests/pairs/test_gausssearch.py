"""Tests of GaussSearch: closed forms against quadrature, the search against simulated users and itself."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy.special import expit, ndtr

from helpers.refusals import refused
from pairseek.core.types import Event, Query
from pairseek.model.items import Items
from pairseek.model.priors import GaussianPrior, UniformBox
from pairseek.pairs.strategies.baselines.gaussian import Gaussian
from pairseek.pairs.strategies.baselines.gausssearch import GaussSearch
from pairseek.pairs.strategies.baselines.planes import bisector


def asked(items, pair, outcome="answer", winner=None):
    left, right = (items.ids[row] for row in pair)
    won = None if winner is None else items.ids[winner]
    return Event(left, right, outcome, won, Query("q", left, right))


def observed(items, winner, loser):
    return Event(items.ids[winner], items.ids[loser], "answer", items.ids[winner])


def random_belief(d, seed):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(d, d))
    normal = rng.normal(size=d)
    belief = Gaussian(rng.normal(size=d), factor @ factor.T / d + 0.1 * np.eye(d))
    return belief, normal / np.linalg.norm(normal), float(rng.normal())


def along_the_normal(belief, normal, offset, likelihood):
    """Return moments after a likelihood in h = normal·w - offset, by quadrature over h and regression on h."""
    shadow = belief.covariance @ normal
    centre, variance = float(normal @ belief.mean) - offset, float(normal @ shadow)
    h = np.linspace(centre - 12 * np.sqrt(variance), centre + 12 * np.sqrt(variance), 20_001)
    weights = np.exp(-((h - centre) ** 2) / (2 * variance)) * likelihood(h)
    weights /= weights.sum()
    mean = weights @ h
    after = weights @ (h - mean) ** 2
    gain = shadow / variance
    return belief.mean + gain * (mean - centre), belief.covariance + np.outer(gain, gain) * (after - variance)


class TestUpdate:
    @pytest.mark.parametrize(("d", "seed", "noise"), [(1, 0, 0.5), (3, 1, 0.1), (4, 2, 2.0), (6, 3, 0.01)])
    def test_an_answer_gives_the_moments_of_quadrature_along_the_normal(self, d, seed, noise):
        belief, normal, offset = random_belief(d, seed)
        mean, covariance = along_the_normal(belief, normal, offset, lambda h: ndtr(h / noise))
        after = belief.after_answer(normal, offset, noise)
        np.testing.assert_allclose(after.mean, mean, atol=1e-6)
        np.testing.assert_allclose(after.covariance, covariance, atol=1e-6)

    def test_an_answer_gives_the_moments_of_quadrature_over_the_plane(self):
        belief, normal, offset = random_belief(2, 5)
        axis = np.linspace(-9, 9, 601)
        points = np.array(list(itertools.product(axis, axis)))
        inverse = np.linalg.inv(belief.covariance)
        gap = points - belief.mean
        weights = np.exp(-0.5 * np.einsum("ni,ij,nj->n", gap, inverse, gap)) * ndtr((points @ normal - offset) / 0.4)
        weights /= weights.sum()
        mean = weights @ points
        covariance = (weights[:, None] * (points - mean)).T @ (points - mean)
        after = belief.after_answer(normal, offset, 0.4)
        np.testing.assert_allclose(after.mean, mean, atol=1e-7)
        np.testing.assert_allclose(after.covariance, covariance, atol=1e-7)

    def test_a_tie_gives_the_moments_of_its_gaussian(self):
        belief, normal, offset = random_belief(3, 6)
        mean, covariance = along_the_normal(belief, normal, offset, lambda h: np.exp(-(h**2) / (np.pi * 0.7**2)))
        after = belief.after_tie(normal, offset, 0.7)
        np.testing.assert_allclose(after.mean, mean, atol=1e-8)
        np.testing.assert_allclose(after.covariance, covariance, atol=1e-8)

    def test_near_the_plane_a_tie_is_half_an_answer_each_way(self):
        belief = Gaussian(np.array([0.2, 0.1]), 0.04 * np.eye(2))
        normal = np.array([0.6, 0.8])
        half = along_the_normal(belief, normal, 0.1, lambda h: np.sqrt(ndtr(h) * ndtr(-h)))
        after = belief.after_tie(normal, 0.1, 1.0)
        # the two logarithms differ by fourth-order terms, about (h/noise)^4/20, with h about 0.2
        np.testing.assert_allclose(after.mean, half[0], atol=2e-4)
        np.testing.assert_allclose(after.covariance, half[1], atol=2e-5)

    def test_an_answer_that_could_hardly_be_moves_the_mean_to_the_plane(self):
        belief = Gaussian(np.array([-50.0]), np.eye(1))
        after = belief.after_answer(np.ones(1), 0.0, 0.5)
        # far in the tail the belief moves by variance/(variance + noise²) of the way
        assert after.mean == pytest.approx([-50 + 50 / 1.25], abs=0.1)
        assert 0.0 < after.covariance[0, 0] < 1.0

    def test_an_answer_narrows_the_belief_along_the_normal_only(self):
        belief = Gaussian(np.zeros(3), np.diag([1.0, 2.0, 3.0]))
        after = belief.after_answer(np.array([0.0, 1.0, 0.0]), 0.3, 0.5)
        assert after.covariance[1, 1] < 2.0
        np.testing.assert_array_equal(np.diag(after.covariance)[[0, 2]], [1.0, 3.0])
        assert after.mean[1] > 0.0


class TestPairs:
    def test_the_mirror_goes_through_the_mean_across_the_widest_direction(self):
        belief, _, _ = random_belief(4, 7)
        values, vectors = np.linalg.eigh(belief.covariance)
        first, second = belief.mirrored(50, np.random.default_rng(0))
        for one, two in zip(first, second, strict=True):
            normal, offset = bisector(one, two)
            assert abs(normal @ vectors[:, -1]) == pytest.approx(1.0)
            assert normal @ belief.mean == pytest.approx(offset)
        many, _ = belief.mirrored(40_000, np.random.default_rng(1))
        # standard errors: about sqrt(2/40000) = 0.7 % of the largest eigenvalue
        np.testing.assert_allclose(np.cov(many, rowvar=False), belief.covariance, atol=0.04 * values[-1])

    def test_among_dense_items_the_pair_is_divided_by_that_plane(self):
        rng = np.random.default_rng(2)
        items = Items(rng.uniform(-3, 3, (50_000, 2)))
        strategy = GaussSearch(noise=0.5, mean=(0.5, -0.5), covariance=((1.0, 0.0), (0.0, 0.2)))
        for seed in range(10):
            pair = strategy.next(items, [], np.random.default_rng(seed))
            one, two = items.coordinates[list(pair)]
            # every point has an item about 0.01 away
            assert abs((one + two)[0] / 2 - 0.5) < 0.05
            assert abs(one[1] - two[1]) < 0.1

    def test_pairs_depend_on_the_generator_and_on_the_number_of_events(self):
        items = Items(np.random.default_rng(3).normal(size=(500, 3)))
        strategy = GaussSearch()
        assert len({strategy.next(items, [], np.random.default_rng(seed)) for seed in range(8)}) > 5
        idle = Event(0, 1, "skip")
        assert len({strategy.next(items, [idle] * n, np.random.default_rng(0)) for n in range(8)}) > 5

    def test_a_skipped_pair_is_not_asked_again_nor_any_pair_twice_in_a_row(self):
        items = Items([[0.0, 0.0], [1.0, 0.1], [0.2, 1.0], [1.1, 0.9]])
        strategy = GaussSearch()
        history, skipped = [], set()
        for turn in range(60):
            pair = strategy.next(items, history, np.random.default_rng(4))
            assert frozenset(pair) not in skipped
            assert not history or set(pair) != {history[-1].left, history[-1].right}
            if turn in (3, 7, 20):
                skipped.add(frozenset(pair))
                history.append(asked(items, pair, "skip"))
            else:
                history.append(asked(items, pair, winner=pair[0]))

    def test_when_every_pair_was_skipped_it_ends_and_says_so(self):
        items = Items([[0.0, 0.0], [1.0, 0.1], [0.2, 1.0], [0.2, 1.0]])
        strategy = GaussSearch()
        history = []
        while (pair := strategy.next(items, history, np.random.default_rng(0))) is not None:
            assert strategy.status(items, history) is None
            history.append(asked(items, pair, "skip"))
        assert len(history) == 3
        assert strategy.status(items, history) == "every pair was skipped: no pair is left to ask"

    def test_the_only_pair_may_be_asked_twice_in_a_row(self):
        items = Items([[0.0], [1.0]])
        pair = GaussSearch().next(items, [], np.random.default_rng(0))
        again = GaussSearch().next(items, [asked(items, pair, winner=0)], np.random.default_rng(0))
        assert set(again) == {0, 1}


class TestSearch:
    def test_it_finds_simulated_users(self):
        rng = np.random.default_rng(0)
        items = Items(rng.normal(size=(3000, 3)))
        noise = 0.3
        before, after, spread = [], [], []
        for number in range(25):
            user = rng.uniform(-1, 1, 3)
            strategy = GaussSearch(noise=noise).resolved(items, UniformBox(-1.0, 1.0))
            history = []
            for _ in range(40):
                pair = strategy.next(items, history, np.random.default_rng(number))
                normal, offset = bisector(*items.coordinates[list(pair)])
                right = rng.random() < ndtr((normal @ user - offset) / noise)
                history.append(asked(items, pair, winner=pair[0] if right else pair[1]))
            before.append(np.sum(user**2))
            after.append(np.sum((strategy.estimate(items, history) - user) ** 2))
            spread.append(np.trace(strategy.belief(items, history).covariance))
        assert np.mean(before) == pytest.approx(1.0, abs=0.25)
        assert np.mean(after) < 0.1
        # the belief knows its own error, within the uncertainty of a mean over 25 users
        assert np.mean(after) == pytest.approx(np.mean(spread), rel=0.5)

    def test_observed_answers_count_as_any_other(self):
        items = Items(np.random.default_rng(1).normal(size=(20, 2)))
        strategy = GaussSearch()
        seen = strategy.estimate(items, [observed(items, 3, 5), observed(items, 7, 1)])
        heard = strategy.estimate(items, [asked(items, (5, 3), winner=3), asked(items, (7, 1), winner=7)])
        np.testing.assert_array_equal(seen, heard)
        assert not np.allclose(seen, strategy.estimate(items, []))

    def test_skips_and_items_at_the_same_place_tell_nothing(self):
        items = Items([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
        strategy = GaussSearch()
        history = [asked(items, (0, 1), "skip"), observed(items, 1, 2), Event(2, 1, "tie")]
        np.testing.assert_array_equal(strategy.estimate(items, history), items.coordinates.mean(axis=0))

    def test_a_tie_draws_the_belief_to_the_plane(self):
        items = Items([[0.0], [2.0], [7.0]])
        strategy = GaussSearch(noise=0.5)
        after = strategy.estimate(items, [asked(items, (0, 1), "tie")])
        assert 1.0 < after[0] < strategy.estimate(items, [])[0]


class TestReplay:
    @pytest.fixture
    def search(self):
        rng = np.random.default_rng(9)
        items = Items(rng.normal(size=(100, 3)), ids=[f"n{i}" for i in range(100)])
        strategy = GaussSearch(noise=0.4)
        history, said = [], []
        for _ in range(30):
            pair = strategy.next(items, history, np.random.default_rng(5))
            said.append((pair, strategy.estimate(items, history).tolist()))
            outcome = rng.choice(["answer", "tie", "skip"], p=[0.7, 0.15, 0.15])
            history.append(asked(items, pair, outcome, pair[0] if outcome == "answer" else None))
        return items, strategy, history, said

    def test_who_sees_the_whole_history_at_once_says_the_same(self, search):
        items, _, history, said = search
        for length in (0, 1, 13, 29):
            fresh = GaussSearch(noise=0.4)
            pair = fresh.next(items, tuple(history[:length]), np.random.default_rng(5))
            assert (pair, fresh.estimate(items, history[:length]).tolist()) == said[length]

    def test_a_shortened_history_gives_what_it_gave_before(self, search):
        items, strategy, history, said = search
        for length in range(29, -1, -4):
            pair = strategy.next(items, history[:length], np.random.default_rng(5))
            assert (pair, strategy.estimate(items, history[:length]).tolist()) == said[length]

    def test_what_is_remembered_is_no_part_of_the_strategy(self, search):
        items, strategy, history, _ = search
        twin = pickle.loads(pickle.dumps(strategy))
        assert twin == strategy == GaussSearch(noise=0.4)
        assert len(twin._beliefs._entries) == 0
        np.testing.assert_array_equal(twin.estimate(items, history), strategy.estimate(items, history))

    def test_changing_an_estimate_in_place_does_no_harm(self, search):
        items, strategy, history, _ = search
        before = strategy.estimate(items, history).tolist()
        strategy.estimate(items, history)[:] = 99.0
        assert strategy.estimate(items, history).tolist() == before


class TestParameters:
    def test_the_first_belief_comes_from_the_items_or_from_the_prior(self):
        items = Items(np.random.default_rng(0).normal(size=(30, 2)))
        own = GaussSearch().belief(items, [])
        np.testing.assert_allclose(own.mean, items.coordinates.mean(axis=0))
        np.testing.assert_allclose(own.covariance, np.cov(items.coordinates, rowvar=False))
        prior = GaussianPrior(np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]]))
        resolved = GaussSearch().resolved(items, prior)
        assert resolved.mean == (1.0, 2.0)
        assert resolved.covariance == ((2.0, 0.5), (0.5, 1.0))
        given = GaussSearch(noise=0.2, mean=[0.0, 0.0], covariance=np.eye(2))
        assert given.resolved(items, prior) == given

    def test_the_noise_makes_an_answer_one_deviation_away_right_as_often_as_the_default_response(self):
        items = Items(np.eye(2))
        resolved = GaussSearch().resolved(items, UniformBox(-3.0, 3.0))
        deviation = np.sqrt(6.0**2 / 12)
        assert ndtr(deviation / resolved.noise) == pytest.approx(expit(2.0))

    @pytest.mark.parametrize("noise", [0.0, -1.0, np.inf, np.nan, "1", True])
    def test_noise_must_be_above_zero(self, noise):
        with refused("noise") as caught:
            GaussSearch(noise=noise)
        assert f"noise of GaussSearch is {noise!r}: give a finite number above 0" in str(caught.value)

    @pytest.mark.parametrize("mean", [3.0, [], [[1.0]], [np.nan], ["a"]])
    def test_the_mean_must_be_a_row_of_numbers(self, mean):
        with refused("mean") as caught:
            GaussSearch(mean=mean)
        assert f"mean of GaussSearch is {mean!r}: give d finite numbers" in str(caught.value)

    @pytest.mark.parametrize("covariance", [1.0, [1.0, 2.0], [[1.0, np.inf], [0.0, 1.0]], [[1.0], [1.0, 2.0]]])
    def test_the_covariance_must_be_a_table_of_numbers(self, covariance):
        with refused("covariance") as caught:
            GaussSearch(covariance=covariance)
        assert "give d rows of d finite numbers" in str(caught.value)

    @pytest.mark.parametrize("covariance", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.0, 1.0]], [[1.0, 0.0]], [[0.0]]])
    def test_the_covariance_must_be_one(self, covariance):
        with refused("covariance") as caught:
            GaussSearch(covariance=covariance)
        assert "give a symmetric matrix without negative eigenvalues" in str(caught.value)

    def test_dimensions_must_be_those_of_the_items(self):
        with refused("mean") as caught:
            GaussSearch(mean=(0.0, 0.0, 0.0)).estimate(Items(np.eye(2)), [])
        assert "have 3 and 2 dimensions, but the items have 2" in str(caught.value)
