"""Pairs of points replaced by the items nearest to them."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy

from pairseek.core.types import FloatArray, IntArray
from pairseek.model.items import Items


class Places(NamedTuple):
    """The places where items are: items that share a place are represented by the first of them.

    Attributes
    ----------
    tree
        The u distinct places, for nearest neighbours.
    rows
        (u,) row of the first item at each.
    """

    tree: scipy.spatial.cKDTree
    rows: IntArray


_PLACES: WeakKeyDictionary[Items, Places] = WeakKeyDictionary()


def places(items: Items) -> Places:
    """The items' places, computed once for as long as the items live."""
    found = _PLACES.get(items)
    if found is None:
        _, rows = np.unique(items.coordinates, axis=0, return_index=True)
        rows = np.sort(rows).astype(np.int64)
        found = _PLACES[items] = Places(scipy.spatial.cKDTree(items.coordinates[rows]), rows)
    return found


def nearest_pairs(items: Items, first: FloatArray, second: FloatArray) -> list[tuple[int, int]]:
    """Rows of the item nearest to each first point, and of the nearest one elsewhere to each second.

    Parameters
    ----------
    first, second
        (m, d) points.
    """
    tree, rows = places(items)
    _, one = tree.query(first)
    _, two = tree.query(second, k=2)
    other = np.where(two[:, 0] == one, two[:, 1], two[:, 0])
    return list(zip(rows[one].tolist(), rows[other].tolist(), strict=True))
