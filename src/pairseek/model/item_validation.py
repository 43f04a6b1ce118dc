"""Validation of the arguments of `Items`: coordinates, ids, appeal and values per item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from pairseek.core.types import FloatArray, ItemId
from pairseek.core.validation import without_numpy
from pairseek.errors import InvalidItems


def validated(
    coordinates: npt.ArrayLike | None,
    ids: Sequence[object] | npt.NDArray[np.generic] | None,
    labels: Sequence[str] | None,
    appeal: npt.ArrayLike | None,
    data: Mapping[str, Sequence[object]] | None,
    least: int = 2,
) -> dict[str, object]:
    """Return the validated attributes of `Items`, with read-only arrays."""
    points = _no_coordinates(ids, least) if coordinates is None else _coordinates(coordinates)
    n = len(points)
    valid_ids = _ids(ids, n)
    valid_labels = tuple(map(str, valid_ids if labels is None else as_list(labels, "labels", n)))
    appeals, columns = _appeal(appeal, valid_ids), _data(data, n)
    points.flags.writeable = False
    appeals.flags.writeable = False
    return {"coordinates": points, "ids": valid_ids, "labels": valid_labels, "appeal": appeals, "data": columns}


def real_array(values: object) -> FloatArray:
    """Return a new array of real numbers; numpy would silently drop imaginary parts."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise TypeError("they are complex")
    return np.array(array, dtype=np.float64, order="C")


def as_list(values: object, what: str, n: int) -> list[object]:
    """Return values as a list after checking that there is one per item."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidItems(f"{what} is {values!r}: give a list of {n}, one per item")
    out = list(values)
    if len(out) != n:
        raise InvalidItems(f"{len(out)} {what} for {n} items: give one per item")
    return out


def _coordinates(values: npt.ArrayLike) -> FloatArray:
    """Return coordinates as an (n, d) array of finite numbers that are not all the same point."""
    try:
        array = real_array(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidItems(
            f"coordinates do not form a table of numbers ({error}): give n rows of d numbers each"
        ) from None
    if array.ndim != 2:
        raise InvalidItems(f"coordinates have {array.ndim} axes, shape {array.shape}: give an (n, d) array")
    n, d = array.shape
    if n < 2:
        raise InvalidItems(f"there {'is 1 item' if n == 1 else 'are no items'}: a pair needs at least 2")
    if d < 1:
        raise InvalidItems(f"the {n} items have no coordinates: give at least one dimension")
    not_finite = np.argwhere(~np.isfinite(array))
    if len(not_finite):
        row, column = not_finite[0]
        raise InvalidItems(
            f"coordinate {column} of item {row} is {array[row, column]} ({len(not_finite)} not finite in total): "
            f"remove the item or fill it in"
        )
    if np.all(array == array[0]):
        raise InvalidItems(f"all {n} items are at the same point: no pair would be informative")
    return array


def _no_coordinates(ids: object, least: int) -> FloatArray:
    """Return (n, 0) coordinates for items that have only ids."""
    if isinstance(ids, str | bytes | Mapping) or not isinstance(ids, Iterable):
        raise InvalidItems(f"the items have no coordinates and ids is {ids!r}: give coordinates, or a list of ids")
    n = len(list(ids))
    if n < least:
        raise InvalidItems(f"there {'is 1 item' if n == 1 else 'are no items'}: a pair needs at least 2")
    return np.empty((n, 0))


def _ids(ids: Sequence[object] | npt.NDArray[np.generic] | None, n: int) -> tuple[ItemId, ...]:
    """Return unique ids, each an int or a str; by default 0 to n - 1."""
    if ids is None:
        return tuple(range(n))
    plain = [without_numpy(value) for value in as_list(ids, "ids", n)]
    seen: dict[ItemId, int] = {}
    out: list[ItemId] = []
    for index, value in enumerate(plain):
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise InvalidItems(f"id {value!r} of item {index} is a {type(value).__name__}: use int or str")
        if value in seen:
            raise InvalidItems(f"items {seen[value]} and {index} have the same id {value!r}: make ids unique")
        seen[value] = index
        out.append(value)
    return tuple(out)


def _appeal(appeal: npt.ArrayLike | None, ids: Sequence[ItemId]) -> FloatArray:
    """Return (n,) finite appeals; by default zeros."""
    n = len(ids)
    try:
        appeals = np.zeros(n) if appeal is None else real_array(appeal)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidItems(f"appeal is {appeal!r} ({error}): give {n} numbers, one per item") from None
    if appeals.shape != (n,):
        raise InvalidItems(f"appeal has shape {appeals.shape}: give {n} numbers, one per item")
    if not np.all(np.isfinite(appeals)):
        item = ids[int(np.argmin(np.isfinite(appeals)))]
        raise InvalidItems(f"appeal of item {item!r} is not finite: give a finite number")
    return appeals


def _data(data: Mapping[str, Sequence[object]] | None, n: int) -> Mapping[str, tuple[object, ...]]:
    """Return the data columns, each with one value per item, as a read-only mapping."""
    if data is not None and not isinstance(data, Mapping):
        raise InvalidItems(f"data is {data!r}: give a dict with a list of {n} for each name")
    columns = {
        name: tuple(as_list(values, f"values of the column {name!r}", n)) for name, values in (data or {}).items()
    }
    return MappingProxyType(columns)
