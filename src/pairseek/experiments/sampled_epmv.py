"""EPMV as in the authors' program, with the probability of each candidate averaged over posterior samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.core.types import Belief, FloatArray, IntArray
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.strategies import EPMV

_FIRST_CANDIDATES = 512
"""Number of candidates of highest tabulated utility that are averaged first; the best of them rules out most others."""
_BLOCK_SIZE = 4096


@dataclass(frozen=True)
class SampledEPMV(EPMV):
    """EPMV with E f(z) averaged over the samples of the belief, for every candidate that could be the best.

    The utility k_pq sqrt(a'Σa) - λ |E f(z) - 1/2| never exceeds its first term. A candidate whose first term is below
    the best utility so far cannot be the best; it is not averaged and scores -inf, which leaves the choice unchanged.
    """

    name: ClassVar[str] = "sampled_epmv"

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) sampled utilities; -inf for candidates that cannot be the best."""
        utilities = np.full(len(candidates), -np.inf)
        tabulated = super().score(candidates, belief)
        # Coincident items define no plane, so they must not be averaged first.
        usable = np.flatnonzero(candidates.distinct)
        first_rows = usable[np.argsort(-tabulated[usable], kind="stable")[:_FIRST_CANDIDATES]]
        self._average(utilities, candidates, belief, first_rows)
        upper_bound = candidates.logit_deviation
        by_bound = usable[np.argsort(-upper_bound[usable], kind="stable")]
        for start in range(0, len(by_bound), _BLOCK_SIZE):
            block = by_bound[start : start + _BLOCK_SIZE]
            block = block[(upper_bound[block] >= utilities.max(initial=-np.inf)) & (utilities[block] == -np.inf)]
            self._average(utilities, candidates, belief, block)
        return utilities

    def _average(self, utilities: FloatArray, candidates: PairFeatures, belief: Belief, rows: IntArray) -> None:
        if len(rows):
            utilities[rows] = self.exact(candidates.take(rows), belief)
