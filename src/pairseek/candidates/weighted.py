"""A sample of the pairs that is drawn where good pairs are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek._parallel import for_ranges
from pairseek._types import FloatArray, IntArray
from pairseek.candidates._bounds import bound_pairs
from pairseek.candidates._branch import Goal, best_first
from pairseek.candidates._tree import Tree
from pairseek.candidates._view import View
from pairseek.candidates.scene import Choice, Scene, best_of
from pairseek.candidates.surface import Surface, surface_of
from pairseek.errors import InvalidParameter

# Cells that pairs are drawn from: about 33,000 pairs of cells.
_LEVEL = 8
_CHUNK = 1024
# Pairs that are looked for where the sample has none that may be asked.
_LAST = 1024
GUIDE = Surface("table", "information")
"""What guides the choice for a strategy that says nothing of itself."""


@dataclass(frozen=True)
class WeightedPairs:
    """Pairs drawn by what the cells of the catalogue promise.

    The items are divided into up to 256 cells. A third of the sample is spread evenly over all pairs of cells. The
    others are drawn from pairs of cells by rank: a third by how good a pair was found there, a third by the highest
    utility that is possible there. The best by rank is drawn twice as often as the second, three times as often as
    the third. A strategy that declares no `Surface` is guided by the information of the pairs.

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

    def choose(self, scene: Scene, rng: np.random.Generator) -> Choice | None:
        """The best of a sample; where the rules left nothing of it, of the pairs whose answers tell most."""
        n = len(scene.points)
        total = n * (n - 1) // 2
        first, second = weighted_pairs(scene, self.count, rng)
        words = f"{len(first):,} of {total:,} pairs, drawn where good pairs are likely"
        choice = best_of(scene, first, second, rng, rescore=self.rescore, words=words)
        if choice is not None:
            return choice
        found = best_first(View.of(scene, GUIDE), scene.resting.pairs, Goal(_LAST, 0.0, 0.0, 0))
        words = f"{len(found.keys):,} of {total:,} pairs, those whose answers tell most"
        return best_of(scene, *np.divmod(found.keys, n), rng, rescore=self.rescore, words=words)


def weighted_pairs(scene: Scene, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows of `count` pairs; a few may repeat, or be of one item twice."""
    surface = surface_of(scene.strategy)
    view = View.of(scene, surface if surface is not None and surface.shape != "even" else GUIDE)
    level = min(_LEVEL, view.tree.depth)
    cells = np.stack(np.triu_indices(1 << level)).astype(np.int64) + ((1 << level) - 1)
    bounds = np.empty(cells.shape[1])
    for_ranges(bound_pairs, len(bounds), _CHUNK, cells[0], cells[1], view.cells, view.model, bounds)
    share = -(-count // 3)
    even = rng.permutation(np.arange(share) % len(bounds))
    first, second = _within(view.tree, cells[:, even], rng)
    promise = np.full(len(bounds), -np.inf)
    scores = scene.scores(scene.candidates(first, second))
    np.maximum.at(promise, even, np.where(scene.resting.allows(first, second), scores, -np.inf))
    drawn = [rng.choice(len(bounds), size=share, p=_by_rank(values)) for values in (promise, bounds)]
    more = _within(view.tree, cells[:, np.concatenate(drawn)], rng)
    return np.append(first, more[0])[:count], np.append(second, more[1])[:count]


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
