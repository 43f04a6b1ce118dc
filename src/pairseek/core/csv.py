"""Reader of items in tables: CSV, Parquet and data frames. It assigns a role to each column and rejects ambiguity."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairseek.core.frames import frame_columns, is_parquet, parquet_columns, text_of, text_rows
from pairseek.core.media import medium_of
from pairseek.core.types import FloatArray
from pairseek.errors import InvalidItems, PairseekError

ID_COLUMNS = ("id", "item", "name")
LABEL_COLUMN = "label"
APPEAL_COLUMN = "appeal"
# Headers that other tools write above a column of row numbers, besides an empty header.
_NUMBERING = ("unnamed: 0", "index")


def read_items(
    path: Path, keep: tuple[str, ...], *, media: bool = False, content: bytes | None = None, optional: bool = False
) -> dict[str, Any]:
    """Return the arguments of `Items` from a CSV or Parquet file, and the names of the coordinates as ``columns``.

    Parameters
    ----------
    path
        The file.
    keep
        Columns to keep as data.
    media
        Whether to keep the columns of `MEDIA` as data too, as for a study. The items of a study need no coordinates.
    content
        The content of the file where it is not on disk; the path then only names it in errors.
    optional
        Whether a file without coordinates is accepted; they are None then, and rows without ids are numbered.
    """
    if is_parquet(path):
        columns = parquet_columns(path, InvalidItems, content)
        # Ids are text in every file, whatever its format.
        found = _items(
            str(path), columns, [f"row {row}" for row in _rows(columns)], keep, media=media, optional=optional
        )
        return {**found, "ids": None if found["ids"] is None else [text_of(name) for name in found["ids"]]}
    header, body = read_table(path, content)
    table = {name: [row[column].strip() for _, row in body] for column, name in enumerate(header)}
    return _items(str(path), table, [f"line {line}" for line, _ in body], keep, media=media, optional=optional)


def items_of_frame(frame: Any, keep: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments of `Items` from a data frame, as `read_items` does; ids keep their type."""
    columns = frame_columns(frame, InvalidItems)
    return _items("the data frame", columns, [f"row {row}" for row in _rows(columns)], keep)


def _rows(columns: Mapping[str, Sequence[Any]]) -> range:
    return range(len(next(iter(columns.values()))))


def _items(
    path: str,
    table: Mapping[str, Sequence[Any]],
    lines: Sequence[str],
    keep: tuple[str, ...],
    *,
    media: bool = False,
    optional: bool = False,
) -> dict[str, Any]:
    """Return the arguments of `Items` from columns; `path` and `lines` name places in errors."""
    header = list(table)
    keep = (*keep, *(name for name in header if media and name not in keep and medium_of(name) is not None))
    unknown = [name for name in keep if name not in header]
    if unknown:
        raise InvalidItems(f"{path} has no column {unknown[0]!r}: its columns are {', '.join(header)}")
    free = [name for name in header if name not in keep]
    aside = _Aside(removed=media)
    label, appeal = _only(path, free, LABEL_COLUMN, aside), _only(path, free, APPEAL_COLUMN, aside)
    free = [name for name in free if name not in (label, appeal)]
    numbering = free[0] if free and free[0] == header[0] and _numbers_rows(header[0], table[header[0]]) else None
    named = _id_column(path, [name for name in free if name != numbering], aside)
    if not keep and named is None and label is None and appeal is None:
        _check_header(path, header)
    if named is None and free and free[0] == header[0] and not all(map(_is_number, table[header[0]])):
        named = header[0]
    coordinates = [name for name in free if name not in (named, numbering)]
    if not coordinates and not optional:
        advice = "add a column id" if media else "without coordinates, use ps.Items(ids=[...])"
        raise InvalidItems(f"{path} has no coordinates: its columns are {', '.join(header)}; {advice}")
    if "" in coordinates:
        raise InvalidItems(f"{path}: column {header.index('') + 1} has no name in the header; name it, or remove it")
    ids = named if named is not None else numbering
    return {
        "coordinates": np.column_stack([_numbers(path, name, table[name], lines, aside) for name in coordinates])
        if coordinates
        else None,
        "ids": table[ids] if ids is not None else None if coordinates else [str(row + 1) for row in range(len(lines))],
        "labels": None if label is None else table[label],
        "appeal": None if appeal is None else _numbers(path, appeal, table[appeal], lines, aside),
        "data": {name: table[name] for name in keep},
        "columns": coordinates,
    }


@dataclass(frozen=True)
class _Aside:
    """Advice for a column that cannot be used: people who send a file remove it, programs keep it as data."""

    removed: bool

    def __call__(self, column: str) -> str:
        return f"remove the column {column!r}" if self.removed else f"keep it as data with keep=[{column!r}]"


def read_lines(
    path: Path, error: type[PairseekError], wanted: str, content: bytes | None = None
) -> list[tuple[int, list[str]]]:
    """Read the non-blank rows of a CSV file with line numbers; `wanted` describes the expected content in errors.

    A Parquet file gives the rows that the CSV file of the same table has.
    """
    if is_parquet(path):
        return text_rows(parquet_columns(path, error, content))
    try:
        text = (path.read_bytes() if content is None else content).decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""))
        rows = [(reader.line_num, row) for row in reader if any(map(str.strip, row))]
    except FileNotFoundError:
        raise error(f"there is no file {path}") from None
    except UnicodeDecodeError:
        raise error(f"{path} is not a text in UTF-8: save it as CSV in UTF-8") from None
    except (OSError, csv.Error) as problem:
        raise error(f"{path} cannot be read as CSV: {problem}") from None
    if not rows:
        raise error(f"{path} is empty: give {wanted}")
    return rows


def read_table(path: Path, content: bytes | None = None) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Read the header and the numbered rows of a CSV file, and check that all have the same length."""
    rows = read_lines(path, InvalidItems, "a header row, then one row for each item", content)
    header = [name.strip() for name in rows[0][1]]
    if all(map(_is_number, header)):
        raise _headless(path, header)
    if len(set(header)) != len(header):
        raise InvalidItems(f"{path} has two columns of the same name in its header {header}")
    body = rows[1:]
    if not body:
        raise InvalidItems(f"{path} has a header but no items: give one row for each item")
    for line, row in body:
        if len(row) != len(header):
            raise InvalidItems(f"{path}, line {line}: expected {len(header)} cells, received {len(row)}")
    return header, body


def _headless(path: Path | str, header: Sequence[str]) -> InvalidItems:
    return InvalidItems(
        f"{path} begins with {', '.join(header)}, which looks like an item and not like a header: add a header row, "
        f"such as id,x,y"
    )


def _check_header(path: str, header: Sequence[str]) -> None:
    """Reject a first row that may be an item, such as ``merlot,0.3,1.7``."""
    rest = list(header[1:])
    # Tools write the names 0, 1, 2, ... above a table without names.
    if rest and all(map(_is_number, rest)) and rest != [str(i) for i in range(len(rest))]:
        raise _headless(path, header)


def _only(path: str, names: Sequence[str], wanted: str, aside: _Aside) -> str | None:
    """Return the column with this name, regardless of case."""
    found = [name for name in names if name.casefold() == wanted]
    if len(found) > 1:
        raise InvalidItems(
            f"{path} has the columns {found[0]!r} and {found[1]!r}: only one can be the {wanted}; rename the other, or "
            f"{aside(found[1])}"
        )
    return found[0] if found else None


def _id_column(path: str, names: Sequence[str], aside: _Aside) -> str | None:
    """Return the column of ids by its name; two possible columns are an error."""
    plain = [name for wanted in ID_COLUMNS for name in names if name.casefold() == wanted]
    found = plain + [name for name in names if name.casefold().endswith(("_id", "-id", " id", ".id"))]
    if len(found) > 1:
        raise InvalidItems(
            f"{path} has the columns {found[0]!r} and {found[1]!r}, which both look like ids: rename one, or "
            f"{aside(found[1])}"
        )
    return found[0] if found else None


def _numbers_rows(name: str, cells: Sequence[Any]) -> bool:
    """Return whether a first column only numbers the rows: it has no descriptive name, and distinct whole numbers."""
    if name and name.casefold() not in _NUMBERING:
        return False
    texts = [text_of(cell) for cell in cells]
    return all(text.isascii() and text.isdigit() for text in texts) and len(set(texts)) == len(texts)


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _numbers(path: str, column: str, cells: Sequence[Any], lines: Sequence[str], aside: _Aside) -> FloatArray:
    out = np.empty(len(cells))
    for row, (cell, line) in enumerate(zip(cells, lines, strict=True)):
        try:
            out[row] = float(cell)
        except (TypeError, ValueError):
            raise InvalidItems(
                f"{path}, {line}, column {column!r}: {cell!r} is not a number; fix it, or {aside(column)}"
            ) from None
        if not np.isfinite(out[row]):
            raise InvalidItems(f"{path}, {line}, column {column!r}: {cell!r} is not a finite number")
    return out
