"""Recorded choices of people: paired comparisons, or the pairs implied by rankings and ratings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self, TypeAlias

import numpy as np

from pairseek.core.text import plural, quoted
from pairseek.core.types import BoolArray, FloatArray, IntArray, ItemId
from pairseek.core.validation import is_number
from pairseek.errors import InvalidChoices

Ranking: TypeAlias = "Sequence[ItemId | Sequence[ItemId]]"


@dataclass(frozen=True, eq=False)
class Choices:
    """Paired comparisons, grouped by person.

    Construct them with `from_pairs`, `from_rankings`, `from_ratings` or `read`.

    Attributes
    ----------
    people
        Names of the people. They include people without a usable pair, who have no row.
    ids
        Ids of the items.
    person, winner, loser
        (m,) indices into `people` and `ids`. The rows of a person are contiguous and in their original order.
    weight
        (m,) weight of each row in a fit. A choice has the weight 1. The pairs implied by one ranking, or by one set of
        ratings, of n items are dependent: their total weight is 2(n - 1), and none exceeds 1. See `pair_weight`.
    tied
        (t, 3) rows (person, item, item) of the pairs without a winner, ordered by person. Fits leave them out.
    """

    people: tuple[str, ...]
    ids: tuple[ItemId, ...]
    person: IntArray
    winner: IntArray
    loser: IntArray
    weight: FloatArray
    tied: IntArray

    def __post_init__(self) -> None:
        for name in ("person", "winner", "loser", "weight", "tied"):
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        return len(self.person)

    def __repr__(self) -> str:
        who = "1 person" if len(self.people) == 1 else f"{len(self.people)} people"
        return f"Choices({who}, {plural(len(self.ids), 'item')}, {plural(len(self), 'pair')})"

    @classmethod
    def from_pairs(
        cls,
        rows: Iterable[tuple[object, ItemId, ItemId]],
        *,
        ids: Sequence[ItemId] | None = None,
        tied: Iterable[tuple[object, ItemId, ItemId]] = (),
    ) -> Self:
        """Build choices from (person, winner, loser) rows.

        Parameters
        ----------
        rows
            One row per choice. Repetitions of a pair are valid, in either direction.
        ids
            All items, in order. None takes the items that occur, sorted.
        tied
            One (person, item, item) row per pair for which the person named no winner.
        """
        decided, undecided = (
            [(str(person), first, second) for person, first, second in given] for given in (rows, tied)
        )
        listed = [*decided, *undecided]
        for number, (person, first, second) in enumerate(listed):
            if first == second:
                raise InvalidChoices(
                    f"row {number}: person {person!r} chose {first!r} over itself; give two different items"
                )
        names, places = _places((item for _, *pair in listed for item in pair), ids)
        people = {person: row for row, person in enumerate(dict.fromkeys(person for person, _, _ in listed))}
        table, ties = (
            np.array([(people[p], places[a], places[b]) for p, a, b in part], dtype=np.int64).reshape(-1, 3)
            for part in (decided, undecided)
        )
        who, winner, loser = (np.ascontiguousarray(column) for column in _by_person(table).T)
        return cls(_some(people), names, who, winner, loser, np.ones(len(who)), _by_person(ties))

    @classmethod
    def from_rankings(
        cls,
        rankings: Mapping[str, Ranking] | Iterable[tuple[object, Ranking]],
        *,
        ids: Sequence[ItemId] | None = None,
        most: int = 1000,
        rng: int | np.random.Generator = 0,
    ) -> Self:
        """Build choices from one ranking per person, best first. An entry is an item or a group of tied items.

        Items that a person did not rank are not compared.

        Parameters
        ----------
        rankings
            The rankings by person.
        ids
            All items, in order. None takes the items that occur, sorted.
        most
            Approximate maximum number of pairs per person. Longer rankings are subsampled at random.
        rng
            A seed or a generator for the subsampling.
        """
        levels: dict[str, dict[ItemId, float]] = {}
        for name, groups in rankings.items() if isinstance(rankings, Mapping) else rankings:
            person = str(name)
            if person in levels:
                raise InvalidChoices(f"person {person!r} has two rankings; give each ranking a different person")
            own = levels[person] = {}
            for place, group in enumerate(groups):
                for item in group if isinstance(group, Sequence) and not isinstance(group, str) else [group]:
                    if item in own:
                        raise InvalidChoices(f"person {person!r} ranks {item!r} twice; rank each item once")
                    own[item] = -float(place)
        return cls._implied(levels, ids, most, np.random.default_rng(rng))

    @classmethod
    def from_ratings(
        cls,
        rows: Iterable[tuple[object, ItemId, float]],
        *,
        ids: Sequence[ItemId] | None = None,
        most: int = 1000,
        rng: int | np.random.Generator = 0,
    ) -> Self:
        """Build choices from (person, item, rating) rows. Two items with different ratings make a pair; higher wins.

        The other parameters are those of `from_rankings`.
        """
        levels: dict[str, dict[ItemId, float]] = {}
        for person, item, rating in rows:
            own = levels.setdefault(str(person), {})
            if item in own:
                raise InvalidChoices(f"person {str(person)!r} rates {item!r} twice; keep one of the two")
            if not (is_number(rating) and np.isfinite(rating)):
                raise InvalidChoices(f"person {str(person)!r} rates {item!r} {rating!r}; give a finite number")
            own[item] = float(rating)
        return cls._implied(levels, ids, most, np.random.default_rng(rng))

    @classmethod
    def _implied(
        cls,
        levels: Mapping[str, Mapping[ItemId, float]],
        ids: Sequence[ItemId] | None,
        most: int,
        rng: np.random.Generator,
    ) -> Self:
        names, places = _places((item for own in levels.values() for item in own), ids)
        columns: list[tuple[IntArray, IntArray, IntArray, FloatArray]] = []
        ties: list[IntArray] = []
        for row, own in enumerate(levels.values()):
            items = np.array([places[item] for item in own], dtype=np.int64)
            values = np.array(list(own.values()))
            n = len(items)
            if n * (n - 1) // 2 <= most:
                first, second = np.triu_indices(n, 1)
            else:
                keys = np.unique(np.sort(rng.integers(n, size=(most, 2)), axis=1), axis=0)
                first, second = keys[keys[:, 0] < keys[:, 1]].T
            differ = values[first] != values[second]
            pairs = items[np.stack([first[~differ], second[~differ]], axis=1)]
            ties.append(np.insert(pairs, 0, row, axis=1))
            first, second = first[differ], second[differ]
            up = values[first] > values[second]
            count = len(first)
            columns.append(
                (
                    np.full(count, row, dtype=np.int64),
                    items[np.where(up, first, second)],
                    items[np.where(up, second, first)],
                    np.full(count, pair_weight(n, count)),
                )
            )
        people = _some(levels)
        person, winner, loser, weight = (np.concatenate(part) for part in zip(*columns, strict=True))
        return cls(people, names, person, winner, loser, weight, np.concatenate(ties))

    @classmethod
    def read(cls, path: str | Path, *, ids: Sequence[ItemId] | None = None) -> Self:
        """Read choices from a file in one of the formats of `pairseek.population.formats`."""
        from pairseek.population.formats import read

        found = read(Path(path), ids)
        assert isinstance(found, cls)
        return found

    @property
    def starts(self) -> IntArray:
        """(people + 1,) offsets of each person's first row."""
        return np.searchsorted(self.person, np.arange(len(self.people) + 1)).astype(np.int64)

    @property
    def ties(self) -> int:
        """Number of pairs without a winner."""
        return len(self.tied)

    @cached_property
    def unusable(self) -> tuple[str, ...]:
        """People without a usable pair, because they rated one item only or all items equally."""
        counts = np.diff(self.starts)
        return tuple(self.people[row] for row in np.flatnonzero(counts == 0))

    @cached_property
    def uncompared(self) -> tuple[ItemId, ...]:
        """Items that occur in no pair."""
        seen = np.zeros(len(self.ids), dtype=np.bool_)
        seen[self.winner] = seen[self.loser] = True
        return tuple(self.ids[row] for row in np.flatnonzero(~seen))

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks about unusable data, for people who fit a population."""
        out = []
        if self.unusable:
            who = "person has" if len(self.unusable) == 1 else "people have"
            out.append(
                f"{len(self.unusable)} {who} no usable pair (one item only, or all items equal) and will be ignored: "
                f"{quoted(self.unusable)}"
            )
        if self.uncompared:
            what = "item is" if len(self.uncompared) == 1 else "items are"
            out.append(f"{len(self.uncompared)} {what} in no usable pair: {quoted(self.uncompared)}")
        return tuple(out)

    @cached_property
    def hash(self) -> str:
        """SHA-256 digest of the content."""
        digest = hashlib.sha256(repr((self.people, self.ids)).encode())
        for array in (self.person, self.winner, self.loser):
            digest.update(array.astype("<i8").tobytes())
        digest.update(self.weight.astype("<f8").tobytes())
        digest.update(self.tied.astype("<i8").tobytes())
        return digest.hexdigest()

    def only(self, people: Sequence[int] | IntArray) -> Self:
        """Select the choices of these people, given by index, in this order."""
        rows = [np.arange(self.starts[p], self.starts[p + 1]) for p in people]
        kept = np.concatenate(rows).astype(np.int64) if rows else np.empty(0, dtype=np.int64)
        person = np.repeat(np.arange(len(rows)), [len(row) for row in rows]).astype(np.int64)
        firsts = np.searchsorted(self.tied[:, 0], np.arange(len(self.people) + 1))
        ties = [np.insert(self.tied[firsts[p] : firsts[p + 1], 1:], 0, row, axis=1) for row, p in enumerate(people)]
        return replace(
            self,
            people=tuple(self.people[p] for p in people),
            person=person,
            winner=self.winner[kept],
            loser=self.loser[kept],
            weight=self.weight[kept],
            tied=np.concatenate([np.empty((0, 3), dtype=np.int64), *ties]),
        )

    def usable(self) -> Self:
        """Remove the people who have no pair."""
        return self.only(np.flatnonzero(np.diff(self.starts)))

    def rows(self, keep: BoolArray) -> Self:
        """Select rows by a mask, and keep all people."""
        parts = {name: getattr(self, name)[keep] for name in ("person", "winner", "loser", "weight")}
        return replace(self, **parts)

    def of_items(self, ids: Sequence[ItemId]) -> Self:
        """Re-index the choices by these items, which must include the items of all decided pairs.

        Tied pairs with another item are left out.
        """
        places = {item: row for row, item in enumerate(ids)}
        used = np.union1d(self.winner, self.loser)
        missing = [self.ids[row] for row in used if self.ids[row] not in places]
        if missing:
            raise InvalidChoices(
                f"the choices contain items that are not among the {len(ids)} given: {quoted(missing)}; give all "
                f"items, or remove these choices"
            )
        rows = np.array([places.get(item, -1) for item in self.ids], dtype=np.int64)
        tied = np.column_stack([self.tied[:, 0], rows[self.tied[:, 1:]]])
        tied = tied[np.all(tied >= 0, axis=1)]
        return replace(self, ids=tuple(ids), winner=rows[self.winner], loser=rows[self.loser], tied=tied)


def pair_weight(n: int, pairs: int) -> float:
    """Return the weight of one of the pairs that n rated or ranked items imply.

    Ratings have independent noise per item, not per pair. The difference of two utilities has logistic noise with the
    variance π²/3, so an item's noise has the variance π²/6, and the ratings of n items have the Fisher information
    V'V 6/π² about z. All pairs, treated as independent, would have the information V'V n f', where f' is about 0.15 for
    choices that are correct three times in four. The two agree if a pair has the weight 6/(0.15 π² n), about 4/n: the
    n(n - 1)/2 pairs have the total weight 2(n - 1).
    """
    return min(1.0, 2.0 * (n - 1) / pairs) if pairs else 1.0


def _by_person(table: IntArray) -> IntArray:
    """Order rows by their first column, and keep the order of each person's rows."""
    return table[np.argsort(table[:, 0], kind="stable")]


def _some(people: Iterable[str]) -> tuple[str, ...]:
    names = tuple(people)
    if not names:
        raise InvalidChoices("there are no people: give choices of at least two people")
    return names


def _places(occurring: Iterable[ItemId], ids: Sequence[ItemId] | None) -> tuple[tuple[ItemId, ...], dict[ItemId, int]]:
    """Return the items and a mapping from item to row; raise an error if an occurring item is missing."""
    used = dict.fromkeys(occurring)
    names = tuple(_sorted(used) if ids is None else ids)
    places = {item: row for row, item in enumerate(names)}
    if len(places) < len(names):
        twice = [item for row, item in enumerate(names) if places[item] != row]
        raise InvalidChoices(f"ids has {quoted(twice)} more than once: name each item once")
    unknown = [item for item in used if item not in places]
    if unknown:
        raise InvalidChoices(
            f"the choices contain unknown items: {quoted(unknown)}; give all items of the choices, with ids as text if "
            f"the choices come from a file"
        )
    return names, places


def _sorted(names: Iterable[ItemId]) -> list[ItemId]:
    return sorted(names, key=lambda item: (isinstance(item, str), item))
