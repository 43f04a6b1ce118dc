"""Expected gain of the recommended items from one more comparison, now and after further answers.

A search recommends a list of the items of highest expected utility. If the difference between an item p on the list and
an item q that is not on it became known, the better of the two would be listed. The gain of this exchange is E max(u_q
- u_p, 0), the expected improvement (Jones, Schonlau and Welch, 1998). The gain of a list is the gain of its best
exchange, in logits of a typical pair. It tends to 0 as the utilities of the best items become known. Unlike the gain of
one noisy answer, it does not vanish as soon as no single answer could change the list.

The forecast follows only the most promising items. Their utilities are jointly Gaussian. Several courses of answers are
simulated: each asks about its best exchange, draws an answer, and updates the Gaussian by moment matching. An answer
has probability lapse/2 + (1 - lapse) Φ(z/1.7), which is close to the logistic one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr

from pairseek.core.types import BoolArray, FloatArray, IntArray
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.features import residual_unit
from pairseek.pairs.item_utilities import (
    expected_excess,
    expected_utilities,
    item_deviations,
    promising_rows,
    utility_covariance,
)

HORIZON = 200
"""Longest forecast, in answers."""
# Number of items in a forecast.
_FORECAST_ITEMS = 24
# Number of simulated courses of the search in a forecast.
_FORECAST_COURSES = 32
# The logistic function is within 0.01 of Φ(z/1.702).
_PROBIT_SCALE = 1.702
# Lower bound on divisors.
_MIN_DIVISOR = 1e-12


def expected_gain(context: SelectionContext, size: int) -> float:
    """Return the gain of the best exchange for a list of `size` items, in logits of a typical pair, or 0."""
    points, belief, response = context.points, context.belief, context.response
    if size >= len(points):
        return 0.0
    utility = expected_utilities(points, context.appeal, belief, response)
    order = np.argsort(-utility, kind="stable")
    listed, others = order[:size], order[size:]
    variances = item_deviations(points, belief, response) ** 2
    shared = utility_covariance(points, listed, others, belief, response)
    deviation = np.sqrt(np.maximum(variances[listed][:, None] + variances[others] - 2.0 * shared, 0.0))
    gains = expected_excess(utility[others] - utility[listed][:, None], deviation)
    return float(np.max(gains)) / residual_unit(points, response)


def expected_gains(context: SelectionContext, size: int, *, repeats: bool) -> Iterator[float]:
    """Yield the gain now, and the median over courses of the smallest gain within 1, 2, ... further answers.

    The smallest gain counts because a search ends once its gain is small enough, even if the next answer would raise it
    again.

    Parameters
    ----------
    repeats
        Whether a pair may be asked again.
    """
    now = expected_gain(context, size)
    yield now
    points, response = context.points, context.response
    if size >= len(points):
        return
    rows = promising_rows(points, context.appeal, context.belief, response, max(_FORECAST_ITEMS, 2 * size))
    unit = residual_unit(points, response)
    courses = _Courses(
        expected_utilities(points, context.appeal, context.belief, response)[rows] / unit,
        utility_covariance(points, rows, rows, context.belief, response) / unit**2,
        (response.typical_reliability, response.lapse_rate),
        size,
        _resting(context, rows) & (not repeats),
    )
    # Assume that the gains of omitted items fall in proportion to the gains of the simulated items.
    smallest = courses.gains
    ratio = now / max(float(np.median(smallest)), _MIN_DIVISOR)
    for _ in range(HORIZON):
        courses.answer(repeats=repeats)
        smallest = np.minimum(smallest, courses.gains)
        yield ratio * float(np.median(smallest))


def _resting(context: SelectionContext, rows: IntArray) -> BoolArray:
    """Return an (m, m) mask of the pairs of these rows that may not be asked now."""
    first, second = np.triu_indices(len(rows), 1)
    out = np.zeros((len(rows), len(rows)), dtype=bool)
    out[first, second] = ~context.resting.allows(rows[first], rows[second])
    return np.asarray(out | out.T)


class _Courses:
    """Simulated courses of answers, each with the mean and covariance of the utilities of a few items.

    Attributes
    ----------
    gains
        (courses,) gains of the best exchanges.
    """

    def __init__(
        self,
        mean: FloatArray,
        covariance: FloatArray,
        reliability_and_lapse: tuple[float, float],
        size: int,
        resting: BoolArray,
    ) -> None:
        self.mean = np.repeat(mean[None], _FORECAST_COURSES, axis=0)
        self.covariance = np.repeat(covariance[None], _FORECAST_COURSES, axis=0)
        self.reliability, self.lapse = reliability_and_lapse
        self.size = size
        self.resting = np.repeat(resting[None], _FORECAST_COURSES, axis=0)
        self._course = np.arange(_FORECAST_COURSES)
        self._rng = np.random.default_rng(0)
        self._compare()

    def _compare(self) -> None:
        """Compute the gain of every exchange."""
        course = self._course[:, None]
        self._listed = np.argpartition(-self.mean, self.size - 1, axis=1)[:, : self.size]
        variances = np.einsum("cii->ci", self.covariance)
        shared = self.covariance[course, self._listed]
        variance = variances[course, self._listed][:, :, None] + variances[:, None, :] - 2.0 * shared
        margin = self.mean[:, None, :] - self.mean[course, self._listed][:, :, None]
        self._exchanges = expected_excess(margin, np.sqrt(np.maximum(variance, 0.0)))
        inside = np.zeros(self.mean.shape, dtype=bool)
        inside[course, self._listed] = True
        self._exchanges[np.broadcast_to(inside[:, None, :], self._exchanges.shape)] = 0.0
        self.gains = self._exchanges.max(axis=(1, 2))

    def answer(self, *, repeats: bool) -> None:
        """Ask about the best permitted exchange of each course, draw its answer, and update the moments."""
        course = self._course
        allowed = np.where(self.resting[course[:, None], self._listed], -1.0, self._exchanges)
        position, q = np.divmod(allowed.reshape(_FORECAST_COURSES, -1).argmax(axis=1), self.mean.shape[1])
        p = self._listed[course, position]
        asked = allowed.max(axis=(1, 2)) >= 0.0
        if not repeats:
            self.resting[course, p, q] = self.resting[course, q, p] = True
        loading = self.covariance[course, p] - self.covariance[course, q]
        variance = np.maximum(loading[course, p] - loading[course, q], 0.0)
        root = np.sqrt(_PROBIT_SCALE**2 + self.reliability**2 * variance)
        t = self.reliability * (self.mean[course, p] - self.mean[course, q]) / root
        probability = self.lapse / 2.0 + (1.0 - self.lapse) * ndtr(t)
        # Stratified draws, in a new order at every step.
        uniform = (self._rng.permutation(_FORECAST_COURSES) + 0.5) / _FORECAST_COURSES
        sign = np.where(uniform < probability, 1.0, -1.0)
        share = np.maximum(np.where(sign > 0.0, probability, 1.0 - probability), _MIN_DIVISOR)
        density = (1.0 - self.lapse) * np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
        slope = np.where(asked, sign * density / share * self.reliability / root, 0.0)
        bend = slope**2 + slope * self.reliability * t / root
        self.mean = self.mean + slope[:, None] * loading
        self.covariance = self.covariance - bend[:, None, None] * loading[:, :, None] * loading[:, None, :]
        self._compare()
