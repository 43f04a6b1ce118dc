"""Posterior on an adaptive grid, for up to three dimensions."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import Annotated, ClassVar, cast

import numpy as np
from scipy.special import logsumexp

from pairseek.core.limits import BySize, Limit
from pairseek.core.types import Belief, BeliefInfo, Evidence, FloatArray
from pairseek.errors import AccuracyWarning, InvalidParameter
from pairseek.model.priors import AnyPrior, Prior, box_of, is_density, log_density_of, moments_of
from pairseek.model.responses import Response
from pairseek.numerics.moments import sample_moments
from pairseek.posteriors.base import BasePosterior, sampled_belief
from pairseek.posteriors.gaussian import log_prior_mass

MOST_DIMENSIONS = 3
DEFAULT_POINTS = {1: 2001, 2: 201, 3: 41}
# Half width of the grid for a prior without a box, in standard deviations.
_HALF_WIDTH = 6.0
# Largest mass that shrinking cuts off at each end of a dimension.
_MAX_CUT_MASS = 1e-9
# The grid is enlarged if an outermost slice of cells has more than this mass.
_MAX_EDGE_MASS = 1e-6
# Cells kept around the mass.
_MARGIN_CELLS = 2
# Largest number of rounds of shrinking or enlarging the grid.
_MAX_ROUNDS = 12
# The grid is fine enough if the variances on every second cell and on all cells differ by at most this fraction.
_VARIANCE_TOLERANCE = 0.02
# Largest total number of cells; up to it, the number along each dimension is doubled while the grid is too coarse.
_MAX_CELLS = 200_000
_MAX_POINTS = BySize(
    lambda size: int(_MAX_CELLS ** (1 / size.dimensions) + 1e-9), f"{_MAX_CELLS:,} cells in all dimensions together"
)


@dataclass(frozen=True)
class Grid(BasePosterior):
    """Inference on an adaptive grid of equal cells, each weighted by the density at its centre (the midpoint rule).

    The grid first covers the prior, then shrinks to the part that has mass, so a narrow posterior gets narrow cells. If
    the variances on every second cell differ from those on all cells, the cells are halved. If they still differ, as on
    a narrow diagonal ridge, ``info.resolved`` is False and an `AccuracyWarning` says so.

    Parameters
    ----------
    points
        Cells along each dimension. None means 2001, 201 and 41 in 1, 2 and 3 dimensions, and more where needed.

    Examples
    --------
    >>> import pairseek as ps
    >>> items = ps.Items([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> search = ps.Search(items, response=ps.Logistic(), posterior=ps.Grid(points=51), rng=7)
    >>> search.observe(0, 1, winner=1)
    >>> search.estimate().point.shape
    (2,)
    """

    points: Annotated[int | None, Limit(2, _MAX_POINTS)] = None
    name: ClassVar[str] = "grid"
    takes_lapses: ClassVar[bool] = True
    most_dimensions: ClassVar[int] = MOST_DIMENSIONS

    def __post_init__(self) -> None:
        if self.points is not None and self.points < 2:
            raise InvalidParameter(f"points={self.points} is too few for a Grid: give at least 2", field="points")

    def infer(self, evidence: Evidence, prior: AnyPrior, response: Response) -> Belief:
        """Return the belief after these answers."""
        start_time = time.perf_counter()
        d = evidence.slopes.shape[1]
        points = self.points or DEFAULT_POINTS[d]
        bounds = _initial_bounds(prior, d)
        while True:
            bounds, logs = _fitted_bounds(bounds, points, evidence, prior, response)
            resolved = _is_resolved(_weights(logs), bounds, points)
            if resolved or self.points is not None or (2 * points) ** d > _MAX_CELLS:
                break
            points *= 2
        if not resolved:
            warnings.warn(
                f"the posterior is narrower than the cells of a Grid with {points} points along each of {d} "
                f"dimensions, so its moments are inaccurate: use EP() or Particles()",
                AccuracyWarning,
                stacklevel=2,
            )
        weights, cells = _weights(logs), _cells(bounds, points)
        log_cell = float(np.sum(np.log((bounds[1] - bounds[0]) / points)))
        log_evidence = float(logsumexp(logs)) + log_cell
        if not is_density(prior):
            # Other priors enter without the constants of their density.
            log_evidence -= log_prior_mass(cast("Prior", prior), d) + 0.5 * d * math.log(2.0 * math.pi)
        seconds = time.perf_counter() - start_time
        info = BeliefInfo("grid", resolved=resolved, log_evidence=log_evidence, seconds=seconds)
        return sampled_belief(cells, weights, sample_moments(cells, weights), info)


def _initial_bounds(prior: AnyPrior, d: int) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the prior's box, or six standard deviations from the mean where it has none."""
    low, high = box_of(prior, d)
    mean, covariance = moments_of(prior, d)
    reach = _HALF_WIDTH * np.sqrt(np.diag(covariance))
    return np.where(np.isfinite(low), low, mean - reach), np.where(np.isfinite(high), high, mean + reach)


def _cells(bounds: tuple[FloatArray, FloatArray], points: int) -> FloatArray:
    axes = [a + (b - a) * (np.arange(points) + 0.5) / points for a, b in zip(*bounds, strict=True)]
    return np.ascontiguousarray(np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1))


def _weights(logs: FloatArray) -> FloatArray:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _fitted_bounds(
    bounds: tuple[FloatArray, FloatArray], points: int, evidence: Evidence, prior: AnyPrior, response: Response
) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
    """Return the part of the bounds that has mass, and the log densities of its cells."""
    d = len(bounds[0])
    # Where the prior is unbounded, the grid may grow beyond its initial bounds: answers can move the mass outside.
    widest = box_of(prior, d)
    for _ in range(_MAX_ROUNDS):
        cells = _cells(bounds, points)
        logs = response.log_likelihood(evidence, cells) + log_density_of(prior, cells)
        new_bounds = _around_mass(_weights(logs).reshape((points,) * d), bounds, widest)
        old_width, new_width = bounds[1] - bounds[0], new_bounds[1] - new_bounds[0]
        is_larger = np.any(new_bounds[0] < bounds[0]) or np.any(new_bounds[1] > bounds[1])
        if not is_larger and np.all(new_width > 0.7 * old_width):
            break
        bounds = new_bounds
    return bounds, logs


def _around_mass(
    weights: FloatArray, bounds: tuple[FloatArray, FloatArray], widest: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return bounds shrunk to the mass plus a margin, or enlarged where mass lies at an edge inside the prior's box."""
    d, points = weights.ndim, len(weights)
    low, high = bounds[0].copy(), bounds[1].copy()
    for axis in range(d):
        mass = weights.sum(axis=tuple(other for other in range(d) if other != axis))
        step = (bounds[1][axis] - bounds[0][axis]) / points
        inside = np.flatnonzero((np.cumsum(mass) > _MAX_CUT_MASS) & (np.cumsum(mass[::-1])[::-1] > _MAX_CUT_MASS))
        first, last = int(inside[0]) - _MARGIN_CELLS, int(inside[-1]) + 1 + _MARGIN_CELLS
        if bounds[0][axis] > widest[0][axis] and mass[0] > _MAX_EDGE_MASS:
            first = -points // 2
        if bounds[1][axis] < widest[1][axis] and mass[-1] > _MAX_EDGE_MASS:
            last = points + points // 2
        low[axis] = max(bounds[0][axis] + first * step, widest[0][axis])
        high[axis] = min(bounds[0][axis] + last * step, widest[1][axis])
        if mass[0] <= _MAX_EDGE_MASS:
            low[axis] = max(low[axis], bounds[0][axis])
        if mass[-1] <= _MAX_EDGE_MASS:
            high[axis] = min(high[axis], bounds[1][axis])
    return low, high


def _is_resolved(weights: FloatArray, bounds: tuple[FloatArray, FloatArray], points: int) -> bool:
    """Return whether every second cell gives nearly the same variances as all cells."""
    d = len(bounds[0])
    cells, table = _cells(bounds, points).reshape((points,) * d + (d,)), weights.reshape((points,) * d)
    _, all_cells = sample_moments(cells.reshape(-1, d), weights)
    halves = []
    for offset in (0, 1):
        alternate = (slice(offset, None, 2),) * d
        mass = np.ascontiguousarray(table[alternate]).ravel()
        if not mass.sum() > 0.0:
            return False
        halves.append(sample_moments(np.ascontiguousarray(cells[alternate]).reshape(-1, d), mass / mass.sum())[1])
    # Average both halves: one omits the first cells of the box, the other the last.
    every_second = np.diag(halves[0] + halves[1]) / 2.0
    return bool(np.all(np.abs(every_second - np.diag(all_cells)) <= _VARIANCE_TOLERANCE * np.diag(all_cells)))
