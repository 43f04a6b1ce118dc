"""What a pair must have to reach a given utility: coarse conditions that cost a few operations each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pairseek.candidates.branch_and_bound.bounds import CONSTANT, DISTANCE, NORMALIZED, value
from pairseek.numerics.jit import inner

# Places in a sieve: Σ weights Δ² from and to, s² at least, |m| at most, | |p - μ|² - |q - μ|² | at most.
FROM, TO, DEVIATION, LOGIT, SQUARES = range(5)
SIZE = 5

# Relative width that is left for rounding.
_LOOSE = 1e-9


@inner
def lowest_deviation(least: float, top: float, gain: float, shape: int, penalty: float, table: Any) -> float:
    """The s under which even m = 0 gives less than `least`; by bisection up to `top`."""
    low, high = 0.0, top
    if value(shape, penalty, table, 0.0, top, 0.0, gain) < least:
        return top
    for _ in range(40):
        middle = 0.5 * (low + high)
        if value(shape, penalty, table, 0.0, middle, 0.0, gain) < least:
            low = middle
        else:
            high = middle
    return low


@inner
def highest_logit(least: float, top: float, steep: float, gain: float, shape: int, penalty: float, table: Any) -> float:
    """The |m| above which even s = top gives less than `least`."""
    if shape == DISTANCE:
        return max(top - least, 0.0) / penalty * steep if penalty > 0.0 and steep > 0.0 else np.inf
    low, high = 0.0, 1.0
    while value(shape, penalty, table, high, top, 0.0, gain) >= least:
        high *= 4.0
        if high > 1e9:
            return np.inf
    for _ in range(40):
        middle = 0.5 * (low + high)
        if value(shape, penalty, table, middle, top, 0.0, gain) < least:
            high = middle
        else:
            low = middle
    return high


@inner
def decaying_lengths(share: float) -> tuple[float, float]:
    """From where to where x e^-x is at least `share`; a little wider."""
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
    return near * (1.0 - _LOOSE), end * (1.0 + _LOOSE)


@inner
def set_sieve(least: float, scale: Any, model: Any, weights: Any, sieve: Any) -> None:
    """Conditions that every pair meets whose utility is `least` or more.

    Σ weights Δ² is all that is computed for every pair, so it stands for what each noise makes of s: a'Σa/4 itself
    if constant, |a|²/4 if decaying, and if normalized a'Σa/4 - (s/k)² |a|²/4, which must not be negative.

    ``scale`` is (highest s, highest k_pq |a|, longest |a|, widest difference of appeal, farthest item from the
    middle, eigenvalues of Σ).
    """
    top, steep, longest, appeal, reach, values = scale
    shape, noise, k, penalty, table = model
    s = lowest_deviation(least, top, values[0], shape, penalty, table) * (1.0 - _LOOSE)
    logit = highest_logit(least, top, steep, values[0], shape, penalty, table) * (1.0 + _LOOSE)
    sieve[FROM], sieve[TO] = -np.inf, np.inf
    sieve[DEVIATION], sieve[LOGIT], sieve[SQUARES] = s * s, logit, np.inf
    for h in range(len(values)):
        weights[h] = values[h]
    if not (k > 0.0 and values[0] > 0.0):
        return
    share = s / (k * math.sqrt(values[0]))
    error = 1e-14 * reach
    flattest = k
    if noise == CONSTANT:
        sieve[FROM] = max(0.5 * s / k - error * math.sqrt(values[0]), 0.0) ** 2
    elif noise == NORMALIZED:
        for h in range(len(values)):
            weights[h] -= values[0] * (share * share - 8.0 * _LOOSE)
        sieve[FROM] = -values[0] * _LOOSE * error * reach
        flattest = k / longest
    else:
        for h in range(len(values)):
            weights[h] = 1.0
        near, far = decaying_lengths(share) if share > 0.0 else (0.0, np.inf)
        sieve[FROM], sieve[TO] = max(0.5 * near - error, 0.0) ** 2, (0.5 * far + error) ** 2
        flattest = k * math.exp(-min(far, longest))
    if flattest > 0.0:
        sieve[SQUARES] = (logit + appeal) / flattest * (1.0 + _LOOSE)
