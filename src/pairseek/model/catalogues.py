"""Parts of a catalogue: the items that may be asked about, and those that may be recommended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from pairseek.core.text import quoted
from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.errors import CatalogueMismatch, InvalidFile, InvalidParameter
from pairseek.model.items import Items
from pairseek.model.spaces import Space

Selected: TypeAlias = Iterable[object] | int | None
"""Items by their ids, by a mask of one bool for each, or as a number of them; None for all."""


def rows_of(items: Items, selected: object, what: str) -> IntArray:
    """Return the ascending rows of items that are given by ids or by a mask of n bools."""
    if isinstance(selected, str | bytes) or not isinstance(selected, Iterable):
        raise InvalidParameter(f"{what} is {selected!r}: give ids, or a mask of {items.n} bools", field=what)
    if isinstance(selected, Items):
        selected = selected.ids
    values = selected if isinstance(selected, np.ndarray) else list(selected)
    array = np.asarray(values) if len(values) and all(isinstance(v, bool | np.bool_) for v in values[:1]) else None
    if array is not None and array.dtype == np.bool_:
        if array.shape != (items.n,):
            raise InvalidParameter(
                f"{what} is a mask of shape {array.shape}: give {items.n} bools, one for each item", field=what
            )
        return np.flatnonzero(array)
    return np.unique(np.array([items.index(value) for value in values], dtype=np.int64))


def askable_rows(items: Items | Space, askable: object) -> IntArray | None:
    """Return the ascending rows of the items to ask about; None for all of them."""
    if askable is None:
        return None
    items = items._catalogue(
        InvalidParameter("askable is given with a Space, which has no items: leave it out", field="askable")
    )
    if isinstance(askable, int | np.integer) and not isinstance(askable, bool):
        if askable < 2:
            raise InvalidParameter(f"askable is {askable}: a pair needs at least 2 items", field="askable")
        return None if askable >= items.n else _spread_rows(items, int(askable))
    rows = rows_of(items, askable, "askable")
    if len(rows) < 2:
        what = "is empty" if not len(rows) else f"holds {items.ids[int(rows[0])]!r} alone"
        raise InvalidParameter(f"askable {what}: a pair needs at least 2 items", field="askable")
    return None if len(rows) == items.n else rows


# Items of a cell by which its widest coordinate is found.
_SAMPLE = 4096


@lru_cache(maxsize=16)
def part_of(items: Items, rows: bytes) -> Items:
    """Return the items in these rows (int64 bytes); the same object for all searches, so that they share its tree."""
    return items.subset(np.frombuffer(rows, dtype=np.int64))


@lru_cache(maxsize=16)
def _spread_rows(items: Items, count: int) -> IntArray:
    """Return the rows of `count` items that cover the catalogue.

    The items are divided into `count` cells of equal numbers, by halving along the widest coordinate, and of each cell
    the item of highest appeal is taken; of equal appeal, the one nearest to the mean of the cell.
    """
    points = np.asarray(items.coordinates)
    chosen: list[int] = []
    cells = [(np.arange(items.n), count)]
    while cells:
        rows, wanted = cells.pop()
        if wanted == 1:
            chosen.append(_representative(items, rows, points[rows]))
            continue
        half = len(rows) * (wanted // 2) // wanted
        if points.shape[1]:
            some = points[rows[:: -(-len(rows) // _SAMPLE)]]
            axis = int(np.argmax(np.var(some, axis=0)))
            rows = rows[np.argpartition(points[rows, axis], half)]
        cells += [(rows[:half], wanted // 2), (rows[half:], wanted - wanted // 2)]
    return np.array(sorted(chosen), dtype=np.int64)


def _representative(items: Items, rows: IntArray, points: FloatArray) -> int:
    distance = np.sum((points - points.mean(axis=0)) ** 2, axis=1)
    return int(rows[np.lexsort((rows, distance, -items.appeal[rows]))[0]])


def permitted_rows(items: Items, only: object, exclude: object) -> IntArray | None:
    """Return the ascending rows of the items that may be recommended; None for all."""
    if only is None and exclude is None:
        return None
    allowed = np.zeros(items.n, dtype=np.bool_)
    allowed[slice(None) if only is None else rows_of(items, only, "only")] = True
    if exclude is not None:
        allowed[rows_of(items, exclude, "exclude")] = False
    rows = np.flatnonzero(allowed)
    if not len(rows):
        which = " and ".join(name for name, value in (("only", only), ("exclude", exclude)) if value is not None)
        leaves = "leave" if " and " in which else "leaves"
        raise InvalidParameter(
            f"{which} {leaves} none of {items.n} items to recommend: allow at least one", field="only"
        )
    return None if len(rows) == items.n else rows


@dataclass(frozen=True, eq=False)
class RemovedItem:
    """An item that answers were about and that the catalogue has no more: its place when it was asked about.

    Attributes
    ----------
    id
        The item.
    coordinates, appeal
        (d,) coordinates and appeal in the catalogue in which it was asked about.
    catalogue, n, row
        Hash and number of items of that catalogue, and the row of the item in it.
    """

    id: ItemId
    coordinates: FloatArray
    appeal: float
    catalogue: str
    n: int
    row: int

    def record(self) -> list[Any]:
        """Return the item as plain data."""
        return [self.id, self.coordinates.tolist(), self.appeal, self.catalogue, self.n, self.row]

    @classmethod
    def of_record(cls, record: Sequence[Any]) -> RemovedItem:
        """Return the item that `record` wrote."""
        name, coordinates, appeal, catalogue, n, row = record
        if isinstance(name, bool) or not isinstance(name, int | str):
            raise InvalidFile(f"a removed item has the id {name!r}, expected a whole number or a text")
        return cls(name, np.array(coordinates, dtype=np.float64), float(appeal), str(catalogue), int(n), int(row))


def removed_items(names: Iterable[ItemId], before: Items, now: Items) -> list[RemovedItem]:
    """Return those of these items of an earlier catalogue that are gone now.

    Both catalogues must have the same coordinates: items that both have must be at the same place in most cases.
    """
    gone = [name for name in dict.fromkeys(names) if now.find(name) < 0]
    if not gone:
        return []
    strangers = not any(now.find(name) >= 0 for name in before.ids)
    unknown = strangers and (before.vector_map is None or now.vector_map is not before.vector_map)
    if before.d != now.d or unknown or not same_space(before, now):
        raise CatalogueMismatch(
            f"answers are about {quoted(gone)}, which the catalogue has no more, and the two catalogues have different "
            f"coordinates: place both by the same map, or keep these items and leave them out of askable"
        )
    rows = [before.index(name) for name in gone]
    places = [(before.coordinates[row], float(before.appeal[row]), before.hash, before.n, row) for row in rows]
    return [RemovedItem(name, *place) for name, place in zip(gone, places, strict=True)]


def same_space(before: Items, now: Items) -> bool:
    """Return whether most items that both catalogues have are at the same place; True if they have none in common."""
    common = [name for name in before.ids if now.find(name) >= 0]
    some = common[:: max(1, len(common) // 200)]
    if not some:
        return True
    first, second = ([items.index(name) for name in some] for items in (before, now))
    away = np.linalg.norm(before.coordinates[first] - now.coordinates[second], axis=1)
    return bool(np.median(away) <= 1e-6 * max(before.spread, 1e-300))
