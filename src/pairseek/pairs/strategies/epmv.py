"""EPMV: maximum variance with a penalty on unequal answer probabilities."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from pairseek.core.limits import Limit
from pairseek.core.types import Belief, FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.planes import Planes, equiprobable_offset, widest_direction
from pairseek.pairs.strategies.base import BaseUtility
from pairseek.pairs.strategies.shape import UtilityShape

# λ in a space, where planes have even odds, so that the penalty is nearly 0.
_UNRESOLVED_PENALTY = 1.0


@dataclass(frozen=True)
class EPMV(BaseUtility):
    """η_1(p, q) = k_pq sqrt(a'Σa) - λ |E f(z) - 1/2| (equation 8 of the paper).

    Parameters
    ----------
    penalty
        λ, above 0. None: a search among items sets sqrt(tr cov(items)), as in the paper's experiments. Pairs that are
        scored outside a search, by a strategy that `resolved` has not set, are scored with λ = 1.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), strategy=ps.EPMV(), rng=7)
    >>> search.ask().info.strategy
    'epmv'
    """

    penalty: Annotated[float | None, Limit(0, 1e12)] = None
    name: ClassVar[str] = "epmv"
    # The best pairs lie at the kink of the penalty, P = 1/2, where the tabulated probability is more accurate than an
    # average over thousands of samples.
    rescored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.penalty is not None and not (np.isfinite(self.penalty) and self.penalty > 0):
            raise InvalidParameter(
                f"EPMV(penalty={self.penalty}) is invalid: give a finite penalty above 0", field="penalty"
            )

    def resolved(self, items: Items | Space, prior: Prior) -> EPMV:  # noqa: ARG002
        """Return the strategy with λ set for these items; in a space, where planes have even odds, it stays unset."""
        return self if self.penalty is not None else dataclasses.replace(self, penalty=items.spread)

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:  # noqa: ARG002
        """Return the (m,) utilities, with E f(z) computed as if the logit were Gaussian."""
        return self._utility(candidates, candidates.tabulated("probability"))

    def shape(self) -> UtilityShape:
        """Return the shape of `score`: a function of the logit's mean and standard deviation."""
        return UtilityShape("chance", "probability", self._penalty)

    def planes(self, space: Space, belief: Belief, response: Response, rng: np.random.Generator) -> Planes:  # noqa: ARG002
        """Return the equiprobable plane normal to the direction of largest variance (section 3.3 of the paper)."""
        normal = widest_direction(belief)
        return Planes(normal[None], np.array([equiprobable_offset(normal, space, belief, response)]))

    def exact(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) utilities, with E f(z) averaged over all samples."""
        return self._utility(candidates, candidates.sampled(belief)[0])

    def _utility(self, candidates: PairFeatures, probability: FloatArray) -> FloatArray:
        return np.asarray(candidates.logit_deviation - self._penalty * np.abs(probability - 0.5))

    @property
    def _penalty(self) -> float:
        return _UNRESOLVED_PENALTY if self.penalty is None else self.penalty
