"""InfoGain: the pair whose answer tells most about the user point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import entr

from pairseek.core.types import Belief, FloatArray
from pairseek.core.validation import whole
from pairseek.strategies.features import Candidates
from pairseek.strategies.reliability_probe import Check
from pairseek.strategies.shape import Surface


@dataclass(frozen=True)
class InfoGain:
    """η_0(p, q) = I(W; Y) = h_b(E f(z)) - E h_b(f(z)), in bits (equations 4 to 7 of the paper).

    The score takes the logit for Gaussian, from a table; `exact` is the same by all samples. Where k or the lapse is
    unknown it is still what the answer tells of W alone, and f(z) is P(Y | W) with k and lapse integrated out.

    Parameters
    ----------
    checks
        Where k or the lapse is unknown and items are asked about, questions about k instead, see `Check`. A number, at
        least 2: every so many-th question. ``"auto"``: wherever one tells more of k than any question tells of the
        point, as for people who answer unreliably. None: never.
    """

    checks: int | Literal["auto"] | None = None
    name: ClassVar[str] = "infogain"

    def __post_init__(self) -> None:
        if self.checks is not None and self.checks != "auto":
            object.__setattr__(self, "checks", whole(self.checks, "checks of InfoGain", 2))

    def turn(self, number: int, belief: Belief) -> InfoGain | Check:
        """The utility of the question of this number, counted from 0."""
        due = isinstance(self.checks, int) and number % self.checks == self.checks - 1
        return Check() if due and belief.reliability is not None else self

    def rival(self, belief: Belief) -> Check | None:
        """What chooses instead if its question tells more."""
        return Check() if self.checks == "auto" and belief.reliability is not None else None

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
