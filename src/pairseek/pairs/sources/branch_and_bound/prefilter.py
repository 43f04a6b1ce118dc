"""Prefilter of pairs: cheap necessary conditions for reaching a given utility."""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.jit import inner
from pairseek.numerics.pair_kernels import CONSTANT, DECAYING, NORMALIZED, pair_constant
from pairseek.pairs.sources.branch_and_bound.bounds import DISTANCE, PairExtremes, UtilityModel, utility_value

# Indices into a prefilter: bounds of Σ weights Δ², minimum of s², maxima of |m| and of |cost_q - cost_p|.
REACH_FROM = 0
REACH_TO = 1
MIN_VARIANCE = 2
MAX_LOGIT = 3
MAX_MARGIN = 4
PREFILTER_SIZE = 5

# Relative tolerance for rounding errors.
_ROUNDING_TOLERANCE = 1e-9


@inner
def lowest_deviation(least: float, top: float, gain: float, shape: int, penalty: float, table: FloatArray) -> float:
    """Return the s below which the utility is less than `least` even at m = 0, by bisection up to `top`."""
    low, high = 0.0, top
    if utility_value(shape, penalty, table, 0.0, top, 0.0, gain) < least:
        return top
    for _ in range(40):
        middle = 0.5 * (low + high)
        if utility_value(shape, penalty, table, 0.0, middle, 0.0, gain) < least:
            low = middle
        else:
            high = middle
    return low


@inner
def highest_logit(
    least: float, top: float, steep: float, gain: float, shape: int, penalty: float, table: FloatArray
) -> float:
    """Return the |m| above which the utility is less than `least` even at s = top."""
    if shape == DISTANCE:
        return max(top - least, 0.0) / penalty * steep if penalty > 0.0 and steep > 0.0 else np.inf
    low, high = 0.0, 1.0
    while utility_value(shape, penalty, table, high, top, 0.0, gain) >= least:
        high *= 4.0
        if high > 1e9:
            return np.inf
    for _ in range(40):
        middle = 0.5 * (low + high)
        if utility_value(shape, penalty, table, middle, top, 0.0, gain) < least:
            high = middle
        else:
            low = middle
    return high


@inner
def decaying_lengths(share: float) -> tuple[float, float]:
    """Return the interval on which x e^-x is at least `share`, rounded outwards."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        if middle * math.exp(-middle) < share:
            low = middle
        else:
            high = middle
    near, far, end = low, 1.0, 800.0
    for _ in range(50):
        middle = 0.5 * (far + end)
        if middle * math.exp(-middle) < share:
            end = middle
        else:
            far = middle
    return near * (1.0 - _ROUNDING_TOLERANCE), end * (1.0 + _ROUNDING_TOLERANCE)


@inner
def set_prefilter(
    least: float, scale: PairExtremes, model: UtilityModel, weights: FloatArray, prefilter: FloatArray
) -> None:
    """Set necessary conditions for a utility of at least `least`.

    Only Σ weights Δ² is computed for every pair, so it encodes each noise kind's condition on s: a'Σa/4 for constant
    noise, |a|²/4 for decaying noise, and a'Σa/4 - (s/k)² |a|²/4, which must not be negative, for normalized noise.

    ``scale`` is (highest s, highest k_pq |a|, longest |a|, largest distance of an item from the middle, highest cost,
    eigenvalues of Σ).
    """
    top, steep, longest, reach, cost, values = scale
    shape, noise, k, penalty, _, table = model
    s = lowest_deviation(least, top, values[0], shape, penalty, table) * (1.0 - _ROUNDING_TOLERANCE)
    logit = highest_logit(least, top, steep, values[0], shape, penalty, table) * (1.0 + _ROUNDING_TOLERANCE)
    prefilter[REACH_FROM], prefilter[REACH_TO] = -np.inf, np.inf
    prefilter[MIN_VARIANCE], prefilter[MAX_LOGIT], prefilter[MAX_MARGIN] = s * s, logit, np.inf
    for h in range(len(values)):
        weights[h] = values[h]
    if not (k > 0.0 and values[0] > 0.0):
        return
    share = s / (k * math.sqrt(values[0]))
    error = 1e-14 * reach
    flattest = k
    if noise == CONSTANT:
        prefilter[REACH_FROM] = max(0.5 * s / k - error * math.sqrt(values[0]), 0.0) ** 2
    elif noise == NORMALIZED:
        for h in range(len(values)):
            weights[h] -= values[0] * (share * share - 8.0 * _ROUNDING_TOLERANCE)
        prefilter[REACH_FROM] = -values[0] * _ROUNDING_TOLERANCE * error * reach
        flattest = k / longest
    elif noise == DECAYING:
        for h in range(len(values)):
            weights[h] = 1.0
        near, far = decaying_lengths(share) if share > 0.0 else (0.0, np.inf)
        prefilter[REACH_FROM], prefilter[REACH_TO] = max(0.5 * near - error, 0.0) ** 2, (0.5 * far + error) ** 2
        flattest = k * math.exp(-min(far, longest))
    else:
        # Noise kinds without a rule here: do not filter pairs by distance.
        flattest = pair_constant(longest, k, noise)
    if flattest > 0.0:
        # The second term covers the cancellation error in a difference of costs.
        prefilter[MAX_MARGIN] = logit / flattest * (1.0 + _ROUNDING_TOLERANCE) + 2e-13 * cost
