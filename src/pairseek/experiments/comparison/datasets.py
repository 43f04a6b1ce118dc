"""Data sets of people to replay: held-out people with their answers, and the choices of the others."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import scipy.optimize
from scipy.special import expit

from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.experiments.comparison.person import Person
from pairseek.experiments.comparison.protocol import Knowledge
from pairseek.people.choices import Choices

Half: TypeAlias = Literal["choosing", "reporting"]
ANSWERS = (0, 2, 5, 10, 20, 40)
# Independent streams of random numbers.
_HOLD_OUT_STREAM = 0
_ORDER_STREAM = 1


@dataclass(frozen=True, eq=False)
class Dataset:
    """Recorded or simulated people.

    Attributes
    ----------
    label
        Name of the data set in tables.
    choices
        Recorded choices, which methods that know other people learn from.
    answers
        Answers that held-out people give, with the people and items of `choices`; the same object if no noise is added.
    persons
        Name of the person behind each row, if a person has several rows. None: each row is a person.
    counts
        Numbers of answers after which methods are measured.
    vectors
        (n, d) vectors of the items. None: coordinates learned from the other people.
    dimension
        Number of learned coordinates.
    folds
        Number of folds of the pairs. Each is withheld in turn, and a person's measures are averaged over the folds.
        None: withhold 30 % of each person's pairs, once.
    bound
        Whether answers follow from ratings or rankings. These never contradict themselves, so accuracies are upper
        bounds.
    note
        A sentence about the answers, for the report.

    Examples
    --------
    >>> import pairseek as ps
    >>> from pairseek.experiments.comparison.datasets import Dataset
    >>> ratings = [(f"guest {p}", f"tea {i}", (p * i) % 5) for p in range(30) for i in range(6)]
    >>> choices = ps.Choices.from_ratings(ratings)
    >>> teas = Dataset("teas", choices, choices, counts=(0, 4), dimension=1)
    >>> plan = ps.experiments.Comparison(["popularity"], [teas], people=5)
    """

    label: str
    choices: Choices
    answers: Choices
    persons: tuple[str, ...] | None = None
    counts: tuple[int, ...] = ANSWERS
    vectors: FloatArray | None = None
    dimension: int = 4
    folds: int | None = None
    bound: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        if self.answers.people != self.choices.people or self.answers.ids != self.choices.ids:
            raise InvalidChoices(f"the answers of {self.label!r} have other people or items than its choices")
        if self.vectors is not None and len(self.vectors) != len(self.choices.ids):
            raise InvalidParameter(
                f"{self.label!r} has {len(self.choices.ids)} items and {len(self.vectors)} vectors: give one per item",
                field="vectors",
            )

    @property
    def owners(self) -> tuple[str, ...]:
        """Name of the person behind each row."""
        return self.choices.people if self.persons is None else self.persons

    @property
    def hash(self) -> str:
        """SHA-256 digest of everything that outcomes depend on."""
        vectors = None if self.vectors is None else np.ascontiguousarray(self.vectors, "<f8").tobytes()
        facts = (self.choices.hash, self.answers.hash, self.persons, self.counts, vectors, self.dimension, self.folds)
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def only(self, rows: Sequence[int] | IntArray) -> Dataset:
        """Select rows of people."""
        persons = None if self.persons is None else tuple(self.persons[row] for row in rows)
        return replace(self, choices=self.choices.only(rows), answers=self.answers.only(rows), persons=persons)

    def sessions(self, person: str, seed: int) -> list[Person]:
        """Return the pairs to replay of a person: one session, or one for each fold."""
        rows = [row for row, owner in enumerate(self.owners) if owner == person]
        if self.folds is None:
            return [Person.of(self.answers, rows[0], seed=seed)]
        # The folds of a person with several rows use different rows, evenly spaced.
        session_rows = [rows[index * len(rows) // self.folds] for index in range(self.folds)]
        folds = [
            Person.of(self.answers, row, seed=seed, fold=(fold, self.folds)) for fold, row in enumerate(session_rows)
        ]
        return [session for session in folds if session.withheld.any() and len(session.askable)]


@dataclass(frozen=True, eq=False)
class HeldOutPeople:
    """A data set divided into people to replay and people to learn from.

    Attributes
    ----------
    dataset
        All people.
    people
        Names of the held-out people.
    others
        Choices of the people that methods may learn from, without any held-out person.

    Examples
    --------
    >>> import pairseek as ps
    >>> from pairseek.experiments.comparison.datasets import Dataset, held_out
    >>> ratings = [(f"guest {p}", f"tea {i}", (p * i) % 5) for p in range(30) for i in range(6)]
    >>> choices = ps.Choices.from_ratings(ratings)
    >>> held = held_out(Dataset("teas", choices, choices), 5, half="reporting", seed=0)
    >>> len(held.people), len(held.others.people)
    (5, 24)
    """

    dataset: Dataset
    people: tuple[str, ...]
    others: Choices

    def shown(self, knows: Knowledge) -> tuple[tuple[ItemId, ...], FloatArray | None, Choices | None]:
        """Return items, vectors and others for a method: what it does not know is None."""
        vectors = None if knows == "nothing" or self.dataset.vectors is None else self.dataset.vectors.copy()
        return self.others.ids, vectors, self.others if knows == "others" else None

    def key(self, person: str, session: int, seed: int) -> list[int]:
        """Return the seed for the order in which this person's pairs are listed."""
        return [seed, _ORDER_STREAM, session, int.from_bytes(hashlib.sha256(person.encode()).digest()[:8])]


def half_of(person: str) -> Half:
    """Return the half of a person. Settings may be chosen only on the choosing half."""
    return "choosing" if hashlib.sha256(person.encode()).digest()[0] % 2 == 0 else "reporting"


def held_out(dataset: Dataset, count: int, *, half: Half, seed: int) -> HeldOutPeople:
    """Hold out up to `count` people of a half.

    If the choosing half is replayed, the reporting half is ignored, and at most half of the choosing half is held out.
    If the reporting half is replayed, methods may learn from everybody else.
    """
    if half == "choosing":
        dataset = dataset.only([row for row, owner in enumerate(dataset.owners) if half_of(owner) == half])
    usable = np.flatnonzero(np.diff(dataset.answers.starts) > 1)
    eligible = [name for name in dict.fromkeys(dataset.owners[row] for row in usable) if half_of(name) == half]
    limit = min(count, len(eligible) // 2) if half == "choosing" else count
    names = np.random.default_rng([seed, _HOLD_OUT_STREAM]).permutation(sorted(eligible)).tolist()[:limit]
    others = [row for row, owner in enumerate(dataset.owners) if owner not in set(names)]
    if not names or len(others) < 2:
        raise InvalidChoices(
            f"{dataset.label!r} has {len(eligible)} people with two decided pairs in the {half} half, and "
            f"{len(others)} others: give more people, or hold out fewer"
        )
    return HeldOutPeople(dataset, tuple(names), dataset.choices.only(others).usable())


def with_noise(choices: Choices, agreement: float, *, seed: int = 0) -> Choices:
    """Draw answers with logistic noise on the difference of two ratings; a coin decides between equal ratings.

    Parameters
    ----------
    choices
        Ratings.
    agreement
        Fraction of the pairs with unequal ratings that people would answer the same way twice.
    seed
        Seed of the noise.
    """
    if choices.ratings is None:
        raise InvalidParameter("agreement needs ratings: leave it out for recorded pairs", field="agreement")
    if not 0.5 < agreement < 1.0:
        raise InvalidParameter(f"agreement is {agreement!r}: give a fraction above 0.5 and below 1", field="agreement")
    pairs = np.concatenate(
        [np.stack([choices.person, choices.winner, choices.loser], axis=1), choices.tied], dtype=np.int64
    )
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    first, second = np.min(pairs[:, 1:], axis=1), np.max(pairs[:, 1:], axis=1)
    values = np.full((len(choices.people), len(choices.ids)), np.nan)
    values[choices.ratings.person, choices.ratings.item] = choices.ratings.value
    rating_difference = values[pairs[:, 0], first] - values[pairs[:, 0], second]
    probability = expit(noise_scale(rating_difference, agreement) * rating_difference)
    draw = np.empty(len(pairs))
    order = np.lexsort((second, first, pairs[:, 0]))
    person_starts = np.searchsorted(pairs[order, 0], np.arange(len(choices.people) + 1))
    for row, name in enumerate(choices.people):
        # Keyed by name, so that a person's answers do not depend on the other people.
        rng = np.random.default_rng([seed, int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])])
        person_pairs = order[person_starts[row] : person_starts[row + 1]]
        draw[person_pairs] = rng.random(len(person_pairs))
    first_wins = draw < probability
    return replace(
        choices,
        person=pairs[:, 0],
        winner=np.where(first_wins, first, second),
        loser=np.where(first_wins, second, first),
        weight=np.ones(len(pairs)),
        tied=np.empty((0, 3), dtype=np.int64),
    )


def noise_scale(rating_differences: FloatArray, agreement: float) -> float:
    """Return the logits per unit of rating at which pairs of unequal ratings have this agreement with themselves."""
    unequal = rating_differences[rating_differences != 0.0]
    if not len(unequal):
        raise InvalidChoices("nobody rated two items differently, so agreement cannot be set: leave it out")

    def excess(scale: float) -> float:
        probability = expit(scale * unequal)
        return float(np.mean(probability**2 + (1.0 - probability) ** 2)) - agreement

    return float(scipy.optimize.brentq(excess, 0.0, 1e3 / np.min(np.abs(unequal))))
