"""M-step of a population fit: a Newton step in items and thresholds, then the moments of the people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.people.population.data import MAX_STEP, Derivatives, PairData
from pairseek.people.population.e_step import posteriors
from pairseek.people.population.fit_state import FitState, Start, model_of
from pairseek.people.population.rating_data import RatingData
from pairseek.people.population.shift import Shift

# Prior standard deviation of utilities, between people and between items. A difference of this size makes a choice
# nearly certain. The prior keeps the estimates finite if all choices are consistent (separable data).
_UTILITY_DEVIATION = 4.0
# Ratings: the hyperprior pulls each item towards 0. The pull on an item with much information of its own is reduced to
# the share _MIN_PULL_SHARE; it is halfway there if the information is _HALF_PULL_RATIO times the pull.
_MIN_PULL_SHARE = 0.1
_HALF_PULL_RATIO = 4.0
# Ratings: largest root mean square of the learned factors, over items and dimensions. Beyond it the quadrature of the
# kernels is not accurate enough.
_MAX_FACTOR = 2.5
# The prior of the deviation of appeals from a trend counts as _PSEUDO_ITEMS items with the deviation _APPEAL_DEVIATION,
# in logits.
_PSEUDO_ITEMS = 5.0
_APPEAL_DEVIATION = 0.1
# The prior of S counts as _PSEUDO_PEOPLE (d + 1) people whose covariance is a scale times the default model's. The
# scale has a Gamma prior with mean 1 and shape _SCALE_SHAPE.
_PSEUDO_PEOPLE = 2.0
_SCALE_SHAPE = 0.1


def m_step(data: PairData | RatingData, start: Start, state: FitState, counts: FloatArray) -> FitState:
    """Run one M-step: a Newton step in items and thresholds, then the parameter expansion of z (PX-EM)."""
    d = state.factors.shape[1]
    q = 1 + d if start.estimates_factors else 1
    counts = np.ascontiguousarray(counts)
    derivatives = data.derivatives(model_of(start, state), state.posteriors, counts, q)
    if start.basis is not None:
        derivatives = in_basis(derivatives, start.basis)
    deviations, precision = hyperprior(start, state, derivatives)
    step, by_threshold, variance = _newton(derivatives, derivatives.slope - deviations * precision, precision)
    values = state.coefficients[:, None]
    values = step + (np.column_stack([values, state.factors]) if start.estimates_factors else values)
    estimated = np.isnan(start.prior_deviation)
    scale = state.scale
    if estimated.any():
        pseudo_items = (1.0, 1.0) if start.basis is None else (_PSEUDO_ITEMS, _APPEAL_DEVIATION)
        deviations = values[:, :1] - start.coefficients[:, None]
        scale = _deviation((deviations - start.centre(deviations))[estimated, 0], variance[estimated, 0], *pseudo_items)
    thresholds = data.moved_thresholds(state.thresholds, by_threshold)
    factors = np.ascontiguousarray(values[:, 1:]) if start.estimates_factors else state.factors
    stepped = replace(state, coefficients=values[:, 0], factors=factors, thresholds=thresholds, scale=scale)
    if start.estimates_factors and state.shift is not None:
        # Separable ratings would let all utilities and cut points grow together.
        root_mean_square = np.sqrt(np.mean((factors - factors.mean(axis=0)) ** 2))
        share = min(1.0, _MAX_FACTOR / max(float(root_mean_square), 1e-12))
        stepped = replace(
            stepped, coefficients=share * values[:, 0], factors=share * factors, thresholds=share * thresholds
        )
    state = _absorb_moments(start, stepped, counts)
    return _shift_step(data, start, state, counts) if isinstance(data, RatingData) and data.by_points else state


def _shift_step(data: RatingData, start: Start, state: FitState, counts: FloatArray) -> FitState:
    """Improve the distribution of the shifts, given the posteriors under the new parameters of the items."""
    model, updated = model_of(start, state), posteriors(data, start, state)
    points = updated.points
    assert state.shift is not None
    assert points is not None
    shift = state.shift.improved(points, *data.shift_slopes(model, points), counts)
    # Each point keeps its noise ε, and its shift moves with the distribution.
    d = state.factors.shape[1]
    place = points.place.copy()
    noise = (place[:, :, d] - state.shift.at(place[:, :, :d])) * np.sqrt(shift.variance / state.shift.variance)
    place[:, :, d] = shift.at(place[:, :, :d]) + noise
    return replace(state, shift=shift, posteriors=replace(updated, points=replace(points, place=place)))


def hyperprior(start: Start, state: FitState, derivatives: Derivatives) -> tuple[FloatArray, FloatArray]:
    """Return the parameters' deviations from their prior means, and the precisions of their hyperpriors.

    Free factors V also have a fixed prior that limits their size.
    """
    prior_deviation = np.where(np.isnan(start.prior_deviation), state.scale, start.prior_deviation)
    deviations, precision = (state.coefficients - start.coefficients)[:, None], prior_deviation[:, None] ** -2
    if not start.estimates_factors:
        return deviations, precision
    deviations = np.column_stack([deviations, state.factors])
    deviations = deviations - start.centre(deviations)
    precision = np.column_stack([precision, np.tile(state.ridge**-2, (len(deviations), 1))])
    if state.shift is not None:
        # All items contribute to the estimated deviations, which pull all of them towards 0. Ratings with few levels
        # hardly identify the common scale, so the pull on well-known items is reduced.
        known = np.einsum("nii->ni", derivatives.curve)
        precision = precision * (1.0 - (1.0 - _MIN_PULL_SHARE) * known / (known + _HALF_PULL_RATIO * precision))
    return deviations, precision + _UTILITY_DEVIATION**-2


def in_basis(derivatives: Derivatives, basis: FloatArray) -> Derivatives:
    """Convert derivatives by the items' utilities into derivatives by the coefficients of the basis."""
    curve, cross = derivatives.curve, derivatives.cross
    curve = curve[:, 0, 0][:, None] * basis if curve.ndim == 3 else curve @ basis
    cross = None if cross is None else np.einsum("nb,nqt->bqt", basis, cross)
    return replace(derivatives, slope=basis.T @ derivatives.slope, curve=basis.T @ curve, cross=cross)


def _newton(
    derivatives: Derivatives, slope: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the Newton steps of the items' parameters and of the thresholds, and the items' (n, q) variances."""
    n, q = slope.shape
    if derivatives.curve.ndim == 3:
        inverse = np.linalg.inv(derivatives.curve + precision[:, :, None] * np.eye(q))
        variance = np.einsum("nii->ni", inverse)

        def solve(right_side: FloatArray) -> FloatArray:
            return np.asarray(np.einsum("nij,nj...->ni...", inverse, right_side))
    else:
        inverse = np.linalg.inv(derivatives.curve + np.diag(precision.ravel()))
        variance = np.diag(inverse).reshape(n, q)

        def solve(right_side: FloatArray) -> FloatArray:
            return np.asarray((inverse @ right_side.reshape(n * q, -1)).reshape(right_side.shape))

    cross, threshold_slope, threshold_curve = (
        derivatives.cross,
        derivatives.threshold_slope,
        derivatives.threshold_curve,
    )
    if not len(threshold_slope):
        return solve(slope), threshold_slope, variance
    if cross is None:
        return solve(slope), np.asarray(np.linalg.solve(threshold_curve, threshold_slope)), variance
    # Eliminate the items: the Schur complement of their blocks has the size of the thresholds.
    cross_solution = solve(cross)
    schur = threshold_curve - np.einsum("nqs,nqt->st", cross, cross_solution)
    by_threshold = np.linalg.solve(schur, threshold_slope - np.einsum("nqt,nq->t", cross_solution, slope))
    step = solve(slope) - cross_solution @ by_threshold
    # These curvatures are not upper bounds, so each item's step is limited in length.
    largest = np.abs(step).max(axis=1, keepdims=True)
    return step * np.minimum(1.0, MAX_STEP / np.maximum(largest, 1e-12)), by_threshold, variance


def _deviation(values: FloatArray, variance: FloatArray, pseudo_count: float, usual_deviation: float) -> float:
    """Estimate a standard deviation from estimates and their variances, with pseudo-items of the usual deviation."""
    return float(
        np.sqrt((np.sum(values**2 + variance) + pseudo_count * usual_deviation**2) / (len(values) + pseudo_count))
    )


def pseudo_people(d: int) -> float:
    """Return how many people the inverse-Wishart prior of S counts as, if V is fixed."""
    return _PSEUDO_PEOPLE * (d + 1.0)


def _absorb_moments(start: Start, state: FitState, counts: FloatArray) -> FitState:
    """Absorb the people's mean into base, and their covariance into S, or into V if V is free."""
    d = state.factors.shape[1]
    total = counts.sum()
    mean = counts @ state.posteriors.mean / max(total, 1e-9)
    centred = state.posteriors.mean - mean
    second = np.einsum("p,pi,pj->ij", counts, centred[:, :d], centred[:, :d])
    second += np.einsum("p,pij->ij", counts, state.posteriors.covariance[:, :d, :d])
    # The inverse-Wishart prior of S counts as a few people who are distributed as in the default model, up to a scale
    # of their variance. That scale is estimated too: the tastes of these pseudo-people count as known, so with a fixed
    # scale they would outweigh real people, whose tastes are only inferred.
    prior_covariance, pseudo_count = start.spread, d + 1.0
    if not start.estimates_factors:
        pseudo_count = pseudo_people(d)
        ratio = float(np.trace(np.linalg.solve(state.spread, prior_covariance)))
        prior_covariance = (
            prior_covariance * (0.5 * pseudo_count * d + _SCALE_SHAPE) / (0.5 * pseudo_count * ratio + _SCALE_SHAPE)
        )
    spread = (second + pseudo_count * prior_covariance) / (total + pseudo_count)
    thresholds = state.thresholds - mean[d:].sum()
    if start.basis is None:
        coefficients = state.coefficients + state.factors @ mean[:d]
        if state.shift is not None:
            # Ratings identify utilities up to a constant shared by the items and the cut points.
            common_offset = np.mean(coefficients - start.coefficients)
            coefficients, thresholds = coefficients - common_offset, thresholds - common_offset
    else:
        # The factors are the first columns of the basis, so the coefficients absorb the whole mean.
        coefficients = state.coefficients.copy()
        coefficients[:d] += mean[:d]
    state = replace(state, coefficients=coefficients, thresholds=thresholds)
    state = _transformed(state, mean, np.eye(len(mean)), counts)
    if start.estimates_factors and d:
        state = _rotate(start, state, spread, counts)
    elif d:
        varying = state.factors - state.factors.mean(axis=0)
        width = np.sqrt(np.einsum("ni,ij,nj->", varying, spread, varying) / (len(varying) * d))
        state = replace(state, spread=spread * min(1.0, _UTILITY_DEVIATION / width) ** 2)
    return state


def _transformed(state: FitState, centre: FloatArray, matrix: FloatArray, counts: FloatArray) -> FitState:
    """Transform the people's (z, s) to matrix ((z, s) - centre)."""
    people, shift = state.posteriors.transformed(centre, matrix), state.shift
    if shift is not None:
        shift = Shift.of(people, counts) if people.points is None else shift.transformed(centre, matrix)
    return replace(state, posteriors=people, shift=shift)


def _rotate(start: Start, state: FitState, spread: FloatArray, counts: FloatArray) -> FitState:
    """Transform z, with the covariance `spread`, to principal axes and unit variances; remove linear shifts.

    The axes are in order of decreasing variance of the utilities: V'V is diagonal for the centred V, and the largest
    entry of each column is positive.
    """
    d = state.factors.shape[1]
    root = np.linalg.cholesky(spread)
    # The part of the shift that is linear in z adds a constant to each column of V.
    linear = np.zeros(d) if state.shift is None else state.shift.linear
    factors = (state.factors + linear) @ root
    rotation = np.linalg.svd(factors - factors.mean(axis=0), full_matrices=False)[2]
    factors = factors @ rotation.T
    signs = np.sign(factors[np.abs(factors).argmax(axis=0), np.arange(d)])
    signs[signs == 0] = 1.0
    transform = np.eye(state.posteriors.mean.shape[1])
    transform[:d, :d] = signs[:, None] * rotation @ np.linalg.inv(root)
    transform[d:, :d] = -linear
    return replace(
        _transformed(state, np.zeros(len(transform)), transform, counts),
        factors=np.ascontiguousarray(factors * signs),
        ridge=np.sqrt((np.sum((factors - start.centre(factors)) ** 2, axis=0) + 1.0) / (len(factors) + 1.0)),
    )
