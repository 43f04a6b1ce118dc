"""Replay of one person: queries are restricted to recorded pairs, and the other pairs are predicted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from pairseek.candidates import Candidates, ListedPairs, Rest
from pairseek.core.types import BoolArray, FloatArray, IntArray
from pairseek.estimates import utility_scale
from pairseek.evaluate.spec import MEASURES, Way
from pairseek.model.items import Items
from pairseek.population import Choices, Population
from pairseek.posteriors import Particles
from pairseek.search import Search

_BINS = 5
# Probabilities are clipped here, so that one wrong prediction does not dominate the mean log loss.
_LEAST = 1e-4


@dataclass(frozen=True, eq=False)
class Person:
    """The distinct pairs of a person with the first answer to each.

    Attributes
    ----------
    winner, loser
        (m,) rows of the items.
    """

    winner: IntArray
    loser: IntArray

    @classmethod
    def of(cls, choices: Choices, row: int) -> Person:
        """Build from the row of a person."""
        span = slice(choices.starts[row], choices.starts[row + 1])
        winner, loser = choices.winner[span], choices.loser[span]
        n = len(choices.ids)
        keys = np.minimum(winner, loser) * n + np.maximum(winner, loser)
        _, first = np.unique(keys, return_index=True)
        return cls(winner[np.sort(first)], loser[np.sort(first)])

    def __len__(self) -> int:
        return len(self.winner)


@dataclass(frozen=True, eq=False)
class Popularity:
    """Popularity baseline: a score for each item from its share of wins."""

    score: FloatArray

    @classmethod
    def of(cls, choices: Choices) -> Popularity:
        """Compute log((wins + 1)/(losses + 1)) with weighted pairs."""
        n = len(choices.ids)
        wins = np.bincount(choices.winner, choices.weight, minlength=n)
        losses = np.bincount(choices.loser, choices.weight, minlength=n)
        return cls(np.log((wins + 1.0) / (losses + 1.0)))

    def chance(self, person: Person) -> FloatArray:
        """Return the (m,) probabilities of the recorded choices."""
        return np.asarray(expit(self.score[person.winner] - self.score[person.loser]))


def plain_items(population: Population, items: Items | None) -> Items:
    """Return the items of the plain model: the given ones, or the learned coordinates without learned appeal."""
    return items if items is not None else Items._unwarned(population.items.coordinates, population.items.ids)


def replayed(
    person: Person,
    way: Way,
    population: Population,
    items: Items | None,
    popularity: Popularity,
    *,
    answers: Sequence[int],
    samples: int | None,
    seed: int,
) -> tuple[list[tuple[float, ...]], list[float], int]:
    """Return rows of measures at each answer count, cumulative seconds, and the number of questions asked.

    A row is NaN where all pairs of the person were asked, so that none remains to be predicted.
    """
    popular = popularity.chance(person)
    if way.strategy is None:
        row = _measured(popular, popular, popular, _tau(popularity.score, person))
        return [row] * len(answers), [0.0] * len(answers), 0
    catalogue = population.items if way.population else plain_items(population, items)
    search = Search(
        catalogue,
        strategy=way.strategy,
        posterior=None if samples is None else Particles(samples),
        candidates=ListedPairs(tuple(zip(person.winner.tolist(), person.loser.tolist(), strict=True))),
        rest=Rest(pair=len(person)),
        rng=seed,
        population=population if way.population else None,
    )
    chosen = {
        frozenset(pair): catalogue.ids[pair[0]]
        for pair in zip(person.winner.tolist(), person.loser.tolist(), strict=True)
    }
    alone = _chances(search, person)
    asked = np.zeros(len(person), dtype=np.bool_)
    rows: list[tuple[float, ...]] = []
    seconds: list[float] = []
    spent = 0.0
    for count in range(max(answers) + 1):
        if count and count <= len(person):
            began = time.perf_counter()
            query = search.ask()
            pair = frozenset((catalogue.index(query.left), catalogue.index(query.right)))
            search.tell(query, winner=chosen[pair])
            _ = search.belief
            spent += time.perf_counter() - began
            asked |= _is(pair, person)
        if count in answers:
            rows.append(_row(search, person, asked, alone, popular))
            seconds.append(spent)
    return rows, seconds, int(asked.sum())


def _is(pair: frozenset[int], person: Person) -> BoolArray:
    low, high = min(pair), max(pair)
    same = (np.minimum(person.winner, person.loser) == low) & (np.maximum(person.winner, person.loser) == high)
    return np.asarray(same)


def _chances(search: Search, person: Person) -> FloatArray:
    """Return the (m,) posterior predictive probabilities of the recorded choices."""
    items = search.items
    assert isinstance(items, Items)
    pairs = Candidates.of(
        items.coordinates,
        person.winner,
        person.loser,
        belief=search.belief,
        response=search.response,
        appeal=items.appeal,
    )
    return pairs.sampled(search.belief)[0]


def _row(search: Search, person: Person, asked: BoolArray, alone: FloatArray, popular: FloatArray) -> tuple[float, ...]:
    remaining = ~asked
    if not remaining.any():
        return (float("nan"),) * (len(MEASURES) + 3 * _BINS)
    items, belief = search.items, search.belief
    assert isinstance(items, Items)
    scale = utility_scale(items, search.response)
    utility = items.appeal - scale * np.sum((items.coordinates - belief.mean) ** 2, axis=1)
    chance = _chances(search, person)[remaining]
    return _measured(chance, alone[remaining], popular[remaining], _tau(utility, person))


def _tau(utility: FloatArray, person: Person) -> float:
    return float(np.sign(utility[person.winner] - utility[person.loser]).mean())


def _measured(chance: FloatArray, alone: FloatArray, popular: FloatArray, tau: float) -> tuple[float, ...]:
    loss, before = (-float(np.log(np.maximum(x, _LEAST)).mean()) for x in (chance, alone))
    sure = np.maximum(chance, 1.0 - chance)
    bins = np.minimum(((sure - 0.5) * 2 * _BINS).astype(int), _BINS - 1)
    counts = np.bincount(bins, minlength=_BINS)
    right = np.bincount(bins, _right(chance), minlength=_BINS)
    total = np.bincount(bins, sure, minlength=_BINS)
    calibration = np.stack([counts, right, total], axis=1).ravel().tolist()
    gain = 1.0 if loss < before else 0.5 if loss == before else 0.0
    accuracies = [float(_right(x).mean()) for x in (popular, alone)]
    return (float(_right(chance).mean()), loss, tau, gain, *accuracies, float(len(chance)), *calibration)


def _right(chance: FloatArray) -> FloatArray:
    return np.where(chance == 0.5, 0.5, (chance > 0.5).astype(np.float64))
