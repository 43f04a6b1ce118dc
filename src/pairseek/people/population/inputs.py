"""Validation of the choices, items and vectors that a population is fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairseek.core.text import quoted
from pairseek.core.types import FloatArray, ItemId
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.model.items import Items
from pairseek.model.vector_tables import read_vectors
from pairseek.model.vectors import checked_vectors
from pairseek.people.choices import Choices


@dataclass(frozen=True, eq=False)
class ItemVectors:
    """Vectors with the ids and labels of their items."""

    vectors: FloatArray
    ids: list[ItemId]
    labels: Sequence[str] | None


def vector_table(vectors: object, choices: Choices, items: Items | None) -> ItemVectors:
    """Return vectors with the ids of their items; without ids they are in the order of the choices."""
    _check_choices(choices)
    if items is not None:
        raise InvalidParameter("vectors is given with items: give vectors and a dimension, or items with coordinates")
    if isinstance(vectors, Items):
        return ItemVectors(np.asarray(vectors.coordinates), list(vectors.ids), vectors.labels)
    table = read_vectors(vectors)
    array = checked_vectors(table.vectors, table.ids)
    names = choices.ids if table.ids is None else table.ids
    if len(names) != len(array):
        raise InvalidParameter(
            f"there are {len(array)} vectors without ids and {len(names)} items in the choices: give a mapping from "
            f"ids to vectors, or a table with a column id",
            field="vectors",
        )
    known = Items._without_warnings(array, names)
    return ItemVectors(np.asarray(known.coordinates), list(known.ids), table.labels)


def compared_choices(choices: Choices, table: ItemVectors) -> Choices:
    """Return the usable choices about the items that somebody compared, all of which must have a vector."""
    _check_choices(choices)
    uncompared, known = set(choices.uncompared), set(table.ids)
    names = [name for name in choices.ids if name not in uncompared]
    missing = [name for name in names if name not in known]
    if missing:
        raise InvalidChoices(f"there is no vector for {quoted(missing)}: give one, or remove the choices about it")
    return usable_choices(choices.of_items(names), None)


def _check_choices(choices: object) -> None:
    if not isinstance(choices, Choices):
        raise InvalidParameter(
            f"choices is {choices!r}: give Choices, as from Choices.read('ratings.csv') or Choices.from_ratings(rows)",
            field="choices",
        )


def usable_choices(choices: Choices, items: Items | None) -> Choices:
    """Return the choices of the people with usable pairs; raise an error if a fit is impossible."""
    _check_choices(choices)
    if items is not None:
        if not isinstance(items, Items):
            raise InvalidParameter(
                f"items is a {type(items).__name__}: give Items with coordinates, or give a dimension instead of items",
                field="items",
            )
        choices = choices.of_items(items.ids)
    if not len(choices):
        why = f"all {choices.ties} pairs are ties" if choices.ties else "nobody compared two items"
        raise InvalidChoices(
            f"there is nothing to learn from {quoted(choices.people)}: {why}; give choices between two items, or "
            f"ratings that differ"
        )
    usable = choices.usable()
    if len(usable.people) < 2:
        others = f"; {quoted(choices.unusable)} gave no usable pair" if choices.unusable else ""
        raise InvalidChoices(
            f"only {usable.people[0]!r} gave usable choices{others}: a population needs at least two people"
        )
    if items is None and choices.uncompared:
        raise InvalidChoices(
            f"nobody compared {quoted(choices.uncompared)} with another item: its coordinates cannot be learned; leave "
            f"it out, or give coordinates"
        )
    return usable
