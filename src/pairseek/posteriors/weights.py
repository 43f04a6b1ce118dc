"""Importance weights: reweighting, tempering steps and resampling."""

from __future__ import annotations

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.posteriors.base import effective_samples


def reweighted(weights: FloatArray, log_likelihood: FloatArray, power: float) -> FloatArray:
    """Return the weights multiplied by likelihood^power and normalized."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(weights) + power * log_likelihood
    # 0 * -inf is NaN: a state of probability zero keeps weight zero at any power.
    logs = np.where(np.isnan(logs), -np.inf, logs)
    out = np.exp(logs - logs.max())
    return np.asarray(out / out.sum())


def tempering_step(weights: FloatArray, log_likelihood: FloatArray, limit: float, target: float) -> float:
    """Return the power at which the effective sample size falls to `target`, by bisection, but at most `limit`."""
    if effective_samples(reweighted(weights, log_likelihood, limit)) > target:
        return limit
    # Bisect the logarithm: after nearly noiseless answers the power is many orders of magnitude below 1.
    low, high = limit * 1e-120, limit
    for _ in range(50):
        middle = np.sqrt(low) * np.sqrt(high)
        if effective_samples(reweighted(weights, log_likelihood, middle)) > target:
            low = middle
        else:
            high = middle
    return float(high)


def resampled_rows(weights: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Return `count` rows by systematic resampling: row i occurs count * weights[i] times, rounded up or down."""
    positions = (np.arange(count) + rng.random()) / count
    return np.minimum(np.searchsorted(np.cumsum(weights), positions), len(weights) - 1)
