"""EUBO: the expected utility of the better of the two items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from pairseek.core.types import Belief, FloatArray, IntArray
from pairseek.strategies.features import PairFeatures

# Items among which the best pair is sought where all pairs are too many: 500,000 pairs.
_PROMISING = 1000
# Pairs times samples that are held at a time.
_HELD = 1 << 20


@dataclass(frozen=True)
class EUBO:
    """E max(u_p, u_q) - max_i E u_i: what the better of two items is expected to add to the best pick so far.

    The expected utility of the best option (Lin, Astudillo, Frazier and Bakshy, AISTATS 2022): it asks about the items
    that may be the best, for a search that is to find one item rather than a whole taste. It equals the gain in
    expected utility by an answer without noise. The utility of an item is appeal - k|w - x|² and its residual utility,
    in logits of a typical person under constant noise; reliability and lapse do not enter.

    `score` takes the difference of the two utilities as Gaussian, which is exact for a Gaussian belief; `exact`
    averages over all samples.
    """

    name: ClassVar[str] = "eubo"

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) expected gains in logits."""
        utility, deviation = utilities(candidates, belief), candidates.utility_deviation
        first, second = utility[candidates.first], utility[candidates.second]
        return expected_maximum(first, second, deviation) - float(np.max(utility))

    def promising(self, candidates: PairFeatures, belief: Belief) -> IntArray:
        """Return the rows of the items that reach highest, each with a partner of its own utility on the other side.

        The better of two items of equal expected utility is expected to add s/sqrt(2π), s the deviation of their
        difference; that of an item and its mirror image in the mean is twice its own.
        """
        utility = utilities(candidates, belief)
        if len(utility) <= _PROMISING:
            return np.arange(len(utility))
        centred = candidates.points - belief.mean
        variance = 4.0 * np.einsum("nd,de,ne->n", centred, belief.covariance, centred)
        own = (2.0 * candidates.response.reference) ** 2 * variance
        residual = np.full(len(utility), 2.0 * candidates.response.residual_deviation**2)
        if belief.residuals is not None:
            residual[belief.residuals.rows] = 2.0 * np.diag(belief.residuals.covariance)
        reach = utility + np.sqrt((own + candidates.residual_unit**2 * residual) / (2.0 * np.pi))
        return np.sort(np.argpartition(-reach, _PROMISING)[:_PROMISING])

    def exact(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) expected gains, averaged over every sample; `score` where there are residual utilities."""
        if candidates.residual_mean is not None:
            return self.score(candidates, belief)
        points, appeal, k = candidates.points, candidates.item_appeal, candidates.response.reference
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


def utilities(candidates: PairFeatures, belief: Belief) -> FloatArray:
    """Return the (n,) expected utilities of all points but for a part that is common to all."""
    square = np.sum((candidates.points - belief.mean) ** 2, axis=1)
    utility = np.asarray(candidates.item_appeal - candidates.response.reference * square)
    if belief.residuals is not None:
        utility[belief.residuals.rows] += candidates.residual_unit * belief.residuals.mean
    return utility


def expected_maximum(first: FloatArray, second: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return E max of two Gaussian variables with these means, and this deviation of their difference.

    It is the larger mean plus s h(-|δ|/s), h(t) = φ(t) + t Φ(t), and increases with all three arguments.
    """
    # Beyond 40 deviations the excess is 0 in double precision.
    t = np.maximum(-np.abs(first - second) / np.maximum(deviation, 1e-300), -40.0)
    density = np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
    excess = np.maximum(density + t * ndtr(t), 0.0)
    return np.asarray(np.maximum(first, second) + np.where(deviation > 0.0, deviation * excess, 0.0))
