"""Contract tests of sources of candidates."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pairseek.model.responses import Logistic
from pairseek.pairs.context import Selection, SelectionContext, Source
from pairseek.pairs.rest import Resting
from pairseek.pairs.strategies import InfoGain
from pairseek.testing.scenes import ITEM_COUNT, ITEMS, random_belief


def selection_context(resting: Resting | None = None) -> SelectionContext:
    """Return the context of the tests: twelve items, the first two at the same point, and a belief."""
    points = ITEMS.coordinates.copy()
    points[1] = points[0]
    belief = random_belief(np.random.default_rng(3), 500, 3)
    resting = resting or Resting.of(ITEM_COUNT, [], [])
    return SelectionContext(points, np.zeros(ITEM_COUNT), belief, Logistic(2.0), InfoGain(), resting)


class CandidateSourceContract:
    """Invariants of every source of candidates; override the fixture `source`.

    The source must be able to choose among all pairs of twelve items.

    - ``choose`` returns two different rows, but never two items at the same point and never a resting pair or item.
    - It is a pure function: equal contexts and generators give equal selections.
    - A selection reports the utility of its pair, and considered at least one pair.
    - It returns None if every pair rests.
    """

    @pytest.fixture
    def source(self) -> Source:
        """Return the source under test."""
        raise NotImplementedError("override the fixture `source` to return the source under test")

    def choose(self, source: Source, context: SelectionContext, seed: int = 0) -> Selection | None:
        """Return the selection of a source with a generator of this seed."""
        return source.choose(context, np.random.default_rng(seed))

    def test_is_a_frozen_dataclass_with_a_name(self, source: Source) -> None:
        """Assert that settings can be saved and compared."""
        assert isinstance(source.name, str)
        assert source.name
        assert dataclasses.is_dataclass(source)
        assert source == dataclasses.replace(source)

    def test_selections_are_pairs_of_different_points(self, source: Source) -> None:
        """Assert valid rows for every seed, and the utility of the pair."""
        context = selection_context()
        for seed in range(20):
            selection = self.choose(source, context, seed)
            assert selection is not None
            first, second = selection.first, selection.second
            assert first != second
            assert 0 <= min(first, second) <= max(first, second) < ITEM_COUNT
            assert {first, second} != {0, 1}
            assert selection.considered >= 1
            pair = context.features(np.array([first]), np.array([second]))
            assert selection.utility == pytest.approx(float(context.rescored(pair)[0]), rel=0.05, abs=0.01)
            assert selection.gap is None or selection.gap >= 0.0

    def test_selection_is_a_pure_function(self, source: Source) -> None:
        """Assert equal selections for equal contexts and generators, and an unmodified context."""
        context = selection_context()
        points, mean = context.points.copy(), context.belief.mean.copy()
        assert self.choose(source, context, 5) == self.choose(source, selection_context(), 5)
        assert np.array_equal(points, context.points)
        assert np.array_equal(mean, context.belief.mean)

    def test_resting_pairs_are_not_selected(self, source: Source) -> None:
        """Assert that a selected pair is not selected again while it rests."""
        resting: list[tuple[int, int]] = []
        for _ in range(8):
            selection = self.choose(source, selection_context(Resting.of(ITEM_COUNT, resting, [])))
            assert selection is not None
            pair = min(selection.first, selection.second), max(selection.first, selection.second)
            assert pair not in resting
            resting.append(pair)

    def test_resting_items_are_not_selected(self, source: Source) -> None:
        """Assert that only the four items that do not rest are selected."""
        context = selection_context(Resting.of(ITEM_COUNT, [], [(0, 1), (2, 3), (4, 5), (6, 7)]))
        for seed in range(5):
            selection = self.choose(source, context, seed)
            assert selection is not None
            assert {selection.first, selection.second} <= {8, 9, 10, 11}

    def test_without_a_usable_pair_there_is_no_selection(self, source: Source) -> None:
        """Assert None if all items rest except two at the same point."""
        rows = [(2, 3), (4, 5), (6, 7), (8, 9), (10, 11)]
        assert self.choose(source, selection_context(Resting.of(ITEM_COUNT, [], rows))) is None
