"""Similarity judgements: "the anchor is more similar to the near item than to the far item"."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pairseek.core.lazy import cached_property
from pairseek.core.types import IntArray, ItemId
from pairseek.embed.triplet_files import named_rows, read_bundle, read_rows
from pairseek.errors import InvalidParameter, InvalidTriplets
from pairseek.model.items import Items

NAMES = ("anchor", "near", "far")


@dataclass(frozen=True, eq=False)
class Triplets:
    """Immutable triplets (anchor, near, far) over items with ids, validated at construction.

    Repeated and contradictory triplets are valid data: people may answer twice, and differently.

    Parameters
    ----------
    rows
        (m, 3) indices of anchor, near and far in ``ids``; three different ones in each row.
    ids
        Ids of all items, including those in no triplet. None: 0 to the largest index.

    Examples
    --------
    >>> from pairseek.embed import Triplets
    >>> triplets = Triplets([[0, 1, 2], [2, 1, 0]])
    >>> len(triplets), triplets.n
    (2, 3)
    """

    rows: IntArray
    ids: tuple[ItemId, ...]

    def __init__(self, rows: npt.ArrayLike, ids: Sequence[ItemId] | None = None) -> None:
        array = _whole(rows)
        count = int(array.max()) + 1 if ids is None else len(ids)
        names = tuple(range(count)) if ids is None else _names(ids)
        check_rows(array, count, lambda row: f"triplet {row}")
        array.flags.writeable = False
        object.__setattr__(self, "rows", array)
        object.__setattr__(self, "ids", names)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Triplets({len(self):,} over {self.n:,} items)"

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.ids)

    @cached_property
    def unseen(self) -> tuple[ItemId, ...]:
        """Ids of items in no triplet."""
        counts = np.bincount(self.rows.ravel(), minlength=self.n)
        return tuple(self.ids[i] for i in np.flatnonzero(counts == 0).tolist())

    @classmethod
    def from_ordered(
        cls, lists: npt.ArrayLike, responses: npt.ArrayLike | None = None, *, ids: Sequence[ItemId] | None = None
    ) -> Self:
        """Build from cblearn's ordered lists: each row has an anchor, then the others from nearest to farthest.

        A row of more than three items gives a triplet for each pair of the others.

        Parameters
        ----------
        lists
            (m, 3) or wider.
        responses
            cblearn's answers: (m,) of 1 or True where the row of three is in order, -1 or False where near and far
            must be swapped.
        ids
            Ids of all items.
        """
        array = _whole(lists, width=None)
        first, second = np.triu_indices(array.shape[1] - 1, 1)
        columns = [
            np.column_stack([array[:, 0], array[:, 1 + i], array[:, 1 + j]]) for i, j in zip(first, second, strict=True)
        ]
        rows = np.stack(columns, axis=1).reshape(-1, 3)
        if responses is not None:
            said = np.asarray(responses)
            if said.shape != (len(array),) or array.shape[1] != 3:
                raise InvalidTriplets(
                    f"{said.shape} responses to lists of shape {array.shape}: give one for each row of three"
                )
            if not np.isin(said, (-1, 0, 1)).all():
                raise InvalidTriplets(
                    f"responses contain {said[~np.isin(said, (-1, 0, 1))][0]!r}: give 1 or -1 (or True or False)"
                )
            rows = np.where((said > 0)[:, None], rows, rows[:, [0, 2, 1]])
        return cls(rows, ids)

    @classmethod
    def from_ids(cls, triplets: Sequence[Sequence[ItemId]], ids: Sequence[ItemId] | None = None) -> Self:
        """Build from ids.

        Parameters
        ----------
        triplets
            Rows of anchor, near and far.
        ids
            Ids of all items. None: those in the triplets, sorted.

        Examples
        --------
        >>> from pairseek.embed import Triplets
        >>> Triplets.from_ids([("plum", "cherry", "leek")]).ids
        ('cherry', 'leek', 'plum')
        """
        rows = [tuple(row) for row in triplets]
        for number, row in enumerate(rows):
            if len(row) != 3:
                raise InvalidTriplets(f"triplet {number} is {row}: give three ids, anchor, near and far")
        return cls(*named_rows(rows, ids, lambda row: f"triplet {row}:"))

    @classmethod
    def from_csv(
        cls, path: str | Path, *, ids: Sequence[ItemId] | None = None, where: Mapping[str, str] | None = None
    ) -> Self:
        """Read a CSV or Parquet file.

        The header determines the format: ``anchor,near,far`` by id; Salmon's responses with ``head``, ``winner`` and
        ``loser``; or ``head`` (``anchor``, ``center``), ``left``, ``right`` and ``winner`` (``answer``), in any case
        and with any further columns. Without any of these a file of three columns is anchor, near and far from its
        first line on.

        Parameters
        ----------
        path
            The file.
        ids
            Ids of all items, so that unknown ids are rejected. None: those in the file, sorted as numbers if all are
            numbers, otherwise as text.
        where
            Values that selected lines must have in these columns, such as ``{"alg": "Test"}``.
        """
        return cls(*read_rows(Path(path), ids=ids, where=where))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read the bundle of a similarity study that ``pairseek export`` wrote, or a CSV file.

        Of a bundle, answers that were undone or voided, attention checks, skips and simulated people are left out.
        """
        given = Path(path)
        return cls(*read_bundle(given)) if given.suffix.lower() == ".zip" else cls.from_csv(given)

    def to_csv(self, path: str | Path) -> None:
        """Write ``anchor,near,far`` by id."""
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(NAMES)
            writer.writerows([self.ids[i], self.ids[j], self.ids[k]] for i, j, k in self.rows.tolist())

    def take(self, places: npt.NDArray[Any]) -> Triplets:
        """Return the triplets at these indices or in this mask, over the same items."""
        return _unchecked(self.rows[places], self.ids)

    def split(self, share: float, rng: int | np.random.Generator) -> tuple[Triplets, Triplets]:
        """Split at random into the larger part and a held-out share."""
        if not 0 < share < 1:
            raise InvalidParameter(f"the share to hold out is {share!r}: give a number between 0 and 1")
        if len(self) < 2:
            raise InvalidTriplets(f"{len(self)} triplet cannot be split: give at least 2")
        order = np.random.default_rng(rng).permutation(len(self))
        held = min(max(1, round(share * len(self))), len(self) - 1)
        return self.take(np.sort(order[held:])), self.take(np.sort(order[:held]))

    def folds(self, count: int, rng: int | np.random.Generator) -> Iterator[tuple[Triplets, Triplets]]:
        """Yield training and held-out triplets for each of ``count`` folds."""
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 2 <= count <= len(self):
            raise InvalidParameter(f"folds is {count!r}: give a whole number from 2 to the {len(self)} triplets")
        fold = np.random.default_rng(rng).permutation(len(self)) % count
        for one in range(count):
            yield self.take(fold != one), self.take(fold == one)

    def among(self, items: Items | Sequence[ItemId]) -> IntArray:
        """Return the (m, 3) triplets as rows of these items; unequal sequences of ids are matched as text."""
        ids = items.ids if isinstance(items, Items) else tuple(items)
        if ids == self.ids:
            return self.rows
        places = {str(name): index for index, name in enumerate(ids)}
        used = np.unique(self.rows)
        table = np.full(self.n, -1)
        for index in used.tolist():
            place = places.get(str(self.ids[index]))
            if place is None:
                row = int(np.flatnonzero((self.rows == index).any(axis=1))[0])
                raise InvalidTriplets(
                    f"triplet {row} names the item {self.ids[index]!r}, which is not among the {len(ids)} items "
                    f"({ids[0]!r} to {ids[-1]!r}): remove it, or give the items that the triplets are about"
                )
            table[index] = place
        return np.asarray(table[self.rows])


def _names(ids: Sequence[ItemId]) -> tuple[ItemId, ...]:
    plain = tuple(one.item() if isinstance(one, np.generic) else one for one in ids)
    twice = next((one for one, count in Counter(plain).items() if count > 1), None)
    if twice is not None:
        raise InvalidTriplets(f"two items have the id {twice!r}: make ids unique")
    return plain


def as_triplets(triplets: Triplets | npt.ArrayLike, responses: npt.ArrayLike | None = None) -> Triplets:
    """Convert an (m, 3) array or cblearn's lists with responses to `Triplets`; return `Triplets` unchanged."""
    if isinstance(triplets, Triplets):
        if responses is not None:
            raise InvalidTriplets("responses were given with Triplets, which are in order already: leave them out")
        return triplets
    return Triplets.from_ordered(triplets, responses)


def _unchecked(rows: IntArray, ids: tuple[ItemId, ...]) -> Triplets:
    made = object.__new__(Triplets)
    rows.flags.writeable = False
    object.__setattr__(made, "rows", rows)
    object.__setattr__(made, "ids", ids)
    return made


def _whole(values: npt.ArrayLike, width: int | None = 3) -> IntArray:
    try:
        array = np.array(values)
        numeric = np.issubdtype(array.dtype, np.number) and not np.issubdtype(array.dtype, np.complexfloating)
    except ValueError:
        raise InvalidTriplets("the triplets are not a table: give m rows of anchor, near and far") from None
    wanted = "(m, 3): anchor, near and far" if width == 3 else "(m, 3) or wider: an anchor, then from near to far"
    if array.ndim != 2 or (array.shape[1] != width if width else array.shape[1] < 3) or not len(array):
        raise InvalidTriplets(f"triplets have shape {array.shape}: give {wanted}, at least one")
    if not numeric:
        raise InvalidTriplets(
            f"triplets are of type {array.dtype}: give whole numbers, the rows of the items; for ids read a CSV file, "
            f"or use Triplets.from_ids"
        )
    if not np.issubdtype(array.dtype, np.integer):
        wrong = ~(np.isfinite(array) & (array == np.floor(array)))
        if wrong.any():
            row, column = np.argwhere(wrong)[0].tolist()
            raise InvalidTriplets(
                f"triplet {row} has {array[row, column]} in column {column}: give whole numbers, the rows of the items"
            )
    return np.ascontiguousarray(array, dtype=np.int64)


def check_rows(rows: IntArray, n: int, where: Callable[[int], str]) -> None:
    """Reject rows that do not consist of three different indices below n; ``where(row)`` describes a row."""
    outside = (rows < 0) | (rows >= n)
    if outside.any():
        row, column = np.argwhere(outside)[0].tolist()
        raise InvalidTriplets(
            f"{where(row)} names the unknown item {int(rows[row, column])}: there are {n} items, rows 0 to {n - 1}"
        )
    repeated = (rows[:, 0] == rows[:, 1]) | (rows[:, 0] == rows[:, 2]) | (rows[:, 1] == rows[:, 2])
    if repeated.any():
        row = int(repeated.argmax())
        raise InvalidTriplets(
            f"{where(row)} is {tuple(rows[row].tolist())} and names an item twice ({int(repeated.sum())} such in all): "
            f"a triplet is about three different items; remove it"
        )
