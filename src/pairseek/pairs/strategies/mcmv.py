"""MCMV: maximum variance with a penalty on the distance of the plane from the posterior mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from pairseek.core.limits import Limit
from pairseek.core.types import Belief, FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.planes import Planes, widest_direction
from pairseek.pairs.strategies.base import BaseUtility
from pairseek.pairs.strategies.shape import UtilityShape


@dataclass(frozen=True)
class MCMV(BaseUtility):
    """η_2(p, q) = k_pq sqrt(a'Σa) - λ |a·μ - b|/|a| (equation 9 of the paper).

    With appeal, the distance is to the plane of even odds, a·w - b + (appeal_p - appeal_q)/k = 0.

    Parameters
    ----------
    penalty
        λ, above 0; 1 in the paper's experiments.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), strategy=ps.MCMV(penalty=1.0), rng=7)
    >>> search.ask().info.strategy
    'mcmv'
    """

    penalty: Annotated[float, Limit(0, 1e12)] = 1.0
    name: ClassVar[str] = "mcmv"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.penalty) and self.penalty > 0):
            raise InvalidParameter(
                f"MCMV(penalty={self.penalty}) is invalid: give a finite penalty above 0", field="penalty"
            )

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:  # noqa: ARG002
        """Return the (m,) utilities."""
        gap, length = np.abs(candidates.margin), candidates.length
        distance = np.divide(gap, length, out=np.zeros_like(gap), where=length > 0)
        return np.asarray(candidates.logit_deviation - self.penalty * distance)

    def shape(self) -> UtilityShape:
        """Return the shape of `score`: a function of the logit's standard deviation and the distance."""
        return UtilityShape("distance", penalty=self.penalty)

    def planes(self, space: Space, belief: Belief, response: Response, rng: np.random.Generator) -> Planes:  # noqa: ARG002
        """Return the plane through the mean, normal to the direction of largest variance (section 3.4 of the paper)."""
        normal = widest_direction(belief)
        return Planes(normal[None], np.array([normal @ belief.mean]))
