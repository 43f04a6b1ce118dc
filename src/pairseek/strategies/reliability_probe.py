"""Reliability probe: a question that measures how a person answers instead of where the person is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr

from pairseek.core.types import Belief, FloatArray
from pairseek.numerics.mixtures import table
from pairseek.numerics.tables import look_up
from pairseek.strategies.features import PairFeatures


@dataclass(frozen=True)
class ReliabilityProbe:
    """I(k; y) in bits, the user point integrated out: h_b(E P) - E h_b(P), P = P(first | k) with the lapse usual at k.

    Questions that tell most of the point have even chances for every k, and so tell nothing of it; these have chances
    that depend on k. As if the logit were Gaussian, and the point did not depend on k.
    """

    name: ClassVar[str] = "reliability_probe"
    # Its utility has no bound, and many pairs are nearly as good.
    enough_pairs: ClassVar[int] = 2000

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """(m,) bits; 0 where nothing is unknown."""
        known = belief.reliability
        if known is None:
            return np.zeros(len(candidates))
        weights = belief.weights[known.rows, None] * known.chances
        shares = np.sum(weights, axis=0) / np.sum(weights)
        lapses = np.sum(weights * known.lapses, axis=0) / np.maximum(np.sum(weights, axis=0), 1e-300)
        probability = table(candidates.response.link, "probability")
        total, certain, likelier = np.zeros(len(candidates)), np.zeros(len(candidates)), np.empty(len(candidates))
        for share, lapse, k in zip(shares.tolist(), lapses.tolist(), known.nodes.tolist(), strict=True):
            constant = candidates.constant * (k / candidates.response.constant)
            mean = constant * candidates.margin + candidates.appeal
            look_up(0, len(candidates), probability, mean, constant * np.sqrt(candidates.variance), likelier)
            # A table may round a chance to a little more than 1, which has no entropy.
            likelier = np.minimum(likelier, 1.0)
            chance = 0.5 * lapse + (1.0 - lapse) * np.where(mean > 0, likelier, 1.0 - likelier)
            total += share * chance
            certain += share * _bits(chance)
        return _bits(np.clip(total, 0.0, 1.0)) - certain


def _bits(chance: FloatArray) -> FloatArray:
    return np.asarray((entr(chance) + entr(1.0 - chance)) / np.log(2))
