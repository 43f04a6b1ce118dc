"""Rows of people and items: names, positions and selections of the columns of `Choices`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pairseek.core.text import quoted
from pairseek.core.types import IntArray, ItemId
from pairseek.errors import InvalidChoices


def selected_rows(person: IntArray, people: Sequence[int] | IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Return the new person and the index of each row of these people, given the sorted persons of all rows."""
    starts = np.searchsorted(person, np.arange(count + 1))
    chosen = np.asarray(people, dtype=np.int64)
    sizes = starts[chosen + 1] - starts[chosen]
    owner = np.repeat(np.arange(len(chosen)), sizes)
    return owner, np.repeat(starts[chosen] - np.cumsum(sizes) + sizes, sizes) + np.arange(len(owner))


def by_person(table: IntArray) -> IntArray:
    """Sort rows by person, their first column, keeping the order of each person's rows."""
    return table[np.argsort(table[:, 0], kind="stable")]


def names_of(people: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the people; raise an error if there are none."""
    names = tuple(people)
    if not names:
        raise InvalidChoices("the choices contain no people: give choices of at least two people")
    return names


def item_positions(
    occurring: Iterable[ItemId], ids: Sequence[ItemId] | None
) -> tuple[tuple[ItemId, ...], dict[ItemId, int]]:
    """Return the items and a mapping from item to row; raise an error if an item of the choices is missing."""
    used = dict.fromkeys(occurring)
    names = tuple(sorted(used, key=lambda item: (isinstance(item, str), item)) if ids is None else ids)
    positions = {item: row for row, item in enumerate(names)}
    if len(positions) < len(names):
        twice = [item for row, item in enumerate(names) if positions[item] != row]
        raise InvalidChoices(f"ids contains {quoted(twice)} more than once: give each item once")
    unknown = [item for item in used if item not in positions]
    if unknown:
        raise InvalidChoices(
            f"the choices contain items that are not in ids: {quoted(unknown)}; give all items of the choices, with "
            f"ids as text if the choices come from a file"
        )
    return names, positions
