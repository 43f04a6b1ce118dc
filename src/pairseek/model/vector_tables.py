"""Vectors of items, read from arrays, mappings, data frames, and ``.npy`` and ``.parquet`` files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pairseek.core.columns import APPEAL_COLUMN, ID_COLUMNS, LABEL_COLUMN
from pairseek.errors import InvalidItems, MissingExtra


@dataclass(frozen=True, eq=False)
class VectorTable:
    """Vectors and the other columns of their table; None for columns it lacks.

    Attributes
    ----------
    vectors
        (n, D) numbers, or rows not yet checked to form such an array.
    ids, labels, appeal
        One value per row.
    data
        Non-numeric columns.
    """

    vectors: Sequence[object] | npt.NDArray[Any]
    ids: Sequence[object] | None = None
    labels: Sequence[str] | None = None
    appeal: npt.ArrayLike | None = None
    data: Mapping[str, Sequence[object]] = field(default_factory=dict)


def read_vectors(source: Any) -> VectorTable:
    """Read vectors from an array, a mapping of ids to vectors, a data frame, or a ``.npy`` or ``.parquet`` file.

    In a frame, ``id`` (or ``item``, ``name``, or a column that ends in ``_id``) names the items, and ``label`` and
    ``appeal`` have their meaning in `Items`. A column of lists holds the vectors or, failing that, the numeric columns
    do; text columns are data.
    """
    if isinstance(source, str | Path):
        return _from_file(Path(source))
    if isinstance(source, Mapping):
        return VectorTable(list(source.values()), ids=list(source))
    names = getattr(source, "column_names", None)
    if names is None and hasattr(source, "columns") and not isinstance(source, np.ndarray):
        names = list(source.columns)
    if names is None:
        return VectorTable(source)
    return _from_columns({str(name): _as_array(source[name]) for name in names})


def _from_file(path: Path) -> VectorTable:
    if not path.exists():
        raise InvalidItems(f"there is no file {path}")
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            return VectorTable(np.load(path, allow_pickle=False))
        if suffix == ".parquet":
            return read_vectors(_parquet(path))
    except (InvalidItems, MissingExtra):
        raise
    except Exception as error:  # noqa: BLE001 - the readers raise many types for damaged files
        raise InvalidItems(f"{path} cannot be read as {suffix}: {error}") from None
    raise InvalidItems(f"{path} has an unknown extension {suffix!r}: use .npy or .parquet, or give an array or a frame")


def _parquet(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("a .parquet file", "frames") from None
    return pyarrow.parquet.read_table(path)


def _as_array(column: Any) -> Any:
    """Return a column of a pyarrow, pandas or polars frame as an array; a list column becomes an array of rows."""
    arrow_type = getattr(column, "type", None)
    if arrow_type is None or not hasattr(column, "combine_chunks"):
        return np.asarray(column)
    import pyarrow

    if pyarrow.types.is_fixed_size_list(arrow_type) and not column.null_count:
        flat = pyarrow.concat_arrays([part.flatten() for part in column.chunks]) if column.num_chunks else []
        return np.asarray(flat).reshape(len(column), arrow_type.list_size)
    if pyarrow.types.is_list(arrow_type) or pyarrow.types.is_large_list(arrow_type):
        rows = [None if row is None else np.asarray(row) for row in column.to_numpy()]
        out = np.empty(len(rows), dtype=object)
        out[:] = rows
        return out
    return column.to_numpy()


def _from_columns(columns: dict[str, Any]) -> VectorTable:
    ids = [name for name in columns if name.casefold() in ID_COLUMNS] or [
        name for name in columns if name.casefold().endswith("_id")
    ]
    if len(ids) > 1:
        raise InvalidItems(f"the columns {ids[0]!r} and {ids[1]!r} could both be the id: drop or rename one")
    lower = {name.casefold(): name for name in columns}
    roles = {"ids": ids[0] if ids else None, "labels": lower.get(LABEL_COLUMN), "appeal": lower.get(APPEAL_COLUMN)}
    others = {name: values for name, values in columns.items() if name not in roles.values()}
    lists = [name for name, values in others.items() if _holds_vectors(values)]
    if len(lists) > 1:
        raise InvalidItems(f"the columns {lists[0]!r} and {lists[1]!r} both hold vectors: drop one")
    numbers = (
        [] if lists else [name for name, values in others.items() if values.ndim == 1 and values.dtype.kind in "fiu"]
    )
    if not lists and not numbers:
        raise InvalidItems(
            f"the table has the columns {', '.join(map(repr, columns)) or 'none'} but no vectors: give a "
            f"column of lists of numbers, or one numeric column per component"
        )
    vectors = _stacked(others[lists[0]], lists[0]) if lists else np.column_stack([others[name] for name in numbers])
    by_role = {role: columns[name].tolist() for role, name in roles.items() if name is not None}
    data = {name: values.tolist() for name, values in others.items() if name not in (*lists, *numbers)}
    return VectorTable(vectors, **by_role, data=data)


def _holds_vectors(values: npt.NDArray[Any]) -> bool:
    if values.ndim == 2:
        return True
    first = next((value for value in values if value is not None), None) if values.dtype == object else None
    return isinstance(first, list | tuple | np.ndarray)


def _stacked(values: npt.NDArray[Any], name: str) -> Any:
    """Return a column of vectors as an array, or as a list if their lengths differ, which is reported elsewhere."""
    if values.ndim == 2:
        return values
    missing = [row for row, value in enumerate(values) if value is None]
    if missing:
        raise InvalidItems(f"row {missing[0]} of the column {name!r} has no vector: remove the item")
    rows = [np.asarray(value) for value in values]
    return np.stack(rows) if len({row.shape for row in rows}) == 1 else rows
