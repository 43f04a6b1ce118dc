"""File formats of recorded choices, one module per format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pairseek.core.csv import TEXT_ENDINGS, is_table
from pairseek.core.frames import frame_columns
from pairseek.core.types import ItemId
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.people.choices import Choices
from pairseek.people.formats import bundle, events, pairs, preflib, ratings
from pairseek.people.formats.table import Table

__all__ = ["read", "read_frame"]

FILES = {**dict.fromkeys(preflib.EXTENSIONS, preflib.read), ".zip": bundle.read}
"""Readers of files by extension."""
TABLES = (
    (ratings.COLUMNS, ratings.read),
    (pairs.COLUMNS, pairs.read),
    (pairs.COLUMNS_WITH_SIDES, pairs.read),
    (events.COLUMNS, events.read),
)
"""Required columns and readers of tables."""
ROLES = tuple(
    dict.fromkeys((*ratings.COLUMNS, *pairs.COLUMNS, *pairs.SIDES, pairs.TIME, *events.COLUMNS, events.TIMES[0]))
)
"""Roles that a column can have."""


def read(path: Path, ids: Sequence[ItemId] | None = None, columns: Mapping[str, str] | None = None) -> Choices:
    """Read recorded choices; the file's extension and columns determine the format.

    Valid files are text and Parquet tables with the columns person, item and rating, or person, winner and loser, or
    person, left, right and winner, or person, item and event, under these names or those of MovieLens, Amazon and
    RecBole; PrefLib's ``.soc``, ``.soi``, ``.toc`` and ``.toi``; and ``.zip`` bundles written by ``pairseek export``.

    Parameters
    ----------
    path
        The file.
    ids
        All items. None: the items that occur in the file.
    columns
        Columns by role, such as ``{"person": "shopper", "item": "sku"}``, where a table uses other names.
    """
    extension = path.suffix.lower()
    if extension in FILES:
        if columns is not None:
            raise InvalidParameter(f"{path} has no named columns: omit the argument columns", field="columns")
        return FILES[extension](path, ids)
    if not is_table(path):
        extensions = ", ".join((*TEXT_ENDINGS, ".xlsx", ".parquet", *FILES))
        raise InvalidChoices(f"{path} has the unknown extension {extension!r}: use one of {extensions}")
    return read_table(Table.read(path), ids, columns)


def read_table(table: Table, ids: Sequence[ItemId] | None = None, columns: Mapping[str, str] | None = None) -> Choices:
    """Read recorded choices from a table; its columns determine the format."""
    table = table.with_roles(columns, ROLES)
    for required, read_rows in TABLES:
        if table.has(required):
            return replace(read_rows(table, ids), renamed_columns=table.header.renamed)
    expected = " or ".join(",".join(required) for required, _ in TABLES)
    raise InvalidChoices(
        f"{table.path} has the columns {', '.join(table.header.written)}: expected {expected}; if they have other "
        f"names, say which is which with columns={{...}}"
    )


def read_frame(frame: object, ids: Sequence[ItemId] | None = None, columns: Mapping[str, str] | None = None) -> Choices:
    """Read recorded choices from a data frame; ids keep their type."""
    cells = frame_columns(frame, InvalidChoices)
    texts = None if ids is None else [str(name) for name in ids]
    choices = read_table(Table.of_columns(cells, "the data frame"), texts, columns)
    if ids is not None:
        return replace(choices, ids=tuple(ids))
    numbers = {str(cell): cell for values in cells.values() for cell in values if type(cell) is int}
    if not all(name in numbers for name in choices.ids):
        return choices
    integer_ids = sorted(numbers[str(name)] for name in choices.ids)
    return replace(choices.of_items([str(name) for name in integer_ids]), ids=tuple(integer_ids))
