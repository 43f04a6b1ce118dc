"""Roles of the columns of a table of items: id, label, appeal, coordinates and data, decided once, here.

Columns of numbers are coordinates, and columns of text are data, unless the caller names the coordinates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairseek.core.csv import check_lengths, mixed_decimals, number, table_rows
from pairseek.core.frames import frame_columns, is_parquet, parquet_columns, text_of
from pairseek.core.media import PICTURE_FILE, medium_of
from pairseek.core.text import listed
from pairseek.core.types import FloatArray
from pairseek.errors import InvalidItems

ID_COLUMNS = ("id", "item", "name")
LABEL_COLUMN = "label"
APPEAL_COLUMN = "appeal"
# Headers that other tools write above a column of row numbers, besides an empty header.
_NUMBERING = ("unnamed: 0", "index")
# Names of coordinates: x, y, z, or a number at the end.
_COORDINATE = re.compile(r"[xyz]|.*[0-9]", re.IGNORECASE)
# Share of numbers among the cells of a column from which it is meant to hold numbers, and another cell is a mistake.
_NUMBERS = 0.5


@dataclass(frozen=True)
class ItemTable:
    """Columns of a table of items, before they have roles.

    Attributes
    ----------
    source
        Name of the file, or "the data frame", for errors.
    columns
        Cells of each column.
    lines
        Place of each row, for errors.
    decimal_comma
        Whether numbers may have a decimal comma.
    """

    source: str
    columns: Mapping[str, Sequence[Any]]
    lines: Sequence[str]
    decimal_comma: bool = False

    @classmethod
    def read(cls, path: Path, content: bytes | None = None) -> ItemTable:
        """Read a text or Parquet file, or the content of one that is not on disk."""
        if is_parquet(path):
            return cls.of_columns(str(path), parquet_columns(path, InvalidItems, content))
        rows = table_rows(path, InvalidItems, "a header row, then one row for each item", content)
        header = rows.lines[0][1]
        if all(_is_number(name, decimal_comma=rows.decimal_comma) for name in header):
            raise _headless(path, header)
        if len(rows.lines) == 1:
            raise InvalidItems(f"{path} has a header but no items: give one row for each item")
        check_lengths(path, rows, InvalidItems)
        body = rows.lines[1:]
        # Spreadsheets save empty columns at the end.
        used = [place for place, name in enumerate(header) if name or any(row[place] for _, row in body)]
        names = [header[place] for place in used]
        if len(set(names)) != len(names):
            raise InvalidItems(f"{path} has two columns of the same name in its header {names}")
        columns = {header[place]: [row[place] for _, row in body] for place in used}
        return cls(str(path), columns, [f"line {line}" for line, _ in body], rows.decimal_comma)

    @classmethod
    def of_columns(cls, source: str, columns: Mapping[str, Sequence[Any]]) -> ItemTable:
        """Return a table of columns of any values."""
        count = len(next(iter(columns.values())))
        return cls(source, columns, [f"row {row}" for row in range(count)])

    def is_number(self, cell: object) -> bool:
        """Return whether a cell is a number."""
        return _is_number(cell, decimal_comma=self.decimal_comma)

    def holds_numbers(self, name: str) -> bool:
        """Return whether at least half of the cells that are not blank are numbers, so that all are meant to be."""
        filled = [cell for cell in self.columns[name] if text_of(cell)]
        return bool(filled) and sum(map(self.is_number, filled)) >= _NUMBERS * len(filled)

    def check_filled(self, name: str, what: str) -> None:
        """Reject blank cells."""
        for cell, line in zip(self.columns[name], self.lines, strict=True):
            if not text_of(cell).strip():
                raise InvalidItems(
                    f"{self.source}, {line}, column {name!r}: the {what} is blank; fill it in, or remove the row"
                )

    def numbers(self, name: str, advice: str) -> FloatArray:
        """Return a column of finite numbers."""
        out = np.empty(len(self.lines))
        for row, (cell, line) in enumerate(zip(self.columns[name], self.lines, strict=True)):
            try:
                out[row] = number(cell, decimal_comma=self.decimal_comma)
            except (TypeError, ValueError):
                raise InvalidItems(
                    f"{self.source}, {line}, column {name!r}: {cell!r} is not a number; fix it, or {advice}"
                ) from None
            if not np.isfinite(out[row]):
                raise InvalidItems(f"{self.source}, {line}, column {name!r}: {cell!r} is not a finite number")
        return out


def read_items(
    path: Path,
    keep: tuple[str, ...] = (),
    *,
    coordinates: Sequence[str] | None = None,
    media: bool = False,
    content: bytes | None = None,
    optional: bool = False,
) -> dict[str, Any]:
    """Return the arguments of `Items` from a text or Parquet file, and the names of the coordinates as ``columns``.

    Parameters
    ----------
    path
        The file.
    keep
        Columns to keep as data.
    coordinates
        Columns that are coordinates; all others that have no role of their own are data. None: all columns of numbers.
    media
        Whether to keep the columns of `MEDIA` as data too, as for a study. The items of a study need no coordinates.
    content
        The content of the file where it is not on disk; the path then only names it in errors.
    optional
        Whether a file without coordinates is accepted; they are None then, and rows without ids are numbered.
    """
    found = items_of(ItemTable.read(path, content), keep, coordinates=coordinates, media=media, optional=optional)
    # Ids are text in every file, whatever its format.
    return {**found, "ids": None if found["ids"] is None else [text_of(name) for name in found["ids"]]}


def items_of_frame(frame: object, keep: tuple[str, ...], coordinates: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the arguments of `Items` from a data frame, as `read_items` does; ids keep their type."""
    table = ItemTable.of_columns("the data frame", frame_columns(frame, InvalidItems))
    return items_of(table, keep, coordinates=coordinates)


def items_of(
    table: ItemTable,
    keep: tuple[str, ...],
    *,
    coordinates: Sequence[str] | None = None,
    media: bool = False,
    optional: bool = False,
) -> dict[str, Any]:
    """Assign a role to each column, reject ambiguity, and return the arguments of `Items`."""
    path, columns, header = table.source, table.columns, list(table.columns)
    chosen = None if coordinates is None else _chosen(table, coordinates, keep)
    keep = (*keep, *(name for name in header if media and name not in (*keep, *(chosen or ())) and medium_of(name)))
    _check_known(table, keep)
    aside = _Aside(by_setting=media)
    free = [name for name in header if name not in keep and name not in (chosen or ())]
    label, appeal = _only(path, free, LABEL_COLUMN, aside), _only(path, free, APPEAL_COLUMN, aside)
    free = [name for name in free if name not in (label, appeal)]
    numbering = free[0] if free and free[0] == header[0] and _numbers_rows(header[0], columns[header[0]]) else None
    named = _id_column(path, [name for name in free if name != numbering], aside)
    if not keep and chosen is None and named is None and label is None and appeal is None:
        _check_header(path, header)
    if named is None and free and free[0] == header[0] and not all(map(table.is_number, columns[header[0]])):
        named = header[0]
    free = [name for name in free if name not in (named, numbering)]
    if chosen is None:
        chosen = [name for name in free if table.holds_numbers(name)]
    if not chosen and coordinates is None and not optional:
        advice = "add a column id" if media else "without coordinates, use ps.Items(ids=[...])"
        raise InvalidItems(f"{path} has no coordinates: its columns are {', '.join(header)}; {advice}")
    if "" in chosen or "" in free:
        raise InvalidItems(f"{path}: column {header.index('') + 1} has no name in the header; name it, or remove it")
    ids = named if named is not None else numbering
    for name, what in ((ids, "id"), (label, "label")):
        if name is not None:
            table.check_filled(name, what)
    if media:
        _check_shown(table)
    mixed = mixed_decimals(cell for name in (*chosen, *((appeal,) if appeal else ())) for cell in columns[name])
    if table.decimal_comma and mixed is not None:
        raise InvalidItems(
            f"{path} has the numbers {mixed[0]} and {mixed[1]}: write all with a decimal comma, or all with a decimal "
            f"point, and none with separators of thousands"
        )
    places = [table.numbers(name, aside.of_numbers(name)) for name in chosen]
    return {
        "coordinates": np.column_stack(places) if chosen else None,
        "ids": columns[ids]
        if ids is not None
        else None
        if chosen
        else [str(row + 1) for row in range(len(table.lines))],
        "labels": None if label is None else columns[label],
        "appeal": None if appeal is None else table.numbers(appeal, aside(appeal)),
        "data": {name: columns[name] for name in header if name in keep or (name in free and name not in chosen)},
        "columns": chosen,
    }


def named_columns(coordinates: str) -> list[str]:
    """Return the names in the value of an option; an empty one names no column.

    Examples
    --------
    >>> named_columns("x, y"), named_columns("")
    (['x', 'y'], [])
    """
    return [name.strip() for name in coordinates.split(",") if name.strip()]


def _chosen(table: ItemTable, coordinates: Sequence[str], keep: Iterable[str]) -> list[str]:
    """Check the coordinates that the caller names, and return them in the order of the table."""
    if isinstance(coordinates, str):
        raise InvalidItems(f"coordinates is {coordinates!r}: give a list of columns, such as [{coordinates!r}]")
    _check_known(table, coordinates)
    twice = next((name for name in coordinates if name in keep), None)
    if twice is not None:
        raise InvalidItems(f"the column {twice!r} is in coordinates and in keep: choose one")
    return [name for name in table.columns if name in coordinates]


def _check_known(table: ItemTable, names: Iterable[str]) -> None:
    unknown = next((name for name in names if name not in table.columns), None)
    if unknown is not None:
        raise InvalidItems(f"{table.source} has no column {unknown!r}: its columns are {', '.join(table.columns)}")


def _check_shown(table: ItemTable) -> None:
    """Reject items whose text, picture and other media are all blank: people would see nothing of them."""
    shown = [name for name in table.columns if (medium := medium_of(name)) and medium.conversion != "caption"]
    texts = [name for name in shown if name.casefold() in ("text", "markdown")]
    for row, line in enumerate(table.lines):
        if texts and not any(text_of(table.columns[name][row]).strip() for name in shown):
            raise InvalidItems(
                f"{table.source}, {line}, column {texts[0]!r}: the text is blank, and the item has nothing else to "
                f"show; fill it in, or remove the row"
            )


@dataclass(frozen=True)
class _Aside:
    """Advice for a column that cannot be used, for people who send a file and for programs."""

    by_setting: bool

    def __call__(self, column: str) -> str:
        return f"remove the column {column!r}" if self.by_setting else self.of_numbers(column)

    def of_numbers(self, column: str) -> str:
        if self.by_setting:
            return f"keep {column!r} as data by naming the coordinates"
        return f"keep it as data with keep=[{column!r}]"


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


def _is_number(cell: object, *, decimal_comma: bool = False) -> bool:
    try:
        number(cell, decimal_comma=decimal_comma)
    except (TypeError, ValueError):
        return False
    return True


def are_named_as_coordinates(names: Sequence[str]) -> bool:
    """Return whether names are those that programs and people give to coordinates, so that nobody is surprised.

    Examples
    --------
    >>> are_named_as_coordinates(["x", "pc1"]), are_named_as_coordinates(["x", "price"])
    (True, False)
    """
    return all(_COORDINATE.fullmatch(name) for name in names)


def columns_note(coordinates: Sequence[str], data: Sequence[str]) -> str:
    """Return a sentence about the columns that a table of items gave, for the person who reads it; "" without any.

    Examples
    --------
    >>> columns_note(["x", "y"], ["country"]), columns_note([], ["price"])
    ('coordinates: x, y; kept as data: country', 'no coordinates; kept as data: price')
    """
    kept = [name for name in data if medium_of(name) is None and name != PICTURE_FILE]
    if not (coordinates or kept):
        return ""
    first = f"coordinates: {listed(coordinates)}" if coordinates else "no coordinates"
    return first + (f"; kept as data: {listed(kept)}" if kept else "")
