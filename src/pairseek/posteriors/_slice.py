"""The kernel that moves particles: slice sampling along a frame of directions.

For a point x and direction v the logits are straight lines z_j + t c_j, so once c_j = slopes_j·v is known, which
is shared by all particles, an evaluation costs one exponential an answer and no products with x. Interval and
shrinkage are Neal's (Slice sampling, 2003, section 4): an interval of fixed width placed at random over the
point and cut to the box, shrunk towards the point until a draw is above the level. The posterior is log-concave,
so one interval suffices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pairseek._kernels import LOGISTIC, exp_minus, kernel, log_answer, next_uniform, primitive

# A product of at most this many factors between 1 and 2 cannot overflow: one logarithm for all of them.
_BLOCK = 512


@primitive
def log_line(t: float, z: Any, c: Any, decided: Any, powers: Any, link: int) -> float:
    """Log-likelihood of all answers at x + t v; ``powers`` are those of the earlier answers and of the newest."""
    newest = len(z) - 1
    total = 0.0
    if link == LOGISTIC:
        for block in range(0, newest, _BLOCK):
            # log f(z) = (z - |z|)/2 - log(1 + e^-|z|); a tie lacks the first z.
            linear = 0.0
            product = 1.0
            for j in range(block, min(block + _BLOCK, newest)):
                y = z[j] + t * c[j]
                linear += decided[j] * y - abs(y)
                product *= 1.0 + exp_minus(abs(y))
            total += 0.5 * linear - math.log(product)
    else:
        for j in range(newest):
            total += log_answer(z[j] + t * c[j], decided[j], link)
    return powers[0] * total + powers[1] * log_answer(z[newest] + t * c[newest], decided[newest], link)


@kernel
def log_newest(
    start: int, stop: int, points: Any, slope: Any, offset: float, decided: float, link: int, out: Any
) -> None:
    """Log-likelihood of one answer at each point."""
    for row in range(start, stop):
        z = offset
        for i in range(len(slope)):
            z += slope[i] * points[row, i]
        out[row] = log_answer(z, decided, link)


@kernel
def slice_sweep(  # noqa: C901
    start: int,
    stop: int,
    points: Any,
    seeds: Any,
    frame: Any,
    evidence: Any,
    prior: Any,
    powers: Any,
    width: float,
    link: int,
) -> None:
    """Move points[start:stop] once along every direction of the frame, in place.

    ``frame`` is (directions (D, d), lines (D, m)); ``evidence`` (slopes (m, d), offsets (m,), decided (m,));
    ``prior`` (low (d,), high (d,), centre (d,), precision (d, d)); ``powers`` as in `log_line`.
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
        here = log_line(0.0, z, lines[0], decided, powers, link)
        for k in range(directions.shape[0]):
            v = directions[k]
            c = lines[k]
            # The Gaussian factor along the line: -(curve t²/2 + tilt t).
            tilt = 0.0
            curve = 0.0
            left = -width * next_uniform(state)
            right = left + width
            for i in range(d):
                pv = 0.0
                for h in range(d):
                    pv += precision[i, h] * v[h]
                tilt += pv * (x[i] - centre[i])
                curve += pv * v[i]
                if v[i] > 0.0:
                    left = max(left, (low[i] - x[i]) / v[i])
                    right = min(right, (high[i] - x[i]) / v[i])
                elif v[i] < 0.0:
                    left = max(left, (high[i] - x[i]) / v[i])
                    right = min(right, (low[i] - x[i]) / v[i])
            level = here + math.log(next_uniform(state))
            for _ in range(100):
                t = left + (right - left) * next_uniform(state)
                there = log_line(t, z, c, decided, powers, link)
                if there - t * (0.5 * curve * t + tilt) >= level:
                    here = there
                    for i in range(d):
                        x[i] = min(max(x[i] + t * v[i], low[i]), high[i])
                    for j in range(m):
                        z[j] += t * c[j]
                    break
                if t < 0.0:
                    left = t
                else:
                    right = t
