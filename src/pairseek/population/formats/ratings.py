"""``person,item,rating``: higher is better."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pairseek.core.types import ItemId
from pairseek.population.choices import Choices
from pairseek.population.formats.table import Table

COLUMNS = ("person", "item", "rating")


def read(table: Table, ids: Sequence[ItemId] | None = None) -> Choices:
    """The pairs that the ratings of a table imply."""
    rows: list[tuple[str, str, float]] = []
    seen: dict[tuple[str, str], int] = {}
    for line, (person, item, text) in table.cells(COLUMNS):
        for column, cell in (("person", person), ("item", item)):
            if not cell:
                raise table.error(line, column, "it is empty; fill it in or remove the line")
        try:
            rating = float(text)
        except ValueError:
            rating = math.nan
        if not math.isfinite(rating):
            raise table.error(line, "rating", f"{text!r} is not a finite number; mend it or remove the line")
        if (person, item) in seen:
            raise table.error(
                line, "item", f"person {person!r} rated {item!r} in line {seen[person, item]} already; keep one of them"
            )
        seen[person, item] = line
        rows.append((person, item, rating))
    return Choices.from_ratings(rows, ids=ids)
