"""Reliability probe: the mutual information between the answer and k, instead of the user point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr

from pairseek.core.types import Belief, FloatArray
from pairseek.numerics.mixtures import table
from pairseek.numerics.tables import look_up
from pairseek.pairs.features import PairFeatures, logit_constant
from pairseek.pairs.strategies.base import BaseUtility


@dataclass(frozen=True)
class ReliabilityProbe(BaseUtility):
    """I(k; y) in bits, the user point integrated out: h_b(E P) - E h_b(P), P = P(first | k) with E[lapse | k].

    The questions most informative about the point have P = 1/2 for every k, and are therefore uninformative about k;
    probes have a P that depends on k. The logit is taken as Gaussian, and the point as independent of k. Ties are not
    accounted for: P is the probability that the first is preferred.
    """

    name: ClassVar[str] = "reliability_probe"
    # No upper bound over cells is known for this utility, and many pairs are nearly optimal.
    enough_pairs: ClassVar[int] = 2000

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) information in bits; 0 if both k and the lapse are known."""
        known = belief.reliability
        if known is None:
            return np.zeros(len(candidates))
        weights = belief.weights[known.rows, None] * known.chances
        shares = np.sum(weights, axis=0) / np.sum(weights)
        lapses = np.sum(weights * known.lapses, axis=0) / np.maximum(np.sum(weights, axis=0), 1e-300)
        probability = table(candidates.response.link, "probability")
        total, certain, likelier = np.zeros(len(candidates)), np.zeros(len(candidates)), np.empty(len(candidates))
        for share, lapse, k in zip(shares.tolist(), lapses.tolist(), known.nodes.tolist(), strict=True):
            ratio = k / logit_constant(candidates.response)
            mean, deviation = ratio * candidates.logit_mean, ratio * candidates.logit_deviation
            look_up(0, len(candidates), probability, mean, deviation, likelier)
            # Interpolation may exceed 1 by a rounding error, where the entropy is undefined.
            likelier = np.minimum(likelier, 1.0)
            chance = 0.5 * lapse + (1.0 - lapse) * np.where(mean > 0, likelier, 1.0 - likelier)
            total += share * chance
            certain += share * _bits(chance)
        return _bits(np.clip(total, 0.0, 1.0)) - certain


def _bits(chance: FloatArray) -> FloatArray:
    return np.asarray((entr(chance) + entr(1.0 - chance)) / np.log(2))
