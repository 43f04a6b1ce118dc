"""CSV format ``person,item,event``, with the optional column ``time`` or ``timestamp``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import chain

from pairseek.core.types import ItemId
from pairseek.people.choices import Choices
from pairseek.people.events import EVENT_WEIGHTS
from pairseek.people.formats.table import Table

COLUMNS = ("person", "item", "event")
TIMES = ("time", "timestamp")


def read(table: Table, ids: Sequence[ItemId] | None = None) -> Choices:
    """Read the events of a table as choices; every kind of event must be one of `EVENT_WEIGHTS`."""
    times = [name for name in TIMES if table.has((name,))][:1]
    rows: list[tuple[object, ...]] = []
    for line, (person, item, kind, *time) in table.cells((*COLUMNS, *times)):
        for column, cell in zip(chain(COLUMNS, times), (person, item, kind, *time), strict=True):
            if not cell:
                raise table.error(line, column, "it is empty; fill it in or remove the line")
        if kind.casefold() not in EVENT_WEIGHTS:
            raise table.error(
                line,
                "event",
                f"{kind!r} is not a known kind of event ({', '.join(EVENT_WEIGHTS)}); rename it, or give rows and the "
                f"weights of your kinds to Choices.from_events",
            )
        rows.append((person, item, kind, *(_moment(table, line, times[0], cell) for cell in time)))
    return Choices.from_events(rows, ids=ids)


def _moment(table: Table, line: int, column: str, cell: str) -> float | datetime:
    try:
        return table.number(cell)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(cell)
    except ValueError:
        raise table.error(
            line, column, f"{cell!r} is not a time; give seconds, milliseconds, or a date such as 2026-05-01T12:30"
        ) from None
