"""Principal component analysis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pairseek.core.types import FloatArray

# Rows that are converted to double precision at a time.
CHUNK = 8192


def chunks(array: npt.NDArray[Any]) -> Iterator[FloatArray]:
    """Yield rows in double precision, some thousands at a time."""
    for start in range(0, len(array), CHUNK):
        yield np.asarray(array[start : start + CHUNK], dtype=np.float64)


def principal_axes(array: npt.NDArray[Any], centre: FloatArray, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the variances of (n, D) vectors along their principal axes, in decreasing order, and the (D, axes) axes.

    Columns are divided by their unit first. The largest entry of each axis is positive.
    """
    n, length = array.shape
    # Both matrices of inner products have the same non-zero spectrum; the smaller one is decomposed.
    if length <= n:
        products = np.zeros((length, length))
        for rows in chunks(array):
            centred = (rows - centre) / unit
            products += centred.T @ centred
        values, directions = np.linalg.eigh(products)
    else:
        centred = (np.asarray(array, dtype=np.float64) - centre) / unit
        values, places = np.linalg.eigh(centred @ centred.T)
        directions = centred.T @ places / np.sqrt(np.maximum(values, np.finfo(float).tiny))
    values, directions = np.maximum(values[::-1], 0.0) / (n - 1), directions[:, ::-1]
    signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])])
    return values, directions * np.where(signs == 0, 1.0, signs)
