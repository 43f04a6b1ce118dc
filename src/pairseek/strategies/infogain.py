"""InfoGain: the pair whose answer tells most about the user point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr

from pairseek._types import Belief, FloatArray
from pairseek.described import Candidates
from pairseek.surface import Surface


@dataclass(frozen=True)
class InfoGain:
    """η_0(p, q) = I(W; Y) = h_b(E f(z)) - E h_b(f(z)), in bits (equations 4 to 7 of the paper).

    The score takes the logit for Gaussian, from a table; `exact` is the same by all samples.
    """

    name: ClassVar[str] = "infogain"

    def score(self, candidates: Candidates, belief: Belief) -> FloatArray:  # noqa: ARG002
        """(m,) bits, from the mean and variance of the logit."""
        return candidates.gaussian("information")

    def surface(self) -> Surface:
        """`score` as a function of the mean and deviation of the logit."""
        return Surface("table", "information")

    def exact(self, candidates: Candidates, belief: Belief) -> FloatArray:
        """(m,) bits, from every sample."""
        probability, conditional = candidates.sampled(belief)
        return np.asarray((entr(probability) + entr(1 - probability)) / np.log(2) - conditional)
