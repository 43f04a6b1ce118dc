"""Branch-and-bound search over pairs of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pairseek.core.types import IntArray

if TYPE_CHECKING:
    from pairseek.pairs.sources.branch_and_bound.view import CatalogueView


@dataclass(frozen=True)
class Goal:
    """Stopping criterion of a branch and bound.

    Attributes
    ----------
    wanted
        Number of best pairs to find.
    gap
        Permitted optimality gap, relative to best - `zero`.
    zero
        Reference utility of the gap.
    budget
        Number of pairs of items that may be visited. Pruning counts too: see `CELL_COST` and `scan.ROW_COST`. The
        search exceeds it only while no permitted pair was found.
    """

    wanted: int
    gap: float
    zero: float
    budget: int

    def threshold(self, least: float) -> float:
        """Return the pruning threshold: pairs of cells with a bound no higher are discarded once `least` is reached."""
        return (least - self.gap * self.zero) / (1.0 - self.gap)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Result of a branch and bound.

    Attributes
    ----------
    keys
        Keys i n + j, i < j, of the best pairs visited, in descending order, including ties up to rounding.
    utility
        Utility of the best pair.
    bound
        Upper bound on the utility of any pair.
    visited
        Number of pairs of items visited.
    """

    keys: IntArray
    utility: float
    bound: float
    visited: int


def best_first(view: CatalogueView, resting: IntArray, goal: Goal) -> SearchResult:
    """Search all pairs; `resting` holds the sorted keys of pairs that may not be asked."""
    # Loaded at the first search, because most questions do without one.
    from pairseek.pairs.sources.branch_and_bound.search import best_first

    return best_first(view, resting, goal)
