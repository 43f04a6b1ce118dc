"""Curvature of utility: from the ideal-point model to linear utility.

A person's utility of item x is 2k (w - m)·(x - m) - ck|x - m|², with prior mean m and curvature c. It differs from the
paper's -k|w - x|² by (1 - c) k|x - m|² and a constant. With s the prior's standard deviation along a coordinate, every
item gets the additional coordinate y = |x - m|²/s, and the person the additional coordinate v = (1 - c)s/2. Then
-k(v - y)² + ky² = 2kvy - kv² equals the difference up to a constant. So an unknown curvature adds one dimension to the
user point, and ky² acts as appeal. A normal prior on c is a normal prior on v; nothing else in the engine changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.model.askable import AskableT
from pairseek.model.priors import AnyPrior, GaussianPrior, Prior, moments_of
from pairseek.model.responses import Response
from pairseek.model.unknowns import Normal


def extended_points(
    coordinates: FloatArray, appeal: FloatArray, prior: Prior, response: Response
) -> tuple[FloatArray, FloatArray]:
    """Return the model's coordinates and appeal of items: one dimension more if the curvature is unknown.

    A known curvature changes only the appeal.
    """
    d = coordinates.shape[1]
    if response.curvature == 1.0 or not d:
        return coordinates, appeal
    mean, spread = _mean_and_spread(prior, d)
    heights = np.sum((coordinates - mean) ** 2, axis=1) / spread
    if response.curvature_prior is None:
        assert isinstance(response.curvature, float)
        return coordinates, appeal + (1.0 - response.curvature) * response.typical_k * spread * heights
    return np.column_stack([coordinates, heights]), appeal + response.typical_k * heights**2


def extended_prior(prior: Prior, response: Response, d: int) -> Prior:
    """Return the model's prior of the user point: one dimension more if the curvature is unknown."""
    curvature_prior = response.curvature_prior
    if curvature_prior is None or not d:
        return prior
    assert isinstance(prior, GaussianPrior)
    return _extended_prior(prior, curvature_prior, d)


# Shared by all searches among the same items.
@lru_cache(maxsize=8)
def _extended_prior(prior: GaussianPrior, curvature_prior: Normal, d: int) -> GaussianPrior:
    mean, spread = _mean_and_spread(prior, d)
    covariance = np.zeros((d + 1, d + 1))
    covariance[:d, :d] = prior.moments(d)[1]
    covariance[d, d] = (0.5 * spread * curvature_prior.deviation) ** 2
    return GaussianPrior(np.append(mean, 0.5 * spread * (1.0 - curvature_prior.mean)), covariance)


def extended_items(items: AskableT, prior: Prior, response: Response) -> AskableT:
    """Return the items with the model's coordinates and appeal; a space is returned unchanged."""
    if not isinstance(prior, GaussianPrior) or response.curvature == 1.0 or not items.d:
        return items
    extended: AskableT = _extended(items, prior, response)
    return extended


# Searches among the same items share the result, and everything cached for its coordinate array.
@lru_cache(maxsize=8)
def _extended(items: AskableT, prior: GaussianPrior, response: Response) -> AskableT:
    return items._with_coordinates(*extended_points(items.coordinates, items.appeal, prior, response))


@dataclass(frozen=True, eq=False)
class CurvedUtility:
    """Curvature and maximum of a utility, as functions of points of the model.

    Attributes
    ----------
    centre, spread
        (d,) prior mean, and the prior's standard deviation along a coordinate.
    given
        The curvature if it is known; None if it follows from the model's last coordinate.
    """

    centre: FloatArray
    spread: float
    given: float | None

    @classmethod
    def of(cls, prior: AnyPrior, response: Response, d: int) -> CurvedUtility | None:
        """Return the shape of a person's utility; None for items without coordinates."""
        if not d:
            return None
        given = response.curvature if response.curvature_prior is None else None
        assert given is None or isinstance(given, float)
        return cls(*_mean_and_spread(prior, d), given)

    def curvatures(self, points: FloatArray) -> FloatArray:
        """Return the (s,) curvatures of the people at (s, columns) points of the model."""
        if self.given is not None:
            return np.full(len(points), self.given)
        return np.asarray(1.0 - 2.0 * points[:, len(self.centre)] / self.spread)

    def ideals(self, points: FloatArray) -> FloatArray:
        """Return the (s, d) ideal points, of highest utility, of people with positive curvature."""
        if self.given == 1.0:
            return points[:, : len(self.centre)]
        offsets = points[:, : len(self.centre)] - self.centre
        return np.asarray(self.centre + offsets / self.curvatures(points)[:, None])


def _mean_and_spread(prior: AnyPrior, d: int) -> tuple[FloatArray, float]:
    """Return the prior mean, and the root mean square standard deviation along a coordinate."""
    mean, covariance = moments_of(prior, d)
    return mean, float(np.sqrt(np.trace(covariance) / d))
