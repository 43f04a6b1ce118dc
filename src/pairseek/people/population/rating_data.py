"""Recorded ratings in the array layout of the kernels: levels between cut points that all people share.

The last column of the factors is ones, and its latent variable is the person's shift on the scale; differences of
utilities do not depend on it.
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
from pairseek.people.population.data import (
    MAX_FULL_PARAMETERS,
    MAX_STEP,
    PEOPLE_CHUNK,
    Derivatives,
    Posteriors,
    Utilities,
)
from pairseek.people.population.rating_kernels import (
    QUADRATURE,
    accumulate_rating_gradients,
    predict_ratings,
    update_rating_posteriors,
)
from pairseek.people.population.rating_points import Points, gather_points, slope_points, weigh_points

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
# Smallest share of a gap between cut points that a Newton step keeps.
_MIN_GAP_SHARE = 0.3


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
        for_ranges(update_rating_posteriors, self.people, PEOPLE_CHUNK, *rating_arrays, *arguments)
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
        for_ranges(weigh_points, self.people, PEOPLE_CHUNK, *rating_arrays, points.columns, weight, evidence)
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
        for_ranges(slope_points, self.people, PEOPLE_CHUNK, *rating_arrays, points.columns, slope, curve)
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
