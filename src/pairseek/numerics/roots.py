"""Roots L of covariances, with LL' = covariance: one to project by, one to divide by.

`principal_root` is accurate in proportion to the largest variance, and exact where a variance is 0: it serves sums such
as |L'a|². `square_root` is accurate in proportion to the variance of each coordinate, and invertible: it serves
proposals, densities and steps of samplers, whose coordinates may have any unit.
"""

from __future__ import annotations

import weakref

import numpy as np

from pairseek.core.types import FloatArray

# Dimensions beyond which an eigendecomposition takes longer than all else.
_MANY = 64
_last: tuple[weakref.ref[FloatArray], FloatArray] | None = None


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
