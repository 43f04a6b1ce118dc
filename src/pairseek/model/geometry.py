"""Hyperplanes of pairs: equation 1 of the paper.

A user at w prefers p to q when |w - p|² < |w - q|², that is when a·w > b with a = 2(p - q) and
b = |p|² - |q|².
"""

from __future__ import annotations

import numpy as np

from pairseek.core.types import FloatArray


def hyperplanes(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the normals and thresholds of the planes between pairs of points.

    Parameters
    ----------
    first, second
        (m, d) points p and q.

    Returns
    -------
    normals, thresholds
        (m, d) a = 2(p - q) and (m,) b = (p - q)·(p + q), which is |p|² - |q|² without its cancellation.
    """
    difference = first - second
    return 2.0 * difference, np.einsum("md,md->m", difference, first + second)
