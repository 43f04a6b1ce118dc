"""Initial values of a population fit, which are also the centres of its hyperpriors, and the state of EM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.people.population.data import Posteriors, Utilities
from pairseek.people.population.shift import Shift


@dataclass(frozen=True, eq=False)
class Smoother:
    """A linear regression of the items' parameters on features of the items.

    Attributes
    ----------
    design
        (n, b) features.
    solution
        (b, n) matrix that maps the parameters to their coefficients.
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
    coefficients, prior_deviation
        (b,) prior means and standard deviations of the coefficients. EM estimates the deviations that are NaN.
    factors
        (n, d) matrix V.
    spread
        (d, d) covariance S.
    estimates_factors
        True if the fit estimates V with S fixed to the identity, False if it estimates S with V fixed.
    smoother
        Regression that predicts the prior means of the items' parameters, if V is free. None: the means are zero.
    """

    basis: FloatArray | None
    coefficients: FloatArray
    prior_deviation: FloatArray
    factors: FloatArray
    spread: FloatArray
    estimates_factors: bool
    smoother: Smoother | None = None

    def centre(self, values: FloatArray) -> FloatArray:
        """Return the (n, q) prior means of the items' parameters, predicted from the (n, q) parameters themselves."""
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
    posteriors
        Posteriors of z and, for ratings, of the shift.
    trust
        (people,) posterior probabilities that a person's answers are informative.
    objective
        Lower bound on the total log evidence.
    rounds
        Number of EM iterations.
    scale, ridge
        Estimated prior deviations: of the coefficients, and of each column of the factors.
    """

    coefficients: FloatArray
    factors: FloatArray
    spread: FloatArray
    honest: float
    thresholds: FloatArray
    shift: Shift | None
    posteriors: Posteriors
    trust: FloatArray
    objective: float
    rounds: int
    scale: float
    ridge: FloatArray

    @property
    def evidence(self) -> FloatArray:
        """(people,) log evidence under the model, or a lower bound on it."""
        return self.posteriors.evidence


def model_of(start: Start, state: FitState) -> Utilities:
    """Return the utilities of a fit; for ratings, the factors have a last column of ones for the shift."""
    factors = state.factors
    if state.shift is not None:
        factors = np.ascontiguousarray(np.column_stack([factors, np.ones(len(factors))]))
    return Utilities(start.base(state.coefficients), factors, state.thresholds)
