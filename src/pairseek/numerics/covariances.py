"""Roots and principal axes of covariances.

A root is L with LL' = covariance. `principal_root` has an error relative to the largest variance, and is exact where a
variance is 0; use it for sums such as |L'a|². `square_root` is invertible, and has an error relative to each
coordinate's own variance; use it for proposals, densities and sampler steps, whose coordinates may have any units.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from pairseek.core.types import FloatArray

CHUNK_ROWS = 8192
"""Number of rows that `chunks` converts to double precision at a time."""
# Beyond this many dimensions an eigendecomposition would dominate the cost of a question.
_MAX_EIGEN_DIMENSIONS = 64
# The last read-only covariance, and its root.
_last_root: tuple[weakref.ref[FloatArray], FloatArray] | None = None


def principal_root(covariance: FloatArray) -> FloatArray:
    """Return the (d, d) root whose columns are the scaled eigenvectors; the covariance may be singular.

    Beyond 64 dimensions, use the much faster Cholesky root if the covariance is positive definite. The root of the
    last read-only covariance is cached, because a question needs it several times.
    """
    global _last_root
    last = _last_root
    if last is not None and last[0]() is covariance:
        return last[1]
    root = _cholesky(covariance) if len(covariance) > _MAX_EIGEN_DIMENSIONS else None
    if root is None:
        # From 26 dimensions, the divide and conquer of `np.linalg.eigh` waits for threads much longer than it computes.
        values, vectors = scipy.linalg.eigh(covariance, driver="evr", check_finite=False)
        root = np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))
    root.flags.writeable = False
    if not covariance.flags.writeable:
        _last_root = weakref.ref(covariance), root
    return root


def _cholesky(covariance: FloatArray) -> FloatArray | None:
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        return None


def square_root(covariance: FloatArray) -> FloatArray:
    """Return an invertible root of each (..., d, d) covariance, from the eigenvectors of its correlations."""
    deviations = np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 1e-300))[..., None]
    values, vectors = np.linalg.eigh(covariance / (deviations * np.swapaxes(deviations, -1, -2)))
    # The floor keeps the root invertible.
    return np.asarray(deviations * vectors * np.sqrt(np.maximum(values, 1e-20))[..., None, :])


def chunks(array: npt.NDArray[Any]) -> Iterator[FloatArray]:
    """Yield rows in double precision, `CHUNK_ROWS` at a time."""
    for start in range(0, len(array), CHUNK_ROWS):
        yield np.asarray(array[start : start + CHUNK_ROWS], dtype=np.float64)


def principal_axes(array: npt.NDArray[Any], centre: FloatArray, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the variances of (n, D) vectors along their principal axes, in decreasing order, and the (D, axes) axes.

    Columns are first divided by their unit. Each axis is oriented so that its largest entry is positive.
    """
    n, length = array.shape
    # X'X and XX' have the same non-zero spectrum: decompose the smaller one.
    if length <= n:
        products = np.zeros((length, length))
        for rows in chunks(array):
            centred = (rows - centre) / unit
            products += centred.T @ centred
        values, directions = np.linalg.eigh(products)
    else:
        centred = (np.asarray(array, dtype=np.float64) - centre) / unit
        values, vectors = np.linalg.eigh(centred @ centred.T)
        directions = centred.T @ vectors / np.sqrt(np.maximum(values, np.finfo(float).tiny))
    values, directions = np.maximum(values[::-1], 0.0) / (n - 1), directions[:, ::-1]
    signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])])
    return values, directions * np.where(signs == 0, 1.0, signs)
