"""The posterior on an adaptive grid, for up to three dimensions."""

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
_REACH = 6.0
# Mass that may be cut off on each side of a dimension when the grid shrinks, and mass in the outermost cells from which
# the grid is enlarged again.
_CUT = 1e-9
_TOO_NEAR = 1e-6
# Cells kept around the mass, and rounds of shrinking or enlarging the grid.
_MARGIN = 2
_ROUNDS = 12
# Relative difference between variances on all cells and on every second one up to which the grid counts as fine enough.
_RESOLVED = 0.02
# Largest total number of cells when the number along each dimension is doubled.
_MOST_CELLS = 200_000
_MOST_POINTS = BySize(
    lambda size: int(_MOST_CELLS ** (1 / size.dimensions) + 1e-9), f"{_MOST_CELLS:,} cells in all dimensions together"
)


@dataclass(frozen=True)
class Grid(BasePosterior):
    """An adaptive grid of equal cells, each with the posterior density at its centre (the midpoint rule).

    The grid first covers the prior, then only the part of it that has mass, so that a narrow posterior gets narrow
    cells. Where the moments on every second cell differ from those on all of them, the cells are made smaller; if they
    still differ, as on a narrow diagonal ridge, ``info.resolved`` is False and an `AccuracyWarning` says so.

    Parameters
    ----------
    points
        Cells along each dimension. None: 2001, 201 and 41 for 1, 2 and 3 dimensions, and more where they are needed.

    Examples
    --------
    >>> import pairseek as ps
    >>> items = ps.Items([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> search = ps.Search(items, response=ps.Logistic(), posterior=ps.Grid(points=51), rng=7)
    >>> search.observe(0, 1, winner=1)
    >>> search.estimate().point.shape
    (2,)
    """

    points: Annotated[int | None, Limit(2, _MOST_POINTS)] = None
    name: ClassVar[str] = "grid"
    takes_lapses: ClassVar[bool] = True
    most_dimensions: ClassVar[int] = MOST_DIMENSIONS

    def __post_init__(self) -> None:
        if self.points is not None and self.points < 2:
            raise InvalidParameter(f"Grid(points={self.points}): give at least 2 along each dimension", field="points")

    def infer(self, evidence: Evidence, prior: AnyPrior, response: Response) -> Belief:
        """Return the belief after these answers."""
        began = time.perf_counter()
        d = evidence.slopes.shape[1]
        points = self.points or DEFAULT_POINTS[d]
        bounds = _bounds(prior, d)
        while True:
            bounds, logs = _refined(bounds, points, evidence, prior, response)
            resolved = _is_resolved(_weights(logs), bounds, points)
            if resolved or self.points is not None or (2 * points) ** d > _MOST_CELLS:
                break
            points *= 2
        if not resolved:
            warnings.warn(
                f"the posterior is narrower than the cells of a Grid of {points} along each of {d} dimensions, so its "
                f"moments are not exact: use EP() or Particles()",
                AccuracyWarning,
                stacklevel=2,
            )
        weights, cells = _weights(logs), _cells(bounds, points)
        log_cell = float(np.sum(np.log((bounds[1] - bounds[0]) / points)))
        log_evidence = float(logsumexp(logs)) + log_cell
        if not is_density(prior):
            # The density of the others is taken without its constants.
            log_evidence -= log_prior_mass(cast("Prior", prior), d) + 0.5 * d * math.log(2.0 * math.pi)
        seconds = time.perf_counter() - began
        info = BeliefInfo("grid", resolved=resolved, log_evidence=log_evidence, seconds=seconds)
        return sampled_belief(cells, weights, sample_moments(cells, weights), info)


def _bounds(prior: AnyPrior, d: int) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the prior's box, or of six deviations where it has none."""
    low, high = box_of(prior, d)
    mean, covariance = moments_of(prior, d)
    reach = _REACH * np.sqrt(np.diag(covariance))
    return np.where(np.isfinite(low), low, mean - reach), np.where(np.isfinite(high), high, mean + reach)


def _cells(bounds: tuple[FloatArray, FloatArray], points: int) -> FloatArray:
    axes = [a + (b - a) * (np.arange(points) + 0.5) / points for a, b in zip(*bounds, strict=True)]
    return np.ascontiguousarray(np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1))


def _weights(logs: FloatArray) -> FloatArray:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _refined(
    bounds: tuple[FloatArray, FloatArray], points: int, evidence: Evidence, prior: AnyPrior, response: Response
) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
    """Return the part of the bounds that has mass, and the log densities of its cells."""
    d = len(bounds[0])
    # Where the prior is unbounded the grid may grow beyond its first reach: answers can move the mass outside.
    widest = box_of(prior, d)
    for _ in range(_ROUNDS):
        cells = _cells(bounds, points)
        logs = response.log_likelihood(evidence, cells) + log_density_of(prior, cells)
        new = _around_mass(_weights(logs).reshape((points,) * d), bounds, widest)
        old_width, new_width = bounds[1] - bounds[0], new[1] - new[0]
        outgrown = np.any(new[0] < bounds[0]) or np.any(new[1] > bounds[1])
        if not outgrown and np.all(new_width > 0.7 * old_width):
            break
        bounds = new
    return bounds, logs


def _around_mass(
    weights: FloatArray, bounds: tuple[FloatArray, FloatArray], widest: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return bounds shrunk to the mass with a margin, or enlarged where mass lies at an edge inside the prior's."""
    d, points = weights.ndim, len(weights)
    low, high = bounds[0].copy(), bounds[1].copy()
    for axis in range(d):
        mass = weights.sum(axis=tuple(other for other in range(d) if other != axis))
        step = (bounds[1][axis] - bounds[0][axis]) / points
        inside = np.flatnonzero((np.cumsum(mass) > _CUT) & (np.cumsum(mass[::-1])[::-1] > _CUT))
        first, last = int(inside[0]) - _MARGIN, int(inside[-1]) + 1 + _MARGIN
        if bounds[0][axis] > widest[0][axis] and mass[0] > _TOO_NEAR:
            first = -points // 2
        if bounds[1][axis] < widest[1][axis] and mass[-1] > _TOO_NEAR:
            last = points + points // 2
        low[axis] = max(bounds[0][axis] + first * step, widest[0][axis])
        high[axis] = min(bounds[0][axis] + last * step, widest[1][axis])
        if mass[0] <= _TOO_NEAR:
            low[axis] = max(low[axis], bounds[0][axis])
        if mass[-1] <= _TOO_NEAR:
            high[axis] = min(high[axis], bounds[1][axis])
    return low, high


def _is_resolved(weights: FloatArray, bounds: tuple[FloatArray, FloatArray], points: int) -> bool:
    """Return whether every second cell gives the same variances as all of them."""
    d = len(bounds[0])
    cells, table = _cells(bounds, points).reshape((points,) * d + (d,)), weights.reshape((points,) * d)
    _, all_cells = sample_moments(cells.reshape(-1, d), weights)
    halves = []
    for offset in (0, 1):
        some = (slice(offset, None, 2),) * d
        part = np.ascontiguousarray(table[some]).ravel()
        if not part.sum() > 0.0:
            return False
        halves.append(sample_moments(np.ascontiguousarray(cells[some]).reshape(-1, d), part / part.sum())[1])
    # The mean of both halves: one omits the first cells of the box and the other the last.
    every_second = np.diag(halves[0] + halves[1]) / 2.0
    return bool(np.all(np.abs(every_second - np.diag(all_cells)) <= _RESOLVED * np.diag(all_cells)))
