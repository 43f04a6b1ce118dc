"""Means over people with standard errors, the worst tenth, paired differences, and Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.stats

from pairseek.core.types import FloatArray

# Smaller mean differences are rounding errors of equal scores.
_ROUNDING_TOLERANCE = 1e-12


def mean_and_error(values: FloatArray) -> tuple[float, float, int]:
    """Return the mean, its standard error and the number of the finite values, one per person."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return math.nan, math.nan, 0
    error = float(np.std(finite, ddof=1) / math.sqrt(len(finite))) if len(finite) > 1 else math.nan
    return float(np.mean(finite)), error, len(finite)


def worst_tenth(values: FloatArray, *, lower_is_better: bool) -> float:
    """Return the mean over the worst tenth of people, or the worst person if there are fewer than ten."""
    finite = np.sort(values[np.isfinite(values)])
    if not len(finite):
        return math.nan
    count = math.ceil(len(finite) / 10)
    return float(np.mean(finite[-count:] if lower_is_better else finite[:count]))


def paired_difference(first: FloatArray, second: FloatArray) -> tuple[float, float, float, int]:
    """Return mean, standard error, two-sided p-value and number of differences, over people with both values."""
    mean, error, count = mean_and_error(first - second)
    if count < 2:
        return mean, error, math.nan, count
    if abs(mean) <= _ROUNDING_TOLERANCE:
        return mean, error, 1.0, count
    if error == 0.0:
        return mean, error, 2.0 ** (1 - count), count  # the sign test, because t is infinite
    return mean, error, float(2.0 * scipy.stats.t.sf(abs(mean) / error, count - 1)), count


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple comparisons by Holm's step-down procedure; NaN values are ignored and kept."""
    order = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    largest_so_far = 0.0
    for rank, (p, index) in enumerate(order):
        largest_so_far = max(largest_so_far, min(1.0, (len(order) - rank) * p))
        adjusted[index] = largest_so_far
    return adjusted


def answers_until(counts: Sequence[int], accuracy: FloatArray, level: float) -> float:
    """Return the number of answers at which a curve first reaches a level, interpolated; NaN if it never does."""
    for index, (count, value) in enumerate(zip(counts, accuracy.tolist(), strict=True)):
        if value >= level:
            if index == 0:
                return float(count)
            before, low = counts[index - 1], float(accuracy[index - 1])
            return float(before + (count - before) * (level - low) / (value - low))
    return math.nan
