"""`WeightedPairs`: a sample of pairs from a proposal weighted by upper bounds and observed scores of cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from pairseek.core.limits import Limit
from pairseek.core.types import FloatArray, IntArray
from pairseek.errors import InvalidParameter
from pairseek.numerics.parallel import for_ranges
from pairseek.pairs.context import Selection, SelectionContext, best_of
from pairseek.pairs.sources.branch_and_bound import Goal, best_first
from pairseek.pairs.sources.branch_and_bound.bounds import bound_pairs
from pairseek.pairs.sources.branch_and_bound.tree import Tree
from pairseek.pairs.sources.branch_and_bound.view import CatalogueView
from pairseek.pairs.strategies.shape import UtilityShape

# Level of the tree whose cells form the strata: about 33,000 pairs of cells.
_LEVEL = 8
_CHUNK = 1024
_MOST_INFORMATIVE = 1024
_EFFORT = 10_000_000
# Proxy utility, for a strategy that declares no shape: the information of the answer.
_GUIDE = UtilityShape("table", "information")


@dataclass(frozen=True)
class WeightedPairs:
    """Pairs drawn from a stratified proposal over pairs of cells of the catalogue.

    The sample starts with the 1024 most informative pairs that a short branch and bound finds. The others are drawn at
    random. The items are divided into up to 256 cells; a third of the draws is stratified uniformly over all pairs of
    cells, a third is weighted by the rank of the best score observed in a pair of cells, and a third by the rank of its
    upper bound estimate. Weights fall as 1, 1/2, 1/3, ... with the rank.

    It serves strategies that declare no `UtilityShape`; for the others `AllPairs` is better in every respect.

    Parameters
    ----------
    count
        Number of pairs to draw, at least 1.
    rescore
        Number of the best pairs to rescore by samples; 0 for none.
    """

    count: Annotated[int, Limit(1, 1_000_000)] = 100_000
    rescore: Annotated[int, Limit(0, 2000)] = 0
    name: ClassVar[str] = "weighted_pairs"

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise InvalidParameter(
                f"WeightedPairs(count={self.count!r}): give a whole number of pairs, at least 1", field="count"
            )
        if self.rescore < 0:
            raise InvalidParameter(f"WeightedPairs(rescore={self.rescore}): give 0 or more", field="rescore")

    def choose(self, context: SelectionContext, rng: np.random.Generator) -> Selection | None:
        """Return the best pair of the sample; None if the rules of rest leave none."""
        n = len(context.points)
        first, second = weighted_pairs(context, self.count, context.generator(self.name))
        words = f"{len(first):,} of {n * (n - 1) // 2:,} pairs, drawn where good pairs are likely"
        return best_of(context, first, second, rng, rescore=self.rescore, words=words)


def guide(context: SelectionContext) -> CatalogueView:
    """Return the catalogue with the information of an answer as utility, for a strategy that declares no shape."""
    return CatalogueView.of(replace(context, response=context.response.stand_in), _GUIDE)


def weighted_pairs(context: SelectionContext, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw the rows of about `count` pairs.

    A few may repeat, rest, or contain one item twice; if any pair is permitted, the sample contains a permitted one.
    """
    view = guide(context)
    found = best_first(view, context.resting.pairs, Goal(min(_MOST_INFORMATIVE, count), 0.0, 0.0, _EFFORT)).keys[:count]
    informative = np.divmod(found, len(context.points))
    share = (count - len(found)) // 3
    level = min(_LEVEL, view.tree.depth)
    cells = np.stack(np.triu_indices(1 << level)).astype(np.int64) + ((1 << level) - 1)
    estimates = np.empty(cells.shape[1])
    for_ranges(bound_pairs, len(estimates), _CHUNK, cells[0], cells[1], view.cores, view.model, estimates)
    even = rng.permutation(np.arange(share) % len(estimates))
    spread = _draw_items(view.tree, cells[:, even], rng)
    observed = np.full(len(estimates), -np.inf)
    scores = context.scores(context.features(*spread))
    np.maximum.at(observed, even, np.where(context.resting.allows(*spread), scores, -np.inf))
    drawn = [rng.choice(len(estimates), size=share, p=_by_rank(values)) for values in (observed, estimates)]
    more = _draw_items(view.tree, cells[:, np.concatenate(drawn)], rng)
    return np.concatenate([informative[0], spread[0], more[0]]), np.concatenate([informative[1], spread[1], more[1]])


def _by_rank(values: FloatArray) -> FloatArray:
    """Return probabilities proportional to 1, 1/2, 1/3, ... by descending value."""
    weights = np.empty(len(values))
    weights[np.argsort(-values, kind="stable")] = 1.0 / np.arange(1, len(values) + 1)
    return np.asarray(weights / weights.sum())


def _draw_items(tree: Tree, cells: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw one row uniformly from each cell, for both sides of the pairs."""
    spans = [tree.spans(side) for side in cells]
    first, second = (tree.order[rng.integers(span[:, 0], span[:, 1])] for span in spans)
    return first, second
