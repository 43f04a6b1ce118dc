"""MCMV: a plane near the posterior mean, across the direction of largest variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.core.types import Belief, FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Space
from pairseek.model.responses import Response
from pairseek.strategies.features import PairFeatures
from pairseek.strategies.planes import Planes, widest_direction
from pairseek.strategies.shape import UtilityShape


@dataclass(frozen=True)
class MCMV:
    """η_2(p, q) = k_pq sqrt(a'Σa) - λ |a·μ - b|/|a| (equation 9 of the paper).

    With appeal, the distance is to the plane of even odds, k_pq (a·w - b) + appeal = 0.

    Parameters
    ----------
    penalty
        λ, above 0; 1 in the paper's experiments.
    """

    penalty: float = 1.0
    name: ClassVar[str] = "mcmv"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.penalty) and self.penalty > 0):
            raise InvalidParameter(f"MCMV(penalty={self.penalty}): λ must be finite and above 0", field="penalty")

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:  # noqa: ARG002
        """Return the (m,) utilities."""
        k = candidates.constant
        # As k_pq tends to 0 the plane of even odds recedes to infinity, and the quotient may overflow.
        with np.errstate(over="ignore"):
            shift = np.divide(candidates.appeal, k, out=np.zeros_like(k), where=k > 0)
        gap = np.abs(candidates.margin + shift)
        distance = np.divide(gap, candidates.length, out=np.zeros_like(k), where=candidates.length > 0)
        return np.asarray(candidates.logit_deviation - self.penalty * distance)

    def shape(self) -> UtilityShape:
        """Return the form of `score` as a function of the deviation of the logit and the distance."""
        return UtilityShape("distance", penalty=self.penalty)

    def planes(self, space: Space, belief: Belief, response: Response, rng: np.random.Generator) -> Planes:  # noqa: ARG002
        """Return the plane through the mean across the direction of largest variance (section 3.4 of the paper)."""
        normal = widest_direction(belief)
        return Planes(normal[None], np.array([normal @ belief.mean]))
