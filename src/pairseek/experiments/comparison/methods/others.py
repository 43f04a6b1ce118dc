"""Statistics of other people for methods: a table of utilities, and shares of comparisons won."""

from __future__ import annotations

from functools import cache

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.experiments.comparison.methods.linear_taste import laplace
from pairseek.people.choices import Choices

_ROUNDS = 20
"""Alternations of the effects of people and items."""


@cache
def log_odds_won(others: Choices) -> FloatArray:
    """Return the (n,) log((wins + 1)/(losses + 1)) with weighted pairs: the popularity of the items."""
    n = len(others.ids)
    wins = np.bincount(others.winner, others.weight, minlength=n)
    losses = np.bincount(others.loser, others.weight, minlength=n)
    return np.asarray(np.log((wins + 1.0) / (losses + 1.0)))


@cache
def utility_table(others: Choices) -> FloatArray:
    """Return (people, n) utilities of other people; NaN where a person said nothing about an item.

    Ratings less an effect of the person, by least squares beside one of each item, because people rate different
    items; divided by their standard deviation. From pairs, a person's utilities
    are the most likely ones under a Bradley-Terry model with a normal prior of standard deviation 2.
    """
    table = np.full((len(others.people), len(others.ids)), np.nan)
    if others.ratings is not None:
        table[others.ratings.person, others.ratings.item] = others.ratings.value
    else:
        starts = others.starts
        for row in range(len(others.people)):
            span = slice(starts[row], starts[row + 1])
            shown, place = np.unique(np.stack([others.winner[span], others.loser[span]]), return_inverse=True)
            winner, loser = place.reshape(2, -1)
            unit = 2.0 * np.eye(len(shown))
            table[row, shown] = 2.0 * laplace(unit[winner] - unit[loser], np.zeros(len(winner)))[0]
    table -= _person_effects(table)[:, None]
    return np.asarray(table / np.sqrt(np.nanmean(table**2)))


def _person_effects(table: FloatArray) -> FloatArray:
    """Return the (people,) effects of a table of utilities that is the sum of two effects, by alternating means."""
    known = np.isfinite(table)
    filled, person = np.where(known, table, 0.0), np.zeros(len(table))
    for _ in range(_ROUNDS):
        item = (filled - known * person[:, None]).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        person = (filled - known * (item - item.mean())).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.asarray(person)


@cache
def completed_table(others: Choices) -> FloatArray:
    """Return the utility table with the item's mean where a person said nothing."""
    table = utility_table(others)
    known = np.isfinite(table)
    mean = np.where(known, table, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known, table, mean)


@cache
def moments(others: Choices) -> tuple[FloatArray, FloatArray]:
    """Return the (n,) means and the (n, n) covariance of the utilities of other people.

    The covariance of two items is that of the people who rated both, made positive semidefinite.
    """
    table = utility_table(others)
    known = np.isfinite(table)
    mean = np.where(known, table, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    away = np.where(known, table - mean, 0.0)
    both = known.T.astype(float) @ known
    values, vectors = np.linalg.eigh(away.T @ away / np.maximum(both - 1.0, 1.0))
    return mean, np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def root_of(covariance: FloatArray) -> FloatArray:
    """Return factors F with F F' = covariance, without empty columns."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
