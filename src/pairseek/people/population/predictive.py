"""Predictive distribution of a new person, including the uncertainty of the fit.

A fit gives point estimates. A search that took them for the truth would be overconfident after a fit to few people, so
the prior of a new person is widened by the uncertainty about the people's mean, the curvature and the scale of
utilities:

- The coefficients c of the trend have a Gaussian posterior N(ĉ, C), with the people's z and the appeal integrated out.
  The columns V of the trend share their coordinates with z, so C adds to the covariance of people. The coefficient of
  |x|² has no such coordinate. It gets one if its uncertainty matters.
- The covariance S of people is the mean of its inverse-Wishart posterior instead of the estimate. Before that it is
  multiplied by the posterior mean of its scale, because the estimate from few noisy people is often close to 0.
- A few people's choices hardly tell how consistent they are. The utilities are multiplied by exp(m - s), where m, at
  most 0, and s are the posterior mean and standard deviation of the logarithm of their scale.
- The uncertainty about the mean and about S must not make a new person more decisive. Once it has been added, all
  utilities are multiplied by a factor that restores their previous size.

Both scales have log-normal priors around the default model. The prior of the scale of S is centred on the default
model's covariance, converted to the scale of the estimated utilities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from pairseek.core.types import FloatArray
from pairseek.people.population.data import Data, RatingData
from pairseek.people.population.e_step import beliefs
from pairseek.people.population.fit import item_errors
from pairseek.people.population.fit_state import FitState, Start
from pairseek.people.population.kernels import MIXTURE
from pairseek.people.population.m_step import pseudo_people

# Prior standard deviation of the logarithm of the scale of utilities.
_LOG_SCALE_DEVIATION = 0.5
# Step of numerical derivatives with respect to the logarithm of the scale of utilities.
_LOG_SCALE_STEP = 0.2
# Prior standard deviation of the logarithm of the scale of S.
_LOG_SPREAD_DEVIATION = 1.0
# Logarithms of the scale of S at which its posterior is computed.
_LOG_SPREADS = np.linspace(-2.0, 5.0, 15)
# With more people than this, the scale of S is taken as estimated: its posterior mean is then within a few percent.
_MAX_RESCALED_PEOPLE = 300
# Largest number of items whose appeals are modelled as deviations from a trend.
MAX_TREND_ITEMS = 1500
# An uncertain direction gets a coordinate of its own above this standard deviation of the utilities, in logits.
_MIN_DIRECTION_DEVIATION = 0.25


@dataclass(frozen=True, eq=False)
class Predictive:
    """Distribution of a new person's utilities: base + V z, with z ~ N(0, S).

    Attributes
    ----------
    base, factors, spread
        (n,) utilities at the mean, (n, q) factors V and (q, q) covariance S.
    shrinkage
        Factor by which the fit's utilities were multiplied.
    error
        (n,) standard errors of the items' utilities for a typical person; None if not estimated.
    """

    base: FloatArray
    factors: FloatArray
    spread: FloatArray
    shrinkage: float
    error: FloatArray | None = None

    @classmethod
    def exact(cls, start: Start, state: FitState) -> Predictive:
        """Return the distribution that takes the estimates for the truth."""
        return cls(start.base(state.coefficients), state.factors, state.spread, 1.0)


def predictive(data: Data | RatingData, start: Start, state: FitState, people: FloatArray) -> Predictive:
    """Return the distribution of a new person's utilities, given the (people,) weights of the people.

    Learned coordinates, or too many items for a trend, leave only the scale to shrink. A fit to ratings keeps its
    estimates and adds the standard errors of the items.
    """
    if isinstance(data, RatingData):
        return replace(Predictive.exact(start, state), error=item_errors(data, start, state, people))
    counts = people * state.trust
    if not start.free:
        state = replace(state, spread=spread_scale(data, start, state, counts) * state.spread)
    base, factors, spread = start.base(state.coefficients), state.factors, state.spread
    shrinkage = _shrinkage(data, start, state, counts)
    if start.free:
        return Predictive(shrinkage * base, shrinkage * factors, spread, shrinkage)
    d = factors.shape[1]
    degrees = float(counts.sum()) + pseudo_people(d)
    between = spread * degrees / (degrees - d - 1.0)
    if start.basis is None:
        return Predictive(shrinkage * base, factors, shrinkage**2 * between, shrinkage)
    covariance = trend_covariance(data, start, state, counts)
    is_appeal = np.isnan(start.prior_deviation)
    b = int(np.sum(~is_appeal))
    spread = between + covariance[:d, :d]
    if is_appeal.any() and b == d + 1:
        direction = start.basis[:, d] - start.basis[:, d].mean()
        if np.std(direction) * np.sqrt(covariance[d, d]) > _MIN_DIRECTION_DEVIATION:
            # Division by `unit` gives the new coordinate the unit of the others.
            unit = np.std(direction) / np.std(factors - factors.mean(axis=0))
            factors = np.column_stack([factors, direction / unit])
            scale = np.append(np.ones(d), unit)
            spread = np.pad(between, (0, 1)) + covariance[:b, :b] * np.outer(scale, scale)
    shrinkage *= min(1.0, _size(base, state.factors, state.spread) / _size(base, factors, spread))
    return Predictive(shrinkage * base, factors, shrinkage**2 * spread, shrinkage)


def _size(base: FloatArray, factors: FloatArray, spread: FloatArray) -> float:
    """Return the root mean square of the utilities, centred over the items."""
    factors = factors - factors.mean(axis=0)
    return float(np.sqrt(np.var(base) + np.einsum("ni,ij,nj->", factors, spread, factors) / len(base)))


def _default_size(start: Start) -> float:
    return _size(start.base(start.coefficients), start.factors, start.spread)


def _evidence(data: Data, start: Start, state: FitState, counts: FloatArray, scale: float, spread: FloatArray) -> float:
    """Return the log evidence with all utilities multiplied by `scale`; `spread` is S before that."""
    base, tie = start.base(state.coefficients), float(state.thresholds.sum())
    return float(counts @ beliefs(data, scale * base, state.factors, scale**2 * spread, tie_width=scale * tie)[2])


def spread_scale(data: Data, start: Start, state: FitState, counts: FloatArray) -> float:
    """Return the posterior mean of the scale of S relative to the estimate, at least 1."""
    if counts.sum() > _MAX_RESCALED_PEOPLE:
        return 1.0
    size = _size(start.base(state.coefficients), state.factors, state.spread)
    usual = (size / _default_size(start)) ** 2 * start.spread
    away = np.log(np.trace(np.linalg.solve(usual, state.spread)) / len(usual)) + _LOG_SPREADS
    evidence = [_evidence(data, start, state, counts, 1.0, np.exp(t) * state.spread) for t in _LOG_SPREADS]
    share = softmax(np.array(evidence) - 0.5 * (away / _LOG_SPREAD_DEVIATION) ** 2)
    return max(float(share @ np.exp(_LOG_SPREADS)), 1.0)


def _shrinkage(data: Data, start: Start, state: FitState, counts: FloatArray) -> float:
    """Return the factor exp(m - s) on utilities: see the module's docstring."""
    low, middle, high = (
        _evidence(data, start, state, counts, scale, state.spread)
        for scale in np.exp([-_LOG_SCALE_STEP, 0.0, _LOG_SCALE_STEP])
    )
    slope, precision = (high - low) / (2.0 * _LOG_SCALE_STEP), _LOG_SCALE_DEVIATION**-2
    curvature = max(2.0 * middle - low - high, 0.0) / _LOG_SCALE_STEP**2 + precision
    if not start.free:
        size = _size(start.base(state.coefficients), state.factors, state.spread)
        slope += precision * np.log(_default_size(start) / size)
    return float(np.exp(min(slope / curvature, 0.0) - curvature**-0.5))


def trend_covariance(data: Data, start: Start, state: FitState, counts: FloatArray) -> FloatArray:
    """Return the posterior covariance of the coefficients of the basis, with z integrated out.

    Each choice counts as a Gaussian observation of its logit, with the expected curvature of its likelihood as the
    precision. A tie counts as a choice.
    """
    assert start.basis is not None
    design = start.basis
    who = np.repeat(np.arange(data.people), np.diff(data.starts))
    delta = state.factors[data.rows[:, 0]] - state.factors[data.rows[:, 1]]
    base = start.base(state.coefficients)
    mean = base[data.rows[:, 0]] - base[data.rows[:, 1]] + np.einsum("rd,rd->r", delta, state.found.mean[who])
    variance = np.einsum("ri,rij,rj->r", delta, state.found.covariance[who], delta)
    weight = data.weight * expected_slope(mean, variance)
    inner = np.linalg.inv(state.spread)
    information = np.diag(np.where(np.isnan(start.prior_deviation), state.scale, start.prior_deviation) ** -2.0)
    for person, (first, last) in enumerate(zip(data.starts[:-1], data.starts[1:], strict=True)):
        rows, own, share = data.rows[first:last], delta[first:last], weight[first:last, None]
        pairs = design[rows[:, 0]] - design[rows[:, 1]]
        cross = pairs.T @ (share * own)
        explained = np.linalg.solve(inner + own.T @ (share * own), cross.T)
        information += counts[person] * (pairs.T @ (share * pairs) - cross @ explained)
    return np.asarray(np.linalg.inv(information))


def expected_slope(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return E f'(z) for Gaussian logits z with these means and variances."""
    shares, variances = MIXTURE
    deviation = np.sqrt(variances + np.maximum(variance, 0.0)[:, None])
    density = np.exp(-0.5 * (mean[:, None] / deviation) ** 2) / (np.sqrt(2.0 * np.pi) * deviation)
    return np.asarray(density @ shares)
