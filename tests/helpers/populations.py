"""Simulated people with known truth, for the tests of populations."""

from dataclasses import dataclass

import numpy as np

import pairseek as ps
from pairseek.people.population.data import PairData
from pairseek.people.population.e_step import beliefs
from pairseek.people.population.residual import scale_of
from pairseek.people.population.selection import log_predicted


@dataclass(frozen=True)
class Truth:
    """Items, people's choices, and the truth behind them."""

    items: ps.Items
    choices: ps.Choices
    utility: np.ndarray
    spread: np.ndarray
    points: np.ndarray
    clicker: np.ndarray
    appeal: np.ndarray
    k: float


def simulated(seed, *, people=200, pairs=30, n=14, appeal=0.7, k=0.6, clickers=0.0, curve=0.0):
    """Simulate people at N(m, diag(1, 0.36)) who answer random pairs, some of them by tossing a coin."""
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


# Cumulative fractions of ratings at each cut point. Two levels mean liked or not, with 15 % liked.
LEVELS = {5: (0.1, 0.3, 0.6, 0.85), 3: (0.3, 0.75), 2: (0.85,)}


@dataclass(frozen=True)
class RatedTruth:
    """Ratings of people, the true covariance of utilities, and utilities of newcomers."""

    choices: ps.Choices
    spread: np.ndarray
    newcomers: np.ndarray


def rated(seed, *, levels, people=600, n=18, newcomers=400, squared=True, scale_use=0.0):
    """People at N(m, diag(1, 0.36)) whose ratings are utilities plus Gumbel noise, cut at quantiles.

    `levels` None leaves ratings continuous. `squared` keeps the term -k|w|² of the utilities, which is common to all
    items of a person. `scale_use` is the deviation of a further shift of each person's ratings.
    """
    rng = np.random.default_rng(seed)
    k, mean, deviation = 0.6, np.array([0.5, -0.3]), np.array([1.0, 0.6])
    points, appeal = rng.normal(size=(n, 2)), 0.7 * rng.normal(size=n)
    who = mean + rng.normal(size=(people + newcomers, 2)) * deviation
    utility = appeal - k * np.sum((who[:, None] - points) ** 2, axis=2)
    if not squared:
        utility += k * np.sum(who**2, axis=1)[:, None]
    score = utility[:people] + rng.gumbel(size=(people, n)) + scale_use * rng.normal(size=(people, 1))
    if levels is not None:
        score = np.searchsorted(np.quantile(score, LEVELS[levels]), score).astype(float)
    ids = [f"i{item:02d}" for item in range(n)]
    rows = [(f"p{p}", ids[i], score[p, i]) for p in range(people) for i in range(n)]
    slopes = 2 * k * (points - points.mean(axis=0)) * deviation
    return RatedTruth(ps.Choices.from_ratings(rows, ids=ids), slopes @ slopes.T, utility[people:])


def measured(truth, population, seed, *, answers=20, asked=20):
    """Return the ratio of variances, the coverage of 95 % intervals, and predicted minus true choices.

    Newcomers answer random pairs by the logistic model. The intervals are those of `Population.utility_belief`;
    predictions are of further pairs, of the likelier answer.
    """
    rng = np.random.default_rng(seed)
    base, factors = population.utilities()
    base, factors = base - base.mean(), factors - factors.mean(axis=0)
    true = truth.newcomers - truth.newcomers.mean(axis=1, keepdims=True)
    count, n = true.shape
    who = np.arange(count)[:, None]
    first = rng.integers(n, size=(count, answers + asked))
    second = (first + rng.integers(1, n, size=first.shape)) % n
    up = rng.random(first.shape) < 1 / (1 + np.exp(true[who, second] - true[who, first]))
    winner, loser = np.where(up, first, second), np.where(up, second, first)
    ids = truth.choices.ids
    rows = [(p, ids[winner[p, a]], ids[loser[p, a]]) for p in range(count) for a in range(answers)]
    data = PairData.of(ps.Choices.from_pairs(rows, ids=ids))
    mean, covariance, _ = beliefs(data, base, factors, np.asarray(population.covariance))
    centre, deviation = population.utility_belief(population.mean + mean, covariance)
    held = np.mean(np.abs(true - centre) < 1.96 * deviation)
    delta = factors[winner[:, answers:]] - factors[loser[:, answers:]]
    logit = base[winner[:, answers:]] - base[loser[:, answers:]] + np.einsum("pai,pi->pa", delta, mean)
    width = np.sqrt(np.einsum("pai,pij,paj->pa", delta, covariance, delta))
    chance = np.exp(log_predicted(logit.ravel(), width.ravel()))
    bias = np.mean(np.maximum(chance, 1 - chance)) - np.mean(chance > 0.5)
    ratio = np.trace(factors @ population.covariance @ factors.T) / np.trace(truth.spread)
    return float(ratio), float(held), float(bias)


def held_by_searches(truth, population, seed, *, newcomers=60, answers=20):
    """Return the coverage of utilities by 95 % intervals of searches, after newcomers' answers to random pairs.

    A search counts the point and the residual utilities of the population, but not the errors of the items.
    """
    rng = np.random.default_rng([seed, 3])
    items, k = population.items, population.k
    n, points = items.n, np.asarray(items.coordinates)
    true = truth.newcomers[:newcomers, [truth.choices.ids.index(name) for name in items.ids]]
    centred = np.eye(n) - 1.0 / n
    held = []
    for utility in true:
        search = ps.Search(items, population=population, rng=0)
        for _ in range(answers):
            a, b = rng.choice(n, 2, replace=False).tolist()
            up = rng.random() < 1 / (1 + np.exp(utility[b] - utility[a]))
            search.observe(items.ids[a], items.ids[b], winner=items.ids[a if up else b])
        belief, slopes = search.belief, 2 * k * points
        mean = slopes @ belief.mean - k * np.sum(points**2, axis=1) + items.appeal
        covariance = slopes @ belief.covariance @ slopes.T
        if (residuals := belief.residuals) is not None:
            rows, own = residuals.rows, np.full(n, residuals.deviation**2)
            own[rows] = 0.0
            covariance += np.diag(own)
            mean[rows] += residuals.mean
            covariance[np.ix_(rows, rows)] += residuals.covariance
            across = slopes @ residuals.cross
            covariance[:, rows] += across
            covariance[rows] += across.T
        # Residual utilities enlarge the scale of all utilities.
        away = centred @ (utility - mean / scale_of(population.residual))
        deviation = np.sqrt(np.diag(centred @ covariance @ centred)) / scale_of(population.residual)
        held.append(np.mean(np.abs(away) < 1.96 * deviation))
    return float(np.mean(held))


def identifiable(population: ps.Population) -> tuple[np.ndarray, np.ndarray]:
    """Return the (n,) utilities and their (n, n) covariance between people, both centred over the items."""
    base, factors = population.utilities()
    factors = factors - factors.mean(axis=0)
    return base - base.mean(), factors @ population.covariance @ factors.T
