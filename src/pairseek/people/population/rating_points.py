"""Posteriors of people as weighted points, for ratings with two levels.

If ratings follow the utility -k|w - x|², a person's shift is nearly a quadratic function of their tastes z. The
posterior of (z, s) is then curved, and with the few likes of one person no Gaussian describes it: a Gaussian E-step
finds half of the true variance of people. Here the posterior is represented by quasi-random points with importance
weights, drawn by `Shift.propose`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.jit import exp_minus, inner, kernel

# Utilities are clipped here before exponentiation, so that products stay finite.
_MAX_UTILITY = 60.0
# Largest argument of `exp_minus`.
_MAX_EXPONENT = 36.0


@dataclass(frozen=True, eq=False)
class Points:
    """Weighted points of the posteriors.

    Attributes
    ----------
    place
        (people, points, d + 1) tastes and shifts.
    weight
        (people, points) weights, which sum to 1 for each person.
    """

    place: FloatArray
    weight: FloatArray

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return the (people, d + 1) means and the (people, d + 1, d + 1) covariances."""
        mean = np.einsum("pk,pki->pi", self.weight, self.place)
        centred = self.place - mean[:, None]
        return mean, np.asarray((centred * self.weight[:, :, None]).transpose(0, 2, 1) @ centred)

    @property
    def columns(self) -> FloatArray:
        """(people, d + 1, points) places in the layout of the kernels."""
        return np.ascontiguousarray(self.place.transpose(0, 2, 1))

    @property
    def effective(self) -> FloatArray:
        """(people,) effective sample sizes."""
        return np.asarray(1.0 / np.sum(self.weight**2, axis=1))


@inner
def raise_utilities(base: float, factors: FloatArray, place: FloatArray, out: FloatArray) -> None:
    """Write e^u to `out`, where u = base + factors·z is the utility at each column z of `place`."""
    count = len(out)
    out[:] = base
    for j in range(len(factors)):
        for k in range(count):
            out[k] += factors[j] * place[j, k]
    top = out[0]
    for k in range(count):
        top = max(top, out[k])
    # Relative to the largest e^u, the others need e^-x only for positive x, which vectorises.
    largest = math.exp(min(top, _MAX_UTILITY))
    for k in range(count):
        out[k] = largest * exp_minus(top - out[k])


@inner
def derivatives(scale: float, below: float, above: float) -> tuple[float, float, float]:
    """Return the terms of the derivatives of a rating's log-likelihood by its utility u, at `scale` = e^u.

    For o = scale above and the width x = scale (below - above), they are o, x/(e^x - 1), and the negative second
    derivative of log(1 - e^-x).
    """
    upper_rate = min(scale * above, _MAX_EXPONENT)
    width = min(scale * (below - above), _MAX_EXPONENT) if below >= 0.0 else _MAX_EXPONENT
    decay = exp_minus(width)
    slope = width * decay / (1.0 - decay + 1e-12)
    return upper_rate, slope, slope * (width - 1.0 + slope)


@kernel
def weigh_points(
    start: int,
    stop: int,
    starts: IntArray,
    item: IntArray,
    level: IntArray,
    weight: FloatArray,
    base: FloatArray,
    factors: FloatArray,
    ends: FloatArray,
    place: FloatArray,
    log_weight: FloatArray,
    evidence: FloatArray,
) -> None:
    """Add the log-likelihood to the log weights of each person's points, normalise them, and write the evidence.

    `place` is (people, d, points), and `ends` is described in `rating_kernels.tilted`.
    """
    count = place.shape[2]
    scale = np.empty(count)
    for p in range(start, stop):
        logs = log_weight[p]
        for r in range(starts[p], starts[p + 1]):
            below, above, multiplicity = ends[level[r], 0], ends[level[r], 1], weight[r]
            raise_utilities(base[item[r]], factors[item[r]], place[p], scale)
            for k in range(count):
                logs[k] -= multiplicity * above * scale[k]
            if below >= 0.0:
                for k in range(count):
                    logs[k] += multiplicity * math.log(max(-math.expm1(-scale[k] * (below - above)), 1e-300))
        top, total = logs.max(), 0.0
        for k in range(count):
            logs[k] = math.exp(logs[k] - top)
            total += logs[k]
        for k in range(count):
            logs[k] /= total
        evidence[p] = top + math.log(total)


@kernel
def gather_points(
    start: int,
    stop: int,
    starts: IntArray,
    person: IntArray,
    level: IntArray,
    weight: FloatArray,
    trust: FloatArray,
    base: FloatArray,
    factors: FloatArray,
    ends: FloatArray,
    place: FloatArray,
    share: FloatArray,
    slope_out: FloatArray,
    curve_out: FloatArray,
    fisher_out: FloatArray,
    level_out: FloatArray,
    cross_out: FloatArray,
) -> None:
    """Accumulate the derivatives of `accumulate_rating_gradients` as sums over the points, (people, d, points)."""
    count, q = place.shape[2], slope_out.shape[1]
    point, derivative, scale = np.ones((q, count)), np.empty(q), np.empty(count)
    upper_terms, slope_terms, curve_terms = np.empty(count), np.zeros(count), np.zeros(count)
    for i in range(start, stop):
        for r in range(starts[i], starts[i + 1]):
            p, c = person[r], level[r]
            below, above, multiplicity = ends[c, 0], ends[c, 1], weight[r] * trust[p]
            if multiplicity == 0.0:
                continue
            raise_utilities(base[i], factors[i], place[p], scale)
            point[1:] = place[p, : q - 1]
            for k in range(count):
                upper, slope, curve = derivatives(scale[k], below, above)
                upper_terms[k], slope_terms[k], curve_terms[k] = (
                    share[p, k] * upper,
                    share[p, k] * slope,
                    share[p, k] * curve,
                )
            add_points(
                multiplicity,
                point,
                upper_terms,
                slope_terms,
                curve_terms,
                derivative,
                level_out[i, c],
                cross_out[i, :, c],
                curve_out[i],
            )
            for a in range(q):
                slope_out[i, a] += multiplicity * derivative[a]
                for b in range(q):
                    fisher_out[i, a, b] += multiplicity * derivative[a] * derivative[b]


@kernel
def slope_points(
    start: int,
    stop: int,
    starts: IntArray,
    item: IntArray,
    level: IntArray,
    weight: FloatArray,
    base: FloatArray,
    factors: FloatArray,
    ends: FloatArray,
    place: FloatArray,
    slope_out: FloatArray,
    curve_out: FloatArray,
) -> None:
    """Accumulate the first and negative second derivatives of the log-likelihood by the shift at each point."""
    count = place.shape[2]
    scale = np.empty(count)
    for p in range(start, stop):
        for r in range(starts[p], starts[p + 1]):
            below, above, multiplicity = ends[level[r], 0], ends[level[r], 1], weight[r]
            raise_utilities(base[item[r]], factors[item[r]], place[p], scale)
            for k in range(count):
                upper, slope, curve = derivatives(scale[k], below, above)
                slope_out[p, k] += multiplicity * (slope - upper)
                curve_out[p, k] += multiplicity * (upper + curve)


@inner
def add_points(
    multiplicity: float,
    point: FloatArray,
    upper_terms: FloatArray,
    slope_terms: FloatArray,
    curve_terms: FloatArray,
    derivative: FloatArray,
    sums: FloatArray,
    cross: FloatArray,
    curve: FloatArray,
) -> None:
    """Add the derivatives of `multiplicity` equal ratings; write the first derivatives of one to `derivative`."""
    q, count = point.shape
    for a in range(q):
        upper = slope = lower = 0.0
        for k in range(count):
            upper += upper_terms[k] * point[a, k]
            slope += slope_terms[k] * point[a, k]
            lower += curve_terms[k] * point[a, k]
        derivative[a] = slope - upper
        cross[a, 0] += multiplicity * upper
        cross[a, 1] += multiplicity * lower
        if a == 0:
            sums[0] += multiplicity * upper
            sums[1] += multiplicity * slope
            sums[2] += multiplicity * lower
        for b in range(a + 1):
            total = 0.0
            for k in range(count):
                total += (upper_terms[k] + curve_terms[k]) * point[a, k] * point[b, k]
            curve[a, b] += multiplicity * total
            if b < a:
                curve[b, a] += multiplicity * total
