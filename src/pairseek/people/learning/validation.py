"""Cross-validation over people of what a study could learn: dimensions, and the residual utilities beside them.

A person's taste is in part common with other people's, which coordinates describe, and in part their own, which
residual utilities describe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.errors import InvalidChoices
from pairseek.model.items import Items
from pairseek.people.population import Choices, Population
from pairseek.people.population.fit import LearningStep
from pairseek.people.population.held_out import held_out_predictions
from pairseek.people.population.model import FitOptions, fit_model
from pairseek.people.population.residual import residual_of

SHARES = (0.0, 0.2, 0.4, 0.6)
"""Shares of the noise of a fit that are tried as residual utilities: see `pairseek.people.population.residual`."""
# The shares nearest to the residual of a search that knows nobody: of learned coordinates or none, and of given ones.
_USUAL_LEARNED, _USUAL_GIVEN = 0.6, 0.4
_FOLDS = 4
# Largest number of answers of a person that the model observes; it predicts the remaining ones.
_SEEN = 10
# Looser than for a final fit, because the folds are compared and not used.
_TOLERANCE = 1e-3
# Improvement in nats per answer below which the simpler option wins, even if the difference is significant.
_MIN_GAIN = 2e-3


@dataclass(frozen=True, eq=False)
class Trial:
    """A person whose answers are predicted: row, fold, and (m, 2) pairs that are observed and hidden, winners first."""

    row: int
    fold: int
    seen: IntArray
    hidden: IntArray


@dataclass(frozen=True, eq=False)
class Validation:
    """Predictions of hidden answers, and what they recommend.

    Attributes
    ----------
    chosen
        Fit options that are recommended.
    share
        Share of the noise that is residual utility.
    trials
        The people whose answers were predicted.
    scores, right
        (people,) mean log probability of a person's hidden answers, and the share that was likelier, in folds that were
        fitted as recommended.
    """

    chosen: FitOptions
    share: float
    trials: tuple[Trial, ...]
    scores: FloatArray
    right: FloatArray


def _first(scores: FloatArray, least: float = 0.0) -> int:
    """Return the first of the (options, people) scores that is within a standard error, or `least`, of the best."""
    lag = scores[int(scores.mean(axis=1).argmax())] - scores
    error = lag.std(axis=1, ddof=1) / np.sqrt(lag.shape[1]) if lag.shape[1] > 1 else np.zeros(len(lag))
    return int((lag.mean(axis=1) <= np.fmax(error, least)).argmax())


def trials_of(choices: Choices, seed: int) -> tuple[Trial, ...]:
    """Divide people into folds, and the answers of each into those that are observed, half of them, and hidden ones."""
    rng = np.random.default_rng(seed)
    fold = rng.permutation(len(choices.people)) % _FOLDS
    pairs = np.stack([choices.winner, choices.loser], axis=1)
    out = []
    for row, (first, last) in enumerate(pairwise(choices.starts.tolist())):
        order = first + rng.permutation(last - first)
        count = min(_SEEN, (last - first) // 2)
        if count:
            out.append(Trial(row, int(fold[row]), pairs[order[:count]], pairs[order[count:]]))
    return tuple(out)


def validated(
    choices: Choices,
    items: Items | None,
    tried: Sequence[FitOptions],
    *,
    seed: int = 0,
    progress: Callable[[LearningStep], None] | None = None,
) -> Validation:
    """Choose fit options and residual by cross-validation: fit to the people outside a fold, and predict those inside.

    Options are compared without residual utilities, by what they know of tastes that people have in common, because
    these tell of items that a person has not met: the first one within a standard error, or a negligible difference,
    of the best is chosen. Then the residual is: the one nearest to the usual among those within a standard error of the
    best. It must not be 0 for want of evidence: a search without residual utilities learns nothing more once it knows
    the common part of a taste.

    Parameters
    ----------
    choices
        Choices of the people.
    items
        Items with given coordinates; None if coordinates are learned.
    tried
        Fit options in order of increasing complexity.
    seed
        Seed of the folds.
    progress
        Called after each fit.
    """
    trials = trials_of(choices, seed)
    if not trials:
        raise InvalidChoices("nobody made two choices, so that nothing can be predicted; collect more answers")
    usual = _USUAL_LEARNED if items is None else _USUAL_GIVEN
    shares = sorted(SHARES, key=lambda share: abs(share - usual))
    fits = []
    for option, learned in enumerate(tried):
        fits.append(_fitted_folds(choices, items, learned, trials))
        if progress is not None:
            progress(LearningStep("cross-validation", (option + 1) / len(tried), f"{learned}"))
    chosen = _first(np.stack([_predicted_folds(fit, trials, 0.0)[0] for fit in fits]), _MIN_GAIN)
    by_share = np.stack([_predicted_folds(fits[chosen], trials, share) for share in shares])
    best = _first(by_share[:, 0])
    return Validation(tried[chosen], shares[best], trials, *by_share[best])


def _fitted_folds(
    choices: Choices, items: Items | None, learned: FitOptions, trials: Sequence[Trial]
) -> list[Population | None]:
    """Return the population of the people outside each fold; None if their answers are not informative."""
    out: list[Population | None] = []
    rows = np.arange(len(choices.people))
    for number in range(_FOLDS):
        others = choices.only(np.setdiff1d(rows, [trial.row for trial in trials if trial.fold == number]))
        try:
            model, state, _ = fit_model(others, items, learned, tolerance=_TOLERANCE)
            out.append(Population.of(model, state, others, items, {}))
        except InvalidChoices:
            out.append(None)
    return out


def _predicted_folds(fits: Sequence[Population | None], trials: Sequence[Trial], share: float) -> FloatArray:
    """Return the (2, people) predictions of each person by the fit without their fold, as of `predictions`."""
    out = np.empty((2, len(trials)))
    for number, fit in enumerate(fits):
        places = [place for place, trial in enumerate(trials) if trial.fold == number]
        if fit is None:
            out[:, places] = [[-np.log(2.0)], [0.5]]
        elif places:
            out[:, places] = predictions(fit.with_residual(residual_of(share)), [trials[place] for place in places])
    return out


def predictions(population: Population, trials: Sequence[Trial]) -> tuple[FloatArray, FloatArray]:
    """Return the (people,) mean log probabilities of hidden answers, and the shares that were likelier than not."""
    people = [(trial.seen, trial.hidden) for trial in trials]
    return held_out_predictions(population.items, population.prior, population.response, people)
