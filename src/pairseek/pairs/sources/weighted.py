"""`WeightedPairs`: pairs sampled from a proposal weighted by the upper bounds and observed scores of cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from pairseek.core.limits import Limit
from pairseek.core.types import FloatArray, IntArray
from pairseek.errors import InvalidParameter
from pairseek.numerics.parallel import for_ranges
from pairseek.pairs.context import Selection, SelectionContext, best_of
from pairseek.pairs.sources.branch_and_bound import StoppingCriterion, best_first
from pairseek.pairs.sources.branch_and_bound.bounds import bound_pairs
from pairseek.pairs.sources.branch_and_bound.tree import Tree
from pairseek.pairs.sources.branch_and_bound.view import CatalogueView
from pairseek.pairs.strategies.shape import UtilityShape

# Level of the tree whose cells form the strata: about 33,000 pairs of cells.
_STRATA_LEVEL = 8
# Pairs of cells bounded by one thread at a time.
_CELL_PAIRS_PER_CHUNK = 1024
# Number of most informative pairs with which the sample starts.
_INFORMATIVE_PAIRS = 1024
# Number of pairs that the search for them may visit.
_SEARCH_BUDGET = 10_000_000
# Proxy utility for a strategy that declares no shape: the information of the answer.
_PROXY_SHAPE = UtilityShape("table", "information")


@dataclass(frozen=True)
class WeightedPairs:
    """Pairs drawn from a stratified proposal over pairs of cells of the catalogue.

    The sample starts with the 1024 most informative pairs found by a short branch and bound; the others are drawn at
    random. The items are divided into up to 256 cells. A third of the draws is stratified uniformly over all pairs of
    cells, a third is weighted by the rank of the best score observed in a pair of cells, and a third by the rank of its
    upper bound estimate. Weights fall as 1, 1/2, 1/3, ... with the rank.

    Meant for strategies without a `UtilityShape`; otherwise use `AllPairs`, which is exact and faster.

    Parameters
    ----------
    count
        Number of pairs to draw, at least 1.
    rescore
        Number of best pairs to rescore by samples; 0 for none.
    """

    count: Annotated[int, Limit(1, 1_000_000)] = 100_000
    rescore: Annotated[int, Limit(0, 2000)] = 0
    name: ClassVar[str] = "weighted_pairs"

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise InvalidParameter(
                f"WeightedPairs(count={self.count!r}) is invalid: give a whole number of pairs, at least 1",
                field="count",
            )
        if self.rescore < 0:
            raise InvalidParameter(
                f"WeightedPairs(rescore={self.rescore}) is negative: give 0 or more", field="rescore"
            )

    def choose(self, context: SelectionContext, rng: np.random.Generator) -> Selection | None:
        """Return the best pair of the sample; None if the rest rules leave none."""
        n = len(context.points)
        first, second = weighted_pairs(context, self.count, context.generator(self.name))
        words = f"{len(first):,} of {n * (n - 1) // 2:,} pairs, drawn where good pairs are likely"
        return best_of(context, first, second, rng, rescore=self.rescore, words=words)


def information_view(context: SelectionContext) -> CatalogueView:
    """Return the catalogue with the information of an answer as utility, for a strategy that declares no shape."""
    return CatalogueView.of(replace(context, response=context.response.stand_in), _PROXY_SHAPE)


def weighted_pairs(context: SelectionContext, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw the rows of about `count` pairs.

    A few may repeat, rest, or contain an item twice. If any pair is permitted, the sample contains a permitted one.
    """
    view = information_view(context)
    criterion = StoppingCriterion(min(_INFORMATIVE_PAIRS, count), 0.0, 0.0, _SEARCH_BUDGET)
    keys = best_first(view, context.resting.pairs, criterion).keys[:count]
    informative = np.divmod(keys, len(context.points))
    third = (count - len(keys)) // 3
    level = min(_STRATA_LEVEL, view.tree.depth)
    cells = np.stack(np.triu_indices(1 << level)).astype(np.int64) + ((1 << level) - 1)
    estimates = np.empty(cells.shape[1])
    for_ranges(
        bound_pairs, len(estimates), _CELL_PAIRS_PER_CHUNK, cells[0], cells[1], view.cores, view.model, estimates
    )
    uniform_cells = rng.permutation(np.arange(third) % len(estimates))
    uniform_pairs = _draw_items(view.tree, cells[:, uniform_cells], rng)
    observed = np.full(len(estimates), -np.inf)
    scores = context.scores(context.features(*uniform_pairs))
    np.maximum.at(observed, uniform_cells, np.where(context.resting.allows(*uniform_pairs), scores, -np.inf))
    drawn = [rng.choice(len(estimates), size=third, p=_by_rank(values)) for values in (observed, estimates)]
    weighted = _draw_items(view.tree, cells[:, np.concatenate(drawn)], rng)
    first, second = (np.concatenate([informative[i], uniform_pairs[i], weighted[i]]) for i in (0, 1))
    return first, second


def _by_rank(values: FloatArray) -> FloatArray:
    """Return probabilities proportional to 1, 1/2, 1/3, ... in order of descending value."""
    weights = np.empty(len(values))
    weights[np.argsort(-values, kind="stable")] = 1.0 / np.arange(1, len(values) + 1)
    return np.asarray(weights / weights.sum())


def _draw_items(tree: Tree, cells: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw one row uniformly from each cell, for both sides of the pairs."""
    spans = [tree.spans(side) for side in cells]
    first, second = (tree.order[rng.integers(span[:, 0], span[:, 1])] for span in spans)
    return first, second
