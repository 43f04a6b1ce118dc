"""Kernels of slice sampling along a frame of directions.

From a point x along a direction v, the logits are linear, z_j + t c_j. The slopes c_j = slopes_j·v are shared by all
particles, so an evaluation costs one exponential per answer and no products with x. Interval and shrinkage follow
Neal (Slice sampling, 2003, section 4): an interval of fixed width is placed at random over the point, clipped to the
box, and shrunk towards the point until a draw lies above the level. A single interval mixes well if the posterior is
log-concave, and is valid for any density.
"""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.jit import (
    LOGISTIC,
    AnswerArrays,
    LinkModel,
    PriorArrays,
    SeedArray,
    exp_minus,
    kernel,
    log_answer,
    next_uniform,
    primitive,
)

SLICE_WIDTH = 5.0
"""Width of the slice interval, in standard deviations along the direction."""
# A product of this many factors between 1 and 2 cannot overflow, so they share one logarithm.
_FACTORS_PER_LOGARITHM = 512


@primitive
def log_line(t: float, z: FloatArray, c: FloatArray, decided: FloatArray, link: int, model: LinkModel) -> float:
    """Return the log-likelihood of all answers at x + t v, whose logits are z + t c; ``model`` as in `log_answer`."""
    m = len(z)
    total = 0.0
    if link == LOGISTIC and model[0] == 0.0:
        # Without lapses, ties are stored as pairs of decided answers: see `Factors`.
        for block in range(0, m, _FACTORS_PER_LOGARITHM):
            # log f(z) = (z - |z|)/2 - log(1 + e^-|z|).
            linear = 0.0
            product = 1.0
            for j in range(block, min(block + _FACTORS_PER_LOGARITHM, m)):
                y = z[j] + t * c[j]
                linear += y - abs(y)
                product *= 1.0 + exp_minus(abs(y))
            total += 0.5 * linear - math.log(product)
    else:
        for j in range(m):
            total += log_answer(z[j] + t * c[j], decided[j], link, model)
    return total


@kernel
def log_densities(
    start: int,
    stop: int,
    points: FloatArray,
    evidence: AnswerArrays,
    prior: PriorArrays,
    base: tuple[FloatArray, FloatArray],
    link: int,
    model: LinkModel,
    out: FloatArray,
) -> None:
    """Write the log posterior of each point minus the log density of a Gaussian; -inf outside the prior's box.

    ``evidence`` and ``prior`` as in `slice_sweep`; ``base`` is (centre (d,), precision (d, d)) of the Gaussian;
    ``model`` as in `log_answer`. Constants are dropped. O(m d) per point.
    """
    slopes, offsets, decided = evidence
    low, high, centre, precision = prior
    base_centre, base_precision = base
    m, d = slopes.shape
    z = np.empty(m)
    for row in range(start, stop):
        x = points[row]
        exceeded_bounds = 0
        for i in range(d):
            if x[i] < low[i] or x[i] > high[i]:
                exceeded_bounds += 1
        # Skip these early: in many dimensions a box cuts off most points of a Gaussian.
        if exceeded_bounds:
            out[row] = -np.inf
            continue
        total = 0.0
        for i in range(d):
            for h in range(d):
                total -= 0.5 * precision[i, h] * (x[i] - centre[i]) * (x[h] - centre[h])
                total += 0.5 * base_precision[i, h] * (x[i] - base_centre[i]) * (x[h] - base_centre[h])
        for j in range(m):
            logit = offsets[j]
            for i in range(d):
                logit += slopes[j, i] * x[i]
            z[j] = logit
        out[row] = total + log_line(0.0, z, z, decided, link, model)


@kernel
def slice_sweep(  # noqa: C901
    start: int,
    stop: int,
    points: FloatArray,
    seeds: SeedArray,
    frame: tuple[FloatArray, FloatArray],
    evidence: AnswerArrays,
    prior: PriorArrays,
    power: float,
    width: float,
    link: int,
    model: LinkModel,
) -> None:
    """Move points[start:stop] once along every direction of the frame, in place.

    ``frame`` is (directions (D, d), lines (D, m)); ``evidence`` (slopes (m, d), offsets (m,), decided (m,));
    ``prior`` (low (d,), high (d,), centre (d,), precision (d, d)); ``model`` as in `log_answer`; the
    likelihood is raised to ``power``, between 0 and 1.
    """
    directions, lines = frame
    slopes, offsets, decided = evidence
    low, high, centre, precision = prior
    m, d = slopes.shape
    z = np.empty(m)
    state = np.empty(1, dtype=np.uint64)
    for row in range(start, stop):
        x = points[row]
        state[0] = seeds[row]
        for j in range(m):
            total = offsets[j]
            for i in range(d):
                total += slopes[j, i] * x[i]
            z[j] = total
        current = power * log_line(0.0, z, lines[0], decided, link, model)
        for k in range(directions.shape[0]):
            v = directions[k]
            c = lines[k]
            # The log of the Gaussian factor along the line: -(curvature t²/2 + slope t).
            slope = 0.0
            curvature = 0.0
            left = -width * next_uniform(state)
            right = left + width
            for i in range(d):
                pv = 0.0
                for h in range(d):
                    pv += precision[i, h] * v[h]
                slope += pv * (x[i] - centre[i])
                curvature += pv * v[i]
                if v[i] > 0.0:
                    left = max(left, (low[i] - x[i]) / v[i])
                    right = min(right, (high[i] - x[i]) / v[i])
                elif v[i] < 0.0:
                    left = max(left, (high[i] - x[i]) / v[i])
                    right = min(right, (low[i] - x[i]) / v[i])
            level = current + math.log(next_uniform(state))
            for _ in range(100):
                t = left + (right - left) * next_uniform(state)
                proposed = power * log_line(t, z, c, decided, link, model)
                if proposed - t * (0.5 * curvature * t + slope) >= level:
                    current = proposed
                    for i in range(d):
                        x[i] = min(max(x[i] + t * v[i], low[i]), high[i])
                    for j in range(m):
                        z[j] += t * c[j]
                    break
                if t < 0.0:
                    left = t
                else:
                    right = t
