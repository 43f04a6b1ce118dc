"""EPMV as the authors' program computes it: the probability of each candidate averaged over posterior samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.core.types import Belief, FloatArray, IntArray
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.strategies import EPMV

_FIRST = 512
"""Candidates of the highest utility by table, averaged first: the best of them excludes most of the others."""
_BLOCK = 4096


@dataclass(frozen=True)
class SampledEPMV(EPMV):
    """EPMV whose E f(z) is an average over the samples of the belief, at every candidate that could be the best.

    The utility k_pq sqrt(a'Σa) - λ |E f(z) - 1/2| does not exceed its first term. Candidates whose first term is below
    the best utility found cannot be the best; they are not averaged and score -inf, which leaves the choice unchanged.
    """

    name: ClassVar[str] = "sampled_epmv"

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) utilities by samples; -inf where a candidate cannot be the best."""
        found = np.full(len(candidates), -np.inf)
        by_table = super().score(candidates, belief)
        # Coincident items have no plane; they must not be averaged first.
        usable = np.flatnonzero(candidates.distinct)
        first = usable[np.argsort(-by_table[usable], kind="stable")[:_FIRST]]
        self._average(found, candidates, belief, first)
        limit = candidates.logit_deviation
        rest = usable[np.argsort(-limit[usable], kind="stable")]
        for start in range(0, len(rest), _BLOCK):
            block = rest[start : start + _BLOCK]
            block = block[(limit[block] >= found.max(initial=-np.inf)) & (found[block] == -np.inf)]
            self._average(found, candidates, belief, block)
        return found

    def _average(self, found: FloatArray, candidates: PairFeatures, belief: Belief, rows: IntArray) -> None:
        if len(rows):
            found[rows] = self.exact(candidates.take(rows), belief)
