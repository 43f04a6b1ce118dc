"""What is measured after an answer: one function a measure, and how it is called in figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.estimates import Estimate
from pairseek.model import metrics
from pairseek.model.items import Items, Space


@dataclass(frozen=True, eq=False)
class Moment:
    """A search after an answer, with the truth.

    Attributes
    ----------
    items
        What was asked about.
    estimate
        What the search says.
    point
        (d,) where the user is.
    seed
        For what is drawn at random; the same after every answer and for every strategy of a trial.
    """

    items: Items | Space
    estimate: Estimate
    point: FloatArray
    seed: tuple[int, ...]


@dataclass(frozen=True)
class Measure:
    """A number after an answer.

    Attributes
    ----------
    title, axis
        In words, and for an axis.
    of
        The function.
    log
        Whether it is drawn on a logarithmic scale.
    """

    title: str
    axis: str
    of: Callable[[Moment], float]
    log: bool = True


BATCH, BATCHES = 15, 1000
"""Items in a batch and batches in a trial, for the Kendall tau distance (section 4 of the paper)."""


def _squared_error(moment: Moment) -> float:
    return metrics.squared_error(moment.estimate.point, moment.point)


def _kendall_tau(moment: Moment) -> float:
    if isinstance(moment.items, Space):
        return float("nan")
    batch = min(BATCH, moment.items.n)
    rng = np.random.default_rng(np.random.SeedSequence(moment.seed))
    return metrics.kendall_tau_distance(
        moment.items, moment.estimate.point, moment.point, batch=batch, batches=BATCHES, rng=rng
    )


def _posterior_trace(moment: Moment) -> float:
    return float(np.trace(moment.estimate.covariance))


def _posterior_volume(moment: Moment) -> float:
    sign, logarithm = np.linalg.slogdet(moment.estimate.covariance)
    return float(np.exp(logarithm / len(moment.point))) if sign > 0 else 0.0


def _credible_radius(moment: Moment) -> float:
    return moment.estimate.credible_radius(0.95)


MEASURES: dict[str, Measure] = {
    "squared_error": Measure("Mean squared error", "MSE", _squared_error),
    "kendall_tau": Measure("Kendall tau distance of rankings", "Kendall tau distance", _kendall_tau, log=False),
    "posterior_trace": Measure("Trace of the posterior covariance", "posterior trace", _posterior_trace),
    "posterior_volume": Measure("Posterior volume |Σ|^(1/d)", "posterior volume", _posterior_volume),
    "credible_radius": Measure("95 % credible radius", "95 % radius", _credible_radius),
}
