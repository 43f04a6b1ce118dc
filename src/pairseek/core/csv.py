"""Items in a CSV file: which column is what. What could be read in two ways is refused."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.errors import InvalidItems, PairseekError

ID_COLUMNS = ("id", "item", "name")
LABEL_COLUMN = "label"
APPEAL_COLUMN = "appeal"
# What other tools write above a column that only numbers the rows: nothing, or one of these.
_NUMBERING = ("unnamed: 0", "index")


def read_items(path: Path, keep: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of `Items` that a CSV file holds, and the names of the ``columns`` of coordinates."""
    header, body = read_table(path)
    unknown = [name for name in keep if name not in header]
    if unknown:
        raise InvalidItems(f"{path} has no column {unknown[0]!r}: its columns are {', '.join(header)}")
    table = {name: [row[column].strip() for _, row in body] for column, name in enumerate(header)}
    lines = [line for line, _ in body]
    free = [name for name in header if name not in keep]
    label, appeal = _only(path, free, LABEL_COLUMN), _only(path, free, APPEAL_COLUMN)
    free = [name for name in free if name not in (label, appeal)]
    numbering = free[0] if free and free[0] == header[0] and _numbers_rows(header[0], table[header[0]]) else None
    named = _id_column(path, [name for name in free if name != numbering])
    if not keep and named is None and label is None and appeal is None:
        _check_header(path, header)
    if named is None and free and free[0] == header[0] and not all(map(_is_number, table[header[0]])):
        named = header[0]
    coordinates = [name for name in free if name not in (named, numbering)]
    if not coordinates:
        raise InvalidItems(f"{path} has no coordinates: its columns are {', '.join(header)}")
    if "" in coordinates:
        raise InvalidItems(f"{path}: column {header.index('') + 1} has no name in the header; name it, or take it out")
    ids = named if named is not None else numbering
    return {
        "coordinates": np.column_stack([_numbers(path, name, table[name], lines) for name in coordinates]),
        "ids": None if ids is None else table[ids],
        "labels": None if label is None else table[label],
        "appeal": None if appeal is None else _numbers(path, appeal, table[appeal], lines),
        "data": {name: table[name] for name in keep},
        "columns": coordinates,
    }


def read_lines(path: Path, error: type[PairseekError], wanted: str) -> list[tuple[int, list[str]]]:
    """Numbered rows of a CSV file, blank ones left out; `wanted` says what an empty file should hold."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, row) for row in reader if any(map(str.strip, row))]
    except FileNotFoundError:
        raise error(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise error(f"{path} cannot be read as CSV: {problem}") from None
    if not rows:
        raise error(f"{path} is empty: give {wanted}")
    return rows


def read_table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Header and numbered rows of a CSV file, all of one length."""
    rows = read_lines(path, InvalidItems, "a header row, then one row for each item")
    header = [name.strip() for name in rows[0][1]]
    if all(map(_is_number, header)):
        raise _headless(path, header)
    if len(set(header)) != len(header):
        raise InvalidItems(f"{path} has two columns of the same name in its header {header}")
    body = rows[1:]
    if not body:
        raise InvalidItems(f"{path} has a header and no items: give one row for each item")
    for line, row in body:
        if len(row) != len(header):
            raise InvalidItems(f"{path}, line {line}: {len(row)} cells under {len(header)} columns")
    return header, body


def _headless(path: Path, header: Sequence[str]) -> InvalidItems:
    return InvalidItems(
        f"{path} begins with {', '.join(header)}: that looks like an item and not like names of columns; "
        f"put a header row above it, such as id,x,y"
    )


def _check_header(path: Path, header: Sequence[str]) -> None:
    """Refuse a first row that may be an item, such as ``merlot,0.3,1.7``."""
    rest = list(header[1:])
    # A table without names gets the names 0, 1, 2, ... from the tools that write it.
    if rest and all(map(_is_number, rest)) and rest != [str(i) for i in range(len(rest))]:
        raise _headless(path, header)


def _only(path: Path, names: Sequence[str], wanted: str) -> str | None:
    """The column of this name, in any case."""
    found = [name for name in names if name.casefold() == wanted]
    if len(found) > 1:
        raise InvalidItems(
            f"{path} has the columns {found[0]!r} and {found[1]!r}: only one can be the {wanted}; "
            f"keep the other as data with keep=[{found[1]!r}]"
        )
    return found[0] if found else None


def _id_column(path: Path, names: Sequence[str]) -> str | None:
    """The column that names the items, by its own name; refused where a second one may be meant."""
    plain = [name for wanted in ID_COLUMNS for name in names if name.casefold() == wanted]
    found = plain + [name for name in names if name.casefold().endswith(("_id", "-id", " id", ".id"))]
    if len(found) > 1:
        raise InvalidItems(
            f"{path} has the columns {found[0]!r} and {found[1]!r}, which both look like names of items and not like "
            f"coordinates: keep one as data with keep=[{found[1]!r}], or give it another name"
        )
    return found[0] if found else None


def _numbers_rows(name: str, cells: Sequence[str]) -> bool:
    """Whether a first column only numbers the rows: no name that says anything, and whole numbers, all different."""
    if name and name.casefold() not in _NUMBERING:
        return False
    return all(cell.isascii() and cell.isdigit() for cell in cells) and len(set(cells)) == len(cells)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path: Path, column: str, cells: list[str], lines: list[int]) -> FloatArray:
    out = np.empty(len(cells))
    for row, (cell, line) in enumerate(zip(cells, lines, strict=True)):
        try:
            out[row] = float(cell)
        except ValueError:
            raise InvalidItems(
                f"{path}, line {line}, column {column!r}: {cell!r} is not a number; mend it, or keep the "
                f"column as data with keep=[{column!r}]"
            ) from None
        if not np.isfinite(out[row]):
            raise InvalidItems(f"{path}, line {line}, column {column!r}: {cell!r} is not a finite number")
    return out
