"""Uncertainty that a fit leaves about a new person: the people's mean, the curvature and the scale of utilities.

A fit gives point estimates. A search that takes them for the truth claims too much where few people were asked, so the
prior of a new person is widened by what the fit leaves open:

- The coefficients c of the trend have a Gaussian posterior N(ĉ, C), with the people's z and the appeal integrated out.
  The columns V of the trend share their coordinates with z, so C adds to the covariance of people. The coefficient of
  |x|² has no such coordinate. It gets one, as long as its uncertainty matters.
- The covariance S of people is the mean of its inverse-Wishart posterior instead of the estimate.
- Choices of few people hardly tell how consistent they are. The utilities are multiplied by exp(-s), where s is the
  posterior standard deviation of the logarithm of their scale. The loss in likelihood of the choices is about half a
  nat in all, however many they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.population.data import Data, RatingData
from pairseek.population.fit import FitState, Start, beliefs, item_errors, pseudo_people
from pairseek.population.kernels import MIXTURE

# Prior standard deviation of the logarithm of the scale, and the step of its numerical second derivative.
_SCALE_DEVIATION, _STEP = 0.7, 0.2
# Largest number of items with a trend beside their appeals.
MOST_ITEMS = 1500
# Standard deviation of the utilities, in logits, from which an uncertain direction gets a coordinate of its own.
_MATTERS = 0.25


@dataclass(frozen=True, eq=False)
class Predictive:
    """Distribution of a new person's utilities: base + V z, with z ~ N(0, S).

    Attributes
    ----------
    base, factors, spread
        (n,) utilities at the mean, (n, q) factors V and (q, q) covariance S.
    shrinkage
        Factor exp(-s) by which the utilities of the fit were multiplied.
    error
        (n,) standard errors of the items' utilities for a typical person; None if they are not estimated.
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

    If the coordinates are learned, or the items are too many for a trend, only the scale is shrunk. Ratings leave the
    estimates as they are, with the standard errors of the items.
    """
    if isinstance(data, RatingData):
        return replace(Predictive.exact(start, state), error=item_errors(data, start, state, people))
    counts = people * state.trust
    base, factors, spread = start.base(state.coefficients), state.factors, state.spread
    shrinkage = _shrinkage(data, state, base, counts)
    if start.free:
        return Predictive(shrinkage * base, shrinkage * factors, spread, shrinkage)
    d = factors.shape[1]
    degrees = float(counts.sum()) + pseudo_people(d)
    between = spread * degrees / (degrees - d - 1.0)
    if start.basis is None:
        return Predictive(shrinkage * base, factors, shrinkage**2 * between, shrinkage)
    covariance = trend_covariance(data, start, state, counts)
    loose = np.isnan(start.looseness)
    b = int(np.sum(~loose))
    spread = between + covariance[:d, :d]
    if loose.any() and b == d + 1:
        direction = start.basis[:, d] - start.basis[:, d].mean()
        if np.std(direction) * np.sqrt(covariance[d, d]) > _MATTERS:
            # Dividing gives the new coordinate the unit of the others.
            unit = np.std(direction) / np.std(factors - factors.mean(axis=0))
            factors = np.column_stack([factors, direction / unit])
            scale = np.append(np.ones(d), unit)
            spread = np.pad(between, (0, 1)) + covariance[:b, :b] * np.outer(scale, scale)
    return Predictive(shrinkage * base, factors, shrinkage**2 * spread, shrinkage)


def _shrinkage(data: Data, state: FitState, base: FloatArray, counts: FloatArray) -> float:
    tie = float(state.thresholds.sum())
    evidence = [
        float(counts @ beliefs(data, scale * base, state.factors, scale**2 * state.spread, tie_width=scale * tie)[2])
        for scale in np.exp([-_STEP, 0.0, _STEP])
    ]
    curvature = max(2.0 * evidence[1] - evidence[0] - evidence[2], 0.0) / _STEP**2
    return float(np.exp(-1.0 / np.sqrt(curvature + _SCALE_DEVIATION**-2)))


def trend_covariance(data: Data, start: Start, state: FitState, counts: FloatArray) -> FloatArray:
    """Return the posterior covariance of the coefficients of the basis, with z integrated out.

    Each choice counts as a Gaussian observation of its logit whose precision is the expected curvature of its
    likelihood. A tie counts as a choice.
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
    information = np.diag(np.where(np.isnan(start.looseness), state.scale, start.looseness) ** -2.0)
    for person, (first, last) in enumerate(zip(data.starts[:-1], data.starts[1:], strict=True)):
        rows, own, share = data.rows[first:last], delta[first:last], weight[first:last, None]
        seen = design[rows[:, 0]] - design[rows[:, 1]]
        cross = seen.T @ (share * own)
        known = np.linalg.solve(inner + own.T @ (share * own), cross.T)
        information += counts[person] * (seen.T @ (share * seen) - cross @ known)
    return np.asarray(np.linalg.inv(information))


def expected_slope(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return E f'(z) for logits z with these means and variances."""
    shares, variances = MIXTURE
    deviation = np.sqrt(variances + np.maximum(variance, 0.0)[:, None])
    density = np.exp(-0.5 * (mean[:, None] / deviation) ** 2) / (np.sqrt(2.0 * np.pi) * deviation)
    return np.asarray(density @ shares)
