"""The two kinds of strategy, one protocol each.

A *utility* gives every candidate a number and the search asks the highest. A *procedure* looks at the items and
the history of answers, chooses the next pair itself, and brings its own estimate. Either is a small frozen
dataclass: its mathematics and nothing else. The loop over candidates, tie-breaking, randomness and validation
belong to the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from pairseek.core.types import Belief, Event, FloatArray
from pairseek.model.items import Items

if TYPE_CHECKING:
    from pairseek.strategies.features import Candidates


@runtime_checkable
class Utility(Protocol):
    """A number for each candidate; the highest is asked."""

    @property
    def name(self) -> str:
        """Its name at the edges: files, commands, HTTP."""
        ...

    def score(self, candidates: Candidates, belief: Belief) -> FloatArray:
        """(m,) utilities of m candidates. Equal ones are told apart by the order of the items."""
        ...


@runtime_checkable
class Procedure(Protocol):
    """A rule that chooses by itself.

    Both methods are pure functions of what they are given: called again with the same history they say the
    same, and after an undo they say what they said before. The generator is the same at every call of a search
    (not advanced by earlier calls), so that a procedure can draw, say, one order of the items for the whole
    search. Skips stand in the history and carry no answer; ties carry no winner.
    """

    @property
    def name(self) -> str:
        """Its name at the edges: files, commands, HTTP."""
        ...

    def next(self, items: Items, history: Sequence[Event], rng: np.random.Generator) -> tuple[int, int] | None:
        """Rows of the two items to ask next; None when the procedure has finished."""
        ...

    def estimate(self, items: Items, history: Sequence[Event]) -> FloatArray:
        """(d,) estimate of the user point after this history."""
        ...
