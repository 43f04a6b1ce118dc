"""The residual and the scale of a population, judged on people left out of a fit.

A fit explains a choice by coordinates and appeal, and calls everything else noise: logits z with logistic noise of
variance π²/3. A share ρ of that noise is residual utility of the two items, which stays the same whenever the person
meets them, and 1 - ρ is noise of the answer. In units that make the noise of the answer logistic again, all utilities
are multiplied by c = 1/sqrt(1 - ρ), and a residual utility has the variance σ² = ρ c² π²/6: two of them make up
ρ c² π²/3.

A fit also describes its own people better than newcomers, so its utilities are multiplied by another factor, the scale.
Both numbers are averaged over a grid. A point of the grid is weighted by the likelihood of the answers of people who
were left out, given a fit to the others and a log-normal prior of the scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit, logit, softmax

from pairseek.core.types import JSON, FloatArray, IntArray
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.model.items import Items
from pairseek.model.responses import Logistic
from pairseek.people.choices import Choices
from pairseek.people.population.data import PairData
from pairseek.people.population.fit import PSEUDO_INFORMATIVE, PSEUDO_RANDOM, LearningStep
from pairseek.people.population.fit_state import Smoother
from pairseek.people.population.held_out import evidence_of, sample_answers
from pairseek.people.population.model import FitOptions, FittedModel, fit_model

ResidualSetting: TypeAlias = Literal["auto", "implied"]
IMPLIED_SHARES: dict[ResidualSetting, float] = {"auto": 0.6, "implied": 0.9}
"""Shares that are assumed where ratings or rankings imply the pairs. Such pairs never contradict each other, and would
always favour the largest share. People who answer pairs do contradict themselves; ``"auto"`` allows for it.
``"implied"`` is for newcomers whose answers are implied by ratings too, as in an evaluation."""
_RESIDUAL_SHARES = np.array([0.02, 0.2, 0.4, 0.6, 0.75, 0.87])
_LOG_SCALES = np.array([-1.2, -0.8, -0.4, 0.0, 0.4])
# Number of points along each axis after interpolation.
_FINE_GRID_POINTS = 61
# Prior standard deviation of the logarithm of the scale.
_LOG_SCALE_DEVIATION = 0.5
_FOLDS = 3
# Iterations for the share of people who do not toss coins.
_HONEST_SHARE_ROUNDS = 20
# Looser than for a final fit.
_FIT_TOLERANCE = 1e-3
# Largest number of people who are left out, over all folds, and of a person's answers.
_MAX_LEFT_OUT_PEOPLE = 100
_MAX_JUDGED_ANSWERS = 40


@dataclass(frozen=True)
class Calibration:
    """Residual and scale of a population.

    Attributes
    ----------
    share, share_error
        Posterior mean and standard deviation of the share ρ.
    log_scale, log_scale_error
        Posterior mean and standard deviation of the logarithm of the scale.
    honest
        Share of people whose answers are not coin tosses; None if no answers were judged.
    people
        Number of people who were left out.
    """

    share: float
    share_error: float = 0.0
    log_scale: float = 0.0
    log_scale_error: float = 0.0
    honest: float | None = None
    people: int = 0

    @property
    def residual(self) -> float:
        """Standard deviation of residual utilities."""
        return residual_of(self.share)

    @property
    def scale(self) -> float:
        """Factor on the utilities of the fit."""
        return math.exp(self.log_scale)

    def record(self) -> JSON:
        """Return the calibration as JSON data."""
        return {
            "share": self.share,
            "share_error": self.share_error,
            "log_scale": self.log_scale,
            "log_scale_error": self.log_scale_error,
            "people": self.people,
        }


@dataclass(frozen=True, eq=False)
class LeftOutEvidence:
    """Evidence of the answers of people who were left out, over a grid of shares and scales.

    Attributes
    ----------
    shares
        (shares,) values of ρ. The scales are `_LOG_SCALES`.
    answers
        (shares, scales, people) log evidence of each person's answers.
    random
        (people,) log-likelihoods of coin tosses.
    rows
        (people,) rows of these people in the choices.
    """

    shares: FloatArray
    answers: FloatArray
    random: FloatArray
    rows: IntArray

    def without(self, row: int) -> LeftOutEvidence:
        """Return the evidence of all people but the one in this row of the choices."""
        kept = self.rows != row
        return LeftOutEvidence(self.shares, self.answers[:, :, kept], self.random[kept], self.rows[kept])

    def calibration(self) -> Calibration:
        """Average over the grid."""
        honest = honest_share(self.answers, self.random)
        mixed = np.logaddexp(np.log(honest)[..., None] + self.answers, np.log1p(-honest)[..., None] + self.random)
        # Many people weight one point of the grid only, so the log-likelihood is interpolated.
        by_scale, log_scales = _interpolated(_LOG_SCALES, mixed.sum(axis=2).T)
        total, fine_shares = _interpolated(self.shares, by_scale.T)
        weight = softmax(total - 0.5 * (log_scales / _LOG_SCALE_DEVIATION) ** 2)
        share, share_error = _moments(fine_shares, weight.sum(axis=1))
        log_scale, log_scale_error = _moments(log_scales, weight.sum(axis=0))
        nearest = np.abs(self.shares - share).argmin(), np.abs(_LOG_SCALES - log_scale).argmin()
        people = len(self.random)
        return Calibration(
            share, share_error, log_scale, log_scale_error, float(honest[nearest]) if people else None, people
        )


def scale_of(residual: float) -> float:
    """Return c, the factor that this residual puts on all utilities."""
    return math.sqrt(1.0 + 6.0 * residual**2 / math.pi**2)


def residual_of(share: float) -> float:
    """Return the residual σ for a share ρ."""
    return math.sqrt(share / (1.0 - share) * math.pi**2 / 6.0)


def share_of(residual: float) -> float:
    """Return the share ρ for a residual σ."""
    return 1.0 - scale_of(residual) ** -2


def checked_residual(residual: object) -> float:
    """Return a valid residual in logits."""
    if residual is None:
        raise InvalidParameter(
            'residual is None: give a number of logits (at least 0), "auto" or "implied"', field="residual"
        )
    return Logistic(1.0, residual=residual).residual_deviation  # type: ignore[arg-type]


def honest_share(evidence: FloatArray, random: FloatArray) -> FloatArray:
    """Estimate the share of people who do not toss coins, given (..., people) log evidence of both hypotheses."""
    honest = np.full(evidence.shape[:-1], PSEUDO_INFORMATIVE / (PSEUDO_INFORMATIVE + PSEUDO_RANDOM))
    for _ in range(_HONEST_SHARE_ROUNDS):
        trust = expit(logit(honest)[..., None] + evidence - random)
        honest = (trust.sum(axis=-1) + PSEUDO_INFORMATIVE) / (len(random) + PSEUDO_INFORMATIVE + PSEUDO_RANDOM)
    return honest


def calibrate(
    choices: Choices,
    items: Items | None,
    fit_options: FitOptions,
    setting: float | ResidualSetting,
    *,
    smoother: Smoother | None = None,
    seed: int = 0,
    progress: Callable[[LearningStep], None] | None = None,
) -> Calibration:
    """Average the residual and the scale of a fit with these options, as described in the module's docstring.

    Each of three folds of the people is left out once. With a residual in logits, only the scale is judged. Pairs that
    rankings or ratings imply are not judged.
    """
    if choices.derived:
        return Calibration(IMPLIED_SHARES[setting] if isinstance(setting, str) else share_of(setting))
    return left_out_evidence(
        choices, items, fit_options, setting, smoother=smoother, seed=seed, progress=progress
    ).calibration()


def left_out_evidence(
    choices: Choices,
    items: Items | None,
    fit_options: FitOptions,
    setting: float | ResidualSetting,
    *,
    smoother: Smoother | None = None,
    seed: int = 0,
    progress: Callable[[LearningStep], None] | None = None,
) -> LeftOutEvidence:
    """Leave out each fold of the people once, and return the evidence of their answers; see `calibrate`."""
    shares = _RESIDUAL_SHARES if isinstance(setting, str) else np.array([share_of(setting)])
    rng = np.random.default_rng(seed)
    people = rng.permutation(len(choices.people))
    parts, coins, rows = [], [], []
    for number in range(min(_FOLDS, len(people))):
        newcomers, others = people[number::_FOLDS], np.delete(people, np.s_[number::_FOLDS])
        try:
            model, state, _ = fit_model(
                choices.only(np.sort(others)), items, fit_options, tolerance=_FIT_TOLERANCE, smoother=smoother
            )
        except InvalidChoices:
            continue
        tie = float(state.thresholds.sum())
        rows.append(newcomers[: -(-_MAX_LEFT_OUT_PEOPLE // _FOLDS)])
        judged = sample_answers(choices.only(rows[-1]), _MAX_JUDGED_ANSWERS, rng, ties=tie > 0.0)

        def evidence(
            share: float, scale: float, model: FittedModel = model, tie: float = tie, judged: Choices = judged
        ) -> FloatArray:
            residual = residual_of(share)
            factor = scale_of(residual)
            return evidence_of(judged, *model.utilities(scale * factor), residual, tie * factor)

        parts.append([[evidence(share, math.exp(t)) for t in _LOG_SCALES] for share in shares])
        coins.append(PairData.of(judged).random_likelihood())
        if progress is not None:
            text = f"residual and scale, fold {number + 1} of {_FOLDS}"
            progress(LearningStep("residual", (number + 1) / _FOLDS, text))
    if not parts:
        return LeftOutEvidence(
            shares, np.zeros((len(shares), len(_LOG_SCALES), 0)), np.zeros(0), np.zeros(0, dtype=np.int64)
        )
    return LeftOutEvidence(shares, np.concatenate(parts, axis=2), np.concatenate(coins), np.concatenate(rows))


def _interpolated(points: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values at many points between the first and the last one, by a spline along the first axis; and these."""
    if len(points) == 1:
        return values, points
    between = np.linspace(points[0], points[-1], _FINE_GRID_POINTS)
    return np.asarray(CubicSpline(points, values)(between)), between


def _moments(values: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return the weighted mean and standard deviation."""
    mean = float(weight @ values)
    return mean, math.sqrt(float(weight @ (values - mean) ** 2))
