"""Sums over samples that are bit-identical for any number of threads.

Linear algebra libraries add in an order that depends on their threads. Here each chunk of samples has partial sums,
which are added in the order of the chunks.
"""

from __future__ import annotations

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.jit import kernel, read_only
from pairseek.numerics.parallel import for_ranges

SAMPLE_CHUNK = 500
"""Number of samples that one thread processes at a time."""


@kernel
def _sums(start: int, stop: int, points: FloatArray, weights: FloatArray, centre: FloatArray, out: FloatArray) -> None:
    """Write partial Σ w (x - c) and Σ w (x - c)(x - c)' into row start // SAMPLE_CHUNK of ``out``."""
    d = points.shape[1]
    total = out[start // SAMPLE_CHUNK]
    total[:] = 0.0
    centred = np.empty(d)
    for row in range(start, stop):
        for i in range(d):
            centred[i] = points[row, i] - centre[i]
        for i in range(d):
            weighted = weights[row] * centred[i]
            total[i] += weighted
            for h in range(d):
                total[d + i * d + h] += weighted * centred[h]


def sample_moments(samples: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the (d,) mean and (d, d) covariance of weighted samples."""
    n, d = samples.shape
    out = np.empty((-(-n // SAMPLE_CHUNK), d + d * d))
    # Taking the first sample as the origin avoids cancellation for samples far from zero.
    origin = samples[0].copy()
    for_ranges(_sums, n, SAMPLE_CHUNK, read_only(samples), read_only(weights), origin, out)
    total = out.sum(axis=0)
    shift = total[:d]
    covariance = total[d:].reshape(d, d) - np.multiply.outer(shift, shift)
    return origin + shift, 0.5 * (covariance + covariance.T)
