"""Recorded choices of people: paired comparisons, ratings, and the pairs implied by rankings and ratings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from pairseek.core.frames import Backend, frame_columns, frame_of
from pairseek.core.lazy import cached_property
from pairseek.core.text import plural, quoted
from pairseek.core.types import BoolArray, FloatArray, IntArray, ItemId
from pairseek.core.validation import is_number
from pairseek.errors import InvalidChoices

Ranking: TypeAlias = "Sequence[ItemId | Sequence[ItemId]]"


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings of items, grouped by person.

    Attributes
    ----------
    person, item
        (m,) indices into the people and the items of the choices. The rows of a person are contiguous.
    value
        (m,) ratings on a scale that is common to all people; higher is better.
    """

    person: IntArray
    item: IntArray
    value: FloatArray

    def __post_init__(self) -> None:
        for array in (self.person, self.item, self.value):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.person)


@dataclass(frozen=True, eq=False)
class Choices:
    """Paired comparisons, grouped by person, and the ratings behind them if there are any.

    Construct them with `from_pairs`, `from_rankings`, `from_ratings` or `read`.

    Attributes
    ----------
    people
        Names of the people. They include people without a decided pair, who have no row.
    ids
        Ids of the items.
    person, winner, loser
        (m,) indices into `people` and `ids`. The rows of a person are contiguous and in their original order.
    weight
        (m,) weight of each row in a fit to pairs. A choice has the weight 1. The pairs implied by one ranking, or by
        one set of ratings, are dependent and have a smaller weight: see `pair_weight`.
    tied
        (t, 3) rows (person, item, item) of the pairs without a winner, ordered by person.
    ratings
        The ratings that imply the pairs. A fit uses them in place of the pairs. None for pairs and rankings.
    derived
        Whether the pairs are implied by rankings or ratings. Fits to pairs use the ties of questions that people
        answered, and leave out ties that are implied.

    Examples
    --------
    >>> import pairseek as ps
    >>> rows = [("ann", "tea", "coffee"), ("bob", "tea", "cocoa")]   # person, winner, loser
    >>> choices = ps.Choices.from_pairs(rows)
    >>> len(choices), choices.ids
    (2, ('cocoa', 'coffee', 'tea'))
    """

    people: tuple[str, ...]
    ids: tuple[ItemId, ...]
    person: IntArray
    winner: IntArray
    loser: IntArray
    weight: FloatArray
    tied: IntArray
    ratings: Ratings | None = None
    derived: bool = False

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
        """Build choices from (person, item, rating) rows; higher is better.

        A fit uses the ratings, which must be on a scale that is common to all people; give rankings if they are not.
        Two items with different ratings also make a pair, which replays use. The other parameters are those of
        `from_rankings`.
        """
        levels: dict[str, dict[ItemId, float]] = {}
        for person, item, rating in rows:
            own = levels.setdefault(str(person), {})
            if item in own:
                raise InvalidChoices(f"person {str(person)!r} rates {item!r} twice; keep one of the two")
            if not (is_number(rating) and np.isfinite(rating)):
                raise InvalidChoices(f"person {str(person)!r} rates {item!r} {rating!r}; give a finite number")
            own[item] = float(rating)
        found = cls._implied(levels, ids, most, np.random.default_rng(rng))
        places = {item: row for row, item in enumerate(found.ids)}
        person = np.repeat(np.arange(len(levels)), [len(own) for own in levels.values()])
        rated = np.array([places[item] for own in levels.values() for item in own], dtype=np.int64)
        value = np.array([rating for own in levels.values() for rating in own.values()])
        return replace(found, ratings=Ratings(person, rated, value))

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
                keys = np.unique(np.sort(rng.integers(n, size=(most, 2)), axis=1) @ [n, 1])
                first, second = np.divmod(keys, n)
                first, second = first[first < second], second[first < second]
            weight = pair_weight(n, len(first))
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
                    np.full(count, weight),
                )
            )
        people = _some(levels)
        person, winner, loser, weights = (np.concatenate(part) for part in zip(*columns, strict=True))
        return cls(people, names, person, winner, loser, weights, np.concatenate(ties), derived=True)

    @classmethod
    def read(cls, path: str | Path, *, ids: Sequence[ItemId] | None = None) -> Self:
        """Read choices from a file in one of the formats of `pairseek.people.formats`."""
        from pairseek.people.formats import read

        found = read(Path(path), ids)
        assert isinstance(found, cls)
        return found

    @classmethod
    def from_frame(cls, frame: object, *, ids: Sequence[ItemId] | None = None) -> Self:
        """Build choices from a data frame of pandas, polars or pyarrow, which needs the extra ``frames``.

        The columns are person, item and rating, or person, winner and loser; a row without a winner is a tie of the
        columns left and right. Ids keep their type. The extra rows and columns are those of a CSV file: see `read`.
        """
        from pairseek.people.formats import read_table
        from pairseek.people.formats.table import Table

        columns = frame_columns(frame, InvalidChoices)
        texts = None if ids is None else [str(name) for name in ids]
        found = read_table(Table.of_columns(columns, "the data frame"), texts)
        assert isinstance(found, cls)
        if ids is not None:
            return replace(found, ids=tuple(ids))
        numbers = {str(cell): cell for values in columns.values() for cell in values if type(cell) is int}
        if not all(name in numbers for name in found.ids):
            return found
        whole = sorted(numbers[str(name)] for name in found.ids)
        return replace(found.of_items([str(name) for name in whole]), ids=tuple(whole))

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return a data frame that `from_frame` reads back: ratings, or pairs with ties.

        The pairs of rankings come as they are, without their weights.

        Parameters
        ----------
        backend
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``. None: the first of them that is installed.
        """
        if self.ratings is not None:
            who, what = self.ratings.person.tolist(), self.ratings.item.tolist()
            person, item = [self.people[row] for row in who], [self.ids[row] for row in what]
            return frame_of({"person": person, "item": item, "rating": self.ratings.value.tolist()}, backend)
        winner, loser = ([self.ids[row] for row in rows.tolist()] for rows in (self.winner, self.loser))
        left, right = ([self.ids[row] for row in self.tied[:, column].tolist()] for column in (1, 2))
        person = [self.people[row] for row in [*self.person.tolist(), *self.tied[:, 0].tolist()]]
        columns = {"person": person, "winner": winner, "loser": loser}
        if self.ties:
            none = [None] * self.ties
            columns |= {"winner": [*winner, *none], "loser": [*loser, *none]}
            columns |= {"left": [*winner, *left], "right": [*loser, *right]}
        return frame_of(columns, backend)

    @property
    def starts(self) -> IntArray:
        """(people + 1,) offsets of each person's first row."""
        return np.searchsorted(self.person, np.arange(len(self.people) + 1)).astype(np.int64)

    @property
    def ties(self) -> int:
        """Number of pairs without a winner."""
        return len(self.tied)

    @property
    def outcomes(self) -> IntArray:
        """(t, 3) rows of `tied` that are answers to questions."""
        return self.tied[:0] if self.derived else self.tied

    @cached_property
    def informative(self) -> BoolArray:
        """(people,) whether a fit can use a person: they decided or tied a pair, or rated at least two items.

        Equal ratings are informative: a person without a preference among these items gives them.
        """
        count = len(self.people)
        found = np.diff(self.starts) + np.bincount(self.outcomes[:, 0], minlength=count) > 0
        if self.ratings is not None:
            found |= np.bincount(self.ratings.person, minlength=count) > 1
        return np.asarray(found)

    @cached_property
    def unusable(self) -> tuple[str, ...]:
        """People from whom nothing can be learned, because they rated one item only or ranked all items equally."""
        return tuple(self.people[row] for row in np.flatnonzero(~self.informative))

    @cached_property
    def uncompared(self) -> tuple[ItemId, ...]:
        """Items that occur in no pair and in no ratings that a fit can use."""
        return tuple(self.ids[row] for row in np.flatnonzero(~self._compared))

    @property
    def _compared(self) -> BoolArray:
        seen = np.zeros(len(self.ids), dtype=np.bool_)
        for rows in (self.winner, self.loser, self.outcomes[:, 1:].ravel()):
            seen[rows] = True
        if self.ratings is not None:
            seen[self.ratings.item[self.informative[self.ratings.person]]] = True
        return seen

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks about unusable data, for people who fit a population."""
        out = []
        if self.unusable:
            who = "person has" if len(self.unusable) == 1 else "people have"
            out.append(
                f"{len(self.unusable)} {who} no usable pair (one item only, or all items tied) and will be ignored: "
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
        if self.ratings is not None:
            digest.update(np.stack([self.ratings.person, self.ratings.item]).astype("<i8").tobytes())
            digest.update(self.ratings.value.astype("<f8").tobytes())
        return digest.hexdigest()

    def only(self, people: Sequence[int] | IntArray) -> Self:
        """Select the choices of these people, given by index, in this order."""
        count = len(self.people)
        person, kept = _selected(self.person, people, count)
        owner, tied = _selected(self.tied[:, 0], people, count)
        ratings = self.ratings
        if ratings is not None:
            who, rated = _selected(ratings.person, people, count)
            ratings = Ratings(who, ratings.item[rated], ratings.value[rated])
        return replace(
            self,
            people=tuple(self.people[p] for p in people),
            person=person,
            winner=self.winner[kept],
            loser=self.loser[kept],
            weight=self.weight[kept],
            tied=np.column_stack([owner, self.tied[tied, 1:]]),
            ratings=ratings,
        )

    def usable(self) -> Self:
        """Remove the people from whom nothing can be learned."""
        return self.only(np.flatnonzero(self.informative))

    def rows(self, keep: BoolArray) -> Self:
        """Select decided pairs by a mask, and keep all people. The result has neither ratings nor ties."""
        parts = {name: getattr(self, name)[keep] for name in ("person", "winner", "loser", "weight")}
        return replace(self, **parts, tied=np.empty((0, 3), dtype=np.int64), ratings=None)

    def of_items(self, ids: Sequence[ItemId]) -> Self:
        """Re-index the choices by these items, which must include all items that a fit can use.

        Other ties and ratings with another item are left out.
        """
        places = {item: row for row, item in enumerate(ids)}
        missing = [self.ids[row] for row in np.flatnonzero(self._compared) if self.ids[row] not in places]
        if missing:
            raise InvalidChoices(
                f"the choices contain items that are not among the {len(ids)} given: {quoted(missing)}; give all "
                f"items, or remove these choices"
            )
        rows = np.array([places.get(item, -1) for item in self.ids], dtype=np.int64)
        tied = np.column_stack([self.tied[:, 0], rows[self.tied[:, 1:]]])
        tied = tied[np.all(tied >= 0, axis=1)]
        ratings = self.ratings
        if ratings is not None:
            kept = rows[ratings.item] >= 0
            ratings = Ratings(ratings.person[kept], rows[ratings.item[kept]], ratings.value[kept])
        return replace(
            self, ids=tuple(ids), winner=rows[self.winner], loser=rows[self.loser], tied=tied, ratings=ratings
        )


def pair_weight(n: int, pairs: int) -> float:
    """Return the weight of each of the pairs, tied ones included, that were drawn from a ranking of n items.

    A ranking has independent noise per item, not per pair. Under the Gumbel noise that makes paired choices logistic,
    the ranking has the Plackett-Luce likelihood: a first choice among n, then one among the remaining n - 1, and so on.
    At equal utilities the choice among k random items has the Fisher information (k - 1)/(k(n - 1)) Σδδ'/n about the
    utilities, where the sum is over all pairs of items. The sum over k is (n - H)/(n - 1) Σδδ'/n with the harmonic
    number H = 1 + 1/2 + ... + 1/n. A paired choice has the information δδ'/4. The two agree if the n(n - 1)/2 pairs
    have the total weight 2(n - H), which is 1 for two items.
    """
    if not pairs:
        return 1.0
    return 2.0 * float(n - np.sum(1.0 / np.arange(1, n + 1))) / pairs


def _selected(person: IntArray, people: Sequence[int] | IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Return the new owners and the indices of the rows of these people, for rows that are sorted by person."""
    starts = np.searchsorted(person, np.arange(count + 1))
    chosen = np.asarray(people, dtype=np.int64)
    sizes = starts[chosen + 1] - starts[chosen]
    owner = np.repeat(np.arange(len(chosen)), sizes)
    return owner, np.repeat(starts[chosen] - np.cumsum(sizes) + sizes, sizes) + np.arange(len(owner))


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
