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
    highest_reach,
    own_deviations,
)
from pairseek.pairs.strategies.base import BaseUtility

# Items among which the best pair is sought where all pairs are too many: 500,000 pairs.
_PROMISING = 1000
# Values of c at which the bound is computed.
_LEVELS = 9
# Pairs times samples that are held at a time.
_HELD = 1 << 20


@dataclass(frozen=True)
class EUBO(BaseUtility):
    """E max(u_p, u_q) - max_i E u_i: what the better of two items is expected to add to the best pick so far.

    The expected utility of the best option (Lin, Astudillo, Frazier and Bakshy, AISTATS 2022): it asks about the items
    that may be the best, for a search that is to find one item rather than a whole taste. It equals the gain in
    expected utility by an answer without noise. The utility of an item is appeal - k|w - x|² and its residual utility,
    in logits of a typical person under constant noise; reliability and lapse do not enter.

    `score` takes the difference of the two utilities as Gaussian, which is exact for a Gaussian belief; `exact`
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
        """Return the rows of the items that reach highest."""
        return highest_reach(candidates.points, candidates.item_appeal, belief, candidates.response, _PROMISING)

    def bound(self, candidates: PairFeatures, belief: Belief, others: IntArray) -> float:
        """Return an upper bound on the score of every pair that contains one of the items `others`.

        max(a, b) <= c + max(a - c, 0) + max(b - c, 0) for every c, so that the expected maximum is bounded by a sum of
        one term for each item, and all pairs by the largest terms. Equality holds where b - c = c - a, as for items on
        opposite sides of the mean; for independent items the bound exceeds the score by up to 40 %.
        """
        utility = expected_utilities(candidates.points, candidates.item_appeal, belief, candidates.response)
        deviation = own_deviations(candidates.points, belief, candidates.response)
        top = float(np.max(utility))
        bounds: list[float] = []
        for level in np.linspace(0.0, 2.0, _LEVELS):
            c = top + level * float(np.median(deviation))
            excess = expected_excess(utility - c, deviation)
            beside = np.argmax(excess[others])
            partners = excess.copy()
            partners[others[beside]] = -np.inf
            bounds.append(c + float(excess[others[beside]]) + float(np.max(partners)))
        return min(bounds) - top

    def exact(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) expected gains, averaged over every sample; `score` where there are residual utilities."""
        if candidates.residual_mean is not None:
            return self.score(candidates, belief)
        points, appeal, k = candidates.points, candidates.item_appeal, candidates.response.typical_k
        samples, weights = belief.samples, belief.weights
        centre = weights @ samples
        spread = float(weights @ np.sum((samples - centre) ** 2, axis=1))
        top = float(np.max(appeal - k * (np.sum((points - centre) ** 2, axis=1) + spread)))
        out = np.empty(len(candidates))
        step = max(1, _HELD // len(samples))
        for start in range(0, len(candidates), step):
            some = slice(start, start + step)
            both = [
                appeal[rows][:, None] - k * np.sum((points[rows][:, None] - samples) ** 2, axis=2)
                for rows in (candidates.first[some], candidates.second[some])
            ]
            out[some] = np.maximum(*both) @ weights - top
        return out
