"""Means over people with standard errors, the worst tenth, paired differences, and Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.stats

from pairseek.core.types import FloatArray

_TENTH = 10
# Mean differences no larger than this are rounding errors of equal scores.
_ROUNDING = 1e-12


def mean_and_error(values: FloatArray) -> tuple[float, float, int]:
    """Return mean, standard error and number of the finite values, one for each person."""
    there = values[np.isfinite(values)]
    if not len(there):
        return math.nan, math.nan, 0
    error = float(np.std(there, ddof=1) / math.sqrt(len(there))) if len(there) > 1 else math.nan
    return float(np.mean(there)), error, len(there)


def worst_tenth(values: FloatArray, *, lower_is_better: bool) -> float:
    """Return the mean over the tenth of people with the worst values, at least one person."""
    there = np.sort(values[np.isfinite(values)])
    if not len(there):
        return math.nan
    count = -(-len(there) // _TENTH)
    return float(np.mean(there[-count:] if lower_is_better else there[:count]))


def paired(first: FloatArray, second: FloatArray) -> tuple[float, float, float, int]:
    """Return mean, standard error, two-sided p-value and number of the differences of people who have both."""
    mean, error, count = mean_and_error(first - second)
    if count < 2:
        return mean, error, math.nan, count
    if abs(mean) <= _ROUNDING:
        return mean, error, 1.0, count
    if error == 0.0:
        return mean, error, 0.0, count
    return mean, error, float(2.0 * scipy.stats.t.sf(abs(mean) / error, count - 1)), count


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's step-down procedure; NaN stays, and is not counted."""
    order = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    out = [math.nan] * len(p_values)
    least = 0.0
    for rank, (p, place) in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * p))
        out[place] = least
    return out


def answers_until(counts: Sequence[int], accuracy: FloatArray, level: float) -> float:
    """Return the number of answers at which a curve first reaches a level, by linear interpolation; NaN if never."""
    for place, (count, value) in enumerate(zip(counts, accuracy.tolist(), strict=True)):
        if value >= level:
            if place == 0:
                return float(count)
            before, low = counts[place - 1], float(accuracy[place - 1])
            return float(before + (count - before) * (level - low) / (value - low))
    return math.nan
