"""Cells of a catalogue under a belief: kernel inputs that depend on μ, Σ, the noise and the resting items."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from pairseek.core.lazy import cached_property
from pairseek.core.types import FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.responses import Response
from pairseek.numerics.jit import kernel
from pairseek.numerics.mixtures import TableName, table
from pairseek.numerics.pair_kernels import CONSTANT, steepest_length
from pairseek.numerics.parallel import for_ranges
from pairseek.numerics.tables import monotone_utility
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.features import credits_of, logit_constant
from pairseek.pairs.sources.branch_and_bound.bounds import (
    HIGHEST_COST,
    LOWEST_COST,
    SHELL,
    CellArrays,
    PairExtremes,
    PointArrays,
    UtilityModel,
    steepness,
)
from pairseek.pairs.sources.branch_and_bound.tree import LANES, Tree, boxes, tree_of
from pairseek.pairs.strategies.shape import SHAPE_KINDS, UtilityShape

BeliefAxes: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
# Width of the core of a cell, relative to the cell.
_CORE_WIDTH = 0.5
_ITEMS_PER_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class CatalogueView:
    """Inputs of the branch-and-bound kernels, as tuples.

    With residual utilities, the view is limited to items not shown yet: their residual variance is identical for every
    pair, and included in the table.

    Attributes
    ----------
    tree
        Tree of the catalogue; positions refer to its order.
    model
        Shape, noise, k, penalty and table of the utility, and the lowest monotone table above it, which bounds it.
        Without ties the two tables are identical.
    cells
        (cells, d) centres and half widths of the boxes along the eigenvectors of Σ, then along the principal axes of
        the items, (cells, 3) ranges of cost and shell, and the (d,) eigenvalues, largest first.
    points
        (d + 2, n + LANES) coordinates along the eigenvectors, cost and shell, NaN for resting items; coordinates along
        the principal axes; rows by position; points, mean, a root of Σ, and the (n,) credits.
    scale
        Highest s and highest k_pq |a| of any pair, longest |a|, reach of the items, highest cost, and the
        eigenvalues.

    The credit of an item is appeal/k, the squared distance that its appeal compensates. Its cost is |x - μ|² - credit,
    raised by the highest credit so that it is not negative. The shell of an item is the norm sqrt(x'Σx) of its offset x
    from the middle of the items: by the triangle inequality, a pair's sqrt(a'Σa) is at most twice the sum of both
    shells.
    """

    tree: Tree
    model: UtilityModel
    cells: CellArrays
    points: PointArrays
    scale: PairExtremes

    @property
    def is_empty(self) -> bool:
        """Whether every item rests."""
        ranges = self.cells[4]
        return not ranges[0, LOWEST_COST] <= ranges[0, HIGHEST_COST]

    @cached_property
    def cores(self) -> CellArrays:
        """The cells with their boxes shrunk to the cores."""
        centre, half, still_centre, still_half, ranges, values = self.cells
        return centre, _CORE_WIDTH * half, still_centre, _CORE_WIDTH * still_half, ranges, values

    @classmethod
    def of(cls, context: SelectionContext, shape: UtilityShape) -> CatalogueView:
        """Project a catalogue onto the axes of the belief, in O(n d²)."""
        values, vectors = _axes(context.belief.mean, context.belief.covariance)
        tree = tree_of(context.points)
        n, d = tree.points.shape
        columns = np.full((d + 2, n + LANES), np.nan)
        credit = np.ascontiguousarray(credits_of(context.appeal, context.response)[tree.order])
        # A writable copy, because numba would recompile the kernels for a read-only array.
        mean = np.array(context.belief.mean)
        axes, handicaps = (tree.middle, mean, vectors, values), credit.max() - credit
        for_ranges(_project, n, _ITEMS_PER_CHUNK, tree.points, axes, handicaps, columns)
        farthest = float(np.max(columns[d, :n]))
        if not np.isfinite(farthest * farthest * max(1.0, float(values[0]))):
            raise InvalidParameter(
                f"variances up to {values[0]:.3g} at distances up to {farthest**0.5:.3g} (appeal/k is the square of a "
                f"distance) overflow double precision: rescale the items, or use a tighter prior or a larger k"
            )
        shown = np.empty(0, dtype=np.int64) if context.belief.residuals is None else context.belief.residuals.rows
        if len(context.resting.items) or len(shown):
            rests = np.zeros(n, dtype=np.bool_)
            rests[context.resting.items] = True
            # Each item that was shown has its own residual variance; all others share one.
            rests[shown] = True
            columns[:, np.flatnonzero(rests[tree.order])] = np.nan
        low, high = boxes(columns, n, tree.depth)
        # The box of a cell without permitted items is empty, and its centre is NaN.
        with np.errstate(invalid="ignore"):
            centre, half = (low[:, :d] + high[:, :d]) / 2, (high[:, :d] - low[:, :d]) / 2 + 1e-14 * tree.reach
        ranges = np.stack([low[:, d], high[:, d], high[:, d + 1]], axis=1)
        cells = (centre, half, tree.centre, tree.half, ranges, values)
        model = utility_model(context, shape, residual_variance(context.response))
        root = np.ascontiguousarray(vectors * np.sqrt(values))
        points = (columns, tree.columns, tree.order, tree.points, mean, root, credit)
        return cls(tree, model, cells, points, _scale(tree, ranges, values, model[2], model[1]))


def residual_variance(response: Response) -> float:
    """Return the variance that the residual utilities of two items not shown yet add to their logit."""
    return float(2.0 * (response.typical_reliability * response.residual_deviation) ** 2)


def utility_model(context: SelectionContext, shape: UtilityShape, variance: float) -> UtilityModel:
    """Return `CatalogueView.model` for logits with this variance in addition to that due to the point."""
    response, reliability = context.response, context.belief.reliability
    spread = 0.0 if reliability is None else reliability.spread
    values, bound = _tables(response.link, shape.table, spread, response.lapse_rate, response.tie_width, variance)
    kind = SHAPE_KINDS.index(shape.kind)
    return kind, response.noise_kind.code, logit_constant(response), shape.penalty, values, bound


def _axes(mean: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the (d,) non-negative eigenvalues in descending order, and the (d, d) eigenvectors as columns."""
    if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(covariance))):
        raise InvalidParameter(
            "the belief's mean or covariance is not finite, so pairs cannot be compared: rescale the items or use a "
            "tighter prior"
        )
    values, vectors = np.linalg.eigh(covariance)
    return np.maximum(values[::-1], 0.0), np.ascontiguousarray(vectors[:, ::-1])


def _scale(tree: Tree, ranges: FloatArray, values: FloatArray, k: float, noise: int) -> PairExtremes:
    """Return the extremes over all pairs that the prefilter needs, rounded outwards."""
    longest = 4.0 * float(np.linalg.norm(tree.half[0])) * (1.0 + 1e-9)
    steep = float(steepness(steepest_length(0.0, longest, noise), k, noise))
    top = steep * float(values[0]) ** 0.5
    if noise == CONSTANT:
        top = min(top, 4.0 * k * float(ranges[0, SHELL]))
    return top * (1.0 + 1e-9), steep, longest, tree.reach, float(ranges[0, HIGHEST_COST]), values


@lru_cache(maxsize=8)
def _tables(
    link: int, name: TableName, spread: float, lapse: float, width: float, variance: float
) -> tuple[FloatArray, FloatArray]:
    """Return a table by name (log_volume with its sign reversed) and a monotone table that bounds it."""
    values = table(link, name, spread, lapse, width, variance)
    if name == "log_volume":
        values = -values
        values.flags.writeable = False
    if width == 0.0 or name != "information":
        return values, values
    bound = np.ascontiguousarray(monotone_utility(values))
    bound.flags.writeable = False
    return values, bound


@kernel
def _project(
    start: int, stop: int, points: FloatArray, axes: BeliefAxes, handicaps: FloatArray, columns: FloatArray
) -> None:
    """Compute the columns of `CatalogueView.points` for the positions from start to stop.

    ``axes`` is (middle of the items, mean, eigenvectors and eigenvalues of the belief); a cost is |x - μ|² plus the
    handicap of the item.
    """
    middle, mean, vectors, values = axes
    d = points.shape[1]
    moved = np.empty(d)
    for row in range(start, stop):
        square = 0.0
        for h in range(d):
            moved[h] = points[row, h] - middle[h]
            square += (points[row, h] - mean[h]) ** 2
        shell = 0.0
        for c in range(d):
            total = 0.0
            for h in range(d):
                total += moved[h] * vectors[h, c]
            columns[c, row] = total
            shell += values[c] * total * total
        columns[d, row] = square + handicaps[row]
        columns[d + 1, row] = np.sqrt(shell) * (1.0 + 1e-12)
