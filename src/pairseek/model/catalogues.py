"""Subsets of a catalogue that may be asked about or recommended, and items removed from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pairseek.core.text import quoted
from pairseek.core.types import BoolArray, FloatArray, IntArray, ItemId
from pairseek.core.validation import is_number, without_numpy
from pairseek.errors import CatalogueMismatch, InvalidFile, InvalidParameter
from pairseek.model.items import Items
from pairseek.model.spaces import Space

Selected: TypeAlias = Iterable[object] | int | None
"""Selected items: their ids, a mask with one bool per item, or how many; None for all."""


Missing: TypeAlias = Literal["error", "ignore"]
"""What to do about ids that are not in the catalogue."""


def rows_of(items: Items, selected: object, argument: str, missing: Missing = "error") -> IntArray:
    """Return the rows, in ascending order, of items selected by ids or by a mask of n bools."""
    if missing not in get_args(Missing):
        raise InvalidParameter(f"missing is {missing!r}: give 'error' or 'ignore'", field="missing")
    if isinstance(selected, str | bytes) or not isinstance(selected, Iterable):
        raise InvalidParameter(f"{argument} is {selected!r}: give ids, or a mask of {items.n} bools", field=argument)
    if isinstance(selected, Items):
        selected = selected.ids
    values = selected if isinstance(selected, np.ndarray) else list(selected)
    array = np.asarray(values) if len(values) and all(isinstance(v, bool | np.bool_) for v in values[:1]) else None
    if array is not None and array.dtype == np.bool_:
        if array.shape != (items.n,):
            raise InvalidParameter(
                f"{argument} is a mask of shape {array.shape}: give {items.n} bools, one per item", field=argument
            )
        return np.flatnonzero(array)
    if missing == "ignore":
        values = _ids_in_catalogue(items, values)
    return np.unique(np.array([items.index(value) for value in values], dtype=np.int64))


def _ids_in_catalogue(items: Items, values: Iterable[Any]) -> list[Any]:
    """Return the ids that are in a catalogue; reject ids that all have another type, such as 7 instead of "7"."""
    ids = [without_numpy(value) for value in values]
    known = set(items.ids)
    present = [value for value in ids if value in known]
    if ids and not present and items._id_of_other_type(ids[0]) is not None:
        items.index(ids[0])
    return present


def matching_mask(where: Mapping[str, object], columns: Mapping[str, Any], n: int) -> BoolArray:
    """Return an (n,) mask of the items whose columns have the required values.

    ``where`` maps columns to the value that an item must have, to a list of accepted values, or to a range of numbers
    such as ``{"min": 5, "max": 20}``, of which either end may be missing.
    """
    if not isinstance(where, Mapping):
        raise InvalidParameter(
            f"where is a {type(where).__name__}: give a mapping from columns to values, such as {{'in_stock': True}}",
            field="where",
        )
    mask = np.ones(n, dtype=np.bool_)
    for name, value in where.items():
        if name not in columns:
            raise InvalidParameter(
                f"the items have no column {name!r}: use one of {', '.join(sorted(columns)) or 'none'}", field="where"
            )
        cells = np.asarray(columns[name])
        if isinstance(value, Mapping):
            low, high = range_of(name, value)
            numbers = _numbers(name, cells)
            mask &= (numbers >= low) & (numbers <= high)
        else:
            accepted: Any = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
            mask &= np.isin(cells, accepted)
    return mask


def range_of(column: str, value: Mapping[str, Any]) -> tuple[float, float]:
    """Return both ends of a required range of numbers."""
    is_range = bool(value) and set(value) <= {"min", "max"}
    if not is_range or not all(is_number(end) and np.isfinite(end) for end in value.values()):
        raise InvalidParameter(
            f"where requires {column!r} to be {value!r}: give a value, a list of values, or a range such as "
            f"{{'min': 5, 'max': 20}}",
            field="where",
        )
    return float(value.get("min", -np.inf)), float(value.get("max", np.inf))


def _numbers(column: str, cells: Any) -> FloatArray:
    """Return the cells of a column as numbers; missing ones are NaN and match no range."""
    try:
        return np.array([np.nan if cell is None or cell == "" else cell for cell in cells.tolist()], dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"where gives a range for the column {column!r}, which contains other things than numbers: give values",
            field="where",
        ) from None


def askable_rows(items: Items | Space, askable: object) -> IntArray | None:
    """Return the rows, in ascending order, of the items to ask about; None for all."""
    if askable is None:
        return None
    items = items._require_catalogue(
        InvalidParameter("askable is given with a Space, which has no items: omit it", field="askable")
    )
    if isinstance(askable, int | np.integer) and not isinstance(askable, bool):
        if askable < 2:
            raise InvalidParameter(f"askable is {askable}: a pair needs at least 2 items", field="askable")
        return None if askable >= items.n else _spread_rows(items, int(askable))
    rows = rows_of(items, askable, "askable")
    if len(rows) < 2:
        problem = "is empty" if not len(rows) else f"contains only {items.ids[int(rows[0])]!r}"
        raise InvalidParameter(f"askable {problem}: a pair needs at least 2 items", field="askable")
    return None if len(rows) == items.n else rows


# Largest number of items of a cell from which its widest coordinate is estimated.
_MAX_VARIANCE_SAMPLE = 4096


@lru_cache(maxsize=16)
def subset_of(items: Items, rows: bytes) -> Items:
    """Return the items in these rows, given as int64 bytes; cached, so that all searches share them and their tree."""
    return items.subset(np.frombuffer(rows, dtype=np.int64))


@lru_cache(maxsize=16)
def _spread_rows(items: Items, count: int) -> IntArray:
    """Return the rows of `count` items that cover the catalogue.

    Repeated halving along the widest coordinate divides the items into `count` cells of equal size. Each cell
    contributes its most appealing item or, among several, the one at the median distance from the mean of the cell.
    """
    points = np.asarray(items.coordinates)
    chosen: list[int] = []
    cells = [(np.arange(items.n), count)]
    while cells:
        rows, cell_count = cells.pop()
        if cell_count == 1:
            chosen.append(_representative(items, rows, points[rows]))
            continue
        half = len(rows) * (cell_count // 2) // cell_count
        if points.shape[1]:
            subsample = points[rows[:: -(-len(rows) // _MAX_VARIANCE_SAMPLE)]]
            axis = int(np.argmax(np.var(subsample, axis=0)))
            rows = rows[np.argpartition(points[rows, axis], half)]
        cells += [(rows[:half], cell_count // 2), (rows[half:], cell_count - cell_count // 2)]
    return np.array(sorted(chosen), dtype=np.int64)


def _representative(items: Items, rows: IntArray, points: FloatArray) -> int:
    distance = np.sum((points - points.mean(axis=0)) ** 2, axis=1)
    order = np.lexsort((rows, distance, -items.appeal[rows]))
    most_appealing = int(np.sum(items.appeal[rows] == items.appeal[rows].max()))
    # In many dimensions a cell is nearly as wide as the catalogue, and the items nearest to its mean are those that
    # differ least from each other, whose comparisons tell little.
    return int(rows[order[most_appealing // 2]])


def permitted_rows(
    items: Items,
    only: object,
    exclude: object,
    where: Mapping[str, object] | None = None,
    missing: Missing = "error",
) -> IntArray | None:
    """Return the rows, in ascending order, of the items that may be recommended; None for all."""
    filters = {"only": only, "exclude": exclude, "where": where}
    active_filters = [name for name, value in filters.items() if value is not None]
    if not active_filters:
        return None
    allowed = np.zeros(items.n, dtype=np.bool_)
    allowed[slice(None) if only is None else rows_of(items, only, "only", missing)] = True
    if exclude is not None:
        allowed[rows_of(items, exclude, "exclude", missing)] = False
    if where is not None:
        allowed &= matching_mask(where, items.data, items.n)
    rows = np.flatnonzero(allowed)
    if not len(rows):
        verb = "leave" if len(active_filters) > 1 else "leaves"
        raise InvalidParameter(
            f"{' and '.join(active_filters)} {verb} none of {items.n} items to recommend: allow at least one",
            field=active_filters[0],
        )
    return None if len(rows) == items.n else rows


@dataclass(frozen=True, eq=False)
class RemovedItem:
    """Item that was asked about and has since been removed from the catalogue.

    Attributes
    ----------
    id
        Id of the item.
    coordinates, appeal
        (d,) coordinates and appeal in the catalogue from which it was asked about.
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
        """Return the item written by `record`."""
        name, coordinates, appeal, catalogue, n, row = record
        if isinstance(name, bool) or not isinstance(name, int | str):
            raise InvalidFile(f"a removed item has the id {name!r}, not an int or a str: the file was damaged")
        return cls(name, np.array(coordinates, dtype=np.float64), float(appeal), str(catalogue), int(n), int(row))


def removed_items(names: Iterable[ItemId], before: Items, now: Items) -> list[RemovedItem]:
    """Return the named items that have been removed since an earlier catalogue.

    Both catalogues must use the same coordinates: most items that they share must not have moved.
    """
    removed = [name for name in dict.fromkeys(names) if now.find(name) < 0]
    if not removed:
        return []
    are_disjoint = not any(now.find(name) >= 0 for name in before.ids)
    lack_common_map = before.vector_map is None or now.vector_map is not before.vector_map
    if before.d != now.d or (are_disjoint and lack_common_map) or not same_space(before, now):
        raise CatalogueMismatch(
            f"answers are about {quoted(removed)}, which were removed from the catalogue, and the two catalogues have "
            f"different coordinates: place both by the same map, or keep these items and omit them from askable"
        )
    rows = [before.index(name) for name in removed]
    facts = [(before.coordinates[row], float(before.appeal[row]), before.hash, before.n, row) for row in rows]
    return [RemovedItem(name, *item_facts) for name, item_facts in zip(removed, facts, strict=True)]


def same_space(before: Items, now: Items) -> bool:
    """Return whether most items shared by both catalogues have the same coordinates; True if none are shared."""
    common = [name for name in before.ids if now.find(name) >= 0]
    subsample = common[:: max(1, len(common) // 200)]
    if not subsample:
        return True
    first, second = ([items.index(name) for name in subsample] for items in (before, now))
    shifts = np.linalg.norm(before.coordinates[first] - now.coordinates[second], axis=1)
    return bool(np.median(shifts) <= 1e-6 * max(before.spread, 1e-300))
