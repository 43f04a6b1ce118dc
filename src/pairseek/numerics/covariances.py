"""Roots and principal axes of covariances.

A root is L with LL' = covariance. `principal_root` is accurate in proportion to the largest variance, and exact where a
variance is 0: it serves sums such as |L'a|². `square_root` is invertible, and accurate in proportion to the variance of
each coordinate: it serves proposals, densities and steps of samplers, whose coordinates may have any unit.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pairseek.core.types import FloatArray

# Dimensions beyond which an eigendecomposition takes longer than all else.
_MANY = 64
_last: tuple[weakref.ref[FloatArray], FloatArray] | None = None
# Rows that are converted to double precision at a time.
CHUNK = 8192


def principal_root(covariance: FloatArray) -> FloatArray:
    """Return the (d, d) root whose columns are the scaled eigenvectors; the covariance may be singular.

    In more than 64 dimensions it is Cholesky's root, which is much faster, where there is one. The root of the last
    read-only covariance is kept, because one question needs it several times.
    """
    global _last
    kept = _last
    if kept is not None and kept[0]() is covariance:
        return kept[1]
    root = _cholesky(covariance) if len(covariance) > _MANY else None
    if root is None:
        values, vectors = np.linalg.eigh(covariance)
        root = np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))
    root.flags.writeable = False
    if not covariance.flags.writeable:
        _last = weakref.ref(covariance), root
    return root


def _cholesky(covariance: FloatArray) -> FloatArray | None:
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        return None


def square_root(covariance: FloatArray) -> FloatArray:
    """Return an invertible root of each (..., d, d), by the eigenvectors of the correlations."""
    deviations = np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 1e-300))[..., None]
    values, vectors = np.linalg.eigh(covariance / (deviations * np.swapaxes(deviations, -1, -2)))
    # The floor keeps a positive step in every direction.
    return np.asarray(deviations * vectors * np.sqrt(np.maximum(values, 1e-20))[..., None, :])


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
