"""Maximum likelihood estimate of the noise constant k: maximise Σ w log f(k u + o) over k > 0.

log f is concave, so the derivative in k is decreasing and the optimum is unique; bracketing with bisection and Newton
steps on log k finds it from any start. If the derivative has one sign everywhere, the optimum is at a bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.jit import LOGISTIC, exp_minus, kernel, log_ndtr
from pairseek.numerics.parallel import for_ranges

_CHUNK = 1 << 14
_REACH = 1e8
"""Bounds on k times the root mean square of u: this factor and its inverse."""
_TOLERANCE = 1e-11
_MOST_STEPS = 200
_TAIL = 1e3
_LOG_ROOT_TWO_PI = 0.9189385332046727

Bound = Literal["", "zero", "infinity", "flat"]


@kernel
def _sums(
    start: int,
    stop: int,
    units: FloatArray,
    offsets: FloatArray,
    weights: FloatArray,
    k: float,
    link: int,
    out: FloatArray,
) -> None:
    """Write Σ w log f and its first two derivatives in k to row start // _CHUNK of ``out``."""
    value, slope, bend = 0.0, 0.0, 0.0
    for r in range(start, stop):
        u = units[r]
        z = k * u + offsets[r]
        if link == LOGISTIC:
            e = exp_minus(abs(z))
            share = 1.0 / (1.0 + e)
            wrong = share if z < 0.0 else 1.0 - share
            if z > 30.0:
                wrong = e
            value += weights[r] * (min(z, 0.0) - math.log1p(e))
            slope += weights[r] * u * wrong
            bend -= weights[r] * u * u * wrong * (1.0 - wrong)
        else:
            value += weights[r] * log_ndtr(z)
            if z > -_TAIL:
                ratio = math.exp(-0.5 * z * z - _LOG_ROOT_TWO_PI - log_ndtr(z))
                excess = ratio * (z + ratio)
            else:
                # Asymptotic series, since the differences of large numbers lose precision here.
                ratio = -z - 1.0 / z
                excess = 1.0 - 1.0 / (z * z)
            slope += weights[r] * u * ratio
            bend -= weights[r] * u * u * excess
    row = out[start // _CHUNK]
    row[0] = value
    row[1] = slope
    row[2] = bend


def likelihood(
    k: float, units: FloatArray, link: int, *, offsets: FloatArray, weights: FloatArray
) -> tuple[float, float, float]:
    """Return the log-likelihood and its first and second derivatives at k."""
    out = np.empty((-(-len(units) // _CHUNK), 3))
    for_ranges(_sums, len(units), _CHUNK, units, offsets, weights, k, link, out)
    value, slope, bend = out.sum(axis=0)
    return float(value), float(slope), float(bend)


@dataclass(frozen=True)
class Scale:
    """Maximum likelihood estimate of k.

    Attributes
    ----------
    k
        Where the likelihood is highest, or the bound that it ran to.
    log_likelihood
        There.
    standard_error
        1/sqrt(-second derivative); infinite at a bound.
    bound
        ``"infinity"`` if the answers are separable, ``"zero"`` if they contradict the items more than they agree,
        ``"flat"`` if all units are zero.
    evaluations
        Number of evaluations of the likelihood.
    """

    k: float
    log_likelihood: float
    standard_error: float
    bound: Bound
    evaluations: int


def best_scale(
    units: FloatArray,
    link: int,
    *,
    offsets: FloatArray | None = None,
    weights: FloatArray | None = None,
    start: float | None = None,
) -> Scale:
    """Maximise the likelihood over k.

    Parameters
    ----------
    units
        (m,) logits of the answers at k = 1, oriented towards the chosen item.
    link
        0 for the logistic function, 1 for the normal distribution function.
    offsets
        (m,) parts of the logits that k does not scale.
    weights
        (m,) weights of the answers; 1 if None.
    start
        Starting value of k; None: 1 over the root mean square of the units.
    """
    m = len(units)
    units = np.ascontiguousarray(units, dtype=np.float64)
    offsets = np.zeros(m) if offsets is None else np.ascontiguousarray(offsets, dtype=np.float64)
    weights = np.ones(m) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    largest = float(np.abs(units).max())
    if largest == 0.0:
        value = likelihood(1.0, units, link, offsets=offsets, weights=weights)[0]
        return Scale(1.0, value, math.inf, "flat", 1)
    # Normalised by the largest, since the squares of logits that decay with distance would underflow.
    scale = largest * math.sqrt(float(((units / largest) ** 2).sum()) / m)
    low, high = -math.log(_REACH * scale), math.log(_REACH / scale)
    # If all units have one sign, so has the derivative, though it underflows far from the origin.
    one_way: tuple[tuple[Bound, float, bool], ...] = (
        ("infinity", high, bool(units.min() >= 0.0)),
        ("zero", low, bool(units.max() <= 0.0)),
    )
    for bound, end, so in one_way:
        if so:
            value = likelihood(math.exp(end), units, link, offsets=offsets, weights=weights)[0]
            return Scale(math.exp(end), value, math.inf, bound, 1)
    place = -math.log(scale) if start is None else min(max(math.log(start), low), high)
    left, right = -math.inf, math.inf
    step = 1.0
    for count in range(1, _MOST_STEPS + 1):
        k = math.exp(place)
        value, slope, bend = likelihood(k, units, link, offsets=offsets, weights=weights)
        if slope > 0.0:
            if place >= high:
                return Scale(k, value, math.inf, "infinity", count)
            left = place
        else:
            if place <= low:
                return Scale(k, value, math.inf, "zero", count)
            right = place
        following = _following(place, (left, right), k - slope / bend if bend < 0.0 else -1.0, step)
        step = abs(following - place) if math.isfinite(right - left) else 2.0 * step
        if slope == 0.0 or abs(following - place) <= _TOLERANCE:
            break
        place = min(max(following, low), high)
    return Scale(k, value, 1.0 / math.sqrt(-bend) if bend < 0.0 else math.inf, "", count)


def _following(place: float, bracket: tuple[float, float], newton: float, step: float) -> float:
    """Return the next log k: growing steps until the optimum is bracketed, then Newton or bisection steps."""
    left, right = bracket
    if not math.isfinite(right - left):
        return place + step if place == left else place - step
    if newton > 0.0:
        target = math.log(newton)
        if left <= target <= right and abs(target - place) <= 0.5 * step:
            return target
    return 0.5 * (left + right)
