"""The bisecting plane of two items."""

from __future__ import annotations

import numpy as np

from pairseek.core.types import FloatArray


def bisector(first: FloatArray, second: FloatArray) -> tuple[FloatArray, float] | None:
    """Return the unit normal and offset of the bisector of two points; None if they coincide.

    Points w with normal·w > offset are nearer to the first.
    """
    difference = first - second
    length = float(np.sqrt(difference @ difference))
    if length == 0.0:
        return None
    normal = difference / length
    return normal, float(normal @ (first + second)) / 2
