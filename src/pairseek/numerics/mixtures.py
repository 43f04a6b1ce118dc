"""Tables of `pairseek.numerics.tables` for a response whose k and lapse rate are unknown.

If k and the lapse rate are independent of the user point, an answer with logit z (at the typical k) has probability
F(z) = lapse/2 + (1 - lapse) E f(e^(spread x) z), x standard normal: a symmetric link with two parameters. Its tables
are computed at first use on a grid of the two parameters, at every fourth s and every second m. Linear interpolation
with non-negative weights preserves their monotonicity in s and |m|.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy.special import entr, ndtr

from pairseek.core.lazy import LazyModule
from pairseek.core.types import FloatArray
from pairseek.numerics.tables import (
    LOGIT_GRID,
    M0,
    M_OCTAVES,
    MIN_PROBABILITY,
    S0,
    S_OCTAVES,
    SERIES_MAX_S,
    Curve,
    grid_axis,
    hermite_spline,
    k_rule,
    link_functions,
    look_up,
    monotone_probability,
    monotone_utility,
    normal_rule,
    tables,
    utilities_from,
)

if TYPE_CHECKING:
    from pairseek.numerics import ties
else:
    ties = LazyModule("pairseek.numerics.ties")  # few responses permit ties

TableName: TypeAlias = Literal["probability", "information", "explained", "log_volume"]
TABLE_NAMES: tuple[TableName, ...] = ("probability", "information", "explained", "log_volume")

WIDENED_TABLE_ERROR = 2e-3
"""Relative error of a table with a variance, which is interpolated twice."""
SPREADS = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0])
"""Standard deviations of log k for which tables are computed."""
LAPSE_RATES = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0])
"""Lapse rates for which tables are computed."""

# Every how many-th s and m of the grid is computed with two outcomes.
_S_STRIDE = 4
_M_STRIDE = 2
# Stride of s and of m with three outcomes, whose information varies faster.
_TIE_STRIDE = 2
# From this s on, F is nearly a step on the scale of s.
_MIN_STEP_S = 16.0


def table(
    link: int,
    name: TableName,
    spread: float = 0.0,
    lapse: float = 0.0,
    width: float = 0.0,
    variance: float = 0.0,
) -> FloatArray:
    """Return a table by name; without spread and lapses, the table of the link itself.

    If ties are offered (``width`` > 0), the information is about three outcomes, and not monotone: see
    `pairseek.numerics.ties`. All other tables are for two outcomes, as if ties were not offered.

    With a variance v, the value at (m, s) is for a logit with standard deviation sqrt(s² + v); v is the part of the
    variance that all pairs share. Such a table is interpolated twice, with a relative error of at most
    `WIDENED_TABLE_ERROR`.
    """
    if variance > 0.0:
        return _widened(link, name, spread, lapse, width, variance)
    if width > 0.0 and name == "information":
        return _interpolated(link, name, min(spread, float(SPREADS[-1])), lapse, width)
    if spread == 0.0 and lapse == 0.0:
        values: FloatArray = getattr(tables(link), name)
        return values
    return _interpolated(link, name, min(spread, float(SPREADS[-1])), lapse, 0.0)


@lru_cache(maxsize=16)
def _widened(link: int, name: TableName, spread: float, lapse: float, width: float, variance: float) -> FloatArray:
    values = table(link, name, spread, lapse, width)
    m, s = grid_axis(M0, M_OCTAVES), grid_axis(S0, S_OCTAVES)
    out = np.empty((len(s), len(m)))
    deviations = np.repeat(np.sqrt(s * s + variance), len(m))
    look_up(0, out.size, values, np.tile(m, len(s)), deviations, out.reshape(-1))
    out.flags.writeable = False
    return out


@lru_cache(maxsize=16)
def _interpolated(link: int, name: TableName, spread: float, lapse: float, width: float) -> FloatArray:
    coarse: FloatArray | None = None
    strides = (_TIE_STRIDE, _TIE_STRIDE) if width > 0.0 else (_S_STRIDE, _M_STRIDE)
    for i, spread_weight in _interpolation_weights(SPREADS, spread):
        for j, lapse_weight in _interpolation_weights(LAPSE_RATES, lapse):
            if width > 0.0:
                values = ties.coarse_information(link, width, float(SPREADS[i]), float(LAPSE_RATES[j]), strides)
            else:
                values = _coarse_tables(link, i, j)[TABLE_NAMES.index(name)]
            weighted = spread_weight * lapse_weight * values
            coarse = weighted if coarse is None else coarse + weighted
    assert coarse is not None
    fine = np.ascontiguousarray(refined(refined(coarse, strides[0]).T, strides[1]).T)
    # Restore the monotonicity that bounds rely on, which rounding and quadrature errors may have broken.
    if name == "probability":
        fine = monotone_probability(fine)
    else:
        fine = (fine if width > 0.0 else monotone_utility(fine)) ** 2
    if name == "log_volume":
        fine = -fine
    fine = np.ascontiguousarray(fine)
    fine.flags.writeable = False
    return fine


def _interpolation_weights(grid: FloatArray, value: float) -> list[tuple[int, float]]:
    """Return the neighbouring grid points with their interpolation weights; only one if the value is on the grid."""
    i = int(np.clip(np.searchsorted(grid, value, side="right") - 1, 0, len(grid) - 2))
    fraction = float((value - grid[i]) / (grid[i + 1] - grid[i]))
    return [(position, weight) for position, weight in ((i, 1.0 - fraction), (i + 1, fraction)) if weight > 0.0]


def refined(values: FloatArray, stride: int) -> FloatArray:
    """Return a table with `stride` rows for each row of the given one, by linear interpolation."""
    out = np.empty((stride * (len(values) - 1) + 1, values.shape[1]))
    for offset in range(stride):
        out[offset:-1:stride] = (1.0 - offset / stride) * values[:-1] + (offset / stride) * values[1:]
    out[-1] = values[-1]
    return out


@lru_cache(maxsize=64)
def _coarse_tables(link: int, i: int, j: int) -> FloatArray:
    """Return (4, rows, columns) coarse tables at SPREADS[i] and LAPSES[j], with square roots of the utilities.

    A utility is proportional to s² for small s, so its square root is nearly linear between grid points.
    """
    spread, lapse = float(SPREADS[i]), float(LAPSE_RATES[j])
    m, s = grid_axis(M0, M_OCTAVES)[::_M_STRIDE], grid_axis(S0, S_OCTAVES)[::_S_STRIDE]
    rare, rare_slope, _ = _mixed_link(-LOGIT_GRID, spread, lapse, link)
    entropy = (entr(rare) + entr(1.0 - rare)) / np.log(2)
    entropy_slope = -rare_slope * np.log2((1.0 - rare) / np.maximum(rare, MIN_PROBABILITY))
    curves = hermite_spline(LOGIT_GRID, rare, -rare_slope), hermite_spline(LOGIT_GRID, entropy, entropy_slope)
    out = np.empty((4, len(s), len(m)))
    likely, slope, curvature = _mixed_link(m, spread, lapse, link)
    unlikely = np.maximum(_mixed_link(-m, spread, lapse, link)[0], 1e-250)
    floor = float(entr(0.5 * lapse) + entr(1.0 - 0.5 * lapse)) / np.log(2)
    excess = entropy - floor
    area = float(np.sum((excess[1:] + excess[:-1]) * np.diff(LOGIT_GRID)))
    for row, deviation in enumerate(s.tolist()):
        if deviation < SERIES_MAX_S * np.exp(-2.0 * spread):
            explained = (deviation * slope) ** 2 / (likely * unlikely)
            probability = likely + 0.5 * deviation**2 * curvature
            out[:, row] = probability, explained / (2.0 * np.log(2)), explained, -explained
        elif deviation < _MIN_STEP_S:
            out[:, row] = _row(m, deviation, curves, spread, link)
        else:
            out[:, row] = _step_row(m / deviation, lapse, floor, area / deviation)
    out[1:] = np.sqrt(np.maximum(np.stack([out[1], out[2], -out[3]]), 0.0))
    return out


def _mixed_link(z: FloatArray, spread: float, lapse: float, link: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return F, F' and F''."""
    factors, weights = k_rule(spread)
    f, _, slope, curvature, _ = link_functions(z[:, None] * factors, link)
    above = 0.5 * lapse + (1.0 - lapse) * (f @ weights)
    return above, (1.0 - lapse) * (slope @ (weights * factors)), (1.0 - lapse) * (curvature @ (weights * factors**2))


def _step_row(u: FloatArray, lapse: float, floor: float, area: float) -> FloatArray:
    """Return (4, len(u)) values for large s, where F is nearly a step, to first order in its width; u = m/s."""
    density = np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi)
    above, below = (0.5 * lapse + (1.0 - lapse) * ndtr(x) for x in (u, -u))
    return utilities_from(above, below, (1.0 - lapse) * density, -(1.0 - lapse) * u * density, floor + area * density)


def _row(m: FloatArray, s: float, curves: tuple[Curve, Curve], spread: float, link: int) -> FloatArray:
    """Return (4, len(m)) values at one s, by the trapezoidal rule over u; ``curves`` are F(-z) and h_b(F(z)), z > 0."""
    u, weights = normal_rule(s, spread, link)
    z = m[:, None] + s * u
    magnitude = np.minimum(np.abs(z), LOGIT_GRID[-1])
    rare = curves[0](magnitude)
    above, below = np.where(z > 0.0, 1.0 - rare, rare), np.where(z > 0.0, rare, 1.0 - rare)
    first, second = -(below @ (weights * u)), -(below @ (weights * (u**2 - 1.0)))
    return utilities_from(above @ weights, below @ weights, first, second, curves[1](magnitude) @ weights)
