"""CSV format ``person,winner,loser``, with the optional columns ``left``, ``right`` and ``rt_ms``.

The optional columns are validated but not used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pairseek.core.types import ItemId
from pairseek.people.choices import Choices
from pairseek.people.formats.table import Table

COLUMNS = ("person", "winner", "loser")
SIDES = ("left", "right")
TIME = "rt_ms"


def read(table: Table, ids: Sequence[ItemId] | None = None) -> Choices:
    """Read the choices of a table. Rows that name both sides but no winner are ties."""
    sides = table.has(SIDES)
    columns = (*COLUMNS, *(SIDES if sides else ()), *((TIME,) if table.has((TIME,)) else ()))
    rows: list[tuple[str, str, str]] = []
    tied: list[tuple[str, str, str]] = []
    for line, cells in table.cells(columns):
        row = dict(zip(columns, cells, strict=True))
        person, winner, loser = (row[name] for name in COLUMNS)
        if not person:
            raise table.error(line, "person", "it is empty; fill it in or remove the line")
        if sides and not winner and not loser:
            if row["left"] == row["right"]:
                raise table.error(line, "right", f"{row['right']!r} is also the left item; give two different items")
            tied.append((person, row["left"], row["right"]))
            continue
        for column, cell in (("winner", winner), ("loser", loser)):
            if not cell:
                raise table.error(line, column, "it is empty; fill it in or remove the line")
        if winner == loser:
            raise table.error(line, "loser", f"{loser!r} is also the winner; give two different items")
        if sides and {winner, loser} != {row["left"], row["right"]}:
            raise table.error(
                line,
                "winner",
                f"{winner!r} and {loser!r} are not the items in the columns left and right, {row['left']!r} and "
                f"{row['right']!r}; fix or remove the line",
            )
        _check_time(table, line, row.get(TIME, ""))
        rows.append((person, winner, loser))
    return Choices.from_pairs(rows, ids=ids, tied=tied)


def _check_time(table: Table, line: int, text: str) -> None:
    if not text:
        return
    try:
        is_valid = math.isfinite(table.number(text)) and table.number(text) >= 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise table.error(line, TIME, f"{text!r} is not a time in milliseconds; fix it or leave it empty")
