"""E-step of a population fit: the Gaussian posterior of each person's tastes, given the parameters."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from pairseek.core.types import FloatArray
from pairseek.people.population.data import PairData, Posteriors, Utilities
from pairseek.people.population.fit_state import FitState, Start, model_of
from pairseek.people.population.rating_data import RatingData

# Maximum number of Newton steps from the prior to a person's posterior.
_MAX_STEPS = 60
# EP passes from the prior before ratings are predicted.
_PASSES = 12


def beliefs(
    data: PairData, base: FloatArray, factors: FloatArray, spread: FloatArray, *, tie_width: float = 0.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute each person's Gaussian posterior from paired choices, with the prior N(0, spread).

    Return the (people, d) means, the (people, d, d) covariances and the (people,) evidence lower bounds.
    """
    model = Utilities(
        np.ascontiguousarray(base), np.ascontiguousarray(factors), np.array([tie_width] if tie_width else [])
    )
    people = data.posteriors(model, np.asarray(np.linalg.inv(spread)), data.prior(spread), _MAX_STEPS)
    return people.mean, people.covariance, people.evidence


def posteriors(data: PairData | RatingData, start: Start, state: FitState) -> Posteriors:
    """Update the posteriors of all people under the present parameters."""
    if isinstance(data, PairData):
        precision: FloatArray = np.asarray(np.linalg.inv(state.spread))
        return data.posteriors(model_of(start, state), precision, state.posteriors, data.steps)
    return _rating_posteriors(data, model_of(start, state), state, state.posteriors)


def _rating_posteriors(data: RatingData, model: Utilities, state: FitState, previous: Posteriors) -> Posteriors:
    assert state.shift is not None
    if data.by_points:
        return data.weighted_posteriors(
            model, *state.shift.propose(data.people, state.spread, previous.points), previous
        )
    prior = state.shift.prior(np.asarray(np.linalg.inv(state.spread)), previous)
    return data.posteriors(model, *prior, previous, data.steps)


def rating_beliefs(data: RatingData, start: Start, state: FitState) -> tuple[Utilities, Posteriors]:
    """Return the utilities of a fit, and posteriors of the people in `data`, not only of the people fitted."""
    d = state.factors.shape[1]
    model, people = model_of(start, state), data.prior(np.pad(state.spread, (0, 1)) + np.diag([0.0] * d + [1.0]))
    for _ in range(_PASSES):
        people = _rating_posteriors(data, model, state, people)
    return model, people


def trust_of(evidence: FloatArray, random: FloatArray, honest: float) -> FloatArray:
    """Return the (people,) posterior probabilities that answers are informative rather than random."""
    return np.asarray(expit(np.log(honest) - np.log1p(-honest) + evidence - random))
