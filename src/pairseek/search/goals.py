"""Goals of a search, with the strategy and stop rule that suit each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from pairseek.core.validation import one_of
from pairseek.errors import Unsupported
from pairseek.model.items import Items
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.pairs import strategies
from pairseek.pairs.strategies.base import Utility
from pairseek.search.stopping import GainBelow, StopRule

Goal: TypeAlias = Literal["taste", "best", "list"]
LIST_SIZE = 3
"""Number of items that a search with the goal ``"list"`` looks for."""
SMALL_GAIN = 0.1
"""Gain, in logits, at which a search for the best item stops: see `GainBelow`."""
CHECK_INTERVAL = 4
"""If the lapse rate is unknown, every fourth question of a search for taste is a reliability probe."""


@dataclass(frozen=True)
class SearchGoal:
    """Purpose of a search, with the strategy and stop rule that serve it.

    Attributes
    ----------
    name
        ``"taste"``: learn the person's user point, to predict any choice. ``"best"``: find one item that the person
        loves. ``"list"``: find a few such items.
    size
        Number of items to find; 0 for ``"taste"``.
    """

    name: Goal
    size: int

    def strategy(self, response: Response) -> Utility:
        """Return the strategy that serves the goal."""
        if self.name == "best":
            return strategies.EUBO()
        if self.name == "list":
            return strategies.Shortlist(self.size)
        checks: int | Literal["auto"] | None = "auto" if response.unknown else None
        return strategies.InfoGain(checks=CHECK_INTERVAL if response.lapse_prior is not None else checks)

    def stop(self) -> StopRule | None:
        """Return the stop rule that serves the goal; None for ``"taste"``, because every answer teaches more."""
        if self.name == "best":
            return GainBelow(SMALL_GAIN)
        return GainBelow(size=self.size) if self.size else None


TASTE = SearchGoal("taste", 0)
"""The default goal."""


def goal_of(name: str, items: Items | Space) -> SearchGoal:
    """Return the goal with this name for these items."""
    name = one_of(name, "goal", get_args(Goal))
    if name == "taste":
        return TASTE
    catalogue = items._require_catalogue(
        Unsupported(f"goal is {name!r}, but a continuous Space has no items to find: use goal='taste'")
    )
    return SearchGoal("best", 1) if name == "best" else SearchGoal("list", max(1, min(LIST_SIZE, catalogue.n - 1)))
