"""A sample of the pairs that is drawn where good pairs are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.candidates.branch_and_bound.bounds import bound_pairs
from pairseek.candidates.branch_and_bound.search import Goal, best_first
from pairseek.candidates.branch_and_bound.tree import Tree
from pairseek.candidates.branch_and_bound.view import View
from pairseek.candidates.context import Selection, SelectionContext, best_of
from pairseek.core.types import FloatArray, IntArray
from pairseek.errors import InvalidParameter
from pairseek.numerics.parallel import for_ranges
from pairseek.strategies.shape import UtilityShape

# Cells that pairs are drawn from: about 33,000 pairs of cells.
_LEVEL = 8
_CHUNK = 1024
_MOST_TELLING = 1024
_EFFORT = 10_000_000
GUIDE = UtilityShape("table", "information")
"""What is looked for on behalf of a strategy that says nothing of itself."""


@dataclass(frozen=True)
class WeightedPairs:
    """Pairs drawn by what the cells of the catalogue promise.

    First come the 1024 pairs whose answers tell most, as far as a short search finds them. The others are drawn. The
    items are divided into up to 256 cells, and a third of the draws is spread evenly over all pairs of cells. A third
    goes to pairs of cells by the rank of the best pair that was found there, and a third by the rank of what their
    positions promise; the best by rank is drawn twice as often as the second, three times as often as the third.

    For strategies that declare no `UtilityShape`; for the others `AllPairs` is better in every way.

    Parameters
    ----------
    count
        Pairs to draw, at least 1.
    rescore
        How many of the best are scored again by samples; 0 for none.
    """

    count: int = 100_000
    rescore: int = 0
    name: ClassVar[str] = "weighted_pairs"

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise InvalidParameter(f"WeightedPairs(count={self.count!r}): give a whole number of pairs, at least 1")
        if self.rescore < 0:
            raise InvalidParameter(f"WeightedPairs(rescore={self.rescore}): give 0 or more")

    def choose(self, context: SelectionContext, rng: np.random.Generator) -> Selection | None:
        """The best of a sample; None if the rules leave none."""
        n = len(context.points)
        first, second = weighted_pairs(context, self.count, context.generator(self.name))
        words = f"{len(first):,} of {n * (n - 1) // 2:,} pairs, drawn where good pairs are likely"
        return best_of(context, first, second, rng, rescore=self.rescore, words=words)


def weighted_pairs(context: SelectionContext, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows of `count` pairs; a few may repeat, rest, or be of one item twice, but not all if any may be asked."""
    view = View.of(context, GUIDE)
    found = best_first(view, context.resting.pairs, Goal(min(_MOST_TELLING, count), 0.0, 0.0, _EFFORT)).keys[:count]
    told = np.divmod(found, len(context.points))
    share = (count - len(found)) // 3
    level = min(_LEVEL, view.tree.depth)
    cells = np.stack(np.triu_indices(1 << level)).astype(np.int64) + ((1 << level) - 1)
    promises = np.empty(cells.shape[1])
    for_ranges(bound_pairs, len(promises), _CHUNK, cells[0], cells[1], view.cores, view.model, promises)
    even = rng.permutation(np.arange(share) % len(promises))
    spread = _within(view.tree, cells[:, even], rng)
    seen = np.full(len(promises), -np.inf)
    scores = context.scores(context.features(*spread))
    np.maximum.at(seen, even, np.where(context.resting.allows(*spread), scores, -np.inf))
    drawn = [rng.choice(len(promises), size=share, p=_by_rank(values)) for values in (seen, promises)]
    more = _within(view.tree, cells[:, np.concatenate(drawn)], rng)
    return np.concatenate([told[0], spread[0], more[0]]), np.concatenate([told[1], spread[1], more[1]])


def _by_rank(values: FloatArray) -> FloatArray:
    """Chances that fall as 1, 1/2, 1/3, ... from the highest value down."""
    weights = np.empty(len(values))
    weights[np.argsort(-values, kind="stable")] = 1.0 / np.arange(1, len(values) + 1)
    return np.asarray(weights / weights.sum())


def _within(tree: Tree, cells: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows of one random item from each of the cells."""
    spans = [tree.spans(side) for side in cells]
    first, second = (tree.order[rng.integers(span[:, 0], span[:, 1])] for span in spans)
    return first, second
