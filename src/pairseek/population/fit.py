"""The fit itself: variational EM over people, under constant noise.

An item's utility for a person is base_i + V_i·z, z ~ N(0, S). The model of a search, k(a·w - b) + appeal, is of that
form with V_i = 2k x_i and base_i = appeal_i - k|x_i|² + V_i·(mean of w). A person's belief of z is the best Gaussian;
people who answer as coins would are told by their evidence, and count by the probability that they do not.

What is learned: base = B c with B the identity (a free appeal) or a few functions of the coordinates; V, or, where the
coordinates are given, S. Everything learned has a hyperprior at the plain model, so that little data changes little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.parallel import for_ranges
from pairseek.population.choices import Choices
from pairseek.population.kernels import MIXTURE, believe, gather

# Newton steps of a person's belief at most, in a round of EM and from nothing; a few are enough.
_STEPS, _MOST_STEPS = 4, 60
_ROUNDS = 300
# Rounds in which everybody is believed, until the fit can tell who answers like a coin.
_TRUSTING = 10
# A round that gains less than this, in nats a person, is the last.
_TOLERANCE = 1e-4
# Unknowns whose curvature is held as one matrix; beyond, item by item.
_WHOLE = 1500
_CHUNK = 64
# Pseudo-people: of whom all but one answer by the model; and of whom the plain model's spread is known.
_HONEST, _COINS = 9.0, 1.0
# Utilities of an item differ between people, and those of the mean person between items, hardly by more than this: a
# choice is then as good as certain. It keeps the fit finite where nobody ever contradicts themselves.
_SURE = 4.0


@dataclass(frozen=True, eq=False)
class Data:
    """Choices as the kernels read them."""

    starts: IntArray
    rows: IntArray
    weight: FloatArray
    n: int

    @classmethod
    def of(cls, choices: Choices) -> Data:
        """From choices of people who each have a pair."""
        rows = np.ascontiguousarray(np.stack([choices.winner, choices.loser], axis=1))
        return cls(choices.starts, rows, np.ascontiguousarray(choices.weight), len(choices.ids))

    @property
    def people(self) -> int:
        """How many."""
        return len(self.starts) - 1

    def totals(self, values: FloatArray) -> FloatArray:
        """(people,) sums of (m,) values."""
        return np.asarray(np.diff(np.concatenate([[0.0], np.cumsum(values)])[self.starts]))

    def coins(self) -> FloatArray:
        """(people,) log-likelihood if everybody tossed a coin."""
        return np.asarray(-np.log(2.0) * self.totals(self.weight))


@dataclass(frozen=True, eq=False)
class Start:
    """Where a fit begins, which is also where its hyperpriors are centred.

    Attributes
    ----------
    basis
        (n, b): base = basis @ coefficients. None: the identity.
    coefficients, looseness
        (b,) centre and standard deviation of the coefficients. NaN: the deviation is estimated.
    factors
        (n, d) V.
    spread
        (d, d) S.
    free
        Whether V is learned (S is then the identity) or given (S is then learned).
    """

    basis: FloatArray | None
    coefficients: FloatArray
    looseness: FloatArray
    factors: FloatArray
    spread: FloatArray
    free: bool

    def base(self, coefficients: FloatArray) -> FloatArray:
        """(n,) utilities of the items for somebody in the middle."""
        return coefficients if self.basis is None else np.asarray(self.basis @ coefficients)


@dataclass(frozen=True, eq=False)
class FitState:
    """A fit.

    Attributes
    ----------
    coefficients, factors, spread
        As in `Start`.
    honest
        Share of people who answer by the model.
    mean, covariance
        (people, d) and (people, d, d) beliefs.
    evidence
        (people,) lower bound of the log evidence under the model.
    trust
        (people,) probability that a person answers by the model.
    objective
        Bound of the log evidence of all.
    rounds
        Rounds of EM.
    scale, ridge
        Deviations of the coefficients and of each column of the factors, as estimated.
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
    steps: int = _MOST_STEPS,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(people, d) means, (people, d, d) covariances and (people,) evidence."""
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


def trust_of(evidence: FloatArray, coins: FloatArray, honest: float) -> FloatArray:
    """(people,) probability that a person answers by the model and not like a coin."""
    return np.asarray(expit(np.log(honest) - np.log1p(-honest) + evidence - coins))


def fit(
    data: Data, start: Start, *, people: FloatArray | None = None, state: FitState | None = None, rounds: int = _ROUNDS
) -> FitState:
    """Run EM.

    Parameters
    ----------
    data, start
        What people chose, and where to begin.
    people
        (people,) how often each person counts; None: once.
    state
        An earlier fit to go on from.
    rounds
        At most so many.
    """
    counts = np.ones(data.people) if people is None else people
    warm = state is not None
    state = _begun(data, start) if state is None else state
    coins = data.coins()
    before = -np.inf
    for turn in range(rounds):
        base = start.base(state.coefficients)
        mean, covariance, evidence = beliefs(
            data, base, state.factors, state.spread, begin=(state.mean, state.covariance), steps=_STEPS
        )
        trusting = turn < _TRUSTING and not warm
        trust = np.ones(data.people) if trusting else trust_of(evidence, coins, state.honest)
        honest = (counts @ trust + _HONEST) / (counts.sum() + _HONEST + _COINS)
        mixed = np.logaddexp(np.log(state.honest) + evidence, np.log1p(-state.honest) + coins)
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
        # A fit that goes on from another one is to forget what that one knew and this one does not.
        if not trusting and not warm and abs(objective - before) < _TOLERANCE * counts.sum():
            break
        before = -np.inf if trusting else objective
        state = _improved(data, start, state, counts * trust)
    return state


def _begun(data: Data, start: Start) -> FitState:
    d = start.factors.shape[1]
    return FitState(
        start.coefficients,
        start.factors,
        start.spread,
        _HONEST / (_HONEST + _COINS),
        np.zeros((data.people, d)),
        np.tile(start.spread, (data.people, 1, 1)),
        np.zeros(data.people),
        np.ones(data.people),
        -np.inf,
        0,
        1.0,
        np.ones(d),
    )


def _improved(data: Data, start: Start, state: FitState, counts: FloatArray) -> FitState:
    """One M-step: a Newton step with bounded curvature, then the move of z to its prior (PX-EM)."""
    d = state.factors.shape[1]
    q = 1 + d if start.free else 1
    whole = data.n * q <= _WHOLE
    slope = np.zeros((data.n, q))
    curve = np.zeros((data.n * q, data.n * q if whole else q))
    base = start.base(state.coefficients)
    arguments = (data.starts, data.rows, data.weight, np.ascontiguousarray(counts), base, state.factors, MIXTURE)
    gather(*arguments, state.mean, state.covariance, slope, curve)
    looseness = np.where(np.isnan(start.looseness), state.scale, start.looseness)
    if not start.free:
        coefficients, scale = _coefficients(start, state, slope[:, 0], curve, looseness, whole=whole)
        return _moved(start, replace(state, coefficients=coefficients, scale=scale), counts)
    tight = np.tile(np.concatenate([[0.0], state.ridge**-2 + _SURE**-2]), (data.n, 1))
    tight[:, 0] = looseness**-2 + _SURE**-2
    slope[:, 0] -= (state.coefficients - start.coefficients) * tight[:, 0]
    slope[:, 1:] -= state.factors * tight[:, 1:]
    if whole:
        inverse = np.linalg.inv(curve + np.diag(tight.ravel()))
        step = (inverse @ slope.ravel()).reshape(data.n, q)
        left = np.diag(inverse).reshape(data.n, q)
    else:
        blocks = curve.reshape(data.n, q, q) + tight[:, :, None] * np.eye(q)
        inverse = np.linalg.inv(blocks)
        step = np.einsum("nij,nj->ni", inverse, slope)
        left = np.einsum("nii->ni", inverse)
    coefficients, factors = state.coefficients + step[:, 0], state.factors + step[:, 1:]
    scale = _deviation((coefficients - start.coefficients)[:, None], left[:, :1])[0]
    return _moved(start, replace(state, coefficients=coefficients, factors=factors, scale=float(scale)), counts)


def _deviation(values: FloatArray, left: FloatArray) -> FloatArray:
    """Deviation of each column, from estimates and what is left uncertain of them; one pseudo-item of deviation 1."""
    return np.asarray(np.sqrt((np.sum(values**2 + left, axis=0) + 1.0) / (len(values) + 1.0)))


def _coefficients(
    start: Start, state: FitState, slope: FloatArray, curve: FloatArray, looseness: FloatArray, *, whole: bool
) -> tuple[FloatArray, float]:
    pull = slope if start.basis is None else start.basis.T @ slope
    pull = pull - (state.coefficients - start.coefficients) / looseness**2
    if start.basis is None and not whole:
        left = 1.0 / (curve[:, 0] + looseness**-2)
        coefficients = state.coefficients + left * pull
    else:
        full = curve if whole else np.diag(curve[:, 0])
        bend = full if start.basis is None else start.basis.T @ full @ start.basis
        inverse = np.linalg.inv(bend + np.diag(looseness**-2))
        coefficients, left = state.coefficients + inverse @ pull, np.diag(inverse)
    loose = np.isnan(start.looseness)
    if not loose.any():
        return coefficients, state.scale
    away = (coefficients - start.coefficients)[loose, None]
    return coefficients, float(_deviation(away, left[loose, None])[0])


def _moved(start: Start, state: FitState, counts: FloatArray) -> FitState:
    """Where people are becomes their prior: the mean goes into base, the spread into S, or into V if that is free."""
    d = state.factors.shape[1]
    total = counts.sum()
    mean = counts @ state.mean / max(total, 1e-9)
    centred = state.mean - mean
    second = np.einsum("p,pi,pj->ij", counts, centred, centred) + np.einsum("p,pij->ij", counts, state.covariance)
    # As many people as there are unknowns in a row of S are believed to be spread as in the plain model.
    known = start.spread if not start.free else np.eye(d)
    spread = (second + (d + 1) * known) / (total + d + 1)
    shift = state.factors @ mean
    if start.basis is not None:
        # The factors stand first in the basis, so base can take up all of it.
        shift = np.concatenate([mean, np.zeros(start.basis.shape[1] - d)])
    coefficients = state.coefficients + shift
    if not start.free:
        varying = state.factors - state.factors.mean(axis=0)
        width = np.sqrt(np.einsum("ni,ij,nj->", varying, spread, varying) / (len(varying) * d))
        return replace(state, coefficients=coefficients, spread=spread * min(1.0, _SURE / width) ** 2, mean=centred)
    root = np.linalg.cholesky(spread)
    # Principal axes, the widest first: V'V is diagonal, and each column's largest entry is positive.
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
    """(n, d) factors to begin with: principal directions of how people differ from what most prefer."""
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
    # A share of wins moves by about a quarter of the utility behind it.
    return np.ascontiguousarray(4.0 * vectors[:, top] * np.sqrt(np.maximum(values[top], 1e-6)))
