"""Maximum likelihood estimation of the noise constant k, which maximises Σ w log f(k u + o) over k > 0.

log f is concave, so the derivative in k is decreasing and the optimum is unique. Bracketing, bisection and Newton steps
on log k find it from any start. If the derivative has the same sign everywhere, the optimum is at a bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.constants import HALF_LOG_TWO_PI
from pairseek.numerics.jit import LOGISTIC, exp_minus, kernel, log_ndtr
from pairseek.numerics.parallel import for_ranges

_CHUNK_SIZE = 1 << 14
_MAX_SCALED_K = 1e8
"""Upper bound on k times the root mean square of u; the lower bound is its inverse."""
_LOG_K_TOLERANCE = 1e-11
_MAX_STEPS = 200
_PROBIT_TAIL = 1e3


ScaleLimit = Literal["", "zero", "infinity", "flat"]


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
    """Write Σ w log f and its first two derivatives in k to row start // _CHUNK_SIZE of ``out``."""
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
            if z > -_PROBIT_TAIL:
                ratio = math.exp(-0.5 * z * z - HALF_LOG_TWO_PI - log_ndtr(z))
                excess = ratio * (z + ratio)
            else:
                # Asymptotic series: the difference of large numbers would lose precision.
                ratio = -z - 1.0 / z
                excess = 1.0 - 1.0 / (z * z)
            slope += weights[r] * u * ratio
            bend -= weights[r] * u * u * excess
    row = out[start // _CHUNK_SIZE]
    row[0] = value
    row[1] = slope
    row[2] = bend


def likelihood(
    k: float, units: FloatArray, link: int, *, offsets: FloatArray, weights: FloatArray
) -> tuple[float, float, float]:
    """Return the log-likelihood and its first and second derivatives at k."""
    out = np.empty((-(-len(units) // _CHUNK_SIZE), 3))
    for_ranges(_sums, len(units), _CHUNK_SIZE, units, offsets, weights, k, link, out)
    value, slope, bend = out.sum(axis=0)
    return float(value), float(slope), float(bend)


@dataclass(frozen=True)
class ScaleFit:
    """Maximum likelihood estimate of k.

    Attributes
    ----------
    k
        The estimate, or the bound where the search stopped.
    log_likelihood
        Log-likelihood at k.
    standard_error
        1/sqrt(-second derivative); infinite at a bound.
    bound
        ``"infinity"`` if no answer contradicts the items, ``"zero"`` if more answers contradict them than agree,
        ``"flat"`` if all units are zero; otherwise empty.
    evaluations
        Number of evaluations of the likelihood.
    """

    k: float
    log_likelihood: float
    standard_error: float
    bound: ScaleLimit
    evaluations: int


def best_scale(
    units: FloatArray,
    link: int,
    *,
    offsets: FloatArray | None = None,
    weights: FloatArray | None = None,
    start: float | None = None,
) -> ScaleFit:
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
        (m,) weights of the answers. None: all 1.
    start
        Starting value of k. None: 1 over the root mean square of the units.
    """
    m = len(units)
    units = np.ascontiguousarray(units, dtype=np.float64)
    offsets = np.zeros(m) if offsets is None else np.ascontiguousarray(offsets, dtype=np.float64)
    weights = np.ones(m) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    largest = float(np.abs(units).max())
    if largest == 0.0:
        value = likelihood(1.0, units, link, offsets=offsets, weights=weights)[0]
        return ScaleFit(1.0, value, math.inf, "flat", 1)
    # Normalise by the largest: squares of logits that decay with distance would underflow.
    scale = largest * math.sqrt(float(((units / largest) ** 2).sum()) / m)
    low, high = -math.log(_MAX_SCALED_K * scale), math.log(_MAX_SCALED_K / scale)
    # If all units have the same sign, so does the derivative, although it underflows far from the origin.
    one_signed: tuple[tuple[ScaleLimit, float, bool], ...] = (
        ("infinity", high, bool(units.min() >= 0.0)),
        ("zero", low, bool(units.max() <= 0.0)),
    )
    for bound, end, holds in one_signed:
        if holds:
            value = likelihood(math.exp(end), units, link, offsets=offsets, weights=weights)[0]
            return ScaleFit(math.exp(end), value, math.inf, bound, 1)
    log_k = -math.log(scale) if start is None else min(max(math.log(start), low), high)
    left, right = -math.inf, math.inf
    step = 1.0
    for count in range(1, _MAX_STEPS + 1):
        k = math.exp(log_k)
        value, slope, bend = likelihood(k, units, link, offsets=offsets, weights=weights)
        if slope > 0.0:
            if log_k >= high:
                return ScaleFit(k, value, math.inf, "infinity", count)
            left = log_k
        else:
            if log_k <= low:
                return ScaleFit(k, value, math.inf, "zero", count)
            right = log_k
        following = _next_log_k(log_k, (left, right), k - slope / bend if bend < 0.0 else -1.0, step)
        step = abs(following - log_k) if math.isfinite(right - left) else 2.0 * step
        if slope == 0.0 or abs(following - log_k) <= _LOG_K_TOLERANCE:
            break
        log_k = min(max(following, low), high)
    return ScaleFit(k, value, 1.0 / math.sqrt(-bend) if bend < 0.0 else math.inf, "", count)


def _next_log_k(log_k: float, bracket: tuple[float, float], newton: float, step: float) -> float:
    """Return the next log k: growing steps until the optimum is bracketed, then Newton or bisection steps."""
    left, right = bracket
    if not math.isfinite(right - left):
        return log_k + step if log_k == left else log_k - step
    if newton > 0.0:
        target = math.log(newton)
        if left <= target <= right and abs(target - log_k) <= 0.5 * step:
            return target
    return 0.5 * (left + right)
