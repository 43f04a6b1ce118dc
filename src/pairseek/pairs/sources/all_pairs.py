"""`AllPairs`: the best of all pairs by branch and bound, or by enumeration where no upper bound is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from pairseek.core.limits import Limit
from pairseek.core.types import FloatArray, IntArray
from pairseek.core.validation import whole
from pairseek.errors import InvalidParameter
from pairseek.numerics.mixtures import WIDENED_TABLE_ERROR
from pairseek.pairs.context import Selection, SelectionContext, best_of
from pairseek.pairs.sources.branch_and_bound import Goal, SearchResult, best_first
from pairseek.pairs.sources.branch_and_bound.view import CatalogueView
from pairseek.pairs.sources.sampled import SampledPairs, pair_rows, sampled_pairs
from pairseek.pairs.sources.weighted import WeightedPairs, guide
from pairseek.pairs.strategies.shape import UtilityShape

# Chunk of pairs scored at a time when all pairs are enumerated.
_LISTED = 1 << 18
# Number of random pairs whose median score is the reference for gaps of signed utilities.
_SAMPLE = 1001
_DRAWS = 4096
# Any two rows, for features that do not depend on the pair.
_ONE = np.array([0, 1])
# Number of random pairs where most items were shown, or have no coordinates, and are too many to list all pairs.
_RANDOM = 200_000


@dataclass(frozen=True)
class AllPairs:
    """The pair of highest score among all n(n - 1)/2.

    The scores of the built-in strategies are functions of a few features of a pair (see `UtilityShape`), most of them
    differences between features of its items, so that they have upper bounds over all pairs of two cells of items.
    Branch and bound over the cells of a tree then leaves few pairs to score; no pair is stored, and memory is O(n d).
    Ties are broken by the order of the items.

    Where the response has residual utilities, items that were shown differ from all others in what is known of theirs.
    Branch and bound then covers the items that were not shown yet; all pairs are scored while they are few.

    A strategy without `UtilityShape` scores every pair if there are no more than `budget`, and otherwise a sample
    (`WeightedPairs`).

    Parameters
    ----------
    gap
        Relative optimality gap at which the search may stop, from 0 (exact) to below 1. For scores that may be
        negative, it is relative to the difference between the best and the median pair.
    budget
        Number of pairs that may be visited, at least 1. When it is exhausted, the best pair found is returned with its
        certified gap. It counts pairs and not time, so that every machine asks the same question. Pruning counts too,
        in proportion to its time: a bound of a pair of cells as 64 pairs, a check of an item against a cell as 4.
    rescore
        Number of the best pairs to rescore by samples; 0 for none. The gap holds for the scores before that.
    listed
        Largest number of pairs to enumerate instead: as fast for few pairs, and without compiling the search.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), candidates=ps.AllPairs(gap=0.01), rng=7)
    >>> search.ask().info.gap <= 0.01
    True
    """

    gap: Annotated[float, Limit(0, 1)] = 0.0
    budget: Annotated[int, Limit(1, 100_000_000)] = 100_000_000
    rescore: Annotated[int, Limit(0, 2000)] = 0
    listed: Annotated[int, Limit(0, 1_000_000)] = 0
    name: ClassVar[str] = "all_pairs"

    def __post_init__(self) -> None:
        if not 0.0 <= self.gap < 1.0:
            raise InvalidParameter(f"AllPairs(gap={self.gap!r}): give a share from 0 (exact) to below 1", field="gap")
        if isinstance(self.budget, bool) or not isinstance(self.budget, int) or self.budget < 1:
            raise InvalidParameter(
                f"AllPairs(budget={self.budget!r}): give a whole number of pairs, at least 1", field="budget"
            )
        for setting in ("rescore", "listed"):
            whole(getattr(self, setting), f"{setting} of AllPairs", 0, field=setting)

    def choose(self, context: SelectionContext, rng: np.random.Generator) -> Selection | None:
        """Return the best of all pairs; None if the rules of rest leave none."""
        shape = context.shape
        n = len(context.points)
        strategy = context.strategy
        if strategy.enough_pairs is not None:
            return SampledPairs(count=strategy.enough_pairs).choose(context, context.generator("checks"))
        if context.drawn:
            return any_pair(context, rng)
        most = self.listed if strategy.most_pairs is None else min(self.listed, strategy.most_pairs)
        if strategy.promising is not None and n * (n - 1) // 2 > most:
            some = strategy.promising(context.features(_ONE[:1], _ONE[1:]), context.belief)
            if len(some) < n:
                return best_among(context, some, rng)
        if n * (n - 1) // 2 <= (self.budget if shape is None else self.listed):
            return best_by_list(context, rng, rescore=self.rescore)
        residuals = context.belief.residuals
        if residuals is not None and (context.points.shape[1] == 0 or 2 * len(residuals.rows) > n):
            return SampledPairs(count=_RANDOM).choose(context, context.generator(self.name))
        if shape is None or (residuals is not None and shape.kind != "table"):
            return WeightedPairs(rescore=self.rescore).choose(context, rng)
        return self._best(context, shape)

    def _best(self, context: SelectionContext, shape: UtilityShape) -> Selection | None:
        """Return the best pair by branch and bound, rescored by samples where the strategy gains from it."""
        rescore = self.rescore if context.rescores else 0
        zero = median_score(context) if shape.signed and self.gap else 0.0
        goal = Goal(max(1, rescore), self.gap, zero, self.budget)
        found = best_first(CatalogueView.of(context, shape), context.resting.pairs, goal)
        if not len(found.keys):
            return None
        first, second = np.divmod(found.keys, len(context.points))
        candidates = context.features(first, second)
        scores = context.scores(candidates)
        if rescore:
            rows = np.argsort(-scores, kind="stable")[:rescore]
            candidates, first, second = candidates.take(rows), first[rows], second[rows]
            scores = context.rescored(candidates)
        row = int(np.lexsort((first * len(context.points) + second, -scores))[0])
        if shape.signed and not self.gap:
            zero = median_score(context)
        gap = certified_gap(found, zero)
        n, caveat = len(context.points), context.caveat
        if context.belief.residuals is not None and len(context.belief.residuals.rows):
            n -= len(context.belief.residuals.rows)
            caveat = f"; of items that were not shown before{caveat}"
        if context.response.residual_deviation > 0.0:
            gap += WIDENED_TABLE_ERROR
        words = _description(n, found, gap, len(scores) if rescore else 0, caveat)
        return Selection(
            int(first[row]), int(second[row]), float(scores[row]), found.visited, words, bound=found.bound, gap=gap
        )


def median_score(context: SelectionContext) -> float:
    """Return the median score of a fixed random sample of the permitted pairs; 0 if the sample has none."""
    n = len(context.points)
    first, second = sampled_pairs(n, min(_SAMPLE, n * (n - 1) // 2), np.random.default_rng(0))
    free = context.resting.allows(first, second)
    scores = context.scores(context.features(first[free], second[free]))
    scores = scores[scores > -np.inf]
    return float(np.median(scores)) if len(scores) else 0.0


def certified_gap(found: SearchResult, zero: float) -> float:
    """Return the optimality gap of the best pair found, relative to best - zero."""
    if found.bound <= found.utility:
        return 0.0
    # Below the reference the relative gap grows as the optimum decreases, so that no gap can be certified.
    return (found.bound - found.utility) / (found.bound - zero) if found.utility > zero else float("inf")


def any_pair(context: SelectionContext, rng: np.random.Generator) -> Selection | None:
    """Draw a pair uniformly from the permitted ones; if a batch hits none, from those of highest information."""
    n = len(context.points)
    total = n * (n - 1) // 2
    first, second = sampled_pairs(n, _DRAWS, rng)
    free = context.resting.allows(first, second)
    if context.belief.residuals is None:
        free &= np.any(context.points[first] != context.points[second], axis=1)
    if np.any(free):
        row = int(np.argmax(free))
        return Selection(int(first[row]), int(second[row]), 0.0, 1, f"any of {total:,} pairs, drawn at random")
    keys = best_first(guide(context), context.resting.pairs, Goal(1024, 0.0, 0.0, 1)).keys
    if not len(keys):
        return None
    i, j = divmod(int(rng.choice(keys)), n)
    return Selection(i, j, 0.0, len(keys), f"{len(keys):,} of {total:,} pairs, drawn at random")


def best_among(context: SelectionContext, items: IntArray, rng: np.random.Generator) -> Selection | None:
    """Return the best of the pairs among some items; the gap to all others is known where the strategy bounds them."""
    first, second = (np.sort(items)[rows] for rows in np.triu_indices(len(items), 1))
    words = f"all {len(first):,} pairs of the {len(items):,} most promising of {len(context.points):,} items"
    found = best_of(context, first, second, rng, rescore=0, words=words)
    bounded = context.strategy.bound
    if found is None or bounded is None:
        return found
    others = np.setdiff1d(np.arange(len(context.points)), items)
    bound = max(found.utility, float(bounded(context.features(_ONE[:1], _ONE[1:]), context.belief, others)))
    gap = (bound - found.utility) / bound if bound > 0.0 else 0.0
    words = f"{words}; best of all pairs {'' if gap == 0.0 else f'to within {_percent(gap)}'}".rstrip()
    return replace(found, words=words, bound=bound, gap=gap)


def best_by_list(context: SelectionContext, rng: np.random.Generator, *, rescore: int) -> Selection | None:
    """Return the best of all pairs by enumeration in chunks; ties are broken by the order of the items."""
    n = len(context.points)
    total = n * (n - 1) // 2
    wanted = max(1, rescore if context.rescores else 0)
    best: tuple[FloatArray, IntArray] = np.empty(0), np.empty(0, dtype=np.int64)
    for start in range(0, total, _LISTED):
        numbers = np.arange(start, min(start + _LISTED, total))
        first, second = pair_rows(numbers, n)
        free = context.resting.allows(first, second)
        scores = context.scores(context.features(first[free], second[free]))
        least = best[0][-1] if len(best[0]) == wanted else -np.inf
        good = (scores >= least) & (scores > -np.inf)
        merged = np.append(best[0], scores[good]), np.append(best[1], numbers[free][good])
        rows = np.lexsort((merged[1], -merged[0]))[:wanted]
        best = merged[0][rows], merged[1][rows]
    again = _rescored(min(rescore, total) if context.rescores else 0)
    words = f"all {total:,} pairs, each scored{context.caveat}{again}"
    choice = best_of(context, *pair_rows(best[1], n), rng, rescore=rescore, words=words)
    return None if choice is None else replace(choice, considered=total, bound=float(best[0][0]), gap=0.0)


def description(n: int, scored: int, gap: float | None, rescored: int, caveat: str) -> str:
    """Return the words of a proposal: the best of so many pairs, and how far any pair may be better."""
    total = n * (n - 1) // 2
    how = "no bound known" if gap is None else f"certain to within {_percent(gap)}"
    return f"best of {scored:,} proposed of {total:,} pairs, {how}{caveat}{_rescored(rescored)}"


def _description(n: int, found: SearchResult, gap: float, rescored: int, caveat: str) -> str:
    total = n * (n - 1) // 2
    how = "exact" if gap == 0.0 else f"to within {_percent(max(gap, 1e-6))}"
    return f"best of all {total:,} pairs, {how}; {_percent(found.visited / total)} visited{caveat}{_rescored(rescored)}"


def _rescored(rescored: int) -> str:
    return f"; the best {rescored} scored again by samples" if rescored else ""


def _percent(share: float) -> str:
    """Format a share as a percentage with two significant digits in plain notation: 12 %, 0.0004 %."""
    percent = 100.0 * share
    if not 0.0 < percent < np.inf:
        return "0 %" if percent == 0.0 else "an unknown share"
    digits = max(0, 1 - int(np.floor(np.log10(percent))))
    text = f"{percent:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"
