"""Contract tests of strategies that score pairs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

from pairseek.core.types import Belief, BeliefInfo, FloatArray
from pairseek.model.noise import NOISES
from pairseek.model.priors import UniformBox
from pairseek.model.responses import RESPONSES, Logistic
from pairseek.pairs.context import SelectionContext, best_of
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.rest import Resting
from pairseek.pairs.strategies.base import BaseUtility, Utility, utility_of
from pairseek.posteriors import Particles
from pairseek.posteriors.base import sampled_belief
from pairseek.search import Search
from pairseek.search.simulate import SimulatedUser
from pairseek.testing.scenes import ITEM_COUNT, ITEMS, belief_of, random_belief, random_scenes

Score: TypeAlias = Callable[[PairFeatures, Belief], FloatArray]


def resolved_for_test_items(strategy: Utility) -> BaseUtility:
    """Return a strategy with its defaults resolved for the test items."""
    return utility_of(utility_of(strategy).resolved(ITEMS, UniformBox()))


def scores_of(strategy: Utility) -> list[Score]:
    """Return ``score`` of a resolved strategy, and ``exact`` if it is defined."""
    resolved = resolved_for_test_items(strategy)
    exact = [] if resolved.exact is None else [resolved.exact]
    return [score_of(resolved), *exact]


def score_of(strategy: BaseUtility) -> Score:
    """Return ``score`` as a function of pairs and belief.

    A score that uses a generator gets a fresh one with the same seed in every call.
    """
    if not strategy.takes_generator:
        return strategy.score
    return lambda candidates, belief: strategy.score(candidates, belief, rng=np.random.default_rng(0))


def _features(belief: Belief, response: Logistic, appeal: FloatArray | None = None) -> PairFeatures:
    rows = np.arange(6)
    return PairFeatures.of(ITEMS.coordinates, rows, rows + 6, belief=belief, response=response, appeal=appeal)


class StrategyContract:
    """Invariants of every utility; override the fixture `strategy`.

    - It is a frozen dataclass with a name, and equals another one with the same settings.
    - ``score``, and ``exact`` if it is defined, return one finite number for each pair, give equal results for equal
      arguments, and modify nothing.
    - The score of a pair does not depend on the other pairs, their order, the sides, the origin or the axes of the
      coordinates, or a constant added to all appeals.
    - Extreme noise constants, degenerate beliefs and coincident points never lead to NaN.
    """

    @pytest.fixture
    def strategy(self) -> Utility:
        """Return the strategy under test."""
        raise NotImplementedError("override the fixture `strategy` to return the strategy under test")

    def test_is_a_frozen_dataclass_with_a_name(self, strategy: Utility) -> None:
        """Assert that settings can be saved and compared."""
        assert isinstance(strategy.name, str)
        assert strategy.name
        assert dataclasses.is_dataclass(strategy)
        assert strategy == dataclasses.replace(strategy)
        with pytest.raises(dataclasses.FrozenInstanceError):
            strategy.setting_that_does_not_exist = 1

    def test_scores_are_finite_and_pure(self, strategy: Utility) -> None:
        """Assert one finite number for each pair, bit-identical scores in a second call, and unmodified arguments."""
        for _, features, belief in random_scenes():
            arrays = (features.margin, features.variance, belief.samples, belief.covariance)
            copies = [array.copy() for array in arrays]
            for score in scores_of(strategy):
                scores, again = score(features, belief), score(features, belief)
                assert scores.shape == (4,)
                assert np.all(np.isfinite(scores))
                assert np.array_equal(scores, again)
            assert all(np.array_equal(array, copy) for array, copy in zip(arrays, copies, strict=True))

    def test_scores_do_not_depend_on_other_pairs(self, strategy: Utility) -> None:
        """Assert that a subset in another order gets the same scores."""
        rows = np.array([2, 0, 3])
        for _, features, belief in random_scenes():
            for score in scores_of(strategy):
                assert score(features.take(rows), belief) == pytest.approx(score(features, belief)[rows], abs=1e-12)

    def test_scores_do_not_depend_on_sides(self, strategy: Utility) -> None:
        """Assert that swapped pairs get the same scores."""
        for _, features, belief in random_scenes():
            swapped = dataclasses.replace(
                features,
                first=features.second,
                second=features.first,
                margin=-features.margin,
            )
            for score in scores_of(strategy):
                assert score(swapped, belief) == pytest.approx(score(features, belief), abs=1e-8)

    def test_scores_do_not_depend_on_origin_and_axes(self, strategy: Utility) -> None:
        """Assert that translated and rotated items and beliefs get the same scores."""
        for seed, features, belief in random_scenes():
            rng = np.random.default_rng(seed)
            rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
            shift = rng.normal(size=3)
            transformed = sampled_belief(
                np.ascontiguousarray(belief.samples @ rotation + shift),
                belief.weights,
                (belief.mean @ rotation + shift, rotation.T @ belief.covariance @ rotation),
                BeliefInfo("particles"),
            )
            transformed_features = PairFeatures.of(
                np.ascontiguousarray(features.points @ rotation + shift),
                features.first,
                features.second,
                belief=transformed,
                response=features.response,
                appeal=features.item_appeal,
            )
            for score in scores_of(strategy):
                assert score(transformed_features, transformed) == pytest.approx(score(features, belief), abs=1e-7)

    def test_scores_depend_on_differences_of_appeal_alone(self, strategy: Utility) -> None:
        """Assert that adding a constant to all appeals changes no score."""
        belief = random_belief(np.random.default_rng(1), 50, 3)
        appeal = np.random.default_rng(2).normal(size=ITEM_COUNT)
        original, shifted = (_features(belief, Logistic(2.0), appeal + constant) for constant in (0.0, 100.0))
        for score in scores_of(strategy):
            assert score(shifted, belief) == pytest.approx(score(original, belief), abs=1e-9)

    @pytest.mark.parametrize("k", [0.0, 1e-9, 1e6])
    def test_scores_are_finite_for_extreme_noise_constants(self, strategy: Utility, k: float) -> None:
        """Assert finite scores from k = 0 (coin tosses) to k = 1e6 (hardly any noise), for every response and noise."""
        belief, rows = random_belief(np.random.default_rng(1), 300, 3), np.arange(6)
        for response_type in RESPONSES.values():
            for noise in NOISES:
                for appeal in (np.zeros(ITEM_COUNT), np.linspace(-40, 40, ITEM_COUNT)):
                    features = PairFeatures.of(
                        ITEMS.coordinates,
                        rows,
                        rows + 6,
                        belief=belief,
                        response=response_type(k, noise),
                        appeal=appeal,
                    )
                    for score in scores_of(strategy):
                        assert np.all(np.isfinite(score(features, belief)))

    def test_coincident_points_are_never_chosen(self, strategy: Utility) -> None:
        """Assert that two items at the same point raise no warning and lose to any other pair."""
        belief = random_belief(np.random.default_rng(1), 50, 3)
        points = np.vstack([ITEMS.coordinates, ITEMS.coordinates[:1]])
        resolved, appeal, count = resolved_for_test_items(strategy), np.arange(13.0), ITEM_COUNT + 1
        first, second = np.array([0, 0]), np.array([ITEM_COUNT, 5])
        features = PairFeatures.of(points, first, second, belief=belief, response=Logistic(2.0), appeal=appeal)
        assert len(score_of(resolved)(features, belief)) == 2
        context = SelectionContext(points, appeal, belief, Logistic(2.0), resolved, Resting.of(count, [], []))
        scores = context.scores(features)
        assert scores[0] == -np.inf
        assert np.isfinite(scores[1])
        best = best_of(context, first, second, np.random.default_rng(0), rescore=10, words="")
        assert best is not None
        assert best.second == 5

    @pytest.mark.parametrize("rank", [0, 1, 2])
    def test_degenerate_beliefs_give_no_nan(self, strategy: Utility, rank: int) -> None:
        """Assert that scores are numbers for a belief without variance in some direction."""
        rng = np.random.default_rng(rank)
        samples = rng.normal(size=(200, rank)) @ rng.normal(size=(rank, 3)) + 0.1
        flat = belief_of(samples, np.full(200, 1 / 200))
        features = _features(flat, Logistic(2.0))
        assert np.all(np.isfinite(score_of(resolved_for_test_items(strategy))(features, flat)))
        for score in scores_of(strategy):
            assert not np.any(np.isnan(score(features, flat)))

    def test_a_search_can_use_it(self, strategy: Utility) -> None:
        """Assert that the strategy asks four questions, each with its name and a finite utility."""
        user = SimulatedUser([0.2, 0.1, -0.4], Logistic(3.0), 1)
        search = Search(
            ITEMS, response=Logistic(3.0), strategy=strategy, posterior=Particles(200), prior=UniformBox(), rng=1
        )
        for _ in range(4):
            query = search.ask()
            assert query.info is not None
            assert query.info.strategy == strategy.name
            assert query.info.utility is not None
            assert np.isfinite(query.info.utility)
            search.tell(query, winner=user.answer(ITEMS, query))
        assert np.trace(search.belief.covariance) < 1.0
