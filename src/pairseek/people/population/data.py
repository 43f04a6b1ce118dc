"""Likelihoods of recorded choices in the array layout of the kernels: paired choices with ties, and ratings.

Both take the utilities base_i + F_i·z of a person at z, and thresholds shared by all people: the half-width of ties,
or the cut points between the levels of ratings. The first columns of F are the factors of the tastes. For ratings, F
has a last column of ones, whose latent variable is the person's shift on the scale; differences of utilities do not
depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds
from scipy.special import ndtri

from pairseek.core.lazy import cached_property
from pairseek.core.types import BoolArray, FloatArray, IntArray
from pairseek.numerics.parallel import for_ranges
from pairseek.people.choices import Choices
from pairseek.people.population.kernels import MIXTURE, accumulate_gradients, update_posteriors
from pairseek.people.population.rating_kernels import (
    QUADRATURE,
    accumulate_rating_gradients,
    predict_ratings,
    update_rating_posteriors,
)
from pairseek.people.population.rating_points import Points, gather_points, slope_points, weigh_points

# Largest number of parameters with a full curvature matrix; larger models use one block per item.
MAX_FULL_PARAMETERS = 1500
# People per unit of work of a thread.
_PEOPLE_CHUNK = 64
# Items per unit of work of a thread.
_ITEM_CHUNK = 16
# Ratings with more distinct values are divided into this many levels of equal frequency.
MAX_RATING_LEVELS = 20
# EM iterations of the null model, in which ratings do not depend on the items.
_NULL_ITERATIONS = 30
# Largest number of ratings with two levels for which posteriors are weighted points.
_MAX_BY_POINTS = 100_000
# Prior standard deviation of a cut point around its initial value.
_CUT_DEVIATION = 10.0
# Largest change of a parameter in a Newton step.
MAX_STEP = 1.0
# Smallest share of a gap between cut points that a Newton step keeps.
_MIN_GAP_SHARE = 0.3


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
        for_ranges(update_posteriors, self.people, _PEOPLE_CHUNK, *arguments, steps, mean, covariance, evidence)
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


@dataclass(frozen=True, eq=False)
class RatingData:
    """Ratings as levels between cut points shared by all people: see `rating_kernels`.

    Attributes
    ----------
    starts
        (people + 1,) offsets of each person's first rating.
    item, level, weight
        (m,) items, levels from 0, and weights of the ratings.
    n, levels
        Numbers of items and of levels.
    """

    starts: IntArray
    item: IntArray
    level: IntArray
    weight: FloatArray
    n: int
    levels: int
    steps = 1
    """Steps of the E-step in each EM iteration."""

    @classmethod
    def of(cls, choices: Choices) -> RatingData:
        """Convert the ratings of choices."""
        ratings = choices.ratings
        assert ratings is not None
        starts = np.searchsorted(ratings.person, np.arange(len(choices.people) + 1))
        level, levels = to_levels(ratings.value)
        item = np.ascontiguousarray(ratings.item)
        return cls(starts, item, level, np.ones(len(level)), len(choices.ids), levels)

    @property
    def people(self) -> int:
        """Number of people."""
        return len(self.starts) - 1

    @cached_property
    def person(self) -> IntArray:
        """(m,) person of each rating."""
        return np.repeat(np.arange(self.people), np.diff(self.starts))

    @property
    def by_points(self) -> bool:
        """Whether posteriors are weighted points, because two levels and few ratings make them far from Gaussian."""
        return self.levels == 2 and len(self.item) <= _MAX_BY_POINTS

    @cached_property
    def by_item(self) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray]:
        """(n + 1,) offsets of the items, and (m,) rows, persons, levels and weights sorted by item."""
        order = np.argsort(self.item, kind="stable")
        starts = np.searchsorted(self.item[order], np.arange(self.n + 1))
        return starts, order, self.person[order], self.level[order], self.weight[order]

    def random_likelihood(self) -> FloatArray:
        """Return the (people,) evidence of ratings that depend on the person's shift but not on the items."""
        return self._null_evidence

    @cached_property
    def _null_evidence(self) -> FloatArray:
        # All items are one item, so a person's ratings with the same level are one row weighted by their number.
        keys, count = np.unique(self.person * self.levels + self.level, return_counts=True)
        starts = np.searchsorted(keys, np.arange(self.people + 1) * self.levels)
        item = np.zeros(len(keys), dtype=np.int64)
        data = RatingData(starts, item, keys % self.levels, count.astype(np.float64), 1, self.levels)
        model = Utilities(np.zeros(1), np.ones((1, 1)), data.thresholds())
        counts, spread, none = np.ones(self.people), 1.0, np.zeros((self.people, 1))
        people = data.prior(np.ones((1, 1)))
        for _ in range(_NULL_ITERATIONS):
            people = data.posteriors(model, np.full((self.people, 1, 1), 1.0 / spread), none, people, 1)
            slopes = data.derivatives(model, people, counts, 1)
            step = np.asarray(np.linalg.solve(slopes.threshold_curve, slopes.threshold_slope))
            centre = people.mean.mean()
            model = replace(model, thresholds=data.moved_thresholds(model.thresholds, step) - centre)
            spread = (np.sum((people.mean - centre) ** 2 + people.covariance[:, :, 0]) + 1.0) / (self.people + 1.0)
        return people.evidence

    def thresholds(self) -> FloatArray:
        """Return initial cut points, under which a person without preferences gives the observed levels."""
        count = np.bincount(self.level, self.weight, minlength=self.levels)
        return np.asarray(-np.log(-np.log(np.cumsum(count)[:-1] / count.sum())))

    def prior(self, spread: FloatArray) -> Posteriors:
        """Return everybody's prior, N(0, spread), from which `posteriors` starts."""
        people = self.people
        mean, covariance = np.zeros((people, len(spread))), np.tile(spread, (people, 1, 1))
        return Posteriors(mean, covariance, np.zeros(people), np.zeros((len(self.item), 2)))

    def posteriors(
        self, model: Utilities, precision: FloatArray, linear: FloatArray, previous: Posteriors, steps: int
    ) -> Posteriors:
        """Update each person's Gaussian posterior, given the natural parameters of their prior."""
        mean, covariance, sites = previous.mean.copy(), previous.covariance.copy(), previous.sites.copy()
        evidence = np.empty(self.people)
        rating_arrays = (
            self.starts,
            self.item,
            self.level,
            self.weight,
            model.base,
            model.factors,
            _ends(model.thresholds),
        )
        arguments = (precision, linear, QUADRATURE, steps, sites, mean, covariance, evidence)
        for_ranges(update_rating_posteriors, self.people, _PEOPLE_CHUNK, *rating_arrays, *arguments)
        return Posteriors(mean, covariance, evidence, sites)

    def weighted_posteriors(
        self, model: Utilities, place: FloatArray, log_weight: FloatArray, previous: Posteriors
    ) -> Posteriors:
        """Return posteriors as (people, points, d) points, given the log weights that represent the prior."""
        weight, evidence = log_weight.copy(), np.empty(self.people)
        rating_arrays = (
            self.starts,
            self.item,
            self.level,
            self.weight,
            model.base,
            model.factors,
            _ends(model.thresholds),
        )
        points = Points(place, weight)
        for_ranges(weigh_points, self.people, _PEOPLE_CHUNK, *rating_arrays, points.columns, weight, evidence)
        return Posteriors(*points.moments(), evidence, previous.sites, points)

    def shift_slopes(self, model: Utilities, points: Points) -> tuple[FloatArray, FloatArray]:
        """Return (people, points) first and negative second derivatives of the log-likelihood by the shift."""
        slope, curve = np.zeros_like(points.weight), np.zeros_like(points.weight)
        rating_arrays = (
            self.starts,
            self.item,
            self.level,
            self.weight,
            model.base,
            model.factors,
            _ends(model.thresholds),
        )
        for_ranges(slope_points, self.people, _PEOPLE_CHUNK, *rating_arrays, points.columns, slope, curve)
        return slope, curve

    def derivatives(self, model: Utilities, people: Posteriors, counts: FloatArray, q: int) -> Derivatives:
        """Return derivatives; those by the cut points include a weak prior around their initial values."""
        slope, curve, fisher = np.zeros((self.n, q)), np.zeros((self.n, q, q)), np.zeros((self.n, q, q))
        sums, cross = np.zeros((self.n, self.levels, 3)), np.zeros((self.n, q, self.levels, 2))
        thresholds = model.thresholds
        starts, row, *rating_arrays = self.by_item
        arguments, out = (*rating_arrays, counts, model.base, model.factors, _ends(thresholds)), (slope, curve, fisher)
        if people.points is None:
            posterior_arrays = (people.sites, people.mean, people.covariance, QUADRATURE)
            for_ranges(
                accumulate_rating_gradients,
                self.n,
                _ITEM_CHUNK,
                starts,
                row,
                *arguments,
                *posterior_arrays,
                *out,
                sums,
                cross,
            )
        else:
            points = people.points
            for_ranges(
                gather_points, self.n, _ITEM_CHUNK, starts, *arguments, points.columns, points.weight, *out, sums, cross
            )
        upper_sum, slope_sum, curve_sum = sums.sum(axis=0).T
        # Let a and b be the cut points below and above a level, and r = 1/(e^(b - a) - 1). Then δ has the derivatives
        # -(1 + r) by a and r by b, and r has the derivative -r(1 + r) by b.
        ratio = np.zeros(self.levels)
        ratio[1:-1] = 1.0 / np.expm1(np.diff(thresholds))
        ratio_plus_one = 1.0 + ratio
        by_cut = (upper_sum + slope_sum * ratio)[:-1] - (slope_sum * ratio_plus_one)[1:]
        diagonal = (upper_sum + curve_sum * ratio**2 + slope_sum * ratio * ratio_plus_one)[:-1]
        diagonal += (curve_sum * ratio_plus_one**2 + slope_sum * ratio * ratio_plus_one)[1:]
        off_diagonal = -((curve_sum + slope_sum) * ratio * ratio_plus_one)[1:-1]
        cross_thresholds = (
            -cross[..., :-1, 0] + ratio[:-1] * cross[..., :-1, 1] - ratio_plus_one[1:] * cross[..., 1:, 1]
        )
        by_cut -= (thresholds - self.thresholds()) / _CUT_DEVIATION**2
        second = np.diag(diagonal + _CUT_DEVIATION**-2) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
        return Derivatives(slope, curve, by_cut, second, cross_thresholds, fisher)

    def only(self, keep: BoolArray) -> RatingData:
        """Select ratings by a mask, and keep all people and levels."""
        starts = np.concatenate([[0], np.cumsum(keep)])[self.starts]
        return replace(self, starts=starts, item=self.item[keep], level=self.level[keep], weight=self.weight[keep])

    def log_predictive(self, model: Utilities, people: Posteriors) -> FloatArray:
        """Return the (m,) log predictive probabilities of the ratings under these posteriors."""
        out = np.empty(len(self.item))
        rating_arrays = (
            self.person,
            self.item,
            self.level,
            model.base,
            model.factors,
            _ends(model.thresholds),
            QUADRATURE,
        )
        for_ranges(predict_ratings, len(out), 4096, *rating_arrays, people.mean, people.covariance, out)
        return out

    def first_factors(self, d: int) -> FloatArray:
        """Return initial (n, d) factors: principal components of the ratings minus the people's and items' means."""
        count = np.bincount(self.level, minlength=self.levels)
        # Normal scores of the levels with the deviation of Gumbel noise.
        score = np.pi / np.sqrt(6.0) * ndtri((np.cumsum(count) - 0.5 * count) / count.sum())[self.level]
        for rows, size in ((self.person, self.people), (self.item, self.n)):
            number = np.maximum(np.bincount(rows, minlength=size), 1)
            score = score - (np.bincount(rows, score, minlength=size) / number)[rows]
        table = sparse.csr_matrix((score, (self.person, self.item)), shape=(self.people, self.n))
        if self.n <= MAX_FULL_PARAMETERS or self.people <= d:
            values, vectors = np.linalg.eigh((table.T @ table).toarray())
            top = slice(-1, -d - 1, -1)
            axes, singular = vectors[:, top], np.sqrt(np.maximum(values[top], 1e-6))
        else:
            _, singular, rows = svds(table, k=d, v0=np.ones(min(table.shape)))
            axes, singular = rows[::-1].T, singular[::-1]
        # Missing ratings count as 0, which shrinks the components by the share of observed ratings.
        share = len(score) / (self.people * self.n)
        factors = axes * np.minimum(singular / (np.sqrt(self.people) * share), np.sqrt(self.n))
        signs = np.sign(factors[np.abs(factors).argmax(axis=0), np.arange(d)])
        return np.ascontiguousarray(factors * np.where(signs == 0, 1.0, signs))

    def moved_thresholds(self, thresholds: FloatArray, step: FloatArray) -> FloatArray:
        """Return the cut points after a Newton step, shortened so that they stay in order."""
        shrinkage = -np.diff(step) / np.diff(thresholds)
        share = min(1.0, (1.0 - _MIN_GAP_SHARE) / max(shrinkage.max(initial=0.0), 1e-12))
        return np.asarray(thresholds + share * np.clip(step, -MAX_STEP, MAX_STEP))


def _ends(cuts: FloatArray) -> FloatArray:
    """Return e^-a and e^-b of the cut points a below and b above each level; -1 and 0 where there is none."""
    return np.stack([np.append(-1.0, np.exp(-cuts)), np.append(np.exp(-cuts), 0.0)], axis=1)


def to_levels(values: FloatArray) -> tuple[IntArray, int]:
    """Return the level of each rating and the number of levels: distinct values, or groups of equal frequency."""
    distinct, level = np.unique(values, return_inverse=True)
    if len(distinct) <= MAX_RATING_LEVELS:
        return level.astype(np.int64), len(distinct)
    edges = np.unique(np.quantile(values, np.arange(1, MAX_RATING_LEVELS) / MAX_RATING_LEVELS, method="lower"))
    level = np.searchsorted(edges, values, side="left")
    return np.unique(level, return_inverse=True)[1].astype(np.int64), len(np.unique(level))


def data_of(choices: Choices) -> PairData | RatingData:
    """Return the ratings of choices, or the pairs if nobody rated anything or all ratings are equal."""
    ratings = choices.ratings
    if ratings is None or not np.ptp(ratings.value):
        return PairData.of(choices)
    return RatingData.of(choices)
