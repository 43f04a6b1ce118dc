"""Reliability probe: the mutual information between the answer and k, rather than the user point."""

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
    """I(k; y) in bits, with the user point integrated out: h_b(E P) - E h_b(P), P = P(first | k) with E[lapse | k].

    The questions most informative about the point have P = 1/2 for every k, and so say nothing about k; for a probe, P
    depends on k. The logit is treated as Gaussian and the point as independent of k. Ties are ignored: P is the
    probability that the first item is preferred.
    """

    name: ClassVar[str] = "reliability_probe"
    # No bound over cells is known for this utility, and many pairs are nearly optimal.
    enough_pairs: ClassVar[int] = 2000

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) information in bits; 0 if both k and the lapse rate are known."""
        reliability = belief.reliability
        if reliability is None:
            return np.zeros(len(candidates))
        weights = belief.weights[reliability.rows, None] * reliability.chances
        shares = np.sum(weights, axis=0) / np.sum(weights)
        lapses = np.sum(weights * reliability.lapses, axis=0) / np.maximum(np.sum(weights, axis=0), 1e-300)
        probability_table = table(candidates.response.link, "probability")
        probability_first, conditional, likelier = (
            np.zeros(len(candidates)),
            np.zeros(len(candidates)),
            np.empty(len(candidates)),
        )
        for share, lapse, k in zip(shares.tolist(), lapses.tolist(), reliability.nodes.tolist(), strict=True):
            ratio = k / logit_constant(candidates.response)
            mean, deviation = ratio * candidates.logit_mean, ratio * candidates.logit_deviation
            look_up(0, len(candidates), probability_table, mean, deviation, likelier)
            # Rounding may take the interpolation above 1, where the entropy is undefined.
            likelier = np.minimum(likelier, 1.0)
            probability = 0.5 * lapse + (1.0 - lapse) * np.where(mean > 0, likelier, 1.0 - likelier)
            probability_first += share * probability
            conditional += share * _binary_entropy(probability)
        return _binary_entropy(np.clip(probability_first, 0.0, 1.0)) - conditional


def _binary_entropy(probability: FloatArray) -> FloatArray:
    """Return the entropy of two outcomes, in bits."""
    return np.asarray((entr(probability) + entr(1.0 - probability)) / np.log(2))
