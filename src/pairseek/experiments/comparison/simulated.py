"""Simulated people with known utilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.special import expit

from pairseek.core.types import FloatArray
from pairseek.core.validation import one_of, whole
from pairseek.errors import InvalidParameter
from pairseek.experiments.comparison.datasets import Dataset
from pairseek.people.choices import Choices

PeopleKind: TypeAlias = Literal["point", "linear", "groups", "own"]
PEOPLE_KINDS: tuple[PeopleKind, ...] = get_args(PeopleKind)
"""How the utility of an item varies between people, in addition to an appeal that everybody shares.

The utility is minus the squared distance to the person's point; a linear function of the item's coordinates; a linear
function with one of two opposite directions for everybody; or an independent value of each person for each item.
"""


@dataclass(frozen=True)
class SimulatedPeople:
    """A simulation of people who answer all pairs of items.

    Parameters
    ----------
    kind
        One of `PEOPLE_KINDS`.
    people, items, dimension
        Numbers of people, items and dimensions.
    spread
        Standard deviation of a person's utilities over the items, in logits.
    appeal
        Standard deviation of the appeal that all people share, in logits.
    own
        Standard deviation of an independent value of each person for each item, in logits.
    seed
        Seed of items, people and answers.
    """

    kind: PeopleKind = "point"
    people: int = 300
    items: int = 20
    dimension: int = 3
    spread: float = 2.0
    appeal: float = 0.5
    own: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        one_of(self.kind, "kind", PEOPLE_KINDS)
        for name, least in (("people", 4), ("items", 4), ("dimension", 1), ("seed", 0)):
            whole(getattr(self, name), name, least, field=name)
        for name in ("spread", "appeal", "own"):
            if not getattr(self, name) >= 0.0:
                raise InvalidParameter(f"{name} is {getattr(self, name)!r}: give 0 or more logits", field=name)

    def utilities(self) -> tuple[FloatArray, FloatArray]:
        """Return (n, d) coordinates and (people, n) utilities in logits."""
        rng = np.random.default_rng([self.seed, PEOPLE_KINDS.index(self.kind)])
        points = rng.standard_normal((self.items, self.dimension))
        appeal, own = self.appeal * rng.standard_normal(self.items), rng.standard_normal((self.people, self.items))
        if self.kind == "point":
            person_vectors = rng.standard_normal((self.people, self.dimension))
            taste = -np.sum((person_vectors[:, None] - points) ** 2, axis=2)
        elif self.kind == "own":
            taste = rng.standard_normal((self.people, self.items))
        else:
            person_vectors = rng.standard_normal((self.people, self.dimension))
            if self.kind == "groups":
                person_vectors = rng.choice([-1.0, 1.0], (self.people, 1)) * person_vectors[0]
            taste = person_vectors @ points.T
        taste = taste - taste.mean(axis=1, keepdims=True)
        taste *= self.spread / np.sqrt(np.mean(taste**2))
        return points, taste + appeal + self.own * own

    def dataset(self, label: str) -> Dataset:
        """Simulate a data set in which each person answers every pair once, with logistic noise."""
        points, utility = self.utilities()
        rng = np.random.default_rng([self.seed, len(PEOPLE_KINDS)])
        first, second = np.triu_indices(self.items, 1)
        first_won = rng.random((self.people, len(first))) < expit(utility[:, first] - utility[:, second])
        ids = [f"i{row}" for row in range(self.items)]
        rows = [
            (f"p{person}", ids[a if first_wins else b], ids[b if first_wins else a])
            for person, person_wins in enumerate(first_won.tolist())
            for a, b, first_wins in zip(first.tolist(), second.tolist(), person_wins, strict=True)
        ]
        choices = Choices.from_pairs(rows, ids=ids)
        note = f"Simulated people, kind {self.kind!r}, whose utilities are known and whose answers have logistic noise."
        return Dataset(label, choices, choices, vectors=points, note=note)
