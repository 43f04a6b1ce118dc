"""Variational EM for the utilities of items across people, under constant noise.

The utility of item i for a person is base_i + V_i·z with z ~ N(0, S). The model of a search, k(a·w - b) + appeal, has
this form with V_i = 2k x_i and base_i = appeal_i - k|x_i|² + V_i·(mean of w). The E-step approximates each person's
posterior of z by a Gaussian. People may also answer at random: the model is a mixture of informative and random
answerers, and each person's weight in the M-step is the posterior probability that their answers are informative.

The M-step estimates base = B c, where B holds a few functions of the coordinates, the identity (a free appeal) or both.
It also estimates V, or S if the coordinates are given. Every parameter has a hyperprior centred on the default model,
so the fit shrinks to the default model when data are scarce. `PairData` (pairs and ties) and `RatingData` define the
likelihood of the choices and its thresholds. Ratings add the person's shift on the scale as the last component of z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.people.choices import Choices
from pairseek.people.population.data import PairData
from pairseek.people.population.e_step import posteriors, trust_of
from pairseek.people.population.fit_state import FitState, Start, model_of
from pairseek.people.population.m_step import hyperprior, in_basis, m_step
from pairseek.people.population.rating_data import RatingData
from pairseek.people.population.shift import Shift

_MAX_ITERATIONS = 300
# Initial iterations that treat all people as informative, until the fit can recognise random answerers.
_BURN_IN = 10
# Default tolerance of EM, in nats per person.
EM_TOLERANCE = 1e-4
# A fit to ratings returns its best iteration once the objective has fallen by this, in nats per person.
_MAX_DECREASE = 0.1
# Pseudo-counts of the Beta prior of the share of informative people.
PSEUDO_INFORMATIVE = 9.0
PSEUDO_RANDOM = 1.0


@dataclass(frozen=True)
class LearningStep:
    """Progress of a fit; `str` returns its text.

    Attributes
    ----------
    stage
        "cross-validation", "fit" or "residual".
    done
        Completed share of the stage; an estimate for a fit, which ends when it has converged.
    text
        One line of text.
    """

    stage: str
    done: float
    text: str

    def __str__(self) -> str:
        return self.text


def fit(
    data: PairData | RatingData,
    start: Start,
    *,
    people: FloatArray | None = None,
    state: FitState | None = None,
    rounds: int = _MAX_ITERATIONS,
    tolerance: float = EM_TOLERANCE,
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
        An earlier fit as a warm start. A warm start always runs all `rounds`.
    rounds
        Maximum number of EM iterations.
    tolerance
        EM stops when an iteration improves the objective by less than this, in nats per person.
    progress
        Called after each iteration.
    """
    counts = np.ones(data.people) if people is None else people
    min_improvement, largest, done = tolerance * counts.sum(), 0.0, 0.0
    is_warm = state is not None
    state = _initial_state(data, start) if state is None else state
    random_evidence = data.random_likelihood()
    last_objective, best = -np.inf, None
    for iteration in range(rounds):
        updated = posteriors(data, start, state)
        evidence = updated.evidence
        is_burn_in = iteration < _BURN_IN and not is_warm
        trust = np.ones(data.people) if is_burn_in else trust_of(evidence, random_evidence, state.honest)
        honest = (counts @ trust + PSEUDO_INFORMATIVE) / (counts.sum() + PSEUDO_INFORMATIVE + PSEUDO_RANDOM)
        mixture_evidence = np.logaddexp(np.log(state.honest) + evidence, np.log1p(-state.honest) + random_evidence)
        objective = float(counts @ (evidence if is_burn_in else mixture_evidence))
        state = replace(
            state,
            posteriors=updated,
            trust=trust,
            honest=state.honest if is_burn_in else float(honest),
            objective=objective,
            rounds=iteration + 1,
        )
        if progress is not None:
            change = "" if last_objective == -np.inf else f", {objective - last_objective:+.2f}"
            if change:
                # Improvements fall about exponentially from the largest to the one at which EM stops.
                step = max(abs(objective - last_objective), min_improvement)
                largest = max(largest, step)
                done = max(done, np.log(largest / step) / np.log(max(largest / min_improvement, 2.0)))
            done = max(done, (iteration + 1) / rounds)
            text = f"iteration {iteration + 1}: log evidence {objective:.1f}{change}"
            progress(LearningStep("fit", min(float(done), 1.0), text))
        # A warm start runs all iterations, so that people of weight 0 lose their influence on the parameters.
        if not is_burn_in and not is_warm and abs(objective - last_objective) < min_improvement:
            break
        if isinstance(data, RatingData) and not is_burn_in and not is_warm:
            # EP with Newton steps does not increase a bound in every iteration: stop when the objective falls.
            best = state if best is None or objective > best.objective else best
            if objective < best.objective - _MAX_DECREASE * counts.sum():
                return best
        last_objective = -np.inf if is_burn_in else objective
        state = m_step(data, start, state, counts * trust)
    return state


def _initial_state(data: PairData | RatingData, start: Start) -> FitState:
    d = start.factors.shape[1]
    shift = Shift.none(d) if isinstance(data, RatingData) else None
    spread = start.spread if shift is None else np.pad(start.spread, (0, 1))
    if shift is not None:
        spread[d, d] = shift.variance
    return FitState(
        coefficients=start.coefficients,
        factors=start.factors,
        spread=start.spread,
        honest=PSEUDO_INFORMATIVE / (PSEUDO_INFORMATIVE + PSEUDO_RANDOM),
        thresholds=data.thresholds(),
        shift=shift,
        posteriors=data.prior(spread),
        trust=np.ones(data.people),
        objective=-np.inf,
        rounds=0,
        scale=1.0,
        ridge=np.ones(d),
    )


def log_evidence(data: PairData | RatingData, start: Start, state: FitState, people: FloatArray) -> float:
    """Approximate the log evidence with base and V integrated out (Laplace's method).

    Parameters that the hyperpriors hold at the default model, such as the factors of a superfluous dimension, cost
    nothing. S is not integrated out: each of its entries costs (1 + log people)/2 nats, as in CAIC
    (Bozdogan, 1987).
    """
    q = 1 + state.factors.shape[1] if start.estimates_factors else 1
    counts = np.ascontiguousarray(people * state.trust)
    derivatives = data.derivatives(model_of(start, state), state.posteriors, counts, q)
    if start.basis is not None:
        derivatives = in_basis(derivatives, start.basis)
    deviations, precision = hyperprior(start, state, derivatives)
    prior = precision[:, :, None] * np.eye(q) if derivatives.curve.ndim == 3 else np.diag(precision.ravel())
    posterior = float(np.sum(np.linalg.slogdet(derivatives.curve + prior)[1]))
    d = state.factors.shape[1]
    cost = 0.0 if start.estimates_factors else 0.5 * d * (d + 1) * (1.0 + np.log(max(float(people.sum()), 1.0)))
    return state.objective + 0.5 * (float(np.sum(np.log(precision) - precision * deviations**2)) - posterior - cost)


def item_errors(data: RatingData, start: Start, state: FitState, people: FloatArray) -> FloatArray | None:
    """Return (n,) standard errors of the items' utilities for a typical person; None if a trend replaces the items.

    An item's parameters have the Fisher information of its ratings plus the precision of the hyperprior. The parameters
    of the other items, the thresholds and the distribution of people are taken as known.
    """
    if start.basis is not None:
        return None
    q = 1 + state.factors.shape[1] if start.estimates_factors else 1
    counts = np.ascontiguousarray(people * state.trust)
    derivatives = data.derivatives(model_of(start, state), state.posteriors, counts, q)
    assert derivatives.fisher is not None
    precision = hyperprior(start, state, derivatives)[1]
    variance = np.einsum("nii->ni", np.linalg.inv(derivatives.fisher + precision[:, :, None] * np.eye(q)))
    # A typical person's tastes have variance 1 in every dimension.
    return np.asarray(np.sqrt(variance.sum(axis=1)))


def data_of(choices: Choices) -> PairData | RatingData:
    """Return the ratings of choices, or the pairs if nobody rated anything or all ratings are equal."""
    ratings = choices.ratings
    if ratings is None or not np.ptp(ratings.value):
        return PairData.of(choices)
    return RatingData.of(choices)
