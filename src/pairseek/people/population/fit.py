"""Variational EM for the utilities of items across people, under constant noise.

The utility of item i for a person is base_i + V_i·z with z ~ N(0, S). The model of a search, k(a·w - b) + appeal, has
this form with V_i = 2k x_i and base_i = appeal_i - k|x_i|² + V_i·(mean of w). The E-step approximates each person's
posterior of z by a Gaussian. People may also answer at random: the model is a mixture of informative and random
answerers, and a person's weight in the M-step is the posterior probability that their answers are informative.

The M-step estimates base = B c, where B holds a few functions of the coordinates, the identity (a free appeal) or both,
and V, or S if the coordinates are given. Every parameter has a hyperprior centred on the default model, so the fit
shrinks to the default model when data are scarce. The likelihood of the choices, with its thresholds, is that of
`Data` (pairs and ties) or `RatingData`. Ratings add the person's shift on the scale as the last component of z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from pairseek.core.types import FloatArray
from pairseek.people.population.data import LONGEST, Data, Derivatives, Posteriors, RatingData, Utilities
from pairseek.people.population.shift import Shift

# Maximum Newton steps of a person's posterior from the prior.
_MAX_STEPS = 60
# EP passes from the prior, after which ratings are predicted.
_PASSES = 12
_ROUNDS = 300
# Initial iterations that treat all people as informative, until the fit can recognise random answerers.
_BURN_IN = 10
# Default tolerance of EM, in nats per person.
TOLERANCE = 1e-4
# A fit to ratings ends at the best iteration when the objective has fallen by this, in nats per person.
_FALL = 0.1
# Pseudo-counts of the Beta prior of the share of informative people.
_INFORMATIVE, _RANDOM = 9.0, 1.0
# Prior standard deviation of utilities, between people and between items. A difference of this size makes a choice
# nearly certain. The prior keeps the estimates finite if all choices are consistent (separable data).
_UTILITY_DEVIATION = 4.0
# Ratings: share of the pull of the estimated deviations on items with much information, and the information, in
# multiples of that of the pull, at which half of the reduction applies.
_COMMON, _KNOWN = 0.1, 4.0
# Ratings: largest deviation of learned utilities between people, over items and dimensions. The quadrature of the
# kernels is exact enough up to it.
_WIDEST = 2.5
# Prior of the deviation of the appeals beside a trend: it counts as so many items with this deviation, in logits.
_PSEUDO_ITEMS, _APPEAL = 5.0, 0.1
# Prior of S: it counts as this multiple of d + 1 people, who are distributed as in the default model, but on another
# scale of variance, which has a Gamma prior of mean 1 with this shape.
_PSEUDO_PEOPLE, _SCALE = 2.0, 0.1


@dataclass(frozen=True)
class LearningStep:
    """Progress of a fit, whose text is that of `str`.

    Attributes
    ----------
    stage
        "cross-validation", "fit" or "residual".
    done
        Share of the stage that is done. For a fit, which ends when it has converged, it is an estimate.
    text
        One line of text.
    """

    stage: str
    done: float
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False)
class Smoother:
    """A linear regression of the items' parameters on features of the items.

    Attributes
    ----------
    design
        (n, b) features.
    solution
        (b, n) matrix whose product with the parameters is their coefficients.
    """

    design: FloatArray
    solution: FloatArray

    def coefficients(self, values: FloatArray) -> FloatArray:
        """Return the (b, q) coefficients of (n, q) parameters."""
        return np.asarray(self.solution @ values)


@dataclass(frozen=True, eq=False)
class Start:
    """Initial values of a fit, which are also the centres of its hyperpriors.

    Attributes
    ----------
    basis
        (n, b) matrix B with base = B @ coefficients. None stands for the identity. Otherwise its first columns are V.
    coefficients, looseness
        (b,) prior means and standard deviations of the coefficients. EM estimates deviations that are NaN.
    factors
        (n, d) matrix V.
    spread
        (d, d) covariance S.
    free
        Whether the fit estimates V with S fixed to the identity, or S with V fixed.
    smoother
        Regression that gives the prior means of the parameters of the items, if V is free. None: zero.
    """

    basis: FloatArray | None
    coefficients: FloatArray
    looseness: FloatArray
    factors: FloatArray
    spread: FloatArray
    free: bool
    smoother: Smoother | None = None

    def centre(self, values: FloatArray) -> FloatArray:
        """Return the (n, q) prior means of the items' (n, q) parameters, given the parameters of all of them."""
        if self.smoother is None:
            return np.zeros_like(values)
        return np.asarray(self.smoother.design @ self.smoother.coefficients(values))

    def base(self, coefficients: FloatArray) -> FloatArray:
        """Return the (n,) utilities of the items for a person at the mean."""
        return coefficients if self.basis is None else np.asarray(self.basis @ coefficients)


@dataclass(frozen=True, eq=False)
class FitState:
    """Parameters and posteriors after an EM iteration.

    Attributes
    ----------
    coefficients, factors, spread
        Estimates of the parameters described in `Start`.
    honest
        Share of people whose answers are informative.
    thresholds
        Half-width of ties, or cut points of ratings; empty for pairs without ties.
    shift
        Distribution of the people's shifts on the scale of ratings given z; None for pairs.
    found
        Posteriors of z and, for ratings, of the shift.
    trust
        (people,) posterior probabilities that a person's answers are informative.
    objective
        Lower bound of the total log evidence.
    rounds
        Number of EM iterations.
    scale, ridge
        Estimated prior deviations of the coefficients and of each column of the factors.
    """

    coefficients: FloatArray
    factors: FloatArray
    spread: FloatArray
    honest: float
    thresholds: FloatArray
    shift: Shift | None
    found: Posteriors
    trust: FloatArray
    objective: float
    rounds: int
    scale: float
    ridge: FloatArray

    @property
    def evidence(self) -> FloatArray:
        """Return the (people,) log evidence, or a lower bound of it, under the model."""
        return self.found.evidence


def beliefs(
    data: Data, base: FloatArray, factors: FloatArray, spread: FloatArray, *, tie_width: float = 0.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute each person's Gaussian posterior from paired choices, with the prior N(0, spread).

    Returns the (people, d) means, the (people, d, d) covariances and the (people,) evidence lower bounds.
    """
    model = Utilities(
        np.ascontiguousarray(base), np.ascontiguousarray(factors), np.array([tie_width] if tie_width else [])
    )
    found = data.posteriors(model, np.asarray(np.linalg.inv(spread)), data.prior(spread), _MAX_STEPS)
    return found.mean, found.covariance, found.evidence


def _model(start: Start, state: FitState) -> Utilities:
    """Return the utilities with the column of the shift."""
    factors = state.factors
    if state.shift is not None:
        factors = np.ascontiguousarray(np.column_stack([factors, np.ones(len(factors))]))
    return Utilities(start.base(state.coefficients), factors, state.thresholds)


def _posteriors(data: Data | RatingData, start: Start, state: FitState) -> Posteriors:
    if isinstance(data, Data):
        precision: FloatArray = np.asarray(np.linalg.inv(state.spread))
        return data.posteriors(_model(start, state), precision, state.found, data.steps)
    return _rating_posteriors(data, _model(start, state), state, state.found)


def _rating_posteriors(data: RatingData, model: Utilities, state: FitState, begin: Posteriors) -> Posteriors:
    assert state.shift is not None
    if data.by_points:
        return data.weighed(model, *state.shift.propose(data.people, state.spread, begin.points), begin)
    prior = state.shift.prior(np.asarray(np.linalg.inv(state.spread)), begin)
    return data.posteriors(model, *prior, begin, data.steps)


def rating_beliefs(data: RatingData, start: Start, state: FitState) -> tuple[Utilities, Posteriors]:
    """Return the utilities of a fit, and the posteriors of the people of `data`, who may be others."""
    d = state.factors.shape[1]
    model, found = _model(start, state), data.prior(np.pad(state.spread, (0, 1)) + np.diag([0.0] * d + [1.0]))
    for _ in range(_PASSES):
        found = _rating_posteriors(data, model, state, found)
    return model, found


def trust_of(evidence: FloatArray, random: FloatArray, honest: float) -> FloatArray:
    """Return the (people,) posterior probabilities that answers are informative rather than random."""
    return np.asarray(expit(np.log(honest) - np.log1p(-honest) + evidence - random))


def fit(
    data: Data | RatingData,
    start: Start,
    *,
    people: FloatArray | None = None,
    state: FitState | None = None,
    rounds: int = _ROUNDS,
    tolerance: float = TOLERANCE,
    progress: Callable[[LearningStep], None] | None = None,
) -> FitState:
    """Run EM until the objective converges.

    Parameters
    ----------
    data, start
        The choices, and the initial values.
    people
        (people,) weight of each person. None gives everybody the weight 1.
    state
        An earlier fit that serves as a warm start. A warm start always runs all `rounds`.
    rounds
        Maximum number of EM iterations.
    tolerance
        EM stops when an iteration improves the objective by less than this, in nats per person.
    progress
        Called after each iteration.
    """
    counts = np.ones(data.people) if people is None else people
    enough, largest, done = tolerance * counts.sum(), 0.0, 0.0
    warm = state is not None
    state = _initial_state(data, start) if state is None else state
    random = data.random_likelihood()
    before, best = -np.inf, None
    for turn in range(rounds):
        found = _posteriors(data, start, state)
        evidence = found.evidence
        trusting = turn < _BURN_IN and not warm
        trust = np.ones(data.people) if trusting else trust_of(evidence, random, state.honest)
        honest = (counts @ trust + _INFORMATIVE) / (counts.sum() + _INFORMATIVE + _RANDOM)
        mixed = np.logaddexp(np.log(state.honest) + evidence, np.log1p(-state.honest) + random)
        objective = float(counts @ (evidence if trusting else mixed))
        state = replace(
            state,
            found=found,
            trust=trust,
            honest=state.honest if trusting else float(honest),
            objective=objective,
            rounds=turn + 1,
        )
        if progress is not None:
            change = "" if before == -np.inf else f", {objective - before:+.2f}"
            if change:
                # Improvements fall about exponentially, from the largest to the one at which EM stops.
                step = max(abs(objective - before), enough)
                largest = max(largest, step)
                done = max(done, np.log(largest / step) / np.log(max(largest / enough, 2.0)))
            done = max(done, (turn + 1) / rounds)
            text = f"iteration {turn + 1}: log evidence {objective:.1f}{change}"
            progress(LearningStep("fit", min(float(done), 1.0), text))
        # A warm start runs all iterations, so that the people without weight lose their influence on the parameters.
        if not trusting and not warm and abs(objective - before) < enough:
            break
        if isinstance(data, RatingData) and not trusting and not warm:
            # EP and its Newton steps have no bound that rises in every iteration: do not follow a fall.
            best = state if best is None or objective > best.objective else best
            if objective < best.objective - _FALL * counts.sum():
                return best
        before = -np.inf if trusting else objective
        state = _m_step(data, start, state, counts * trust)
    return state


def _initial_state(data: Data | RatingData, start: Start) -> FitState:
    d = start.factors.shape[1]
    shift = Shift.none(d) if isinstance(data, RatingData) else None
    spread = start.spread if shift is None else np.pad(start.spread, (0, 1))
    if shift is not None:
        spread[d, d] = shift.variance
    return FitState(
        coefficients=start.coefficients,
        factors=start.factors,
        spread=start.spread,
        honest=_INFORMATIVE / (_INFORMATIVE + _RANDOM),
        thresholds=data.thresholds(),
        shift=shift,
        found=data.prior(spread),
        trust=np.ones(data.people),
        objective=-np.inf,
        rounds=0,
        scale=1.0,
        ridge=np.ones(d),
    )


def _m_step(data: Data | RatingData, start: Start, state: FitState, counts: FloatArray) -> FitState:
    """Run one M-step: a Newton step in items and thresholds, then the parameter expansion of z (PX-EM)."""
    d = state.factors.shape[1]
    q = 1 + d if start.free else 1
    counts = np.ascontiguousarray(counts)
    found = data.derivatives(_model(start, state), state.found, counts, q)
    if start.basis is not None:
        found = _in_basis(found, start.basis)
    off, tight = _hyperprior(start, state, found)
    step, by_threshold, variance = _newton(found, found.slope - off * tight, tight)
    values = state.coefficients[:, None]
    values = step + (np.column_stack([values, state.factors]) if start.free else values)
    loose = np.isnan(start.looseness)
    scale = state.scale
    if loose.any():
        usual = (1.0, 1.0) if start.basis is None else (_PSEUDO_ITEMS, _APPEAL)
        away = values[:, :1] - start.coefficients[:, None]
        scale = _deviation((away - start.centre(away))[loose, 0], variance[loose, 0], *usual)
    thresholds = data.moved(state.thresholds, by_threshold)
    factors = np.ascontiguousarray(values[:, 1:]) if start.free else state.factors
    moved = replace(state, coefficients=values[:, 0], factors=factors, thresholds=thresholds, scale=scale)
    if start.free and state.shift is not None:
        # Separable ratings would let all utilities and cut points grow together.
        width = np.sqrt(np.mean((factors - factors.mean(axis=0)) ** 2))
        share = min(1.0, _WIDEST / max(float(width), 1e-12))
        moved = replace(
            moved, coefficients=share * values[:, 0], factors=share * factors, thresholds=share * thresholds
        )
    state = _absorb_moments(start, moved, counts)
    return _shift_step(data, start, state, counts) if isinstance(data, RatingData) and data.by_points else state


def _shift_step(data: RatingData, start: Start, state: FitState, counts: FloatArray) -> FitState:
    """Improve the distribution of the shifts given the posteriors under the new parameters of the items."""
    model, found = _model(start, state), _posteriors(data, start, state)
    assert state.shift is not None
    assert found.points is not None
    shift = state.shift.improved(found.points, *data.shift_slopes(model, found.points), counts)
    # The noise ε of each point stays, and the shift moves with its distribution.
    d = state.factors.shape[1]
    place = found.points.place.copy()
    noise = (place[:, :, d] - state.shift.at(place[:, :, :d])) * np.sqrt(shift.variance / state.shift.variance)
    place[:, :, d] = shift.at(place[:, :, :d]) + noise
    return replace(state, shift=shift, found=replace(found, points=replace(found.points, place=place)))


def _hyperprior(start: Start, state: FitState, found: Derivatives) -> tuple[FloatArray, FloatArray]:
    """Return the distances of the parameters from the default model, and the precisions of their pull towards it.

    What is free is also limited in size.
    """
    looseness = np.where(np.isnan(start.looseness), state.scale, start.looseness)
    away, tight = (state.coefficients - start.coefficients)[:, None], looseness[:, None] ** -2
    if not start.free:
        return away, tight
    away = np.column_stack([away, state.factors])
    away = away - start.centre(away)
    tight = np.column_stack([tight, np.tile(state.ridge**-2, (len(away), 1))])
    if state.shift is not None:
        # The estimated deviations pull all items together towards 0, with the weight of all items. Ratings with few
        # levels hardly identify the common scale, so the pull on well-known items is reduced.
        known = np.einsum("nii->ni", found.curve)
        tight = tight * (1.0 - (1.0 - _COMMON) * known / (known + _KNOWN * tight))
    return away, tight + _UTILITY_DEVIATION**-2


def log_evidence(data: Data | RatingData, start: Start, state: FitState, people: FloatArray) -> float:
    """Approximate the log evidence with base and V integrated out (Laplace's method).

    Parameters that the hyperpriors hold at the default model, such as the factors of a superfluous dimension, cost
    nothing. S is not integrated out; each of its entries costs (1 + log people)/2 nats, as in BIC with a correction
    for small samples.
    """
    q = 1 + state.factors.shape[1] if start.free else 1
    found = data.derivatives(_model(start, state), state.found, np.ascontiguousarray(people * state.trust), q)
    if start.basis is not None:
        found = _in_basis(found, start.basis)
    away, tight = _hyperprior(start, state, found)
    prior = tight[:, :, None] * np.eye(q) if found.curve.ndim == 3 else np.diag(tight.ravel())
    posterior = float(np.sum(np.linalg.slogdet(found.curve + prior)[1]))
    d = state.factors.shape[1]
    cost = 0.0 if start.free else 0.5 * d * (d + 1) * (1.0 + np.log(max(float(people.sum()), 1.0)))
    return state.objective + 0.5 * (float(np.sum(np.log(tight) - tight * away**2)) - posterior - cost)


def item_errors(data: RatingData, start: Start, state: FitState, people: FloatArray) -> FloatArray | None:
    """Return (n,) standard errors of the items' utilities for a typical person; None if a trend replaces the items.

    The parameters of an item have the Fisher information of its ratings and the precision of the hyperprior. Those of
    the other items, the thresholds and the distribution of people are taken as known.
    """
    if start.basis is not None:
        return None
    q = 1 + state.factors.shape[1] if start.free else 1
    found = data.derivatives(_model(start, state), state.found, np.ascontiguousarray(people * state.trust), q)
    assert found.fisher is not None
    tight = _hyperprior(start, state, found)[1]
    variance = np.einsum("nii->ni", np.linalg.inv(found.fisher + tight[:, :, None] * np.eye(q)))
    # The tastes of a typical person have the variance 1 in every dimension.
    return np.asarray(np.sqrt(variance.sum(axis=1)))


def _in_basis(found: Derivatives, basis: FloatArray) -> Derivatives:
    """Return the derivatives by the coefficients of the basis in place of those by the items' utilities."""
    curve = found.curve[:, 0, 0][:, None] * basis if found.curve.ndim == 3 else found.curve @ basis
    cross = None if found.cross is None else np.einsum("nb,nqt->bqt", basis, found.cross)
    return replace(found, slope=basis.T @ found.slope, curve=basis.T @ curve, cross=cross)


def _newton(found: Derivatives, slope: FloatArray, tight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the Newton steps of the items and the thresholds, and the (n, q) variances of the former."""
    n, q = slope.shape
    if found.curve.ndim == 3:
        inverse = np.linalg.inv(found.curve + tight[:, :, None] * np.eye(q))
        variance = np.einsum("nii->ni", inverse)

        def solve(right: FloatArray) -> FloatArray:
            return np.asarray(np.einsum("nij,nj...->ni...", inverse, right))
    else:
        inverse = np.linalg.inv(found.curve + np.diag(tight.ravel()))
        variance = np.diag(inverse).reshape(n, q)

        def solve(right: FloatArray) -> FloatArray:
            return np.asarray((inverse @ right.reshape(n * q, -1)).reshape(right.shape))

    if not len(found.threshold_slope):
        return solve(slope), found.threshold_slope, variance
    if found.cross is None:
        return solve(slope), np.asarray(np.linalg.solve(found.threshold_curve, found.threshold_slope)), variance
    # Eliminate the items: the Schur complement of their blocks has the size of the thresholds.
    across = solve(found.cross)
    rest = found.threshold_curve - np.einsum("nqs,nqt->st", found.cross, across)
    by_threshold = np.linalg.solve(rest, found.threshold_slope - np.einsum("nqt,nq->t", across, slope))
    step = solve(slope) - across @ by_threshold
    # These curvatures are no bounds, so long steps are shortened, item by item.
    longest = np.abs(step).max(axis=1, keepdims=True)
    return step * np.minimum(1.0, LONGEST / np.maximum(longest, 1e-12)), by_threshold, variance


def _deviation(values: FloatArray, variance: FloatArray, pseudo: float, usual: float) -> float:
    """Estimate a deviation from estimates and their variances, with so many pseudo-items of the usual deviation."""
    return float(np.sqrt((np.sum(values**2 + variance) + pseudo * usual**2) / (len(values) + pseudo)))


def pseudo_people(d: int) -> float:
    """Return the number of people that the inverse-Wishart prior of S counts as, if V is fixed."""
    return _PSEUDO_PEOPLE * (d + 1.0)


def _absorb_moments(start: Start, state: FitState, counts: FloatArray) -> FitState:
    """Absorb the people's mean into base, and their covariance into S, or into V if V is free."""
    d = state.factors.shape[1]
    total = counts.sum()
    mean = counts @ state.found.mean / max(total, 1e-9)
    centred = state.found.mean - mean
    second = np.einsum("p,pi,pj->ij", counts, centred[:, :d], centred[:, :d])
    second += np.einsum("p,pij->ij", counts, state.found.covariance[:, :d, :d])
    # The inverse-Wishart prior of S counts as a few people who are distributed as in the default model, on a scale of
    # variance that is estimated itself: what real people say about their tastes is weak next to tastes that are known.
    known, pseudo = start.spread, d + 1.0
    if not start.free:
        pseudo = pseudo_people(d)
        ratio = float(np.trace(np.linalg.solve(state.spread, known)))
        known = known * (0.5 * pseudo * d + _SCALE) / (0.5 * pseudo * ratio + _SCALE)
    spread = (second + pseudo * known) / (total + pseudo)
    thresholds = state.thresholds - mean[d:].sum()
    if start.basis is None:
        coefficients = state.coefficients + state.factors @ mean[:d]
        if state.shift is not None:
            # Ratings identify utilities up to a constant that is common to the items and the cut points.
            surplus = np.mean(coefficients - start.coefficients)
            coefficients, thresholds = coefficients - surplus, thresholds - surplus
    else:
        # The factors are the first columns of the basis, so the coefficients absorb the whole shift.
        coefficients = state.coefficients.copy()
        coefficients[:d] += mean[:d]
    state = replace(state, coefficients=coefficients, thresholds=thresholds)
    state = _transformed(state, mean, np.eye(len(mean)), counts)
    if start.free and d:
        state = _rotate(start, state, spread, counts)
    elif d:
        varying = state.factors - state.factors.mean(axis=0)
        width = np.sqrt(np.einsum("ni,ij,nj->", varying, spread, varying) / (len(varying) * d))
        state = replace(state, spread=spread * min(1.0, _UTILITY_DEVIATION / width) ** 2)
    return state


def _transformed(state: FitState, centre: FloatArray, matrix: FloatArray, counts: FloatArray) -> FitState:
    """Return the state with the coordinates matrix ((z, s) - centre) of the people."""
    found, shift = state.found.transformed(centre, matrix), state.shift
    if shift is not None:
        shift = Shift.of(found, counts) if found.points is None else shift.transformed(centre, matrix)
    return replace(state, found=found, shift=shift)


def _rotate(start: Start, state: FitState, spread: FloatArray, counts: FloatArray) -> FitState:
    """Transform z, with the covariance `spread`, to principal axes and unit variances; remove linear shifts.

    The axes are in order of decreasing variance of the utilities: V'V of the centred V is diagonal, and the largest
    entry of each column is positive.
    """
    d = state.factors.shape[1]
    root = np.linalg.cholesky(spread)
    # The part of the shift that is linear in z becomes a constant in each column of V.
    linear = np.zeros(d) if state.shift is None else state.shift.linear
    factors = (state.factors + linear) @ root
    turn = np.linalg.svd(factors - factors.mean(axis=0), full_matrices=False)[2]
    factors = factors @ turn.T
    signs = np.sign(factors[np.abs(factors).argmax(axis=0), np.arange(d)])
    signs[signs == 0] = 1.0
    back = np.eye(state.found.mean.shape[1])
    back[:d, :d] = signs[:, None] * turn @ np.linalg.inv(root)
    back[d:, :d] = -linear
    return replace(
        _transformed(state, np.zeros(len(back)), back, counts),
        factors=np.ascontiguousarray(factors * signs),
        ridge=np.sqrt((np.sum((factors - start.centre(factors)) ** 2, axis=0) + 1.0) / (len(factors) + 1.0)),
    )
