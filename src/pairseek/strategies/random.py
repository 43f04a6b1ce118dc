"""Random: any pair, and the Bayesian estimate all the same. The strongest of the paper's baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.core.types import Belief, FloatArray
from pairseek.strategies.features import Candidates
from pairseek.strategies.shape import Surface


@dataclass(frozen=True)
class Random:
    """Every candidate is worth the same, so the search's own tie-breaking draws one uniformly."""

    name: ClassVar[str] = "random"

    def score(self, candidates: Candidates, belief: Belief) -> FloatArray:  # noqa: ARG002
        """(m,) zeros."""
        return np.zeros(len(candidates))

    def surface(self) -> Surface:
        """`score` does not depend on the pair."""
        return Surface("even")
