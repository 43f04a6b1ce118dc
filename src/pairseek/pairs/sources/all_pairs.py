"""`AllPairs`: the best of all pairs, by branch and bound or, without an upper bound, by enumeration."""

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
from pairseek.pairs.sources.branch_and_bound import SearchResult, StoppingCriterion, best_first
from pairseek.pairs.sources.branch_and_bound.view import CatalogueView
from pairseek.pairs.sources.sampled import SampledPairs, pair_rows, sampled_pairs
from pairseek.pairs.sources.weighted import WeightedPairs, information_view
from pairseek.pairs.strategies.shape import UtilityShape

# Pairs scored at a time when all pairs are enumerated.
_PAIRS_PER_CHUNK = 1 << 18
# Number of random pairs whose median score is the reference for gaps of signed utilities.
_MEDIAN_SAMPLE = 1001
# Pairs drawn at a time for a constant utility.
_UNIFORM_DRAWS = 4096
# Any two rows, for features that do not depend on the pair.
_ANY_PAIR = np.array([0, 1])
# Number of random pairs to score if branch and bound does not apply, because most items were shown or have no
# coordinates, and there are too many pairs to list.
_RANDOM_PAIRS = 200_000


@dataclass(frozen=True)
class AllPairs:
    """The pair of highest score among all n(n - 1)/2.

    The scores of the built-in strategies are functions of a few features of a pair (see `UtilityShape`). Most of these
    are differences between features of its items, which gives upper bounds over all pairs of two cells of items. Branch
    and bound over the cells of a tree then leaves few pairs to score. Pairs are not stored, and memory is O(n d). Ties
    are broken by the order of the items or, among items without coordinates, by the seed.

    With residual utilities, each item that was shown has its own residual belief. Branch and bound then covers the
    items not shown yet; small catalogues are scored completely.

    Without a `UtilityShape`, every pair is scored if there are no more than `budget`, and otherwise a sample
    (`WeightedPairs`).

    Parameters
    ----------
    gap
        Relative optimality gap at which the search may stop, from 0 (exact) to below 1. If scores may be negative, it
        is relative to the difference between the best and the median pair.
    budget
        Number of pairs that may be visited, at least 1. Once it is exhausted, the best pair found is returned with its
        certified gap. The budget counts pairs rather than time, so that every machine asks the same question. Pruning
        counts in proportion to its time: bounding a pair of cells as 64 pairs, checking an item against a cell as 4.
    rescore
        Number of best pairs to rescore by samples; 0 for none. The gap refers to the scores before rescoring.
    listed
        Largest number of pairs to enumerate instead, which is as fast for few pairs and needs no compiled search.

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
            raise InvalidParameter(
                f"AllPairs(gap={self.gap!r}) is invalid: give at least 0 (exact) and below 1", field="gap"
            )
        if isinstance(self.budget, bool) or not isinstance(self.budget, int) or self.budget < 1:
            raise InvalidParameter(
                f"AllPairs(budget={self.budget!r}) is invalid: give a whole number of pairs, at least 1", field="budget"
            )
        for field in ("rescore", "listed"):
            whole(getattr(self, field), f"{field} of AllPairs", 0, field=field)

    def choose(self, context: SelectionContext, rng: np.random.Generator) -> Selection | None:
        """Return the best of all pairs; None if the rest rules leave none."""
        shape = context.shape
        n = len(context.points)
        strategy = context.strategy
        if strategy.enough_pairs is not None:
            return SampledPairs(count=strategy.enough_pairs).choose(context, context.generator("checks"))
        if context.drawn:
            return draw_permitted_pair(context, rng)
        listed = self.listed if strategy.most_pairs is None else min(self.listed, strategy.most_pairs)
        if strategy.promising is not None and n * (n - 1) // 2 > listed:
            items = strategy.promising(context.features(_ANY_PAIR[:1], _ANY_PAIR[1:]), context.belief)
            if len(items) < n:
                return best_among(context, items, rng)
        if n * (n - 1) // 2 <= (self.budget if shape is None else self.listed):
            return best_by_list(context, rng, rescore=self.rescore)
        residuals = context.belief.residuals
        if residuals is not None and (context.points.shape[1] == 0 or 2 * len(residuals.rows) > n):
            return SampledPairs(count=_RANDOM_PAIRS, shared=True).choose(context, rng)
        if shape is None or (residuals is not None and shape.kind != "table"):
            return WeightedPairs(rescore=self.rescore).choose(context, rng)
        return self._best(context, shape)

    def _best(self, context: SelectionContext, shape: UtilityShape) -> Selection | None:
        """Return the best pair by branch and bound, rescored by samples if the strategy benefits from it."""
        rescore = self.rescore if context.rescores else 0
        reference = median_score(context) if shape.signed and self.gap else 0.0
        criterion = StoppingCriterion(max(1, rescore), self.gap, reference, self.budget)
        result = best_first(CatalogueView.of(context, shape), context.resting.pairs, criterion)
        if not len(result.keys):
            return None
        first, second = np.divmod(result.keys, len(context.points))
        candidates = context.features(first, second)
        scores = context.scores(candidates)
        if rescore:
            rows = np.argsort(-scores, kind="stable")[:rescore]
            candidates, first, second = candidates.take(rows), first[rows], second[rows]
            scores = context.rescored(candidates)
        row = int(np.lexsort((first * len(context.points) + second, -scores))[0])
        if shape.signed and not self.gap:
            reference = median_score(context)
        gap = certified_gap(result, reference)
        n, caveat = len(context.points), context.caveat
        if context.belief.residuals is not None and len(context.belief.residuals.rows):
            n -= len(context.belief.residuals.rows)
            caveat = f"; of items not shown before{caveat}"
        if context.response.residual_deviation > 0.0:
            gap += WIDENED_TABLE_ERROR
        words = _describe_search(n, result, gap, len(scores) if rescore else 0, caveat)
        return Selection(
            int(first[row]), int(second[row]), float(scores[row]), result.visited, words, bound=result.bound, gap=gap
        )


def median_score(context: SelectionContext) -> float:
    """Return the median score of a fixed random sample of permitted pairs; 0 if the sample contains none."""
    n = len(context.points)
    first, second = sampled_pairs(n, min(_MEDIAN_SAMPLE, n * (n - 1) // 2), np.random.default_rng(0))
    is_permitted = context.resting.allows(first, second)
    scores = context.scores(context.features(first[is_permitted], second[is_permitted]))
    scores = scores[scores > -np.inf]
    return float(np.median(scores)) if len(scores) else 0.0


def certified_gap(result: SearchResult, reference: float) -> float:
    """Return the optimality gap of the best pair found, relative to best - `reference`."""
    if result.bound <= result.utility:
        return 0.0
    # Below the reference the relative gap grows as the optimum decreases, so no gap can be certified.
    return (result.bound - result.utility) / (result.bound - reference) if result.utility > reference else float("inf")


def draw_permitted_pair(context: SelectionContext, rng: np.random.Generator) -> Selection | None:
    """Draw a permitted pair uniformly; if a batch of draws contains none, draw from the most informative pairs."""
    n = len(context.points)
    total = n * (n - 1) // 2
    first, second = sampled_pairs(n, _UNIFORM_DRAWS, rng)
    is_permitted = context.resting.allows(first, second)
    if context.belief.residuals is None:
        is_permitted &= np.any(context.points[first] != context.points[second], axis=1)
    if np.any(is_permitted):
        row = int(np.argmax(is_permitted))
        words = f"any of {total:,} pairs, drawn at random"
        chance = 1.0 / context.resting.count_permitted()
        return Selection(int(first[row]), int(second[row]), 0.0, 1, words, chance=chance)
    keys = best_first(information_view(context), context.resting.pairs, StoppingCriterion(1024, 0.0, 0.0, 1)).keys
    if not len(keys):
        return None
    i, j = divmod(int(rng.choice(keys)), n)
    return Selection(i, j, 0.0, len(keys), f"{len(keys):,} of {total:,} pairs, drawn at random")


def best_among(context: SelectionContext, items: IntArray, rng: np.random.Generator) -> Selection | None:
    """Return the best pair of these items, with its gap to all other pairs if the strategy bounds them."""
    first, second = (np.sort(items)[rows] for rows in np.triu_indices(len(items), 1))
    words = f"all {len(first):,} pairs of the {len(items):,} most promising of {len(context.points):,} items"
    best = best_of(context, first, second, rng, rescore=0, words=words)
    upper_bound = context.strategy.bound
    if best is None or upper_bound is None:
        return best
    others = np.setdiff1d(np.arange(len(context.points)), items)
    features = context.features(_ANY_PAIR[:1], _ANY_PAIR[1:])
    bound = max(best.utility, float(upper_bound(features, context.belief, others)))
    gap = (bound - best.utility) / bound if bound > 0.0 else 0.0
    words = f"{words}; best of all pairs {'' if gap == 0.0 else f'to within {_percent(gap)}'}".rstrip()
    return replace(best, words=words, bound=bound, gap=gap)


def best_by_list(context: SelectionContext, rng: np.random.Generator, *, rescore: int) -> Selection | None:
    """Return the best of all pairs, enumerated in chunks; ties are broken as in `best_of`."""
    n = len(context.points)
    total = n * (n - 1) // 2
    count_kept = max(1, rescore if context.rescores else 0)
    best: tuple[FloatArray, IntArray] = np.empty(0), np.empty(0, dtype=np.int64)
    for start in range(0, total, _PAIRS_PER_CHUNK):
        numbers = np.arange(start, min(start + _PAIRS_PER_CHUNK, total))
        first, second = pair_rows(numbers, n)
        is_permitted = context.resting.allows(first, second)
        scores = context.scores(context.features(first[is_permitted], second[is_permitted]))
        threshold = best[0][-1] if len(best[0]) >= count_kept else -np.inf
        is_candidate = (scores >= threshold) & (scores > -np.inf)
        merged = np.append(best[0], scores[is_candidate]), np.append(best[1], numbers[is_permitted][is_candidate])
        ties = 0 if context.points.shape[1] else np.count_nonzero(merged[0] == merged[0].max(initial=-np.inf))
        rows = np.lexsort((merged[1], -merged[0]))[: max(count_kept, ties)]
        best = merged[0][rows], merged[1][rows]
    rescored = _rescoring_clause(min(rescore, total) if context.rescores else 0)
    words = f"all {total:,} pairs, each scored{context.caveat}{rescored}"
    choice = best_of(context, *pair_rows(best[1], n), rng, rescore=rescore, words=words)
    return None if choice is None else replace(choice, considered=total, bound=float(best[0][0]), gap=0.0)


def describe_proposal(n: int, scored: int, gap: float | None, rescored: int, caveat: str) -> str:
    """Describe a proposal in words: the number of pairs scored, and how much better any other pair can be."""
    total = n * (n - 1) // 2
    accuracy = "no bound known" if gap is None else f"certain to within {_percent(gap)}"
    return f"best of {scored:,} proposed of {total:,} pairs, {accuracy}{caveat}{_rescoring_clause(rescored)}"


def _describe_search(n: int, result: SearchResult, gap: float, rescored: int, caveat: str) -> str:
    total = n * (n - 1) // 2
    accuracy = "exact" if gap == 0.0 else f"to within {_percent(max(gap, 1e-6))}"
    visited = _percent(result.visited / total)
    return f"best of all {total:,} pairs, {accuracy}; {visited} visited{caveat}{_rescoring_clause(rescored)}"


def _rescoring_clause(rescored: int) -> str:
    return f"; the best {rescored} scored again by samples" if rescored else ""


def _percent(fraction: float) -> str:
    """Format a fraction as a percentage with two significant digits in plain notation: 12 %, 0.0004 %."""
    percent = 100.0 * fraction
    if not 0.0 < percent < np.inf:
        return "0 %" if percent == 0.0 else "an unknown share"
    digits = max(0, 1 - int(np.floor(np.log10(percent))))
    text = f"{percent:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"
