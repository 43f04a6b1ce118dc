"""Random: uniformly drawn pairs with the Bayesian estimate, the strongest baseline of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pairseek.core.lazy import LazyModule
from pairseek.core.types import Belief, FloatArray
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.strategies.base import BaseUtility
from pairseek.pairs.strategies.shape import UtilityShape

if TYPE_CHECKING:
    from pairseek.pairs import planes as _planes
else:
    _planes = LazyModule("pairseek.pairs.planes")  # only a continuous space needs planes


@dataclass(frozen=True)
class Random(BaseUtility):
    """Constant utility, which makes the search draw a pair uniformly.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), strategy=ps.Random(), rng=7)
    >>> search.ask().info.strategy
    'random'
    """

    name: ClassVar[str] = "random"

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:  # noqa: ARG002
        """Return (m,) zeros."""
        return np.zeros(len(candidates))

    def shape(self) -> UtilityShape:
        """Return the constant shape."""
        return UtilityShape("even")

    def planes(self, space: Space, belief: Belief, response: Response, rng: np.random.Generator) -> _planes.Planes:  # noqa: ARG002
        """Draw a plane with a uniform direction through a uniform point of the space."""
        return _planes.random_plane(space, rng)
