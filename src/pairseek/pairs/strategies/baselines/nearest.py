"""Nearest items to pairs of points."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy

from pairseek.core.types import FloatArray, IntArray
from pairseek.model.items import Items


class DistinctPoints(NamedTuple):
    """Distinct points of a catalogue; coincident items are represented by the first of them.

    Attributes
    ----------
    tree
        k-d tree of the u distinct points.
    rows
        (u,) row of the first item at each point.
    """

    tree: scipy.spatial.cKDTree
    rows: IntArray


_CACHE: WeakKeyDictionary[Items, DistinctPoints] = WeakKeyDictionary()


def distinct_points(items: Items) -> DistinctPoints:
    """Return the distinct points of the items, cached for the lifetime of the items."""
    points = _CACHE.get(items)
    if points is None:
        _, rows = np.unique(items.coordinates, axis=0, return_index=True)
        rows = np.sort(rows).astype(np.int64)
        points = _CACHE[items] = DistinctPoints(scipy.spatial.cKDTree(items.coordinates[rows]), rows)
    return points


def nearest_pairs(items: Items, first: FloatArray, second: FloatArray) -> list[tuple[int, int]]:
    """Return the rows of the item nearest to each first point, and of the nearest other item to each second point.

    Parameters
    ----------
    items
        The items.
    first, second
        (m, d) points.
    """
    tree, rows = distinct_points(items)
    _, nearest = tree.query(first)
    _, two_nearest = tree.query(second, k=2)
    other = np.where(two_nearest[:, 0] == nearest, two_nearest[:, 1], two_nearest[:, 0])
    return list(zip(rows[nearest].tolist(), rows[other].tolist(), strict=True))
