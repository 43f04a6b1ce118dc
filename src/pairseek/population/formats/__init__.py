"""File formats of recorded choices, one module per format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pairseek.core.types import ItemId
from pairseek.errors import InvalidChoices
from pairseek.population.choices import Choices
from pairseek.population.formats import bundle, pairs, preflib, ratings
from pairseek.population.formats.table import Table

__all__ = ["read"]


def read(path: Path, ids: Sequence[ItemId] | None = None) -> Choices:
    """Read recorded choices; the file's extension and columns determine the format.

    Valid files are ``.csv`` with the columns person, item and rating, or person, winner and loser; PrefLib's ``.soc``,
    ``.soi``, ``.toc`` and ``.toi``; and ``.zip`` bundles that ``pairseek export`` wrote.

    Parameters
    ----------
    path
        The file.
    ids
        All items. None takes the items that occur in the file.
    """
    extension = path.suffix.lower()
    if extension in preflib.EXTENSIONS:
        return preflib.read(path, ids)
    if extension == ".zip":
        return bundle.read(path, ids)
    if extension != ".csv":
        raise InvalidChoices(
            f"{path} has an unknown extension {extension!r}: use .csv, .zip or {', '.join(preflib.EXTENSIONS)}"
        )
    table = Table.read(path)
    if table.has(ratings.COLUMNS):
        return ratings.read(table, ids)
    if table.has(pairs.COLUMNS):
        return pairs.read(table, ids)
    raise InvalidChoices(
        f"{path} has the columns {', '.join(table.header)}: expected {','.join(ratings.COLUMNS)} or "
        f"{','.join(pairs.COLUMNS)}"
    )
