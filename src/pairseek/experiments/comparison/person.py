"""Recorded pairs of one person: those that may be asked, and those that are withheld and predicted."""

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
    """The distinct pairs of a person with the first answer to each.

    Attributes
    ----------
    winner, loser
        (m,) rows of the items of decided pairs.
    withheld
        (m,) mask of the decided pairs that are never asked.
    tied
        (t, 2) rows of the items of pairs without a winner that may be asked. By a coin, the first item wins.
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
        """Build from the row of a person, and withhold a share of the decided and of the tied pairs.

        Which pairs are withheld, and how coins fall, depends on the seed, the name of the person and the ids of the
        items alone. No strategy can influence it, and all strategies have the same.

        Parameters
        ----------
        choices, row
            The choices and the index of the person.
        withhold
            Share of the pairs that are withheld, at least one pair.
        seed
            Seed of the withheld pairs and the coins.
        fold
            Number of a fold and number of folds: withhold this fold of the pairs instead. The folds are the same for
            everybody and together withhold each pair once.
        """
        starts = choices.starts
        span = slice(starts[row], starts[row + 1])
        decided = _distinct(np.stack([choices.winner[span], choices.loser[span]], axis=1), len(choices.ids))
        ends = np.searchsorted(choices.tied[:, 0], [row, row + 1])
        # A pair with a winner elsewhere counts as decided.
        both = _distinct(np.concatenate([decided, choices.tied[ends[0] : ends[1], 1:]]), len(choices.ids))
        tied = both[len(decided) :]
        key = _Key(seed, choices.people[row], choices.ids)
        if fold is None:
            withheld = key.smallest(decided, _share(withhold, len(decided), least=1))
            tied = tied[~key.smallest(tied, _share(withhold, len(tied)))]
        else:
            in_fold = _Key(seed, "", choices.ids).fold(both, *fold)
            withheld, tied = in_fold[: len(decided)], tied[~in_fold[len(decided) :]]
        up = np.array([key("coin", pair) % 2 == 0 for pair in tied.tolist()], dtype=np.bool_)
        tied = np.sort(tied, axis=1)
        tied = np.where(up[:, None], tied, tied[:, ::-1])
        return cls(decided[:, 0], decided[:, 1], withheld, tied, values_of(choices, row))

    def __len__(self) -> int:
        return len(self.winner)

    @property
    def askable(self) -> IntArray:
        """Return the (a, 2) rows of the pairs that may be asked, decided ones first."""
        decided = np.stack([self.winner, self.loser], axis=1)
        return np.concatenate([decided[~self.withheld], self.tied])


@dataclass(frozen=True)
class _Key:
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
        """Return a mask of the pairs of a fold, of folds of equal size."""
        place = np.argsort(np.argsort(self._hashes(pairs), kind="stable"), kind="stable")
        return np.asarray(place % count == number % count)

    def _hashes(self, pairs: IntArray) -> npt.NDArray[np.uint64]:
        return np.array([self("withhold", pair) for pair in pairs.tolist()], dtype=np.uint64)


def _share(share: float, count: int, *, least: int = 0) -> int:
    """Return the rounded share of a count; of a share above 0 at least `least`, and one less than all."""
    return max(min(int(share * count + 0.5), count - 1), least if share > 0 else 0)


def _distinct(pairs: IntArray, n: int) -> IntArray:
    """Return the pairs of rows without later repetitions, in their order."""
    _, first = np.unique(pairs.min(axis=1) * n + pairs.max(axis=1), return_index=True)
    return pairs[np.sort(first)]
