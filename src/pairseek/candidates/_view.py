"""The cells of a catalogue as a belief sees them: what depends on μ, Σ and the items that rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from pairseek._kernels import kernel
from pairseek._parallel import for_ranges
from pairseek._tables import tables
from pairseek._types import FloatArray
from pairseek.candidates._tiles import LANES
from pairseek.candidates._tree import Tree, leaf_boxes, merge_boxes, tree_of
from pairseek.candidates.scene import Scene
from pairseek.candidates.surface import SHAPES, Surface
from pairseek.errors import InvalidParameter
from pairseek.responses import NOISES

Model: TypeAlias = tuple[int, int, float, float, FloatArray]
"""Shape, noise, k, penalty and table: plain values for kernels."""
Cells: TypeAlias = tuple[FloatArray, ...]
Points: TypeAlias = tuple[FloatArray, ...]

_CHUNK = 4096
_LEAF_CHUNK = 64


@dataclass(frozen=True, eq=False)
class View:
    """All that the kernels read.

    Attributes
    ----------
    tree
        The catalogue's tree; positions are those of its order.
    model
        What is to be maximised.
    cells
        Arrays with a row for each cell: middle and half widths of its box along the eigenvectors of Σ, middle and
        half widths along the principal axes of the items, and lowest and highest |x - μ|² and appeal; then the
        eigenvalues of Σ, largest first.
    points
        (d + 2, n) coordinates from μ along the eigenvectors of Σ, |x - μ|² and appeal, NaN for items that rest;
        then points, mean and root of Σ, for exact evaluation, and the shortest distance at which the rotated
        coordinates are trusted.
    """

    tree: Tree
    model: Model
    cells: Cells
    points: Points

    @classmethod
    def of(cls, scene: Scene, surface: Surface) -> View:
        """Look at a catalogue. O(n d²)."""
        mean, covariance = scene.belief.mean, scene.belief.covariance
        if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(covariance))):
            raise InvalidParameter("mean or covariance of the belief is not finite: no pair can be compared by it")
        values, vectors = np.linalg.eigh(covariance)
        values, vectors = np.maximum(values[::-1], 0.0), np.ascontiguousarray(vectors[:, ::-1])
        tree = tree_of(scene.points)
        n, d = tree.points.shape
        columns = np.full((d + 3, n + LANES), np.nan)
        along = np.empty((n, d))
        appeal = np.ascontiguousarray(scene.appeal[tree.order])
        for_ranges(_seen, n, _CHUNK, tree.points, tree.middle, mean, vectors, values, appeal, columns, along)
        reach = tree.reach
        if not np.isfinite(16.0 * reach * reach * max(1.0, float(values[0]))):
            raise InvalidParameter(
                f"variances up to {values[0]:.3g} at distances up to {reach:.3g} exceed what a double can hold: "
                f"scale the items, or use a tighter prior"
            )
        if len(scene.resting.items):
            rests = np.zeros(n, dtype=np.bool_)
            rests[scene.resting.items] = True
            columns[:, np.flatnonzero(rests[tree.order])] = np.nan
        cells = (*_boxes(tree, columns, reach), values)
        root = np.ascontiguousarray(vectors * np.sqrt(values))
        points = (columns, along, tree.along, tree.order, tree.points, mean, root)
        return cls(tree, _model(scene, surface), cells, points)


def _boxes(tree: Tree, columns: FloatArray, reach: float) -> Cells:
    c = len(columns)
    low, high = np.empty((len(tree.centre), c)), np.empty((len(tree.centre), c))
    for_ranges(leaf_boxes, tree.leaves + 1, _LEAF_CHUNK, columns, len(tree.order), tree.depth, low, high)
    merge_boxes(tree.depth, low, high)
    d = c - 3
    # What rounding may have moved: a few units in the last place of the largest number.
    slack = 1e-14 * reach
    centre, half = (low[:, :d] + high[:, :d]) / 2, (high[:, :d] - low[:, :d]) / 2 + slack
    ranges = np.stack([low[:, d], high[:, d], low[:, d + 1], high[:, d + 1], high[:, d + 2]], axis=1)
    return centre, half, tree.centre, tree.half, ranges


def _model(scene: Scene, surface: Surface) -> Model:
    noise = NOISES.index(scene.response.noise)
    table = _table(scene.response.link, surface.table)
    return SHAPES.index(surface.shape), noise, scene.response.constant, surface.penalty, table


@lru_cache(maxsize=8)
def _table(link: int, name: str) -> FloatArray:
    values: FloatArray = getattr(tables(link), name)
    if name == "log_volume":
        values = -values
        values.flags.writeable = False
    return values


@kernel
def _seen(
    start: int,
    stop: int,
    points: Any,
    middle: Any,
    mean: Any,
    vectors: Any,
    values: Any,
    appeal: Any,
    columns: Any,
    along: Any,
) -> None:
    """Columns of `View.points` for the rows from start to stop."""
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
            columns[c, row] = along[row, c] = total
            shell += values[c] * total * total
        columns[d, row] = square
        columns[d + 1, row] = appeal[row]
        columns[d + 2, row] = np.sqrt(shell) * (1.0 + 1e-12)
