"""File formats of recorded choices, one module per format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pairseek.core.csv import TEXT_ENDINGS, is_table
from pairseek.core.types import ItemId
from pairseek.errors import InvalidChoices
from pairseek.people.choices import Choices
from pairseek.people.formats import bundle, pairs, preflib, ratings
from pairseek.people.formats.table import Table

__all__ = ["read"]

FILES = {**dict.fromkeys(preflib.EXTENSIONS, preflib.read), ".zip": bundle.read}
"""Readers of files by extension."""
TABLES = (
    (ratings.COLUMNS, ratings.read),
    (pairs.COLUMNS, pairs.read),
)
"""Required columns and readers of tables."""


def read(path: Path, ids: Sequence[ItemId] | None = None) -> Choices:
    """Read recorded choices; the file's extension and columns determine the format.

    Valid files are ``.csv``, ``.tsv``, ``.txt`` and ``.parquet`` tables with the columns person, item and rating, or
    person, winner and loser; PrefLib's ``.soc``, ``.soi``, ``.toc`` and ``.toi``; and ``.zip`` bundles written
    by ``pairseek export``.

    Parameters
    ----------
    path
        The file.
    ids
        All items. None: the items that occur in the file.
    """
    extension = path.suffix.lower()
    if extension in FILES:
        return FILES[extension](path, ids)
    if not is_table(path):
        known = ", ".join((*TEXT_ENDINGS, ".parquet", *FILES))
        raise InvalidChoices(f"{path} has the unknown extension {extension!r}: use one of {known}")
    return read_table(Table.read(path), ids)


def read_table(table: Table, ids: Sequence[ItemId] | None = None) -> Choices:
    """Read recorded choices from a table; its columns determine the format."""
    for columns, read_rows in TABLES:
        if table.has(columns):
            return read_rows(table, ids)
    expected = " or ".join(",".join(columns) for columns, _ in TABLES)
    raise InvalidChoices(f"{table.path} has the columns {', '.join(table.header)}: expected {expected}")
