"""`ProposedPairs`: good pairs in many dimensions, where bounds over cells no longer prune.

In many dimensions a cell of items is nearly as wide as the catalogue, and branch and bound visits most pairs. Instead,
a good pair is proposed from a sketch of the items: see `sketch`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from pairseek.core.limits import Limit
from pairseek.core.types import IntArray
from pairseek.core.validation import whole
from pairseek.numerics.pair_kernels import DECAYING
from pairseek.pairs.context import Selection, SelectionContext
from pairseek.pairs.sources.all_pairs import AllPairs, certified_gap, describe_proposal, median_score
from pairseek.pairs.sources.branch_and_bound import SearchResult
from pairseek.pairs.sources.core_set import CORE_SET_SIZE, core_set
from pairseek.pairs.sources.sketch import Sketch
from pairseek.pairs.sources.sketch_kernels import KEPT_PAIRS
from pairseek.pairs.strategies.shape import UtilityShape

# Up to this number of pairs, a strategy without bounds on its score scores all of them, and otherwise a sample.
_MAX_PAIRS_WITHOUT_BOUNDS = 500_000


@dataclass(frozen=True)
class ProposedPairs:
    """The best pair of a proposal: all pairs of promising items, and the best partners of the best of these items.

    The pair is not guaranteed to be optimal. For up to 4096 items, the ``gap`` of the choice is still certified: the
    distance to a bound on the utility of any pair, which is loose. Larger catalogues are represented by 4096 of their
    items, those farthest from the middle and a random sample, so that the time per question does not grow with their
    number. Under decaying noise, whose best pairs are near neighbours, all items are considered.

    If pairs are few, or the score of the strategy is not a function of the logit's mean and standard deviation,
    `AllPairs` is used instead; a strategy without bounds on its score then scores every pair up to 500,000, and
    otherwise a sample (`WeightedPairs`).

    Parameters
    ----------
    items
        Number of promising items, all of whose pairs are scored; at least 2.
    improved
        Number of the best of these items for which the best partner among all items is sought.
    rescore
        Number of best pairs to rescore by samples; 0 for none.
    listed
        Largest number of pairs to enumerate instead.
    """

    items: Annotated[int, Limit(2, 4096)] = 256
    improved: Annotated[int, Limit(0, 64)] = 4
    rescore: Annotated[int, Limit(0, KEPT_PAIRS)] = 0
    listed: Annotated[int, Limit(0, 1_000_000)] = 100_000
    name: ClassVar[str] = "proposed_pairs"

    def __post_init__(self) -> None:
        for field, minimum in (("items", 2), ("improved", 0), ("rescore", 0), ("listed", 0)):
            whole(getattr(self, field), f"{field} of ProposedPairs", minimum, field=field)

    def choose(self, context: SelectionContext, rng: np.random.Generator) -> Selection | None:
        """Return the best pair of the proposal; None if the rest rules leave none."""
        shape = context.shape
        rows = _candidate_rows(context)
        if shape is None or not self._applies(context, shape) or len(rows) < 2:
            return self._all_pairs.choose(context, rng)
        n = len(context.points)
        is_complete = n <= CORE_SET_SIZE or context.response.noise_kind.code == DECAYING
        sketch = Sketch.of(context, shape, rows)
        keys, scored = sketch.best_pairs(self.items, self.improved)
        if keys is None:
            return self._all_pairs.choose(context, rng)
        first, second = np.divmod(keys, n)
        features = context.features(first, second)
        scores = context.scores(features)
        rescored = min(self.rescore, len(scores)) if context.rescores else 0
        if rescored:
            best = np.argsort(-scores, kind="stable")[:rescored]
            features, first, second = features.take(best), first[best], second[best]
            scores = context.rescored(features)
        row = int(np.lexsort((first * n + second, -scores))[0])
        if not scores[row] > -np.inf:
            return self._all_pairs.choose(context, rng)
        utility = float(scores[row])
        bound = max(utility, sketch.bound()) if is_complete else math.inf
        reference = median_score(context) if shape.signed else 0.0
        gap = certified_gap(SearchResult(keys, utility, bound, scored), reference)
        certified = gap if gap < math.inf else None
        words = describe_proposal(len(rows), scored, certified, rescored, context.caveat)
        return Selection(
            int(first[row]),
            int(second[row]),
            utility,
            scored,
            words,
            bound=None if certified is None else bound,
            gap=certified,
        )

    @property
    def _all_pairs(self) -> AllPairs:
        return AllPairs(gap=0.03, budget=_MAX_PAIRS_WITHOUT_BOUNDS, rescore=self.rescore, listed=self.listed)

    def _applies(self, context: SelectionContext, shape: UtilityShape) -> bool:
        """Return whether there are many pairs, scored by the mean and standard deviation of their logit."""
        n, d = context.points.shape
        residuals = context.belief.residuals
        scores_all = context.strategy.enough_pairs is None and context.strategy.promising is None
        few = n * (n - 1) // 2 <= self.listed
        shown = residuals is not None and (shape.kind != "table" or 2 * len(residuals.rows) > n)
        return bool(d) and scores_all and not (few or shown or context.drawn)


def _candidate_rows(context: SelectionContext) -> IntArray:
    """Return the rows of items to consider: not resting and, with residual utilities, not shown yet.

    A large catalogue is represented by its core set, unless most of that was already shown.
    """
    all_rows = np.arange(len(context.points))
    # Under decaying noise good pairs are near neighbours, and a subset of the items has few of them.
    subset = all_rows if context.response.noise_kind.code == DECAYING else core_set(context.points)
    excluded = context.resting.items
    if context.belief.residuals is not None:
        # Each item that was shown has its own residual variance; all others share one.
        shown = context.belief.residuals.rows
        excluded = np.union1d(excluded, shown) if len(excluded) else shown
    rows = _without(subset, excluded)
    return rows if 2 * len(rows) > len(subset) else _without(all_rows, excluded)


def _without(rows: IntArray, excluded: IntArray) -> IntArray:
    """Return the sorted rows that are not among the sorted `excluded` rows."""
    kept = np.ones(len(rows), dtype=np.bool_)
    positions = np.minimum(rows.searchsorted(excluded), len(rows) - 1)
    kept[positions[rows[positions] == excluded]] = False
    return rows[kept]
