"""Importance weights: reweighting, step sizes of tempering, and resampling."""

from __future__ import annotations

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.posteriors.base import effective_samples


def reweighted(weights: FloatArray, log_likelihood: FloatArray, power: float) -> FloatArray:
    """Return the weights after a likelihood, given as logarithms, to a power."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(weights) + power * log_likelihood
    # A state of probability zero has weight zero at any power.
    logs = np.where(np.isnan(logs), -np.inf, logs)
    out = np.exp(logs - logs.max())
    return np.asarray(out / out.sum())


def tempering_step(weights: FloatArray, log_likelihood: FloatArray, most: float, target: float) -> float:
    """Return the power at which the effective sample size falls to the target, by bisection; `most` if it does not."""
    if effective_samples(reweighted(weights, log_likelihood, most)) > target:
        return most
    # In the logarithm: for nearly noiseless answers the power is many orders of magnitude below 1.
    low, high = most * 1e-120, most
    for _ in range(50):
        middle = np.sqrt(low) * np.sqrt(high)
        if effective_samples(reweighted(weights, log_likelihood, middle)) > target:
            low = middle
        else:
            high = middle
    return float(high)


def resampled(weights: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Return `count` rows by systematic resampling: one random number, each row at its share rounded up or down."""
    positions = (np.arange(count) + rng.random()) / count
    return np.minimum(np.searchsorted(np.cumsum(weights), positions), len(weights) - 1)
