"""Branch and bound over pairs of items: stopping criterion, result and entry point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pairseek.core.types import IntArray

if TYPE_CHECKING:
    from pairseek.pairs.sources.branch_and_bound.view import CatalogueView


@dataclass(frozen=True)
class StoppingCriterion:
    """Stopping criterion of a branch and bound.

    Attributes
    ----------
    count
        Number of best pairs to find.
    gap
        Accepted optimality gap, relative to best - `reference`.
    reference
        Reference utility of the gap.
    budget
        Number of pairs of items that may be visited. Pruning counts too: see `search.CELL_EFFORT` and
        `scan.ROW_EFFORT`. The search exceeds the budget only until it has found a permitted pair.
    """

    count: int
    gap: float
    reference: float
    budget: int

    def threshold(self, utility: float) -> float:
        """Return the bound up to which pairs of cells may be discarded once a pair of utility `utility` is known."""
        return (utility - self.gap * self.reference) / (1.0 - self.gap)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Result of a branch and bound.

    Attributes
    ----------
    keys
        Keys i n + j, i < j, of the best pairs visited, in descending order of utility, including ties up to rounding.
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


def best_first(view: CatalogueView, resting: IntArray, criterion: StoppingCriterion) -> SearchResult:
    """Search all pairs; `resting` holds the sorted keys of pairs that must not be asked."""
    # Imported on first use: most questions need no branch and bound.
    from pairseek.pairs.sources.branch_and_bound.search import best_first

    return best_first(view, resting, criterion)
