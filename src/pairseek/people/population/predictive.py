"""Predictive distribution of a new person, including the uncertainty of the fit.

A fit gives point estimates. A search that took them for the truth would be overconfident after a fit to few people, so
the prior of a new person is widened by the uncertainty about the people's mean, the curvature and the covariance:

- The coefficients c of the trend have a Gaussian posterior N(ĉ, C), with the people's z and the appeal integrated out.
  The columns V of the trend share their coordinates with z, so C adds to the covariance of people. The coefficient of
  |x|² has no such coordinate. It gets one if its uncertainty matters.
- The covariance S of people is the mean of its inverse-Wishart posterior instead of the estimate.

How decisive a new person is, that is, the scale of all utilities, is judged on people left out of the fit: see
`pairseek.people.population.residual`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.people.population.data import PairData
from pairseek.people.population.fit import item_errors
from pairseek.people.population.fit_state import FitState, Start
from pairseek.people.population.kernels import MIXTURE
from pairseek.people.population.m_step import pseudo_people
from pairseek.people.population.rating_data import RatingData

# Largest number of items whose appeals are modelled as deviations from a trend.
MAX_TREND_ITEMS = 1500
# An uncertain direction gets a coordinate of its own above this standard deviation of the utilities, in logits.
_MIN_DIRECTION_DEVIATION = 0.25


@dataclass(frozen=True, eq=False)
class PredictiveUtilities:
    """Distribution of a new person's utilities: base + V z, with z ~ N(0, S).

    Attributes
    ----------
    base, factors, spread
        (n,) utilities at the mean, (n, q) factors V and (q, q) covariance S.
    error
        (n,) standard errors of the items' utilities for a typical person; None if not estimated.
    """

    base: FloatArray
    factors: FloatArray
    spread: FloatArray
    error: FloatArray | None = None

    @classmethod
    def exact(cls, start: Start, state: FitState) -> PredictiveUtilities:
        """Return the distribution that takes the estimates for the truth."""
        return cls(start.base(state.coefficients), state.factors, state.spread)


def predictive_utilities(
    data: PairData | RatingData, start: Start, state: FitState, people: FloatArray
) -> PredictiveUtilities:
    """Return the distribution of a new person's utilities, given the (people,) weights of the people.

    Learned coordinates keep their estimates. So does a fit to ratings, which adds the standard errors of the items.
    """
    if isinstance(data, RatingData):
        return replace(PredictiveUtilities.exact(start, state), error=item_errors(data, start, state, people))
    if start.estimates_factors:
        return PredictiveUtilities.exact(start, state)
    counts = people * state.trust
    base, factors, spread = start.base(state.coefficients), state.factors, state.spread
    d = factors.shape[1]
    degrees = float(counts.sum()) + pseudo_people(d)
    people_covariance = spread * degrees / (degrees - d - 1.0)
    if start.basis is None:
        return PredictiveUtilities(base, factors, people_covariance)
    covariance = trend_covariance(data, start, state, counts)
    is_appeal = np.isnan(start.prior_deviation)
    b = int(np.sum(~is_appeal))
    spread = people_covariance + covariance[:d, :d]
    if is_appeal.any() and b == d + 1:
        direction = start.basis[:, d] - start.basis[:, d].mean()
        if np.std(direction) * np.sqrt(covariance[d, d]) > _MIN_DIRECTION_DEVIATION:
            # Division by `unit` gives the new coordinate the unit of the others.
            unit = np.std(direction) / np.std(factors - factors.mean(axis=0))
            factors = np.column_stack([factors, direction / unit])
            scale = np.append(np.ones(d), unit)
            spread = np.pad(people_covariance, (0, 1)) + covariance[:b, :b] * np.outer(scale, scale)
    return PredictiveUtilities(base, factors, spread)


def trend_covariance(data: PairData, start: Start, state: FitState, counts: FloatArray) -> FloatArray:
    """Return the posterior covariance of the coefficients of the basis, with z integrated out.

    Each choice counts as a Gaussian observation of its logit, with the expected curvature of its likelihood as the
    precision. A tie counts as a choice.
    """
    assert start.basis is not None
    design = start.basis
    person_of_row = np.repeat(np.arange(data.people), np.diff(data.starts))
    delta = state.factors[data.rows[:, 0]] - state.factors[data.rows[:, 1]]
    base = start.base(state.coefficients)
    mean = (
        base[data.rows[:, 0]]
        - base[data.rows[:, 1]]
        + np.einsum("rd,rd->r", delta, state.posteriors.mean[person_of_row])
    )
    variance = np.einsum("ri,rij,rj->r", delta, state.posteriors.covariance[person_of_row], delta)
    weight = data.weight * expected_slope(mean, variance)
    prior_precision = np.linalg.inv(state.spread)
    information = np.diag(np.where(np.isnan(start.prior_deviation), state.scale, start.prior_deviation) ** -2.0)
    for person, (first, last) in enumerate(zip(data.starts[:-1], data.starts[1:], strict=True)):
        rows, person_delta, share = data.rows[first:last], delta[first:last], weight[first:last, None]
        pairs = design[rows[:, 0]] - design[rows[:, 1]]
        cross = pairs.T @ (share * person_delta)
        solved = np.linalg.solve(prior_precision + person_delta.T @ (share * person_delta), cross.T)
        information += counts[person] * (pairs.T @ (share * pairs) - cross @ solved)
    return np.asarray(np.linalg.inv(information))


def expected_slope(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return E f'(z) for Gaussian logits z with these means and variances."""
    shares, variances = MIXTURE
    deviation = np.sqrt(variances + np.maximum(variance, 0.0)[:, None])
    density = np.exp(-0.5 * (mean[:, None] / deviation) ** 2) / (np.sqrt(2.0 * np.pi) * deviation)
    return np.asarray(density @ shares)
