"""Measures of a simulated search after each answer, with their titles in figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.errors import Unsupported
from pairseek.model import metrics
from pairseek.model.items import Items
from pairseek.model.spaces import Space
from pairseek.search.estimates import Estimate


@dataclass(frozen=True, eq=False)
class MeasurementContext:
    """The state of a simulated search after an answer, and the true user point.

    Attributes
    ----------
    items
        The items or the space.
    estimate
        Estimate of the search.
    point
        (d,) true user point.
    seed
        Seed of measures that draw random numbers; constant over the answers and strategies of a trial.
    """

    items: Items | Space
    estimate: Estimate
    point: FloatArray
    seed: tuple[int, ...]


@dataclass(frozen=True)
class Measure:
    """A number computed after an answer.

    Attributes
    ----------
    title, axis
        Title in reports, and axis label.
    compute
        Function that computes the number.
    log
        Whether figures use a logarithmic scale.
    of_posterior
        Whether it measures the Bayesian posterior rather than the estimate.
    """

    title: str
    axis: str
    compute: Callable[[MeasurementContext], float]
    log: bool = True
    of_posterior: bool = False


KENDALL_BATCH_SIZE = 15
"""Number of items in a batch for the Kendall tau distance (section 4 of the paper)."""
KENDALL_BATCHES = 1000
"""Number of batches per trial over which the Kendall tau distance is averaged."""


def _kendall_tau(context: MeasurementContext) -> float:
    if not len(context.items.coordinates):
        return float("nan")  # a space has no items to rank
    items = context.items._require_catalogue(Unsupported("a continuous Space has no items"))
    batch = min(KENDALL_BATCH_SIZE, items.n)
    rng = np.random.default_rng(np.random.SeedSequence(context.seed))
    return metrics.kendall_tau_distance(
        items, context.estimate.point, context.point, batch=batch, batches=KENDALL_BATCHES, rng=rng
    )


def _posterior_volume(context: MeasurementContext) -> float:
    sign, logarithm = np.linalg.slogdet(context.estimate.covariance)
    return float(np.exp(logarithm / len(context.point))) if sign > 0 else 0.0


MEASURES: dict[str, Measure] = {
    "squared_error": Measure(
        "Mean squared error", "MSE", lambda context: metrics.squared_error(context.estimate.point, context.point)
    ),
    "kendall_tau": Measure("Kendall tau distance of rankings", "Kendall tau distance", _kendall_tau, log=False),
    "posterior_trace": Measure(
        "Trace of the posterior covariance",
        "posterior trace",
        lambda context: float(np.trace(context.estimate.covariance)),
        of_posterior=True,
    ),
    "posterior_volume": Measure("Posterior volume |Σ|^(1/d)", "posterior volume", _posterior_volume, of_posterior=True),
    "credible_radius": Measure(
        "95 % credible radius", "95 % radius", lambda context: context.estimate.credible_radius(0.95), of_posterior=True
    ),
}
"""The measures of a simulated search by name, for `Specification.metrics`.

Examples
--------
>>> from pairseek.experiments import MEASURES
>>> list(MEASURES)
['squared_error', 'kendall_tau', 'posterior_trace', 'posterior_volume', 'credible_radius']
>>> MEASURES["squared_error"].title
'Mean squared error'
"""
