"""The protocols of strategies: `Utility`, `Procedure`, and the optional members of a utility.

A *utility* scores every pair, and the search asks the pair of highest score. A *procedure* reads the items and the
history of answers, chooses the next pair itself, and computes its own estimate. Either is a small frozen dataclass that
contains its mathematics and nothing else. The loop over candidates, tie-breaking, randomness and validation belong to
the search.

A utility may define further members. All of them are declared here, in `OptionalMembers`; no other module tests for a
particular strategy.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np

from pairseek.core.types import Belief, Event, FloatArray, IntArray
from pairseek.model.items import Items, Space
from pairseek.model.priors import Prior
from pairseek.model.responses import Response

if TYPE_CHECKING:
    from pairseek.strategies.features import PairFeatures
    from pairseek.strategies.planes import Planes
    from pairseek.strategies.shape import UtilityShape


@runtime_checkable
class Utility(Protocol):
    """A strategy that scores pairs; the search asks the pair of highest score.

    A utility that draws, as in Thompson sampling, is a `RandomUtility`: its ``score`` has a third parameter ``rng``.
    """

    @property
    def name(self) -> str:
        """Its name at the edges: files, commands, HTTP."""
        ...

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) utilities of m pairs. The search breaks ties by the order of the items."""
        ...


@runtime_checkable
class RandomUtility(Protocol):
    """A utility whose score draws at random.

    The generator is keyed by the seed of the search, the number of events, and its purpose. Every call about one
    question gets it in the same initial state, so that all pairs are scored by the same draws however they are divided
    into calls; undo, load and replay repeat them.
    """

    @property
    def name(self) -> str:
        """Its name at the edges: files, commands, HTTP."""
        ...

    def score(self, candidates: PairFeatures, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return the (m,) utilities of m pairs."""
        ...


class OptionalMembers(Protocol):
    """Members that a utility may define beside `Utility.score`."""

    rescored: bool
    """Whether the best pairs are rescored by `exact`; True unless set."""
    enough_pairs: int
    """Sample size that replaces all pairs, for a utility with many near-optimal pairs; all pairs unless set."""

    most_pairs: int
    """Number of pairs beyond which only those among `promising` items are scored; 100,000 unless set."""

    def promising(self, candidates: PairFeatures, belief: Belief) -> IntArray:
        """Return the rows of the items among which the best pair is sought where all pairs are too many to list."""
        ...

    def bound(self, candidates: PairFeatures, belief: Belief, others: IntArray) -> float:
        """Return an upper bound on the score of every pair that contains one of the items that are not promising."""
        ...

    def exact(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) utilities averaged over every sample, where `score` assumes a Gaussian logit."""
        ...

    def shape(self) -> UtilityShape:
        """Return the form of `score` as a function of few features, required by branch and bound over all pairs."""
        ...

    def resolved(self, items: Items | Space, prior: Prior) -> Self:
        """Return the strategy with the settings that depend on items and prior filled in."""
        ...

    def turn(self, number: int, belief: Belief) -> Utility:
        """Return the utility that chooses question `number`, counted from 0, where several take turns."""
        ...

    def rival(self, belief: Belief) -> Utility | None:
        """Return a utility in the same unit whose pair is asked instead if its score is higher, or None."""
        ...

    def planes(self, space: Space, belief: Belief, response: Response, rng: np.random.Generator) -> Planes:
        """Return the planes to choose from in a continuous space; without this member, only items are supported."""
        ...


@runtime_checkable
class Procedure(Protocol):
    """A rule that chooses pairs by itself.

    Both methods are pure functions of their arguments: a repeated call with the same history, also after an undo,
    returns the same result. Every call of a search receives the generator in the same initial state (not advanced by
    earlier calls), so that a procedure can draw, for example, one order of the items for the whole search. The history
    includes skips, which carry no answer, and ties, which carry no winner.
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


def takes_generator(strategy: object) -> bool:
    """Return whether ``score`` has a third parameter ``rng``, as that of a `RandomUtility`."""
    score: Any = strategy.score  # type: ignore[attr-defined]
    return _names_generator(getattr(score, "__func__", score))


@lru_cache(maxsize=256)
def _names_generator(score: Any) -> bool:
    return "rng" in inspect.signature(score).parameters


def takes_spaces(strategy: object) -> bool:
    """Return whether a strategy, or a strategy class, supports a continuous space."""
    return callable(getattr(strategy, "planes", None))


def utility_for_turn(strategy: Utility, number: int, belief: Belief) -> Utility:
    """Return the utility that chooses question `number`: the strategy itself unless several take turns."""
    turn: Any = getattr(strategy, "turn", None)
    chosen: Utility = strategy if turn is None else turn(number, belief)
    return chosen


def rival_of(strategy: Utility, belief: Belief) -> Utility | None:
    """Return the utility that competes with the strategy for the next question, or None."""
    rival: Any = getattr(strategy, "rival", None)
    found: Utility | None = None if rival is None else rival(belief)
    return found
