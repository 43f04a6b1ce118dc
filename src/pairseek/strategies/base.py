"""The protocols of strategies: `Utility`, `Procedure`, and the optional members of a utility.

A *utility* gives every pair a number and the search asks the highest. A *procedure* looks at the items and the
history of answers, chooses the next pair itself, and brings its own estimate. Either is a small frozen dataclass that
contains its mathematics and nothing else. The loop over candidates, tie-breaking, randomness and validation belong to
the search.

A utility may define further members. All of them are declared here, in `OptionalMembers`; no other module tests for a
particular strategy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np

from pairseek.core.types import Belief, Event, FloatArray
from pairseek.model.items import Items, Space
from pairseek.model.priors import Prior
from pairseek.model.responses import Response

if TYPE_CHECKING:
    from pairseek.strategies.features import PairFeatures
    from pairseek.strategies.planes import Planes
    from pairseek.strategies.shape import UtilityShape


@runtime_checkable
class Utility(Protocol):
    """A number for each pair; the pair with the highest is asked."""

    @property
    def name(self) -> str:
        """Its name at the edges: files, commands, HTTP."""
        ...

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return (m,) utilities of m pairs. Equal ones are told apart by the order of the items."""
        ...


class OptionalMembers(Protocol):
    """Members that a utility may define beside `Utility.score`."""

    rescored: bool
    """Whether the best pairs gain from a second score by `exact`; True unless set."""
    enough_pairs: int
    """Number of random pairs that suffice, for a utility that many pairs maximise nearly; all pairs unless set."""

    def exact(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) utilities by every sample, where `score` takes the logit for Gaussian."""
        ...

    def shape(self) -> UtilityShape:
        """Return `score` as a function of few features, which branch and bound over all pairs needs."""
        ...

    def resolved(self, items: Items | Space, prior: Prior) -> Self:
        """Return the strategy with the settings that depend on items and prior filled in."""
        ...

    def turn(self, number: int, belief: Belief) -> Utility:
        """Return the utility that chooses question `number`, counted from 0, where several take turns."""
        ...

    def rival(self, belief: Belief) -> Utility | None:
        """Return a utility in the same unit whose pair is asked instead if its score is higher; None for none."""
        ...

    def planes(self, space: Space, belief: Belief, response: Response, rng: np.random.Generator) -> Planes:
        """Return the planes to choose from in a continuous space. Without it the strategy is for items only."""
        ...


@runtime_checkable
class Procedure(Protocol):
    """A rule that chooses pairs by itself.

    Both methods are pure functions of their arguments: called again with the same history they return the same, and
    after an undo they return what they returned before. The generator is the same at every call of a search (not
    advanced by earlier calls), so that a procedure can draw, say, one order of the items for the whole search. Skips
    stand in the history and carry no answer; ties carry no winner.
    """

    @property
    def name(self) -> str:
        """Its name at the edges: files, commands, HTTP."""
        ...

    def next(self, items: Items, history: Sequence[Event], rng: np.random.Generator) -> tuple[int, int] | None:
        """Return the rows of the two items to ask next; None when the procedure has finished."""
        ...

    def estimate(self, items: Items, history: Sequence[Event]) -> FloatArray:
        """Return the (d,) estimate of the user point after this history."""
        ...


def takes_spaces(strategy: object) -> bool:
    """Return whether a strategy, or a class of strategies, can ask about a continuous space."""
    return callable(getattr(strategy, "planes", None))


def utility_for_turn(strategy: Utility, number: int, belief: Belief) -> Utility:
    """Return the utility that chooses question `number`: the strategy itself unless several take turns."""
    turn: Any = getattr(strategy, "turn", None)
    chosen: Utility = strategy if turn is None else turn(number, belief)
    return chosen


def rival_of(strategy: Utility, belief: Belief) -> Utility | None:
    """Return the utility that competes with the strategy for the next question; None for none."""
    rival: Any = getattr(strategy, "rival", None)
    found: Utility | None = None if rival is None else rival(belief)
    return found
