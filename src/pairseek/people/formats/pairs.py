"""CSV formats ``person,winner,loser`` and ``person,left,right,winner``, with the optional column ``rt_ms``.

With a loser, ``left`` and ``right`` are optional. They and the time are validated but not used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pairseek.core.types import ItemId
from pairseek.people.choices import Choices
from pairseek.people.formats.table import Table

COLUMNS = ("person", "winner", "loser")
SIDES = ("left", "right")
COLUMNS_WITH_SIDES = ("person", *SIDES, "winner")
TIME = "rt_ms"


def read(table: Table, ids: Sequence[ItemId] | None = None) -> Choices:
    """Read the choices of a table. Rows that name both sides but no winner are ties."""
    columns = tuple(name for name in (*COLUMNS, *SIDES, TIME) if table.has((name,)))
    rows: list[tuple[str, str, str]] = []
    tied: list[tuple[str, str, str]] = []
    for line, cells in table.cells(columns):
        row = dict(zip(columns, cells, strict=True))
        person, winner = row["person"], row["winner"]
        if not person:
            raise table.error(line, "person", "it is empty; fill it in or remove the line")
        sides = tuple(row[name] for name in SIDES if name in row)
        if len(sides) == 2:
            left, right = sides
            if left == right:
                raise table.error(line, "right", f"{right!r} is also the left item; give two different items")
            if not winner and not row.get("loser"):
                tied.append((person, left, right))
                continue
            row.setdefault("loser", right if winner == left else left)
        for column in ("winner", "loser"):
            if not row[column]:
                raise table.error(line, column, "it is empty; fill it in or remove the line")
        if winner == row["loser"]:
            raise table.error(line, "loser", f"{winner!r} is also the winner; give two different items")
        if len(sides) == 2 and {winner, row["loser"]} != set(sides):
            raise table.error(
                line,
                "winner",
                f"{winner!r}: winner and loser must be the items in the columns left and right, {left!r} and "
                f"{right!r}; fix or remove the line",
            )
        _check_time(table, line, row.get(TIME, ""))
        rows.append((person, winner, row["loser"]))
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
