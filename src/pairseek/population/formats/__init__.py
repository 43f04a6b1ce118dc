"""People's choices in files: one module a format."""

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
    """Read what people chose.

    ``.csv`` with the columns person, item and rating, or person, winner and loser; PrefLib's ``.soc``, ``.soi``,
    ``.toc`` and ``.toi``; ``.zip``, a bundle that `pairseek export` wrote.

    Parameters
    ----------
    path
        The file.
    ids
        All items. None: those that the file names.
    """
    ending = path.suffix.lower()
    if ending in preflib.ENDINGS:
        return preflib.read(path, ids)
    if ending == ".zip":
        return bundle.read(path, ids)
    if ending != ".csv":
        raise InvalidChoices(f"{path} has an unknown ending {ending!r}: use .csv, .zip or {', '.join(preflib.ENDINGS)}")
    table = Table.read(path)
    if table.has(ratings.COLUMNS):
        return ratings.read(table, ids)
    if table.has(pairs.COLUMNS):
        return pairs.read(table, ids)
    raise InvalidChoices(
        f"{path} has the columns {', '.join(table.header)}: name them {','.join(ratings.COLUMNS)} or "
        f"{','.join(pairs.COLUMNS)}"
    )
