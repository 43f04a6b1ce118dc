"""Variational EM for the utilities of items across people, under constant noise.

The utility of item i for a person is base_i + V_i·z with z ~ N(0, S). The model of a search, k(a·w - b) + appeal, has
this form with V_i = 2k x_i and base_i = appeal_i - k|x_i|² + V_i·(mean of w). The E-step approximates each person's
posterior of z by a Gaussian. People may also answer at random: the model is a mixture of informative and random
answerers, and a person's weight in the M-step is the posterior probability that their answers are informative.

The M-step estimates base = B c, where B is the identity (a free appeal) or holds a few functions of the coordinates,
and V, or S if the coordinates are given. Every parameter has a hyperprior centred on the default model, so the fit
shrinks to the default model when data are scarce.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.parallel import for_ranges
from pairseek.population.choices import Choices
from pairseek.population.kernels import MIXTURE, believe, gather

# Maximum Newton steps of a person's posterior: within an EM iteration (warm start) and from the prior.
_STEPS, _MAX_STEPS = 4, 60
_ROUNDS = 300
# Initial iterations that treat all people as informative, until the fit can recognise random answerers.
_BURN_IN = 10
# EM stops when an iteration improves the objective by less than this, in nats per person.
_TOLERANCE = 1e-4
# Maximum number of parameters with a full curvature matrix; larger models use one block per item.
_FULL_LIMIT = 1500
_CHUNK = 64
# Pseudo-counts of the Beta prior of the share of informative people.
_INFORMATIVE, _RANDOM = 9.0, 1.0
# Prior standard deviation of utilities, between people and between items. A difference of this size makes a choice
# nearly certain. The prior keeps the estimates finite if all choices are consistent (separable data).
_UTILITY_DEVIATION = 4.0


@dataclass(frozen=True, eq=False)
class Data:
    """Choices in the array layout of the kernels."""

    starts: IntArray
    rows: IntArray
    weight: FloatArray
    n: int

    @classmethod
    def of(cls, choices: Choices) -> Data:
        """Convert choices in which every person has at least one pair."""
        rows = np.ascontiguousarray(np.stack([choices.winner, choices.loser], axis=1))
        return cls(choices.starts, rows, np.ascontiguousarray(choices.weight), len(choices.ids))

    @property
    def people(self) -> int:
        """Number of people."""
        return len(self.starts) - 1

    def totals(self, values: FloatArray) -> FloatArray:
        """Sum (m,) values per person, shape (people,)."""
        return np.asarray(np.diff(np.concatenate([[0.0], np.cumsum(values)])[self.starts]))

    def random_likelihood(self) -> FloatArray:
        """Return the (people,) log-likelihoods of random answers."""
        return np.asarray(-np.log(2.0) * self.totals(self.weight))


@dataclass(frozen=True, eq=False)
class Start:
    """Initial values of a fit, which are also the centres of its hyperpriors.

    Attributes
    ----------
    basis
        (n, b) matrix B with base = B @ coefficients. None stands for the identity.
    coefficients, looseness
        (b,) prior means and standard deviations of the coefficients. EM estimates deviations that are NaN.
    factors
        (n, d) matrix V.
    spread
        (d, d) covariance S.
    free
        Whether the fit estimates V with S fixed to the identity, or S with V fixed.
    """

    basis: FloatArray | None
    coefficients: FloatArray
    looseness: FloatArray
    factors: FloatArray
    spread: FloatArray
    free: bool

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
    mean, covariance
        (people, d) means and (people, d, d) covariances of the posteriors of z.
    evidence
        (people,) evidence lower bounds under the model.
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
    mean: FloatArray
    covariance: FloatArray
    evidence: FloatArray
    trust: FloatArray
    objective: float
    rounds: int
    scale: float
    ridge: FloatArray


def beliefs(
    data: Data,
    base: FloatArray,
    factors: FloatArray,
    spread: FloatArray,
    *,
    begin: tuple[FloatArray, FloatArray] | None = None,
    steps: int = _MAX_STEPS,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute each person's Gaussian posterior.

    Returns the (people, d) means, the (people, d, d) covariances and the (people,) evidence lower bounds.
    """
    d = factors.shape[1]
    mean = np.zeros((data.people, d)) if begin is None else begin[0].copy()
    covariance = np.tile(spread, (data.people, 1, 1)) if begin is None else begin[1].copy()
    evidence = np.empty(data.people)
    precision = np.ascontiguousarray(np.linalg.inv(spread))
    for_ranges(
        believe,
        data.people,
        _CHUNK,
        data.starts,
        data.rows,
        data.weight,
        np.ascontiguousarray(base),
        np.ascontiguousarray(factors),
        precision,
        MIXTURE,
        steps,
        mean,
        covariance,
        evidence,
    )
    return mean, covariance, evidence


def trust_of(evidence: FloatArray, random: FloatArray, honest: float) -> FloatArray:
    """Return the (people,) posterior probabilities that answers are informative rather than random."""
    return np.asarray(expit(np.log(honest) - np.log1p(-honest) + evidence - random))


def fit(
    data: Data, start: Start, *, people: FloatArray | None = None, state: FitState | None = None, rounds: int = _ROUNDS
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
    """
    counts = np.ones(data.people) if people is None else people
    warm = state is not None
    state = _initial_state(data, start) if state is None else state
    random = data.random_likelihood()
    before = -np.inf
    for turn in range(rounds):
        base = start.base(state.coefficients)
        mean, covariance, evidence = beliefs(
            data, base, state.factors, state.spread, begin=(state.mean, state.covariance), steps=_STEPS
        )
        trusting = turn < _BURN_IN and not warm
        trust = np.ones(data.people) if trusting else trust_of(evidence, random, state.honest)
        honest = (counts @ trust + _INFORMATIVE) / (counts.sum() + _INFORMATIVE + _RANDOM)
        mixed = np.logaddexp(np.log(state.honest) + evidence, np.log1p(-state.honest) + random)
        objective = float(counts @ (evidence if trusting else mixed))
        state = replace(
            state,
            mean=mean,
            covariance=covariance,
            evidence=evidence,
            trust=trust,
            honest=state.honest if trusting else float(honest),
            objective=objective,
            rounds=turn + 1,
        )
        # A warm start runs all iterations, so that the people without weight lose their influence on the parameters.
        if not trusting and not warm and abs(objective - before) < _TOLERANCE * counts.sum():
            break
        before = -np.inf if trusting else objective
        state = _m_step(data, start, state, counts * trust)
    return state


def _initial_state(data: Data, start: Start) -> FitState:
    d = start.factors.shape[1]
    return FitState(
        start.coefficients,
        start.factors,
        start.spread,
        _INFORMATIVE / (_INFORMATIVE + _RANDOM),
        np.zeros((data.people, d)),
        np.tile(start.spread, (data.people, 1, 1)),
        np.zeros(data.people),
        np.ones(data.people),
        -np.inf,
        0,
        1.0,
        np.ones(d),
    )


def _m_step(data: Data, start: Start, state: FitState, counts: FloatArray) -> FitState:
    """Run one M-step: a Newton step with a curvature bound, then the parameter expansion of z (PX-EM)."""
    d = state.factors.shape[1]
    q = 1 + d if start.free else 1
    whole = data.n * q <= _FULL_LIMIT
    slope = np.zeros((data.n, q))
    curve = np.zeros((data.n * q, data.n * q if whole else q))
    base = start.base(state.coefficients)
    arguments = (data.starts, data.rows, data.weight, np.ascontiguousarray(counts), base, state.factors, MIXTURE)
    gather(*arguments, state.mean, state.covariance, slope, curve)
    looseness = np.where(np.isnan(start.looseness), state.scale, start.looseness)
    if not start.free:
        coefficients, scale = _update_coefficients(start, state, slope[:, 0], curve, looseness, whole=whole)
        return _absorb_moments(start, replace(state, coefficients=coefficients, scale=scale), counts)
    tight = np.tile(np.concatenate([[0.0], state.ridge**-2 + _UTILITY_DEVIATION**-2]), (data.n, 1))
    tight[:, 0] = looseness**-2 + _UTILITY_DEVIATION**-2
    slope[:, 0] -= (state.coefficients - start.coefficients) * tight[:, 0]
    slope[:, 1:] -= state.factors * tight[:, 1:]
    if whole:
        inverse = np.linalg.inv(curve + np.diag(tight.ravel()))
        step = (inverse @ slope.ravel()).reshape(data.n, q)
        variance = np.diag(inverse).reshape(data.n, q)
    else:
        blocks = curve.reshape(data.n, q, q) + tight[:, :, None] * np.eye(q)
        inverse = np.linalg.inv(blocks)
        step = np.einsum("nij,nj->ni", inverse, slope)
        variance = np.einsum("nii->ni", inverse)
    coefficients, factors = state.coefficients + step[:, 0], state.factors + step[:, 1:]
    scale = _deviation((coefficients - start.coefficients)[:, None], variance[:, :1])[0]
    return _absorb_moments(
        start, replace(state, coefficients=coefficients, factors=factors, scale=float(scale)), counts
    )


def _deviation(values: FloatArray, variance: FloatArray) -> FloatArray:
    """Estimate each column's deviation from estimates and their variances, with one pseudo-item of deviation 1."""
    return np.asarray(np.sqrt((np.sum(values**2 + variance, axis=0) + 1.0) / (len(values) + 1.0)))


def _update_coefficients(
    start: Start, state: FitState, slope: FloatArray, curve: FloatArray, looseness: FloatArray, *, whole: bool
) -> tuple[FloatArray, float]:
    pull = slope if start.basis is None else start.basis.T @ slope
    pull = pull - (state.coefficients - start.coefficients) / looseness**2
    if start.basis is None and not whole:
        variance = 1.0 / (curve[:, 0] + looseness**-2)
        coefficients = state.coefficients + variance * pull
    else:
        full = curve if whole else np.diag(curve[:, 0])
        bend = full if start.basis is None else start.basis.T @ full @ start.basis
        inverse = np.linalg.inv(bend + np.diag(looseness**-2))
        coefficients, variance = state.coefficients + inverse @ pull, np.diag(inverse)
    loose = np.isnan(start.looseness)
    if not loose.any():
        return coefficients, state.scale
    away = (coefficients - start.coefficients)[loose, None]
    return coefficients, float(_deviation(away, variance[loose, None])[0])


def _absorb_moments(start: Start, state: FitState, counts: FloatArray) -> FitState:
    """Absorb the people's mean into base, and their covariance into S, or into V if V is free."""
    d = state.factors.shape[1]
    total = counts.sum()
    mean = counts @ state.mean / max(total, 1e-9)
    centred = state.mean - mean
    second = np.einsum("p,pi,pj->ij", counts, centred, centred) + np.einsum("p,pij->ij", counts, state.covariance)
    # The inverse-Wishart prior of S counts as d + 1 people who are distributed as in the default model.
    known = start.spread if not start.free else np.eye(d)
    spread = (second + (d + 1) * known) / (total + d + 1)
    shift = state.factors @ mean
    if start.basis is not None:
        # The factors are the first columns of the basis, so the coefficients absorb the whole shift.
        shift = np.concatenate([mean, np.zeros(start.basis.shape[1] - d)])
    coefficients = state.coefficients + shift
    if not start.free:
        varying = state.factors - state.factors.mean(axis=0)
        width = np.sqrt(np.einsum("ni,ij,nj->", varying, spread, varying) / (len(varying) * d))
        return replace(
            state, coefficients=coefficients, spread=spread * min(1.0, _UTILITY_DEVIATION / width) ** 2, mean=centred
        )
    root = np.linalg.cholesky(spread)
    # Rotate to principal axes in order of decreasing variance: V'V is diagonal, and each column's largest entry is
    # positive.
    _, singular, turn = np.linalg.svd(state.factors @ root, full_matrices=False)
    factors = state.factors @ root @ turn.T
    signs = np.sign(factors[np.abs(factors).argmax(axis=0), np.arange(d)])
    signs[signs == 0] = 1.0
    turn = signs[:, None] * turn
    back = turn @ np.linalg.inv(root)
    ridge = np.sqrt((singular**2 + 1.0) / (len(factors) + 1.0))
    return replace(
        state,
        coefficients=coefficients,
        factors=np.ascontiguousarray(factors * signs),
        mean=np.ascontiguousarray(centred @ back.T),
        covariance=np.ascontiguousarray(np.einsum("ij,pjk,lk->pil", back, state.covariance, back)),
        ridge=ridge,
    )


def first_factors(data: Data, d: int) -> FloatArray:
    """Return initial (n, d) factors: the principal components of the people's deviations from the mean win rates."""
    score = np.zeros((data.people, data.n))
    count = np.zeros((data.people, data.n))
    who = np.repeat(np.arange(data.people), np.diff(data.starts))
    for column, sign in ((0, 1.0), (1, -1.0)):
        np.add.at(score, (who, data.rows[:, column]), sign)
        np.add.at(count, (who, data.rows[:, column]), 1.0)
    share = score / np.maximum(count, 1.0)
    share = np.where(count > 0, share - share.sum(axis=0) / np.maximum((count > 0).sum(axis=0), 1), 0.0)
    values, vectors = np.linalg.eigh(share.T @ share / data.people)
    top = slice(-1, -d - 1, -1)
    # The derivative of the logistic function at 0 is 1/4: a win rate changes by a quarter of the utility difference.
    return np.ascontiguousarray(4.0 * vectors[:, top] * np.sqrt(np.maximum(values[top], 1e-6)))
