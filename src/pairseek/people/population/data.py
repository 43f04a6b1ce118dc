"""Paired choices in the array layout of the kernels, and what the likelihoods of pairs and of ratings have in common.

Both take the utilities base_i + F_i·z of a person at z, and thresholds shared by all people: the half-width of ties,
or the cut points between the levels of ratings. The first columns of F are the factors of the tastes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pairseek.core.lazy import cached_property
from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.parallel import for_ranges
from pairseek.people.choices import Choices
from pairseek.people.population.kernels import MIXTURE, accumulate_gradients, update_posteriors
from pairseek.people.population.rating_points import Points

# Largest number of parameters with a full curvature matrix; larger models use one block per item.
MAX_FULL_PARAMETERS = 1500
# People per unit of work of a thread.
PEOPLE_CHUNK = 64
# Largest change of a parameter in a Newton step.
MAX_STEP = 1.0


@dataclass(frozen=True, eq=False)
class Utilities:
    """Parameters of the utilities base_i + F_i·z, and the thresholds."""

    base: FloatArray
    factors: FloatArray
    thresholds: FloatArray


@dataclass(frozen=True, eq=False)
class Posteriors:
    """Gaussian posteriors of all people.

    Attributes
    ----------
    mean, covariance
        (people, d) means and (people, d, d) covariances.
    evidence
        (people,) log evidence, or a lower bound on it.
    sites
        (m, 2) precisions and linear parameters of the sites of ratings; empty for pairs.
    points
        Weighted points with these moments; None if the posteriors are Gaussian.
    """

    mean: FloatArray
    covariance: FloatArray
    evidence: FloatArray
    sites: FloatArray
    points: Points | None = None

    def transformed(self, centre: FloatArray, matrix: FloatArray) -> Posteriors:
        """Transform z to matrix (z - centre)."""
        points = self.points
        if points is not None:
            points = replace(points, place=np.ascontiguousarray((points.place - centre) @ matrix.T))
        mean = np.ascontiguousarray((self.mean - centre) @ matrix.T)
        covariance = np.ascontiguousarray(matrix @ self.covariance @ matrix.T)
        return replace(self, mean=mean, covariance=covariance, points=points)


@dataclass(frozen=True, eq=False)
class Derivatives:
    """First and negative second derivatives of the expected log-likelihood.

    Attributes
    ----------
    slope
        (n, q) derivatives by base, followed by those by the factors if q > 1.
    curve
        (nq, nq) negative second derivatives, or their (n, q, q) diagonal blocks.
    threshold_slope, threshold_curve
        (t,) and (t, t) derivatives by the thresholds.
    cross
        (n, q, t) negative mixed second derivatives; None to neglect them.
    fisher
        (n, q, q) sums over people of the outer products of their derivatives by an item's parameters, an estimate of
        the Fisher information of the ratings about the item; None for pairs.
    """

    slope: FloatArray
    curve: FloatArray
    threshold_slope: FloatArray
    threshold_curve: FloatArray
    cross: FloatArray | None = None
    fisher: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class PairData:
    """Paired choices and ties.

    For a half-width t of ties, an answer has probability f(z - t), and a tie has probability
    f(z + t) - f(z - t) = f(t + z) f(t - z) (1 - e^-2t): a tie is two answers with the offset t in place of -t.

    Attributes
    ----------
    starts
        (people + 1,) offsets of each person's first row.
    rows
        (m, 2) winners and losers; a tie has two rows, one in each direction.
    weight
        (m,) weights of the rows.
    n
        Number of items.
    side
        (m,) sign of t in the logit: -1 for an answer, 1 for one of the two rows of a tie.
    """

    starts: IntArray
    rows: IntArray
    weight: FloatArray
    n: int
    side: FloatArray
    steps = 4
    """Steps of the E-step in each EM iteration."""

    @classmethod
    def of(cls, choices: Choices) -> PairData:
        """Convert the pairs of choices."""
        tied = choices.outcomes
        person = np.concatenate([choices.person, tied[:, 0], tied[:, 0]])
        order = np.argsort(person, kind="stable")
        first = np.concatenate([choices.winner, tied[:, 1], tied[:, 2]])[order]
        second = np.concatenate([choices.loser, tied[:, 2], tied[:, 1]])[order]
        weight = np.concatenate([choices.weight, np.ones(2 * len(tied))])[order]
        side = np.repeat([-1.0, 1.0], [len(choices), 2 * len(tied)])[order]
        starts = np.searchsorted(person[order], np.arange(len(choices.people) + 1))
        return cls(starts, np.ascontiguousarray(np.stack([first, second], axis=1)), weight, len(choices.ids), side)

    @property
    def people(self) -> int:
        """Number of people."""
        return len(self.starts) - 1

    @cached_property
    def ties(self) -> FloatArray:
        """(people,) numbers of ties."""
        return self.totals(np.where(self.side > 0, 0.5, 0.0))

    def totals(self, values: FloatArray) -> FloatArray:
        """Sum (m,) values per person, shape (people,)."""
        return np.asarray(np.diff(np.concatenate([[0.0], np.cumsum(values)])[self.starts]))

    def random_likelihood(self) -> FloatArray:
        """Return the (people,) log-likelihoods under random answers with the overall share of ties."""
        answers = self.totals(self.weight * (self.side < 0))
        if not self.ties.any():
            return np.asarray(-np.log(2.0) * answers)
        share = self.ties.sum() / (self.ties.sum() + answers.sum())
        return np.asarray(np.log(0.5 * (1.0 - share)) * answers + np.log(share) * self.ties)

    def thresholds(self) -> FloatArray:
        """Return the initial half-width of ties, which gives equal items the observed share of ties."""
        if not self.ties.any():
            return np.empty(0)
        share = self.ties.sum() / (self.ties.sum() + np.sum(self.side < 0))
        return np.array([2.0 * np.arctanh(min(share, 0.99))])

    def _offset(self, thresholds: FloatArray) -> FloatArray:
        return self.side * (thresholds[0] if len(thresholds) else 0.0)

    def prior(self, spread: FloatArray) -> Posteriors:
        """Return everybody's prior, N(0, spread), from which `posteriors` starts."""
        people = self.people
        mean, covariance = np.zeros((people, len(spread))), np.tile(spread, (people, 1, 1))
        return Posteriors(mean, covariance, np.zeros(people), np.empty((0, 2)))

    def posteriors(self, model: Utilities, precision: FloatArray, previous: Posteriors, steps: int) -> Posteriors:
        """Update each person's Gaussian posterior under a prior of mean 0 with this precision."""
        mean, covariance, evidence = previous.mean.copy(), previous.covariance.copy(), np.empty(self.people)
        offset = self._offset(model.thresholds)
        arguments = (self.starts, self.rows, self.weight, offset, model.base, model.factors, precision, MIXTURE)
        for_ranges(update_posteriors, self.people, PEOPLE_CHUNK, *arguments, steps, mean, covariance, evidence)
        if len(model.thresholds):
            evidence += self.ties * np.log(-np.expm1(-2.0 * model.thresholds[0]))
        return Posteriors(mean, covariance, evidence, previous.sites)

    def derivatives(self, model: Utilities, people: Posteriors, counts: FloatArray, q: int) -> Derivatives:
        """Return derivatives with a curvature bound; mixed ones with t cancel by symmetry and are neglected."""
        is_full = self.n * q <= MAX_FULL_PARAMETERS
        slope, by_offset = np.zeros((self.n, q)), np.zeros(2)
        curve = np.zeros((self.n * q, self.n * q if is_full else q))
        thresholds, offset = model.thresholds, self._offset(model.thresholds)
        arguments = (self.starts, self.rows, self.weight, offset, counts, model.base, model.factors, MIXTURE)
        accumulate_gradients(*arguments, people.mean, people.covariance, slope, curve, by_offset)
        curve = curve if is_full else np.asarray(curve.reshape(self.n, q, q))
        if not len(thresholds):
            return Derivatives(slope, curve, np.empty(0), np.empty((0, 0)))
        ties, growth = counts @ self.ties, np.expm1(2.0 * thresholds[0])
        threshold_slope = by_offset[0] + 2.0 * ties / growth
        threshold_curve = by_offset[1] + 4.0 * ties * (growth + 1.0) / growth**2
        return Derivatives(slope, curve, np.array([threshold_slope]), np.array([[threshold_curve]]))

    def first_factors(self, d: int) -> FloatArray:
        """Return initial (n, d) factors, the principal components of people's deviations from the mean win rates."""
        score = np.zeros((self.people, self.n))
        count = np.zeros((self.people, self.n))
        person = np.repeat(np.arange(self.people), np.diff(self.starts))
        for column, sign in ((0, 1.0), (1, -1.0)):
            np.add.at(score, (person, self.rows[:, column]), sign)
            np.add.at(count, (person, self.rows[:, column]), 1.0)
        share = score / np.maximum(count, 1.0)
        share = np.where(count > 0, share - share.sum(axis=0) / np.maximum((count > 0).sum(axis=0), 1), 0.0)
        values, vectors = np.linalg.eigh(share.T @ share / self.people)
        top = slice(-1, -d - 1, -1)
        # The logistic function has derivative 1/4 at 0: a win rate changes by a quarter of the utility difference.
        return np.ascontiguousarray(4.0 * vectors[:, top] * np.sqrt(np.maximum(values[top], 1e-6)))

    def moved_thresholds(self, thresholds: FloatArray, step: FloatArray) -> FloatArray:
        """Return the half-width after a Newton step, limited to a factor of 2."""
        return np.clip(thresholds + step, 0.5 * thresholds, 2.0 * thresholds)
