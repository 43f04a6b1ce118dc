"""EUBO: the expected utility of the better of the two items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.core.types import Belief, FloatArray, IntArray
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.item_utilities import (
    expected_excess,
    expected_maximum,
    expected_utilities,
    item_deviations,
    promising_rows,
)
from pairseek.pairs.strategies.base import BaseUtility

# Number of items whose pairs (44,850) are scored if all pairs are too many.
_PROMISING_ITEMS = 300
# Number of values of c at which the bound is computed.
_BOUND_LEVELS = 9
# Pairs times samples held in memory at a time.
_VALUES_PER_CHUNK = 1 << 20


@dataclass(frozen=True)
class EUBO(BaseUtility):
    """E max(u_p, u_q) - max_i E u_i: the expected gain of the better of two items over the current best pick.

    The expected utility of the best option (Lin, Astudillo, Frazier and Bakshy, AISTATS 2022). It asks about items that
    may be the best, for a search that looks for one item rather than for a person's taste. It equals the expected gain
    in utility from a noiseless answer. The utility of an item is appeal - k|w - x|² plus its residual utility, in
    logits of a typical person under constant noise; reliability and lapse do not enter.

    `score` treats the difference of the two utilities as Gaussian, which is exact for a Gaussian belief; `exact`
    averages over all samples.

    Examples
    --------
    >>> import pairseek as ps
    >>> strategy = ps.EUBO()   # as with goal="best"
    >>> search = ps.Search(ps.datasets.colours(), strategy=strategy, rng=7)
    >>> search.ask().info.strategy
    'eubo'
    """

    name: ClassVar[str] = "eubo"

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) expected gains in logits."""
        utility = expected_utilities(candidates.points, candidates.item_appeal, belief, candidates.response)
        deviation = candidates.utility_deviation
        first, second = utility[candidates.first], utility[candidates.second]
        return expected_maximum(first, second, deviation) - float(np.max(utility))

    def promising(self, candidates: PairFeatures, belief: Belief) -> IntArray:
        """Return the rows of the most promising items: see `promising_rows`."""
        return promising_rows(candidates.points, candidates.item_appeal, belief, candidates.response, _PROMISING_ITEMS)

    def bound(self, candidates: PairFeatures, belief: Belief, others: IntArray) -> float:
        """Return an upper bound on the score of every pair that contains one of the items `others`.

        max(a, b) <= c + max(a - c, 0) + max(b - c, 0) for every c, so the expected maximum is bounded by c plus one
        term per item, and all pairs by the largest terms. Equality holds if b - c = c - a, as for items on opposite
        sides of the mean; for independent items the bound exceeds the score by up to 40 %.
        """
        utility = expected_utilities(candidates.points, candidates.item_appeal, belief, candidates.response)
        deviation = item_deviations(candidates.points, belief, candidates.response)
        top = float(np.max(utility))
        bounds: list[float] = []
        for level in np.linspace(0.0, 2.0, _BOUND_LEVELS):
            c = top + level * float(np.median(deviation))
            excess = expected_excess(utility - c, deviation)
            best_other = others[np.argmax(excess[others])]
            partners = excess.copy()
            partners[best_other] = -np.inf
            bounds.append(c + float(excess[best_other]) + float(np.max(partners)))
        return min(bounds) - top

    def exact(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) expected gains averaged over all samples; with residual utilities, `score`."""
        if candidates.residual_mean is not None:
            return self.score(candidates, belief)
        points, appeal, k = candidates.points, candidates.item_appeal, candidates.response.typical_k
        samples, weights = belief.samples, belief.weights
        centre = weights @ samples
        spread = float(weights @ np.sum((samples - centre) ** 2, axis=1))
        top = float(np.max(appeal - k * (np.sum((points - centre) ** 2, axis=1) + spread)))
        out = np.empty(len(candidates))
        step = max(1, _VALUES_PER_CHUNK // len(samples))
        for start in range(0, len(candidates), step):
            chunk = slice(start, start + step)
            utilities = [
                appeal[rows][:, None] - k * np.sum((points[rows][:, None] - samples) ** 2, axis=2)
                for rows in (candidates.first[chunk], candidates.second[chunk])
            ]
            out[chunk] = np.maximum(*utilities) @ weights - top
        return out
