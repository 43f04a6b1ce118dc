"""Column roles of an items table: id, label, appeal, coordinates and data.

Numeric columns are coordinates and text columns are data, unless the caller names the coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pairseek.core.column_names import DATASET_ID_COLUMNS, assigned_columns, plain_name
from pairseek.core.csv import check_lengths, mixed_decimals, number, table_rows
from pairseek.core.frames import frame_columns, is_parquet, parquet_columns, text_of
from pairseek.core.media import FILE_COLUMNS, medium_of
from pairseek.core.text import listed
from pairseek.core.types import FloatArray
from pairseek.errors import InvalidItems

ID_COLUMNS = ("id", "item", "name")
_ID_ENDINGS = ("_id", "-id", " id", ".id")
LABEL_COLUMN = "label"
# Headers that people give to labels, in the languages of the pages.
_LABEL_HEADERS = (
    *("name", "title", "nom", "titre", "libellé", "libelle", "intitulé"),
    *("bezeichnung", "titel", "nombre", "título", "titulo"),
)
APPEAL_COLUMN = "appeal"
ROLES = ("id", LABEL_COLUMN, APPEAL_COLUMN)
# Headers that other tools give a column of row numbers, besides an empty one.
_ROW_NUMBER_HEADERS = ("unnamed: 0", "index")
# Fraction of numeric cells from which a column counts as numeric, so that any other cell in it is a mistake.
_NUMERIC_FRACTION = 0.5


@dataclass(frozen=True)
class ItemTable:
    """Columns of an items table, before roles are assigned.

    Attributes
    ----------
    source
        Name of the file, or "the data frame", for error messages.
    columns
        Cells of each column.
    lines
        Position of each row, for error messages.
    decimal_comma
        Whether numbers may have a decimal comma.
    """

    source: str
    columns: Mapping[str, Sequence[Any]]
    lines: Sequence[str]
    decimal_comma: bool = False

    @classmethod
    def read(cls, path: Path, content: bytes | None = None) -> ItemTable:
        """Read a text file, workbook or Parquet file, or the content of an uploaded one."""
        if is_parquet(path):
            return cls.of_columns(str(path), parquet_columns(path, InvalidItems, content))
        rows = table_rows(path, InvalidItems, "a header row, then one row per item", content)
        header = rows.lines[0][1]
        if all(_is_number(name, decimal_comma=rows.decimal_comma) for name in header):
            raise _headless(path, header)
        if len(rows.lines) == 1:
            raise InvalidItems(f"{path} has a header but no items: give one row per item")
        check_lengths(path, rows, InvalidItems)
        body = rows.lines[1:]
        # Spreadsheets often save empty trailing columns.
        used = [position for position, name in enumerate(header) if name or any(row[position] for _, row in body)]
        names = [header[position] for position in used]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            count = names.count(repeated[0])
            raise InvalidItems(
                f"{path} has {count} columns named {repeated[0]!r}: rename or remove all but one of them"
            )
        columns = {header[position]: [row[position] for _, row in body] for position in used}
        return cls(str(path), columns, [f"line {line}" for line, _ in body], rows.decimal_comma)

    @classmethod
    def of_columns(cls, source: str, columns: Mapping[str, Sequence[Any]]) -> ItemTable:
        """Return a table from columns of arbitrary values."""
        count = len(next(iter(columns.values())))
        return cls(source, columns, [f"row {row}" for row in range(count)])

    def with_roles(self, columns: Mapping[str, str] | None) -> ItemTable:
        """Return the table with the caller's columns renamed to their roles.

        A column that already has the name of such a role keeps it in brackets, and becomes data or a coordinate.
        """
        assigned = assigned_columns(columns, ROLES, list(self.columns), self.source, InvalidItems)
        if not assigned:
            return self
        names = {column: f"({column})" for column in self.columns if column.casefold() in assigned}
        names |= {column: role for role, column in assigned.items()}
        return replace(self, columns={names.get(column, column): cells for column, cells in self.columns.items()})

    def is_number(self, cell: object) -> bool:
        """Return whether a cell is a number."""
        return _is_number(cell, decimal_comma=self.decimal_comma)

    def holds_numbers(self, name: str) -> bool:
        """Return whether at least half of the non-blank cells are numbers, which makes the column numeric."""
        filled = [cell for cell in self.columns[name] if text_of(cell)]
        return bool(filled) and sum(map(self.is_number, filled)) >= _NUMERIC_FRACTION * len(filled)

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


@dataclass(frozen=True)
class ColumnRules:
    """Rules that assign roles to the columns of an items table.

    Attributes
    ----------
    keep
        Columns to keep as data.
    coordinates
        Coordinate columns; other columns without a role become data. None: all numeric columns.
    columns
        Columns by role, such as ``{"id": "sku", "label": "title"}``.
    media
        Whether to read a file as studies do: keep the columns of `MEDIA` as data, and take labels from a column called
        ``name``, ``title`` or the like, which remains data too.
    optional
        Whether to accept items without coordinates: they are None then, and rows without ids are numbered.
    """

    keep: str | Sequence[str] = ()
    coordinates: Sequence[str] | None = None
    columns: Mapping[str, str] | None = None
    media: bool = False
    optional: bool = False


def read_items(path: Path, rules: ColumnRules, content: bytes | None = None) -> dict[str, Any]:
    """Return the arguments of `Items` read from a file; ``columns`` names the coordinates.

    If the file was uploaded, ``content`` is its content, and the path only names it in error messages.
    """
    arguments = items_of(ItemTable.read(path, content), rules)
    # Ids from files are text, whatever the format.
    return {**arguments, "ids": None if arguments["ids"] is None else [text_of(name) for name in arguments["ids"]]}


def items_of_frame(frame: object, rules: ColumnRules) -> dict[str, Any]:
    """Return the arguments of `Items` from a data frame, like `read_items`; ids keep their type."""
    return items_of(ItemTable.of_columns("the data frame", frame_columns(frame, InvalidItems)), rules)


def items_of(table: ItemTable, rules: ColumnRules) -> dict[str, Any]:
    """Assign a role to each column, reject ambiguity, and return the arguments of `Items`."""
    table = table.with_roles(rules.columns)
    keep = (rules.keep,) if isinstance(rules.keep, str) else tuple(rules.keep)
    coordinates, media = rules.coordinates, rules.media
    path, columns, header = table.source, table.columns, list(table.columns)
    chosen = None if coordinates is None else _chosen(table, coordinates, keep)
    keep = (*keep, *(name for name in header if media and name not in (*keep, *(chosen or ())) and medium_of(name)))
    _check_known(table, keep)
    advice = _Advice(by_setting=media)
    free = [name for name in header if name not in keep and name not in (chosen or ())]
    label, appeal = _unique_column(path, free, LABEL_COLUMN, advice), _unique_column(path, free, APPEAL_COLUMN, advice)
    free = [name for name in free if name not in (label, appeal)]
    numbering = free[0] if free and free[0] == header[0] and _numbers_rows(header[0], columns[header[0]]) else None
    recognized = _recognized_label(table, free, numbering) if media and label is None else None
    free, label = [name for name in free if name != recognized], label or recognized
    has_id = "id" in (rules.columns or ())
    named = "id" if has_id else _id_column(path, [name for name in free if name != numbering], advice)
    if not keep and chosen is None and named is None and label is None and appeal is None:
        _check_header(path, header)
    if named is None and free and free[0] == header[0] and not all(map(table.is_number, columns[header[0]])):
        named = header[0]
    free = [name for name in free if name not in (named, numbering)]
    if chosen is None:
        chosen = [name for name in free if table.holds_numbers(name)]
    if not chosen and coordinates is None and not rules.optional:
        remedy = "add a column id" if media else "without coordinates, use ps.Items(ids=[...])"
        raise InvalidItems(f"{path} has no coordinates: its columns are {', '.join(header)}; {remedy}")
    if "" in chosen or "" in free:
        raise InvalidItems(f"{path}: column {header.index('') + 1} has no name in the header; name it or remove it")
    ids = named if named is not None else numbering
    for name, what in ((ids, "id"), (label, "label")):
        if name is not None:
            table.check_filled(name, what)
    if media:
        _check_shown(table)
    mixed = mixed_decimals(cell for name in (*chosen, *((appeal,) if appeal else ())) for cell in columns[name])
    if table.decimal_comma and mixed is not None:
        raise InvalidItems(
            f"{path} has the numbers {mixed[0]} and {mixed[1]}: use decimal commas throughout or decimal points "
            f"throughout, without thousands separators"
        )
    coordinate_columns = [table.numbers(name, advice.for_numbers(name)) for name in chosen]
    return {
        "coordinates": np.column_stack(coordinate_columns) if chosen else None,
        "ids": columns[ids]
        if ids is not None
        else None
        if chosen
        else [str(row + 1) for row in range(len(table.lines))],
        "labels": None if label is None else columns[label],
        "appeal": None if appeal is None else table.numbers(appeal, advice(appeal)),
        "data": {
            name: columns[name]
            for name in header
            if name in (*keep, recognized) or (name in free and name not in chosen)
        },
        "columns": chosen,
    }


def named_columns(coordinates: str) -> list[str]:
    """Split the comma-separated column names of a command-line option.

    Examples
    --------
    >>> named_columns("x, y"), named_columns("")
    (['x', 'y'], [])
    """
    return [name.strip() for name in coordinates.split(",") if name.strip()]


def _chosen(table: ItemTable, coordinates: Sequence[str], keep: Iterable[str]) -> list[str]:
    """Check the coordinates named by the caller, and return them in table order."""
    if isinstance(coordinates, str):
        raise InvalidItems(f"coordinates is {coordinates!r}: give a list of columns, such as [{coordinates!r}]")
    _check_known(table, coordinates)
    conflict = next((name for name in coordinates if name in keep), None)
    if conflict is not None:
        raise InvalidItems(f"the column {conflict!r} is in both coordinates and keep: choose one")
    return [name for name in table.columns if name in coordinates]


def _check_known(table: ItemTable, names: Iterable[str]) -> None:
    unknown = next((name for name in names if name not in table.columns), None)
    if unknown is not None:
        raise InvalidItems(f"{table.source} has no column {unknown!r}: its columns are {', '.join(table.columns)}")


def _check_shown(table: ItemTable) -> None:
    """Reject items whose media are all blank: participants would see nothing."""
    shown = [name for name in table.columns if (medium := medium_of(name)) and medium.conversion != "caption"]
    texts = [name for name in shown if name.casefold() in ("text", "markdown")]
    for row, line in enumerate(table.lines):
        if texts and not any(text_of(table.columns[name][row]).strip() for name in shown):
            raise InvalidItems(
                f"{table.source}, {line}, column {texts[0]!r}: the text is blank and the item has nothing else to "
                f"show; fill it in, or remove the row"
            )


@dataclass(frozen=True)
class _Advice:
    """Advice on an unusable column, for people who upload a file (``by_setting``) or for programs."""

    by_setting: bool

    def __call__(self, column: str) -> str:
        return f"remove the column {column!r}" if self.by_setting else self.for_numbers(column)

    def for_numbers(self, column: str) -> str:
        if self.by_setting:
            return f"keep {column!r} as data by naming the coordinates"
        return f"keep it as data with keep=[{column!r}]"


def _headless(path: Path | str, header: Sequence[str]) -> InvalidItems:
    return InvalidItems(
        f"{path} begins with {', '.join(header)}, which looks like an item rather than a header: add a header row, "
        f"such as id,x,y"
    )


def _check_header(path: str, header: Sequence[str]) -> None:
    """Reject a first row that looks like an item, such as ``merlot,0.3,1.7``."""
    other_cells = list(header[1:])
    # Tools name the columns of an unnamed table 0, 1, 2, ...
    if other_cells and all(map(_is_number, other_cells)) and other_cells != [str(i) for i in range(len(other_cells))]:
        raise _headless(path, header)


def _unique_column(path: str, names: Sequence[str], role: str, advice: _Advice) -> str | None:
    """Return the column named after a role, regardless of case; reject two of them."""
    matches = [name for name in names if name.casefold() == role]
    if len(matches) > 1:
        raise InvalidItems(
            f"{path} has the columns {matches[0]!r} and {matches[1]!r}: only one can be the {role}; rename the other, "
            f"or {advice(matches[1])}"
        )
    return matches[0] if matches else None


def _recognized_label(table: ItemTable, names: Sequence[str], numbering: str | None) -> str | None:
    """Return the only column of texts that is headed like labels; None if it is needed as the id."""
    matches = [name for name in names if plain_name(name) in _LABEL_HEADERS and not table.holds_numbers(name)]
    if len(matches) != 1:
        return None
    label = matches[0]
    has_id = numbering is not None or any(_is_id_header(name) for name in names if name != label)
    may_be_id = label == next(iter(table.columns)) or plain_name(label) in ID_COLUMNS
    return label if has_id or not may_be_id else None


def _is_id_header(name: str) -> bool:
    plain = plain_name(name)
    return plain in ID_COLUMNS or plain in DATASET_ID_COLUMNS or plain.endswith(_ID_ENDINGS)


def _id_column(path: str, names: Sequence[str], advice: _Advice) -> str | None:
    """Return the id column, recognized by its name; reject two candidates."""
    plain = [name for usual in ID_COLUMNS for name in names if name.casefold() == usual]
    known = [name for usual in DATASET_ID_COLUMNS for name in names if name.casefold() == usual]
    matches = plain + known[:1] + [name for name in names if plain_name(name).endswith(_ID_ENDINGS)]
    if len(matches) > 1:
        raise InvalidItems(
            f"{path} has the columns {matches[0]!r} and {matches[1]!r}, which both look like ids: rename one, or "
            f"{advice(matches[1])}"
        )
    return matches[0] if matches else None


def _numbers_rows(name: str, cells: Sequence[Any]) -> bool:
    """Return whether a first column is a row index: distinct whole numbers without a descriptive name."""
    if name and name.casefold() not in _ROW_NUMBER_HEADERS:
        return False
    texts = [text_of(cell) for cell in cells]
    return all(text.isascii() and text.isdigit() for text in texts) and len(set(texts)) == len(texts)


def _is_number(cell: object, *, decimal_comma: bool = False) -> bool:
    try:
        number(cell, decimal_comma=decimal_comma)
    except (TypeError, ValueError):
        return False
    return True


def columns_note(coordinates: Sequence[str], data: Sequence[str]) -> str:
    """Describe the roles that the columns of an items table received; empty if it has none.

    Examples
    --------
    >>> columns_note(["x", "y"], ["country"]), columns_note([], ["price"])
    ('coordinates: x, y; kept as data: country', 'no coordinates; kept as data: price')
    """
    data_columns = [name for name in data if medium_of(name) is None and name not in FILE_COLUMNS.values()]
    if not (coordinates or data_columns):
        return ""
    first = f"coordinates: {listed(coordinates)}" if coordinates else "no coordinates"
    return first + (f"; kept as data: {listed(data_columns)}" if data_columns else "")
