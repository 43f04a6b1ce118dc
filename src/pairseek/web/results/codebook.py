"""Codebook: descriptions of the columns of the exported tables, from the message catalogue."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from pairseek.core.messages import Words, words

# Columns with the same meaning.
_PLAYED_COLUMNS = frozenset(["left_played", "right_played", "anchor_played"])
_BOUND_COLUMNS = {f"{name}_{end}": end for name in ("agreement", "k", "lapse") for end in ("low", "high")}


@cache
def _described() -> frozenset[str]:
    """Return the columns with a message ``column.NAME``, or with ``column.NAME.TABLE`` for one table."""
    return _PLAYED_COLUMNS | {key.split(".")[1] for key in words().with_prefix("column.")}


def is_known(column: str) -> bool:
    """Return whether some table has a column of this name regardless of the names of the items' coordinates."""
    return column in _described()


def meaning(
    catalogue: Words, table: str, column: str, coordinates: Sequence[str] = (), data: Collection[str] = ()
) -> str:
    """Return the description of a column; ``coordinates`` and ``data`` are the columns named by the researcher."""
    return catalogue.say(_key(table, column, coordinates, data))


def _key(table: str, column: str, coordinates: Sequence[str], data: Collection[str]) -> str:
    if column in data:
        return "codebook.data"
    if column in coordinates:
        return f"codebook.coordinate.{table}"
    if column.removeprefix("truth_") in coordinates:
        return "codebook.truth"
    if words().has(f"column.{column}.{table}"):
        return f"column.{column}.{table}"
    if column in _PLAYED_COLUMNS:
        return "codebook.played"
    if column in _BOUND_COLUMNS:
        return f"codebook.{_BOUND_COLUMNS[column]}"
    return f"column.{column}"
