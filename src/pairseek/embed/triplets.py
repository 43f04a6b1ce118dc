"""Triplets: judgements that an anchor is more similar to a near item than to a far item."""

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
from pairseek.core.validation import without_numpy
from pairseek.embed.triplet_files import read_bundle, read_rows, rows_from_ids
from pairseek.errors import InvalidParameter, InvalidTriplets
from pairseek.model.items import Items

COLUMN_NAMES = ("anchor", "near", "far")


@dataclass(frozen=True, eq=False)
class Triplets:
    """Immutable triplets (anchor, near, far) over items with ids, validated at construction.

    Triplets may repeat or contradict each other: people may answer twice, and differently.

    Parameters
    ----------
    rows
        (m, 3) indices of anchor, near and far in ``ids``; all different within a row.
    ids
        Ids of all items, including any that occur in no triplet. None: 0 to the largest index.

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
        array = _integer_rows(rows)
        count = int(array.max()) + 1 if ids is None else len(ids)
        names = tuple(range(count)) if ids is None else _unique_ids(ids)
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
        """Build from cblearn's ordered lists, whose rows have an anchor, then other items from nearest to farthest.

        A row of more than three items yields a triplet for each pair of items after the anchor.

        Parameters
        ----------
        lists
            (m, 3) or wider lists.
        responses
            (m,) answers for rows of three: 1 or True if the row is in order, -1 or False if near and far must be
            swapped.
        ids
            Ids of all items.
        """
        array = _integer_rows(lists, width=None)
        first, second = np.triu_indices(array.shape[1] - 1, 1)
        columns = [
            np.column_stack([array[:, 0], array[:, 1 + i], array[:, 1 + j]]) for i, j in zip(first, second, strict=True)
        ]
        rows = np.stack(columns, axis=1).reshape(-1, 3)
        if responses is not None:
            answers = np.asarray(responses)
            if answers.shape != (len(array),) or array.shape[1] != 3:
                raise InvalidTriplets(
                    f"{answers.shape} responses to lists of shape {array.shape}: give a response for each row of three"
                )
            if not np.isin(answers, (-1, 0, 1)).all():
                raise InvalidTriplets(
                    f"responses contain {answers[~np.isin(answers, (-1, 0, 1))][0]!r}: give 1 or -1 (or True or False)"
                )
            rows = np.where((answers > 0)[:, None], rows, rows[:, [0, 2, 1]])
        return cls(rows, ids)

    @classmethod
    def from_ids(cls, triplets: Sequence[Sequence[ItemId]], ids: Sequence[ItemId] | None = None) -> Self:
        """Build from ids.

        Parameters
        ----------
        triplets
            Rows of anchor, near and far.
        ids
            Ids of all items. None: the ids in the triplets, sorted.

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
        return cls(*rows_from_ids(rows, ids, lambda row: f"triplet {row}:"))

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        ids: Sequence[ItemId] | None = None,
        where: Mapping[str, str] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Read a CSV or Parquet file.

        The header determines the format: ``anchor,near,far`` by id; Salmon's responses with ``head``, ``winner`` and
        ``loser``; or ``head`` (``anchor``, ``center``), ``left``, ``right`` and ``winner`` (``answer``). Case does not
        matter, and further columns are ignored. A file of three columns with none of these headers has no header: each
        line is anchor, near and far.

        Parameters
        ----------
        path
            The file.
        ids
            Ids of all items; other ids are rejected. None: the ids in the file, sorted as numbers if all are numbers,
            otherwise as text.
        where
            Read only lines with these values in these columns, such as ``{"alg": "Test"}``.
        columns
            Columns by role, such as ``{"anchor": "reference"}``, where the file uses other names.
        """
        return cls(*read_rows(Path(path), ids=ids, where=where, columns=columns))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a CSV file, or the bundle of a similarity study from ``pairseek export``.

        From a bundle, skips, attention checks, undone or voided answers, and simulated people are left out.
        """
        file = Path(path)
        return cls(*read_bundle(file)) if file.suffix.lower() == ".zip" else cls.from_csv(file)

    def to_csv(self, path: str | Path) -> None:
        """Write ``anchor,near,far`` by id."""
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMN_NAMES)
            writer.writerows([self.ids[i], self.ids[j], self.ids[k]] for i, j, k in self.rows.tolist())

    def take(self, positions: npt.NDArray[Any]) -> Triplets:
        """Return the triplets at these indices or in this mask, over the same items."""
        return _without_validation(self.rows[positions], self.ids)

    def split(self, share: float, rng: int | np.random.Generator) -> tuple[Triplets, Triplets]:
        """Split at random into training triplets and a held-out ``share`` of the triplets."""
        if not 0 < share < 1:
            raise InvalidParameter(f"the share to hold out is {share!r}: give a number between 0 and 1", field="share")
        if len(self) < 2:
            raise InvalidTriplets(f"{len(self)} triplet cannot be split: give at least 2")
        order = np.random.default_rng(rng).permutation(len(self))
        held = min(max(1, round(share * len(self))), len(self) - 1)
        return self.take(np.sort(order[held:])), self.take(np.sort(order[:held]))

    def folds(self, count: int, rng: int | np.random.Generator) -> Iterator[tuple[Triplets, Triplets]]:
        """Yield training and held-out triplets for each of ``count`` folds."""
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 2 <= count <= len(self):
            raise InvalidParameter(
                f"folds is {count!r}: give a whole number from 2 to the {len(self)} triplets", field="folds"
            )
        fold = np.random.default_rng(rng).permutation(len(self)) % count
        for held_out in range(count):
            yield self.take(fold != held_out), self.take(fold == held_out)

    def among(self, items: Items | Sequence[ItemId]) -> IntArray:
        """Return the (m, 3) triplets as row indices of these items; ids that differ in type are compared as text."""
        ids = items.ids if isinstance(items, Items) else tuple(items)
        if ids == self.ids:
            return self.rows
        positions = {str(name): index for index, name in enumerate(ids)}
        used = np.unique(self.rows)
        table = np.full(self.n, -1)
        for index in used.tolist():
            position = positions.get(str(self.ids[index]))
            if position is None:
                row = int(np.flatnonzero((self.rows == index).any(axis=1))[0])
                raise InvalidTriplets(
                    f"triplet {row} names the item {self.ids[index]!r}, which is not among the {len(ids)} items "
                    f"({ids[0]!r} to {ids[-1]!r}): remove it, or give the items that the triplets are about"
                )
            table[index] = position
        return np.asarray(table[self.rows])


def _unique_ids(ids: Sequence[ItemId]) -> tuple[ItemId, ...]:
    python_ids = tuple(map(without_numpy, ids))
    duplicate = next((value for value, count in Counter(python_ids).items() if count > 1), None)
    if duplicate is not None:
        raise InvalidTriplets(f"two items have the id {duplicate!r}: make ids unique")
    return python_ids


def as_triplets(triplets: Triplets | npt.ArrayLike, responses: npt.ArrayLike | None = None) -> Triplets:
    """Convert an (m, 3) array or cblearn's lists with responses to `Triplets`; return `Triplets` unchanged."""
    if isinstance(triplets, Triplets):
        if responses is not None:
            raise InvalidTriplets("responses were given with Triplets, which are already in order: leave them out")
        return triplets
    return Triplets.from_ordered(triplets, responses)


def _without_validation(rows: IntArray, ids: tuple[ItemId, ...]) -> Triplets:
    triplets = object.__new__(Triplets)
    rows.flags.writeable = False
    object.__setattr__(triplets, "rows", rows)
    object.__setattr__(triplets, "ids", ids)
    return triplets


def _integer_rows(triplets: npt.ArrayLike, width: int | None = 3) -> IntArray:
    try:
        array = np.array(triplets)
        numeric = np.issubdtype(array.dtype, np.number) and not np.issubdtype(array.dtype, np.complexfloating)
    except ValueError:
        raise InvalidTriplets("the triplets are not a table: give m rows of anchor, near and far") from None
    expected = "(m, 3): anchor, near and far" if width == 3 else "(m, 3) or wider: an anchor, then from near to far"
    if array.ndim != 2 or (array.shape[1] != width if width else array.shape[1] < 3) or not len(array):
        raise InvalidTriplets(f"triplets have shape {array.shape}: give {expected}, at least one row")
    if not numeric:
        raise InvalidTriplets(
            f"triplets are of type {array.dtype}: give whole numbers, the rows of the items; for ids, read a CSV file "
            f"or use Triplets.from_ids"
        )
    if not np.issubdtype(array.dtype, np.integer):
        is_fractional = ~(np.isfinite(array) & (array == np.floor(array)))
        if is_fractional.any():
            row, column = np.argwhere(is_fractional)[0].tolist()
            raise InvalidTriplets(
                f"triplet {row} has {array[row, column]} in column {column}: give whole numbers, the rows of the items"
            )
    return np.ascontiguousarray(array, dtype=np.int64)


def check_rows(rows: IntArray, n: int, where: Callable[[int], str]) -> None:
    """Reject rows without three different indices below n; ``where(row)`` describes a row in the message."""
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
            f"{where(row)} is {tuple(rows[row].tolist())} and names an item twice ({int(repeated.sum())} such rows): "
            f"a triplet needs three different items; remove it"
        )
