"""Statistics of other people for methods: their utilities, and the popularity of items."""

from __future__ import annotations

from functools import cache

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.experiments.comparison.methods.linear_taste import laplace
from pairseek.people.choices import Choices

_ALTERNATIONS = 20
"""Number of alternations between the effects of people and of items."""


@cache
def log_odds_won(others: Choices) -> FloatArray:
    """Return the (n,) popularities of the items, log((wins + 1)/(losses + 1)) with weighted pairs."""
    n = len(others.ids)
    wins = np.bincount(others.winner, others.weight, minlength=n)
    losses = np.bincount(others.loser, others.weight, minlength=n)
    return np.asarray(np.log((wins + 1.0) / (losses + 1.0)))


@cache
def utility_table(others: Choices) -> FloatArray:
    """Return the (people, n) utilities of other people, with a standard deviation of 1; NaN for unrated items.

    They are ratings or, from pairs, the most likely utilities under a Bradley-Terry model with a normal prior of
    standard deviation 2. An effect of each person is subtracted. Because people rate different items, it is estimated
    by least squares together with an effect of each item.
    """
    table = np.full((len(others.people), len(others.ids)), np.nan)
    if others.ratings is not None:
        table[others.ratings.person, others.ratings.item] = others.ratings.value
    else:
        starts = others.starts
        for row in range(len(others.people)):
            span = slice(starts[row], starts[row + 1])
            compared, indices = np.unique(np.stack([others.winner[span], others.loser[span]]), return_inverse=True)
            winner, loser = indices.reshape(2, -1)
            unit = 2.0 * np.eye(len(compared))
            table[row, compared] = 2.0 * laplace(unit[winner] - unit[loser], np.zeros(len(winner)))[0]
    table -= _person_effects(table)[:, None]
    return np.asarray(table / np.sqrt(np.nanmean(table**2)))


def _person_effects(table: FloatArray) -> FloatArray:
    """Fit people's and items' additive effects by alternating means, and return the (people,) effects."""
    known = np.isfinite(table)
    filled, person = np.where(known, table, 0.0), np.zeros(len(table))
    for _ in range(_ALTERNATIONS):
        item = (filled - known * person[:, None]).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        person = (filled - known * (item - item.mean())).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.asarray(person)


@cache
def completed_table(others: Choices) -> FloatArray:
    """Return the utility table with missing utilities replaced by the mean of the item."""
    table = utility_table(others)
    known = np.isfinite(table)
    mean = np.where(known, table, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known, table, mean)


@cache
def utility_moments(others: Choices) -> tuple[FloatArray, FloatArray]:
    """Return the (n,) means and the (n, n) covariance of the utilities of other people.

    The covariance of two items is over the people who rated both; the matrix is made positive semidefinite.
    """
    table = utility_table(others)
    known = np.isfinite(table)
    mean = np.where(known, table, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, table - mean, 0.0)
    common_people = known.T.astype(float) @ known
    values, vectors = np.linalg.eigh(centred.T @ centred / np.maximum(common_people - 1.0, 1.0))
    return mean, np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def factor_of(covariance: FloatArray) -> FloatArray:
    """Return factors F with F F' = covariance, without empty columns."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
