"""Weights of particles: changed by an answer, judged, and made even again."""

from __future__ import annotations

import numpy as np

from pairseek._types import FloatArray, IntArray
from pairseek.posteriors.base import effective_samples


def reweighted(weights: FloatArray, gain: FloatArray, power: float) -> FloatArray:
    """Weights after a likelihood, given as logarithms, to a power."""
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + power * gain
    out = np.exp(logs - logs.max())
    return np.asarray(out / out.sum())


def stage_power(weights: FloatArray, gain: FloatArray, most: float, target: float) -> float:
    """The power at which the effective sample size falls to the target, by bisection."""
    low, high = 0.0, most
    for _ in range(60):
        middle = 0.5 * (low + high)
        if effective_samples(reweighted(weights, gain, middle)) > target:
            low = middle
        else:
            high = middle
    return high


def resampled(weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Systematic resampling: one random number, every particle at its share rounded up or down."""
    n = len(weights)
    positions = (np.arange(n) + rng.random()) / n
    return np.minimum(np.searchsorted(np.cumsum(weights), positions), n - 1)
