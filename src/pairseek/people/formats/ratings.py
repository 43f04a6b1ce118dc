"""CSV format ``person,item,rating``, where higher ratings are better."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pairseek.core.types import ItemId
from pairseek.people.choices import Choices
from pairseek.people.formats.table import Table

COLUMNS = ("person", "item", "rating")


def read(table: Table, ids: Sequence[ItemId] | None = None) -> Choices:
    """Read the ratings of a table as choices."""
    rows: list[tuple[str, str, float]] = []
    seen: dict[tuple[str, str], int] = {}
    table.check_decimals("rating")
    for line, (person, item, text) in table.cells(COLUMNS):
        for column, cell in (("person", person), ("item", item)):
            if not cell:
                raise table.error(line, column, "it is empty; fill it in or remove the line")
        try:
            rating = table.number(text)
        except ValueError:
            rating = math.nan
        if not math.isfinite(rating):
            raise table.error(line, "rating", f"{text!r} is not a finite number; fix it or remove the line")
        if (person, item) in seen:
            raise table.error(
                line,
                "item",
                f"person {person!r} already rated {item!r} in line {seen[person, item]}; keep one of the two",
            )
        seen[person, item] = line
        rows.append((person, item, rating))
    return Choices.from_ratings(rows, ids=ids)
