"""Bayesian linear taste: utilities offset + factors w, standard normal w, logistic answers, Laplace approximation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.special import entr, expit, ndtr

from pairseek.core.types import FloatArray, IntArray
from pairseek.core.validation import one_of
from pairseek.experiments.comparison.protocol import BaseMethod

Questions: TypeAlias = Literal["random", "information", "eubo"]
"""How questions are chosen: at random; by the mutual information of answer and taste (Bayesian active learning by
disagreement, BALD); or by the expected utility of the better item (EUBO)."""
_NORMAL_NODES, _NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
_NORMAL_WEIGHTS = _NORMAL_WEIGHTS / _NORMAL_WEIGHTS.sum()
_MAX_NEWTON_STEPS = 50


@dataclass
class LinearTaste(BaseMethod):
    """Base of methods whose utilities are linear in a taste with a Gaussian prior.

    A subclass calls `set_prior` in `begin`: with `offset`, the (n,) utilities before any answer, and `factors`, the (n,
    r) change of the utilities with each coordinate of a standard normal taste, both in logits.

    Parameters
    ----------
    questions
        See `Questions`.
    plug_in
        Whether predictions use only the most likely taste, as in logistic regression.
    """

    questions: Questions = "random"
    plug_in: bool = False
    offset: FloatArray = field(init=False, repr=False)
    factors: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        one_of(self.questions, "questions", get_args(Questions))

    def set_prior(self, offset: FloatArray, factors: FloatArray) -> None:
        """Set the prior and forget all answers."""
        self.offset, self.factors = offset, factors
        self._answers: list[tuple[int, int]] = []
        self._mean = np.zeros(factors.shape[1])
        self._covariance = np.eye(factors.shape[1])

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:
        """Fit again with one more answer."""
        if outcome is not None:
            self._answers.append((outcome, sum(pair) - outcome))
            winner, loser = np.array(self._answers).T
            self._mean, self._covariance = laplace(
                self.factors[winner] - self.factors[loser], self.offset[winner] - self.offset[loser]
            )

    def margins(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the (m,) means and variances of the differences of utility."""
        first, second = pairs.T
        delta = self.factors[first] - self.factors[second]
        mean = self.offset[first] - self.offset[second] + delta @ self._mean
        return mean, np.einsum("mr,rs,ms->m", delta, self._covariance, delta)

    def ask(self, allowed: IntArray) -> Sequence[int]:
        """Return the best allowed pair."""
        if self.questions == "random":
            return super().ask(allowed)
        mean, variance = self.margins(allowed)
        if self.questions == "information":
            score = information(mean, variance)
        else:
            first = self.utilities()[allowed[:, 1]]
            deviation = np.sqrt(np.maximum(variance, 1e-12))
            ratio = mean / deviation
            # E max(u, v) = E v + E max(u - v, 0).
            score = first + mean * ndtr(ratio) + deviation * np.exp(-0.5 * ratio**2) / np.sqrt(2.0 * np.pi)
        best: list[int] = allowed[int(np.argmax(score))].tolist()
        return best

    def predict(self, pairs: IntArray) -> FloatArray:
        """Return the (m,) probabilities that the first item wins."""
        mean, variance = self.margins(pairs)
        return np.asarray(expit(mean)) if self.plug_in else expected_logistic(mean, variance)

    def utilities(self) -> FloatArray:
        """Return the (n,) expected utilities."""
        return np.asarray(self.offset + self.factors @ self._mean)


def laplace(slopes: FloatArray, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mode and inverse Hessian for a standard normal w, given answers with logits offsets + slopes w."""
    size = slopes.shape[1]
    mode = np.zeros(size)
    for _ in range(_MAX_NEWTON_STEPS):
        probability = expit(offsets + slopes @ mode)
        gradient = slopes.T @ (1.0 - probability) - mode
        precision = np.eye(size) + (slopes * (probability * (1.0 - probability))[:, None]).T @ slopes
        step = np.linalg.solve(precision, gradient)
        # The Newton step of a logistic likelihood overshoots where it is nearly flat.
        step *= min(1.0, 3.0 / max(float(np.max(np.abs(slopes @ step), initial=0.0)), 1e-12))
        mode = mode + step
        if np.max(np.abs(step)) < 1e-8:
            break
    probability = expit(offsets + slopes @ mode)
    precision = np.eye(size) + (slopes * (probability * (1.0 - probability))[:, None]).T @ slopes
    return mode, np.linalg.inv(precision)


def expected_logistic(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return E f(z) for Gaussian z and the logistic f."""
    z = mean[:, None] + np.sqrt(np.maximum(variance, 0.0))[:, None] * _NORMAL_NODES
    return np.asarray(np.clip(expit(z) @ _NORMAL_WEIGHTS, 0.0, 1.0))


def information(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the mutual information of answer and taste in nats, for Gaussian z."""
    probability = expit(mean[:, None] + np.sqrt(np.maximum(variance, 0.0))[:, None] * _NORMAL_NODES)
    average = probability @ _NORMAL_WEIGHTS
    return np.asarray(
        entr(average) + entr(1.0 - average) - (entr(probability) + entr(1.0 - probability)) @ _NORMAL_WEIGHTS
    )
