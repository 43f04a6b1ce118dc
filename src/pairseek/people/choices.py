"""Recorded choices: paired comparisons, rankings and ratings by people."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from pairseek.core.frames import Backend, frame_of
from pairseek.core.lazy import cached_property
from pairseek.core.text import plural, quoted
from pairseek.core.types import BoolArray, FloatArray, IntArray, ItemId
from pairseek.core.validation import is_number
from pairseek.errors import InvalidChoices
from pairseek.people.events import EVENT_WEIGHTS, encoded_events, pairs_of_events
from pairseek.people.implied_pairs import implied_pairs
from pairseek.people.rows import by_person, item_positions, names_of, selected_rows

RankingInput: TypeAlias = "Sequence[ItemId | Sequence[ItemId]]"


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings of items, grouped by person.

    Attributes
    ----------
    person, item
        (m,) indices into the people and the items of the choices. Each person's rows are contiguous.
    value
        (m,) ratings on a scale shared by all people; higher is better.
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

    Construct them with `from_pairs`, `from_rankings`, `from_ratings`, `from_events` or `read`.

    Attributes
    ----------
    people
        Names of the people, including people without a decided pair, who have no rows.
    ids
        Ids of the items.
    person, winner, loser
        (m,) indices into `people` and `ids`. Each person's rows are contiguous and in their original order.
    weight
        (m,) weight of each row in a fit to pairs. A choice has weight 1. Pairs implied by one ranking, or by one set
        of ratings, are dependent and have a smaller weight: see `pairseek.people.implied_pairs.pair_weight`.
    tied
        (t, 3) rows (person, item, item) of the pairs without a winner, ordered by person.
    ratings
        The ratings that imply the pairs; a fit uses them instead of the pairs. None for pairs and rankings.
    derived
        Whether the pairs are implied by rankings, ratings or events. A fit to pairs uses ties that people answered, but
        not implied ties.
    renamed_columns
        Columns that were read under another name, by role, such as ``{"person": "userId"}``.

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
    renamed_columns: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("person", "winner", "loser", "weight", "tied"):
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        return len(self.person)

    def __repr__(self) -> str:
        people = "1 person" if len(self.people) == 1 else f"{len(self.people)} people"
        return f"Choices({people}, {plural(len(self.ids), 'item')}, {plural(len(self), 'pair')})"

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
            One row per choice. A pair may repeat, in either direction.
        ids
            All items, in order. None: the items that occur, sorted.
        tied
            One (person, item, item) row per pair without a winner.
        """
        decided, undecided = ([(str(person), first, second) for person, first, second in part] for part in (rows, tied))
        every_row = [*decided, *undecided]
        for number, (person, first, second) in enumerate(every_row):
            if first == second:
                raise InvalidChoices(
                    f"row {number}: person {person!r} chose {first!r} over itself; give two different items"
                )
        names, positions = item_positions((item for _, *pair in every_row for item in pair), ids)
        people = {person: row for row, person in enumerate(dict.fromkeys(person for person, _, _ in every_row))}
        table, ties = (
            np.array([(people[p], positions[a], positions[b]) for p, a, b in part], dtype=np.int64).reshape(-1, 3)
            for part in (decided, undecided)
        )
        person_rows, winner, loser = (np.ascontiguousarray(column) for column in by_person(table).T)
        return cls(names_of(people), names, person_rows, winner, loser, np.ones(len(person_rows)), by_person(ties))

    @classmethod
    def from_rankings(
        cls,
        rankings: Mapping[str, RankingInput] | Iterable[tuple[object, RankingInput]],
        *,
        ids: Sequence[ItemId] | None = None,
        most: int = 1000,
        rng: int | np.random.Generator = 0,
    ) -> Self:
        """Build choices from one ranking per person, best first. Each entry is an item or a group of tied items.

        Items that a person did not rank are not compared.

        Parameters
        ----------
        rankings
            The ranking of each person.
        ids
            All items, in order. None: the items that occur, sorted.
        most
            Approximate maximum number of pairs per person. Longer rankings are subsampled at random.
        rng
            A seed or a generator for the subsampling.
        """
        levels: dict[str, dict[ItemId, float]] = {}
        for name, groups in rankings.items() if isinstance(rankings, Mapping) else rankings:
            person = str(name)
            if person in levels:
                raise InvalidChoices(f"person {person!r} has two rankings; give one ranking per person")
            person_levels = levels[person] = {}
            for position, group in enumerate(groups):
                for item in group if isinstance(group, Sequence) and not isinstance(group, str) else [group]:
                    if item in person_levels:
                        raise InvalidChoices(f"person {person!r} ranks {item!r} twice; rank each item once")
                    person_levels[item] = -float(position)
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

        A fit uses the ratings, so they must be on a scale shared by all people; otherwise give rankings. Two items with
        different ratings also make a pair, which replays use. See `from_rankings` for the other parameters.
        """
        levels: dict[str, dict[ItemId, float]] = {}
        for person, item, rating in rows:
            person_levels = levels.setdefault(str(person), {})
            if item in person_levels:
                raise InvalidChoices(f"person {str(person)!r} rates {item!r} twice; keep one of the two")
            if not (is_number(rating) and np.isfinite(rating)):
                raise InvalidChoices(f"person {str(person)!r} rates {item!r} {rating!r}; give a finite number")
            person_levels[item] = float(rating)
        choices = cls._implied(levels, ids, most, np.random.default_rng(rng))
        positions = {item: row for row, item in enumerate(choices.ids)}
        person = np.repeat(np.arange(len(levels)), [len(person_levels) for person_levels in levels.values()])
        rated = np.array(
            [positions[item] for person_levels in levels.values() for item in person_levels], dtype=np.int64
        )
        value = np.array([rating for person_levels in levels.values() for rating in person_levels.values()])
        return replace(choices, ratings=Ratings(person, rated, value))

    @classmethod
    def from_events(
        cls,
        rows: Iterable[Sequence[Any]],
        *,
        ids: Sequence[ItemId] | None = None,
        weights: Mapping[str, float] | None = None,
        most: int = 1000,
        rng: int | np.random.Generator = 0,
    ) -> Self:
        """Build choices from (person, item, event) or (person, item, event, time) rows of a shop, in any order.

        Bought items win against items that the same person was shown in the same visit and did not buy. Without
        impressions, they win against items drawn from the rest of the catalogue, and `docs/explanation/population.md`
        says what that cannot tell.

        Parameters
        ----------
        rows
            One row per event. ``event`` is its kind, and ``time`` a datetime, or a number of seconds or milliseconds.
        ids
            All items, in order: with them, items without an event can be drawn. None: the items that occur, sorted.
        weights
            Weight of each kind, from 0 for an impression to 1 for a purchase. None: `EVENT_WEIGHTS`.
        most
            Approximate maximum number of pairs per person. More pairs are subsampled at random.
        rng
            A seed or a generator for the items drawn and the subsampling.
        """
        table = [tuple(row) for row in rows]
        names, positions = item_positions((row[1] for row in table if len(row) > 1), ids)
        people = {person: row for row, person in enumerate(dict.fromkeys(str(row[0]) for row in table if row))}
        events = encoded_events(table, people, positions, EVENT_WEIGHTS if weights is None else weights)
        generator = np.random.default_rng(rng)
        pairs = pairs_of_events(events, len(names_of(people)), len(names), most, generator)
        return cls(
            tuple(people), names, pairs.person, pairs.winner, pairs.loser, pairs.weight, pairs.tied, derived=True
        )

    @classmethod
    def _implied(
        cls,
        levels: Mapping[str, Mapping[ItemId, float]],
        ids: Sequence[ItemId] | None,
        most: int,
        rng: np.random.Generator,
    ) -> Self:
        names, positions = item_positions((item for person_levels in levels.values() for item in person_levels), ids)
        people = names_of(levels)
        pairs = implied_pairs(levels.values(), positions, most, rng)
        return cls(people, names, pairs.person, pairs.winner, pairs.loser, pairs.weight, pairs.tied, derived=True)

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        ids: Sequence[ItemId] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Read choices from a file: see `pairseek.people.formats.read` for formats and parameters."""
        from pairseek.people.formats import read

        choices = read(Path(path), ids, columns)
        assert isinstance(choices, cls)
        return choices

    @classmethod
    def from_frame(
        cls, frame: object, *, ids: Sequence[ItemId] | None = None, columns: Mapping[str, str] | None = None
    ) -> Self:
        """Build choices from a data frame of pandas, polars or pyarrow; requires the extra ``frames``.

        The columns are person, item and rating, or person, winner and loser; a row without a winner is a tie of the
        columns left and right. Ids keep their type. Further rows and columns are read as in a CSV file: see `read`.
        """
        from pairseek.people.formats import read_frame

        choices = read_frame(frame, ids, columns)
        assert isinstance(choices, cls)
        return choices

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return a data frame that `from_frame` reads back: ratings, or pairs with ties.

        Pairs implied by rankings are returned without their weights.

        Parameters
        ----------
        backend
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``; None for the first that is installed.
        """
        if self.ratings is not None:
            person_rows, item_rows = self.ratings.person.tolist(), self.ratings.item.tolist()
            person, item = [self.people[row] for row in person_rows], [self.ids[row] for row in item_rows]
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
        """(t, 3) rows of `tied` that people answered, as opposed to implied ties."""
        return self.tied[:0] if self.derived else self.tied

    @cached_property
    def informative(self) -> BoolArray:
        """(people,) whether a fit can use a person, who must have answered a pair or rated at least two items.

        Equal ratings are informative too: they tell that the person has no preference among these items.
        """
        count = len(self.people)
        informative = np.diff(self.starts) + np.bincount(self.outcomes[:, 0], minlength=count) > 0
        if self.ratings is not None:
            informative |= np.bincount(self.ratings.person, minlength=count) > 1
        return np.asarray(informative)

    @cached_property
    def unusable(self) -> tuple[str, ...]:
        """People from whom nothing can be learned, because they rated only one item or ranked all items equally."""
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
        """Remarks about renamed columns and unusable data, for whoever fits a population."""
        out = []
        if self.renamed_columns:
            roles = ", ".join(f"{column!r} is the {role}" for role, column in self.renamed_columns.items())
            out.append(f"columns: {roles}")
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
        """Select the choices of these people, given by row, in this order."""
        count = len(self.people)
        person, pair_rows = selected_rows(self.person, people, count)
        owner, tied_rows = selected_rows(self.tied[:, 0], people, count)
        ratings = self.ratings
        if ratings is not None:
            rating_person, rating_rows = selected_rows(ratings.person, people, count)
            ratings = Ratings(rating_person, ratings.item[rating_rows], ratings.value[rating_rows])
        return replace(
            self,
            people=tuple(self.people[p] for p in people),
            person=person,
            winner=self.winner[pair_rows],
            loser=self.loser[pair_rows],
            weight=self.weight[pair_rows],
            tied=np.column_stack([owner, self.tied[tied_rows, 1:]]),
            ratings=ratings,
        )

    def usable(self) -> Self:
        """Remove the people from whom nothing can be learned."""
        return self.only(np.flatnonzero(self.informative))

    def rows(self, keep: BoolArray) -> Self:
        """Select decided pairs by a mask, and keep all people; drop ratings and ties."""
        parts = {name: getattr(self, name)[keep] for name in ("person", "winner", "loser", "weight")}
        return replace(self, **parts, tied=np.empty((0, 3), dtype=np.int64), ratings=None)

    def of_items(self, ids: Sequence[ItemId]) -> Self:
        """Re-index the choices by these items, which must include all items that a fit can use.

        Ties and ratings of any other item are dropped.
        """
        positions = {item: row for row, item in enumerate(ids)}
        missing = [self.ids[row] for row in np.flatnonzero(self._compared) if self.ids[row] not in positions]
        if missing:
            raise InvalidChoices(
                f"the choices contain items that are not among the {len(ids)} given: {quoted(missing)}; give all "
                f"items, or remove these choices"
            )
        rows = np.array([positions.get(item, -1) for item in self.ids], dtype=np.int64)
        tied = np.column_stack([self.tied[:, 0], rows[self.tied[:, 1:]]])
        tied = tied[np.all(tied >= 0, axis=1)]
        ratings = self.ratings
        if ratings is not None:
            is_kept = rows[ratings.item] >= 0
            ratings = Ratings(ratings.person[is_kept], rows[ratings.item[is_kept]], ratings.value[is_kept])
        return replace(
            self, ids=tuple(ids), winner=rows[self.winner], loser=rows[self.loser], tied=tied, ratings=ratings
        )
