"""What `Search(items)` does when it is told nothing else. Each default has its reason in docs/defaults.md."""

from __future__ import annotations

import numpy as np

from pairseek.errors import InvalidParameter
from pairseek.items import Items, Space
from pairseek.posteriors import Particles, Posterior
from pairseek.priors import Prior, UniformBox
from pairseek.responses import Logistic, Response
from pairseek.strategies import InfoGain
from pairseek.strategies.base import Procedure, Utility

_SMALL = 1e-70
CHECKS = 4
"""Where the lapse is unknown, every fourth question checks how the person answers."""


def default_prior(items: Items | Space) -> UniformBox:
    """Uniform on the box that the items just fill, or on the whole space.

    A coordinate that is the same for all items gets a thousandth of the widest one, so that the box has a volume
    and the estimate says what the items say.
    """
    if isinstance(items, Space):
        return UniformBox(items.low, items.high)
    low, high = items.coordinates.min(axis=0), items.coordinates.max(axis=0)
    thin = high - low <= 1e-9 * (high - low).max()
    pad = np.where(thin, 5e-4 * (high - low).max(), 0.0)
    return UniformBox(tuple((low - pad).tolist()), tuple((high + pad).tolist()))


def spread_of(prior: Prior, d: int) -> float:
    """Root mean square standard deviation of a prior along a coordinate."""
    with np.errstate(over="ignore", under="ignore"):
        _, covariance = prior.moments(d)
        return float(np.sqrt(np.trace(covariance) / d))


def resolve(
    items: Items | Space,
    response: Response | None,
    prior: Prior | None,
    posterior: Posterior | None,
    strategy: Utility | Procedure | None,
) -> tuple[Response, Prior, Posterior, Utility | Procedure]:
    """The parts with every None filled in, for these items."""
    prior = default_prior(items) if prior is None else prior
    spread = spread_of(prior, items.d)
    if not _SMALL < spread < 1.0 / _SMALL:
        raise InvalidParameter(
            f"the prior has a standard deviation of {spread:.3g}, whose powers a double cannot hold: use another unit"
        )
    response = (Logistic() if response is None else response).for_spread(spread)
    if strategy is None:
        strategy = InfoGain(checks=CHECKS if response.lapse_prior is not None else "auto" if response.unknown else None)
    fill_in = getattr(strategy, "resolved", None)
    if fill_in is not None:
        strategy = fill_in(items, prior)
    return response, prior, Particles() if posterior is None else posterior, strategy
