"""Default prior of a person's point, and the scales that follow from a prior."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.priors import GaussianPrior, Prior, UniformBox, moments_of
from pairseek.model.spaces import Space
from pairseek.numerics.moments import sample_moments

_SMALL = 1e-70
PRIOR_FACTOR = 1.0
"""Covariance of the default prior over that of the items."""
THIN = 1e-3
"""Least standard deviation of the default prior along any direction, over the largest."""
RESIDUAL_ALONE = 1.5
"""Standard deviation of utilities in logits, where items have no coordinates."""
# Dimensions up to which a covariance of the items is computed without a compiled kernel.
_FEW_DIMENSIONS = 64


def default_prior(items: Items | Space) -> Prior:
    """Return a Gaussian with the mean and covariance of the items; uniform on a continuous space.

    The covariance is multiplied by `PRIOR_FACTOR`. A direction in which the items hardly vary gets at least a
    thousandth of the widest deviation, so that the covariance can be inverted.
    """
    if isinstance(items, Space):
        return UniformBox(items.low, items.high)
    if not items.d:
        return GaussianPrior()
    return _gaussian(items, PRIOR_FACTOR)


# Once for a catalogue: every search of a new person begins with it.
@lru_cache(maxsize=8)
def _gaussian(items: Items, factor: float) -> GaussianPrior:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        centre, covariance = _moments(items)
        check_spread(float(np.sqrt(np.trace(covariance) / items.d)))
    values, vectors = np.linalg.eigh(factor * covariance)
    floor = THIN**2 * values[-1]
    if values[0] < floor:
        covariance = (vectors * np.maximum(values, floor)) @ vectors.T
        return GaussianPrior(centre, 0.5 * (covariance + covariance.T))
    return GaussianPrior(centre, factor * covariance)


def _moments(items: Items) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance of items."""
    if items.d > _FEW_DIMENSIONS:
        mean, covariance = sample_moments(items.coordinates, np.full(items.n, 1.0 / items.n))
        return mean, covariance * (items.n / (items.n - 1))
    centre = items.coordinates.mean(axis=0)
    centred = items.coordinates - centre
    # einsum, because the last digits of matrix products depend on the number of threads.
    return centre, np.einsum("nd,ne->de", centred, centred) / (items.n - 1)


def spread_of(prior: Prior, d: int) -> float:
    """Return the root mean square standard deviation of a prior along a coordinate."""
    if not d:
        return 1.0
    with np.errstate(over="ignore", under="ignore"):
        _, covariance = moments_of(prior, d)
        return float(np.sqrt(np.trace(covariance) / d))


def check_spread(spread: float) -> None:
    """Refuse a prior whose scale overflows when it is raised to a power."""
    if not _SMALL < spread < 1.0 / _SMALL:
        raise InvalidParameter(
            f"the prior has a standard deviation of {spread:.3g}, whose powers a double cannot hold: use another unit"
        )
