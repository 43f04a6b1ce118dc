"""Loss over triplets and its gradient, bit-identical for any number of threads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pairseek.core.types import FloatArray
from pairseek.embed.losses import LANES, squared_distances, triplet_loss
from pairseek.numerics.jit import read_only
from pairseek.numerics.parallel import for_ranges

# Each piece of the triplets has its own gradient array: more pieces use more cores and more memory.
_MAX_PIECES = 8
_MAX_NUMBERS = 1 << 25
"""Maximum number of floats in a gradient array of all pieces."""
_CHUNK_SIZE = 1 << 15


def padded(points: FloatArray) -> FloatArray:
    """Return the points, zero-padded to a multiple of four columns."""
    n, d = points.shape
    out = np.zeros((n, -(-d // LANES) * LANES))
    out[:, :d] = points
    return out


class Objective:
    """Sum of a loss over triplets, as a function of padded coordinates.

    Parameters
    ----------
    rows
        (m, 3) rows of anchor, near and far.
    n
        Number of items.
    kind, parameter
        Code of the loss in `losses`, and its parameter μ or α.
    """

    def __init__(self, rows: npt.NDArray[np.integer], n: int, kind: int, parameter: float) -> None:
        # Sort by anchor, so that consecutive triplets share a row of the gradient.
        self._rows = np.ascontiguousarray(rows[np.argsort(rows[:, 0], kind="stable")], dtype=np.int32)
        self._n, self._kind, self._parameter = n, kind, parameter
        self._gradients = np.empty((0, 0, 0))
        self.evaluations = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __call__(self, points: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss and its gradient, which has the shape of ``points``."""
        m, columns = len(self._rows), points.shape[1]
        pieces = max(1, min(_MAX_PIECES, _MAX_NUMBERS // (self._n * columns)))
        piece = -(-m // pieces)
        pieces = -(-m // piece)
        if self._gradients.shape != (pieces, *points.shape):
            self._gradients = np.empty((pieces, *points.shape))
        losses = np.empty(pieces)
        for_ranges(
            triplet_loss, m, piece, self._rows, points, self._kind, self._parameter, piece, self._gradients, losses
        )
        self.evaluations += 1
        return float(losses.sum()), self._gradients.sum(axis=0)


def distances(rows: npt.NDArray[np.integer], points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the (m,) squared distances |anchor - near|² and |anchor - far|²."""
    near, far = np.empty(len(rows)), np.empty(len(rows))
    table, coordinates = read_only(np.ascontiguousarray(rows)), read_only(np.ascontiguousarray(points))
    for_ranges(squared_distances, len(rows), _CHUNK_SIZE, table, coordinates, near, far)
    return near, far
