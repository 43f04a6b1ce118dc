"""Tastes of the people behind a group ranking: how likely each person is to choose each item over a typical one.

A person's utilities are base_i + V_i·z plus a residual utility of every item, and a typical item has the mean of the
person's utilities. Given the coefficients c of base, EP makes the posterior of the person's utilities a Gaussian whose
mean is linear in c, so integrating out c, with its posterior given everybody's answers, counts no answer twice. The
residual and the scale of all utilities are those that predict people left out of the fit: see
`pairseek.people.population.residual`. Someone whose answers may be random is a mixture with an unknown newcomer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit
from scipy.stats import norm, t

from pairseek.core.lazy import cached_property
from pairseek.core.types import Evidence, FloatArray, IntArray, ItemId
from pairseek.model.items import Items
from pairseek.model.priors import GaussianPrior
from pairseek.model.responses import Logistic
from pairseek.numerics.covariances import square_root
from pairseek.people.choices import Choices
from pairseek.people.population.residual import Calibration, calibrate, scale_of
from pairseek.people.ranking.ranking import INTERVAL_PROBABILITY
from pairseek.people.ranking.utilities import FitInputs, UtilityPosterior
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.gaussian import gaussian_fit

# Tolerance and largest number of sweeps of EP.
_CONVERGENCE = (1e-3, 40.0)
# Smallest variance of residual utilities, which keeps the covariance of the shown items invertible.
_MIN_VARIANCE = 1e-6
_UPPER_PROBABILITY = 0.5 * (1.0 + INTERVAL_PROBABILITY)
_NORMAL_QUANTILE = float(norm.ppf(_UPPER_PROBABILITY))

_Moments: TypeAlias = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class PersonalChances:
    """Probabilities that a person chooses each item over a typical one.

    Attributes
    ----------
    person
        Name of the person.
    chance, low, high
        (n,) posterior means, and the ends of their 90 % intervals.
    answers
        (n,) numbers of the person's answers in which each item was shown.
    """

    person: str
    chance: FloatArray
    low: FloatArray
    high: FloatArray
    answers: IntArray


@dataclass(frozen=True, eq=False)
class PersonalTastes:
    """Posterior of the utilities of every person behind a group ranking.

    Attributes
    ----------
    posterior
        The fit of the group.
    calibration
        Residual and scale that predict people left out of the fit.
    """

    posterior: UtilityPosterior
    calibration: Calibration

    @classmethod
    def of(cls, posterior: UtilityPosterior, items: Items | None = None, *, seed: int = 0) -> PersonalTastes:
        """Calibrate a fit of `items`, the argument with which `mean_utilities` computed it."""
        inputs = FitInputs.of(posterior.choices, items)
        return cls(posterior, calibrate(inputs.choices, inputs.items, inputs.fit_options, "auto", seed=seed))

    @property
    def ids(self) -> tuple[ItemId, ...]:
        """Ids of the items, in the order of all arrays."""
        return self.posterior.choices.ids

    def chances(self) -> Iterator[PersonalChances]:
        """Yield the chances of each person, in the order of ``posterior.choices.people``."""
        group = _Group.of(self.posterior, self.calibration)
        newcomer = group.newcomer()
        for row, (name, trust) in enumerate(zip(self.posterior.choices.people, self.posterior.trust, strict=True)):
            answers = _Answers.of(self.posterior.choices, row)
            moments = _mixed(float(trust), group.person(answers), newcomer)
            yield PersonalChances(name, *_chances(*moments), answers.counts(len(self.ids)))


@dataclass(frozen=True, eq=False)
class _Answers:
    """A person's answers: (s,) rows of the shown items, and (m,) positions of the two items among these.

    ``decided`` is 1 for a preference of the first item, and 0 for a tie.
    """

    shown: IntArray
    first: IntArray
    second: IntArray
    decided: FloatArray

    @classmethod
    def of(cls, choices: Choices, person: int) -> _Answers:
        """Return the answers of the person with this row."""
        is_own, tied = choices.person == person, choices.outcomes[choices.outcomes[:, 0] == person, 1:]
        pairs = np.concatenate([np.stack([choices.winner[is_own], choices.loser[is_own]], axis=1), tied])
        shown, positions = np.unique(pairs, return_inverse=True)
        first, second = positions.reshape(-1, 2).T
        return cls(shown, first, second, np.repeat([1.0, 0.0], [len(pairs) - len(tied), len(tied)]))

    def counts(self, n: int) -> IntArray:
        """Return the (n,) numbers of answers in which each item was shown."""
        return np.bincount(self.shown[np.concatenate([self.first, self.second])], minlength=n)


@dataclass(frozen=True, eq=False)
class _Group:
    """Distribution of utilities over people, in units of the noise of an answer.

    Attributes
    ----------
    base, root
        (n,) mean utilities, and (n, d) root of the covariance of tastes.
    base_root
        (n, b) root of the posterior covariance of the mean utilities, widened where that is a t distribution.
    residual_variance
        Variance of residual utilities.
    tie_width
        Half-width of ties.
    """

    base: FloatArray
    root: FloatArray
    base_root: FloatArray
    residual_variance: float
    tie_width: float

    @classmethod
    def of(cls, posterior: UtilityPosterior, calibration: Calibration) -> _Group:
        """Return the distribution of a fit with its calibration."""
        factor = calibration.scale * scale_of(calibration.residual)
        widening = float(t.ppf(_UPPER_PROBABILITY, posterior.degrees_of_freedom)) / _NORMAL_QUANTILE
        return cls(
            factor * posterior.base,
            factor * posterior.factors @ square_root(posterior.taste_covariance),
            factor * widening * np.linalg.solve(posterior.precision_root, posterior.design.toarray().T).T,
            calibration.residual**2 + _MIN_VARIANCE,
            factor * posterior.tie_width,
        )

    @cached_property
    def _centred(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Base and roots relative to the mean over the items."""
        return self.base - self.base.mean(), self.root - self.root.mean(axis=0), self.base_root - self.base_root.mean(0)

    def newcomer(self) -> _Moments:
        """Return the (n,) means and variances of the utilities of an unknown person, relative to a typical item."""
        base, root, base_root = self._centred
        residual_variance = self.residual_variance * (1.0 - 1.0 / len(base))
        return base, np.sum(root**2, axis=1) + np.sum(base_root**2, axis=1) + residual_variance

    def person(self, answers: _Answers) -> _Moments:
        """Return the (n,) means and variances of the utilities of the person who gave these answers."""
        base, root, base_root = self._centred
        shown, mean, variance = answers.shown, *self.newcomer()
        shown_root = self.root[shown]
        lower = np.linalg.cholesky(shown_root @ shown_root.T + self.residual_variance * np.eye(len(shown)))
        evidence = Evidence(
            lower[answers.first] - lower[answers.second],
            self.base[shown][answers.first] - self.base[shown][answers.second],
            answers.decided,
        )
        factors = Factors.of(evidence, Logistic(tie_width=self.tie_width))
        # In coordinates y with u = base + lower y for the shown items, given the coefficients.
        fit = gaussian_fit(factors, GaussianPrior(0.0, 1.0), convergence=_CONVERGENCE)
        covariance = root @ shown_root.T - self.residual_variance / len(base)
        covariance[shown, np.arange(len(shown))] += self.residual_variance
        loadings = solve_triangular(lower, covariance.T, lower=True).T
        precision_gain = np.eye(len(shown)) - fit.covariance
        # Answers explain part of a deviation of the mean utilities from their estimates.
        shift = loadings @ precision_gain @ solve_triangular(lower, self.base_root[shown], lower=True)
        explained = np.einsum("ni,ij,nj->n", loadings, precision_gain, loadings, optimize=True)
        change = np.sum(shift * (shift - 2.0 * base_root), axis=1)
        return mean + loadings @ fit.mean, np.maximum(variance - explained + change, _MIN_VARIANCE)


def _mixed(trust: float, person: _Moments, newcomer: _Moments) -> _Moments:
    """Return the moments of a mixture of the person, with the probability `trust`, and an unknown newcomer."""
    mean = trust * person[0] + (1.0 - trust) * newcomer[0]
    within = trust * person[1] + (1.0 - trust) * newcomer[1]
    return mean, within + trust * (1.0 - trust) * (person[0] - newcomer[0]) ** 2


def _chances(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean of f(z) for Gaussian logits z, by an approximation of MacKay (1992), and its 90 % interval."""
    half = _NORMAL_QUANTILE * np.sqrt(variance)
    low, high = expit(mean - half), expit(mean + half)
    return np.clip(expit(mean / np.sqrt(1.0 + np.pi / 8.0 * variance)), low, high), low, high
