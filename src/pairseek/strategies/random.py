"""Random: any pair, and the Bayesian estimate all the same. The strongest of the paper's baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.core.types import Belief, FloatArray
from pairseek.model.items import Space
from pairseek.model.responses import Response
from pairseek.strategies.features import PairFeatures
from pairseek.strategies.planes import Planes, random_plane
from pairseek.strategies.shape import UtilityShape


@dataclass(frozen=True)
class Random:
    """Every candidate is worth the same, so the search's own tie-breaking draws one uniformly."""

    name: ClassVar[str] = "random"

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:  # noqa: ARG002
        """(m,) zeros."""
        return np.zeros(len(candidates))

    def shape(self) -> UtilityShape:
        """`score` does not depend on the pair."""
        return UtilityShape("even")

    def planes(self, space: Space, belief: Belief, response: Response, rng: np.random.Generator) -> Planes:  # noqa: ARG002
        """Return a plane of random direction through a uniform point."""
        return random_plane(space, rng)
