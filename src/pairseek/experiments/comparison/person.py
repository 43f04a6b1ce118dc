"""Recorded pairs of one person: some may be asked, the others are withheld and predicted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairseek.core.types import BoolArray, FloatArray, IntArray, ItemId
from pairseek.experiments.comparison.picks import values_of
from pairseek.people.choices import Choices

WITHHOLD = 0.3


@dataclass(frozen=True, eq=False)
class Person:
    """The distinct pairs of a person, each with its first answer.

    Attributes
    ----------
    winner, loser
        (m,) rows of the items of decided pairs.
    withheld
        (m,) mask of the decided pairs that are never asked.
    tied
        (t, 2) rows of the items of askable pairs without a winner. If a coin decides ties, the first item wins.
    value
        (n,) values of the items for the person, such as ratings; NaN where unknown: see `values_of`.

    Examples
    --------
    >>> import pairseek as ps
    >>> from pairseek.experiments.comparison.person import Person
    >>> choices = ps.Choices.from_rankings({"ann": ["tea", "cocoa", "coffee", "milk"]})
    >>> person = Person.of(choices, 0)
    >>> len(person), len(person.askable), int(person.withheld.sum())
    (6, 4, 2)
    """

    winner: IntArray
    loser: IntArray
    withheld: BoolArray
    tied: IntArray
    value: FloatArray

    @classmethod
    def of(
        cls,
        choices: Choices,
        row: int,
        *,
        withhold: float = WITHHOLD,
        seed: int = 0,
        fold: tuple[int, int] | None = None,
    ) -> Person:
        """Build from the row of a person, and withhold a fraction of the decided and of the tied pairs.

        Withheld pairs and coin tosses depend only on the seed, the name of the person and the ids of the items, so they
        are the same for all strategies.

        Parameters
        ----------
        choices, row
            The choices and the index of the person.
        withhold
            Fraction of the pairs to withhold; at least one pair is withheld.
        seed
            Seed of the withheld pairs and the coins.
        fold
            Index of a fold and number of folds: withhold this fold of the pairs instead. The folds are the same for
            everybody, and each pair is in one fold.
        """
        starts = choices.starts
        span = slice(starts[row], starts[row + 1])
        decided = _distinct(np.stack([choices.winner[span], choices.loser[span]], axis=1), len(choices.ids))
        tie_ends = np.searchsorted(choices.tied[:, 0], [row, row + 1])
        # A tied pair that also has a decided answer counts as decided.
        decided_and_tied = _distinct(
            np.concatenate([decided, choices.tied[tie_ends[0] : tie_ends[1], 1:]]), len(choices.ids)
        )
        tied = decided_and_tied[len(decided) :]
        pair_hash = _PairHash(seed, choices.people[row], choices.ids)
        if fold is None:
            withheld = pair_hash.smallest(decided, _rounded_share(withhold, len(decided), least=1))
            tied = tied[~pair_hash.smallest(tied, _rounded_share(withhold, len(tied)))]
        else:
            in_fold = _PairHash(seed, "", choices.ids).fold(decided_and_tied, *fold)
            withheld, tied = in_fold[: len(decided)], tied[~in_fold[len(decided) :]]
        first_wins = np.array([pair_hash("coin", pair) % 2 == 0 for pair in tied.tolist()], dtype=np.bool_)
        tied = np.sort(tied, axis=1)
        tied = np.where(first_wins[:, None], tied, tied[:, ::-1])
        return cls(decided[:, 0], decided[:, 1], withheld, tied, values_of(choices, row))

    def __len__(self) -> int:
        return len(self.winner)

    @property
    def askable(self) -> IntArray:
        """(a, 2) rows of the pairs that may be asked, decided pairs first."""
        decided = np.stack([self.winner, self.loser], axis=1)
        return np.concatenate([decided[~self.withheld], self.tied])


@dataclass(frozen=True)
class _PairHash:
    """Hashes of a person's pairs, independent of the order of people, pairs and items."""

    seed: int
    person: str
    ids: tuple[ItemId, ...]

    def __call__(self, purpose: str, pair: Sequence[int]) -> int:
        names = sorted((self.ids[row] for row in pair), key=str)
        return int.from_bytes(hashlib.sha256(repr((self.seed, purpose, self.person, *names)).encode()).digest()[:8])

    def smallest(self, pairs: IntArray, count: int) -> BoolArray:
        """Return a mask of the pairs with the smallest hashes."""
        out = np.zeros(len(pairs), dtype=np.bool_)
        out[np.argsort(self._hashes(pairs), kind="stable")[:count]] = True
        return out

    def fold(self, pairs: IntArray, number: int, count: int) -> BoolArray:
        """Return a mask of the pairs in one of several folds of equal size."""
        rank = np.argsort(np.argsort(self._hashes(pairs), kind="stable"), kind="stable")
        return np.asarray(rank % count == number % count)

    def _hashes(self, pairs: IntArray) -> npt.NDArray[np.uint64]:
        return np.array([self("withhold", pair) for pair in pairs.tolist()], dtype=np.uint64)


def _rounded_share(share: float, count: int, *, least: int = 0) -> int:
    """Return the rounded share of a count: below the count, and at least `least` if the share is above 0."""
    return max(min(int(share * count + 0.5), count - 1), least if share > 0 else 0)


def _distinct(pairs: IntArray, n: int) -> IntArray:
    """Drop repeated pairs, keeping the first of each in order."""
    _, first = np.unique(pairs.min(axis=1) * n + pairs.max(axis=1), return_index=True)
    return pairs[np.sort(first)]
