"""Default prior of a user point, and scales derived from a prior."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.priors import GaussianPrior, Prior, UniformBox, moments_of
from pairseek.model.spaces import Space
from pairseek.numerics.moments import sample_moments

# Outside [_MIN_SPREAD, 1/_MIN_SPREAD], the default k and products of four lengths could overflow or underflow, which
# would silently change the questions.
_MIN_SPREAD = 1e-45
PRIOR_FACTOR = 1.0
"""Covariance of the default prior, relative to the covariance of the items."""
MIN_RELATIVE_DEVIATION = 1e-3
"""Smallest standard deviation of the default prior along any direction, relative to the largest."""
RESIDUAL = 1.5
"""Default standard deviation of residual utilities, in logits."""
RESIDUAL_WITHOUT_COORDINATES = 2.0
"""Default standard deviation of residual utilities, in logits, for items without coordinates."""
SCALED_K = 0.5
"""k of the default response, times the variance of the prior along a coordinate and sqrt(d)."""
# In up to this many dimensions the covariance of the items is computed without a compiled kernel.
_MAX_EINSUM_DIMENSIONS = 64


def default_prior(items: Items | Space) -> Prior:
    """Return a Gaussian with the mean and covariance of the items; uniform on a continuous space.

    The covariance is multiplied by `PRIOR_FACTOR`. Directions along which the items hardly vary get at least a
    thousandth of the largest standard deviation, so that the covariance is invertible.
    """
    if isinstance(items, Space):
        return UniformBox(items.low, items.high)
    if not items.d:
        return GaussianPrior()
    return _gaussian_prior(items, PRIOR_FACTOR)


# Cached by catalogue, because every new person's search starts with it.
@lru_cache(maxsize=8)
def _gaussian_prior(items: Items, factor: float) -> GaussianPrior:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        centre, covariance = _moments(items)
        check_spread(float(np.sqrt(np.trace(covariance) / items.d)), "items")
    values, vectors = np.linalg.eigh(factor * covariance)
    floor = MIN_RELATIVE_DEVIATION**2 * values[-1]
    if values[0] < floor:
        covariance = (vectors * np.maximum(values, floor)) @ vectors.T
        return GaussianPrior(centre, 0.5 * (covariance + covariance.T))
    return GaussianPrior(centre, factor * covariance)


def _moments(items: Items) -> tuple[FloatArray, FloatArray]:
    """Return the mean and covariance of items."""
    if items.d > _MAX_EINSUM_DIMENSIONS:
        mean, covariance = sample_moments(items.coordinates, np.full(items.n, 1.0 / items.n))
        return mean, covariance * (items.n / (items.n - 1))
    centre = items.coordinates.mean(axis=0)
    centred = items.coordinates - centre
    # einsum, because the last bits of matrix products depend on the number of threads.
    return centre, np.einsum("nd,ne->de", centred, centred) / (items.n - 1)


def spread_of(prior: Prior, d: int) -> float:
    """Return the root mean square standard deviation of a prior along a coordinate."""
    if not d:
        return 1.0
    with np.errstate(over="ignore", under="ignore"):
        _, covariance = moments_of(prior, d)
        return float(np.sqrt(np.trace(covariance) / d))


def check_spread(spread: float, field: str) -> None:
    """Reject a prior whose scale could overflow or underflow; ``field`` names the argument that it follows from."""
    if not _MIN_SPREAD < spread < 1.0 / _MIN_SPREAD:
        raise InvalidParameter(
            f"the prior's standard deviation is {spread:.3g}, and its powers would "
            f"{'overflow' if spread > 1.0 else 'underflow'}: rescale the items to between {_MIN_SPREAD:g} and "
            f"{1.0 / _MIN_SPREAD:g}",
            field=field,
        )
