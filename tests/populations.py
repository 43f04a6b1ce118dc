"""Simulated people whose truth is known, for the tests of populations."""

from dataclasses import dataclass

import numpy as np

import pairseek as ps


@dataclass(frozen=True)
class Truth:
    """Items, what people chose, and what there is to find."""

    items: ps.Items
    choices: ps.Choices
    utility: np.ndarray
    spread: np.ndarray
    points: np.ndarray
    clicker: np.ndarray
    appeal: np.ndarray
    k: float


def simulated(seed, *, people=200, pairs=30, n=14, appeal=0.7, k=0.6, clickers=0.0, curve=0.0):
    """People at N(m, diag(1, 0.36)) who answer pairs drawn at random; some toss coins."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2))
    items = ps.Items(points, [f"i{row}" for row in range(n)])
    offset = appeal * rng.normal(size=n)
    mean, covariance = np.array([0.5, -0.3]), np.diag([1.0, 0.36])
    who = mean + rng.normal(size=(people, 2)) * np.sqrt(np.diag(covariance))
    love = curve * rng.normal(size=people)
    clicker = np.arange(people) < round(clickers * people)
    utility = offset - k * np.sum((who[:, None] - points) ** 2, axis=2) + love[:, None] * np.sum(points**2, axis=1)
    utility[clicker] = 0.0
    rows = []
    for person in range(people):
        first = rng.integers(n, size=pairs)
        second = (first + rng.integers(1, n, size=pairs)) % n
        chance = 1 / (1 + np.exp(utility[person, second] - utility[person, first]))
        up = rng.random(pairs) < chance
        for a, b, won in zip(first, second, up, strict=True):
            rows.append((f"p{person}", f"i{a if won else b}", f"i{b if won else a}"))
    base = offset - k * np.sum(points**2, axis=1) + 2 * k * points @ mean
    slopes = 2 * k * (points - points.mean(axis=0))
    return Truth(
        items,
        ps.Choices.from_pairs(rows, ids=items.ids),
        base - base.mean(),
        slopes @ covariance @ slopes.T,
        who,
        clicker,
        offset,
        k,
    )
