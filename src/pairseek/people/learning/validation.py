"""Cross-validation over people of the options for learning: dimensions and residual utilities.

Coordinates describe the part of a person's taste that is shared with other people, and residual utilities the part that
is not.
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

RESIDUAL_SHARES = (0.0, 0.2, 0.4, 0.6)
"""Candidate fractions of the noise of a fit that are residual utilities.

See `pairseek.people.population.residual`.
"""
# Candidate nearest to the default residual of a search among items with learned coordinates, or with none.
_DEFAULT_SHARE_LEARNED = 0.6
# Candidate nearest to the default residual of a search among items with given coordinates.
_DEFAULT_SHARE_GIVEN = 0.4
_FOLDS = 4
# Maximum number of a person's answers that the model observes before it predicts the others.
_MAX_OBSERVED = 10
# Looser than for a final fit, because the folds' fits are only compared.
_FIT_TOLERANCE = 1e-3
# Improvement in nats per answer below which the simpler option wins, even if the difference is significant.
_MIN_GAIN = 2e-3


@dataclass(frozen=True, eq=False)
class Trial:
    """A person whose answers are predicted: row, fold, and (m, 2) observed and hidden pairs, winners first."""

    row: int
    fold: int
    seen: IntArray
    hidden: IntArray


@dataclass(frozen=True, eq=False)
class Validation:
    """Predictions of hidden answers, and the options that they recommend.

    Attributes
    ----------
    chosen
        Recommended fit options.
    share
        Recommended share of residual utilities in the noise.
    trials
        The people whose answers were predicted.
    scores, accuracy
        (people,) mean log probabilities of hidden answers, and fractions predicted correctly, under the recommended
        options.
    """

    chosen: FitOptions
    share: float
    trials: tuple[Trial, ...]
    scores: FloatArray
    accuracy: FloatArray


def _first_near_best(scores: FloatArray, tolerance: float = 0.0) -> int:
    """Return the first of the (options, people) scores within a standard error, or `tolerance`, of the best."""
    shortfall = scores[int(scores.mean(axis=1).argmax())] - scores
    error = (
        shortfall.std(axis=1, ddof=1) / np.sqrt(shortfall.shape[1])
        if shortfall.shape[1] > 1
        else np.zeros(len(shortfall))
    )
    return int((shortfall.mean(axis=1) <= np.fmax(error, tolerance)).argmax())


def make_trials(choices: Choices, seed: int) -> tuple[Trial, ...]:
    """Divide people into folds, and each person's answers into observed ones (half, at most ten) and hidden ones."""
    rng = np.random.default_rng(seed)
    fold = rng.permutation(len(choices.people)) % _FOLDS
    pairs = np.stack([choices.winner, choices.loser], axis=1)
    out = []
    for row, (first, last) in enumerate(pairwise(choices.starts.tolist())):
        order = first + rng.permutation(last - first)
        count = min(_MAX_OBSERVED, (last - first) // 2)
        if count:
            out.append(Trial(row, int(fold[row]), pairs[order[:count]], pairs[order[count:]]))
    return tuple(out)


def cross_validate(
    choices: Choices,
    items: Items | None,
    candidates: Sequence[FitOptions],
    *,
    seed: int = 0,
    progress: Callable[[LearningStep], None] | None = None,
) -> Validation:
    """Choose fit options and residual by cross-validation: fit to the people outside a fold, and predict those inside.

    Options are compared first, without residual utilities: only shared tastes predict answers about items that a person
    has not seen. The first option within a standard error, or a negligible difference, of the best wins. The share of
    residual utilities is chosen next: among those within a standard error of the best, the one nearest to the default
    wins. A lack of evidence must not make it 0, because a search without residual utilities stops learning once it
    knows the shared part of a taste.

    Parameters
    ----------
    choices
        Choices of the people.
    items
        Items with given coordinates; None to learn the coordinates.
    candidates
        Fit options in order of increasing complexity.
    seed
        Seed of the folds.
    progress
        Called after each fit.
    """
    trials = make_trials(choices, seed)
    if not trials:
        raise InvalidChoices("nobody made two choices, so nothing can be predicted: collect more answers")
    default = _DEFAULT_SHARE_LEARNED if items is None else _DEFAULT_SHARE_GIVEN
    shares = sorted(RESIDUAL_SHARES, key=lambda share: abs(share - default))
    fits = []
    for option, fit_options in enumerate(candidates):
        fits.append(_fit_folds(choices, items, fit_options, trials))
        if progress is not None:
            progress(LearningStep("cross-validation", (option + 1) / len(candidates), f"{fit_options}"))
    chosen = _first_near_best(np.stack([_predict_folds(fit, trials, 0.0)[0] for fit in fits]), _MIN_GAIN)
    by_share = np.stack([_predict_folds(fits[chosen], trials, share) for share in shares])
    best = _first_near_best(by_share[:, 0])
    return Validation(candidates[chosen], shares[best], trials, *by_share[best])


def _fit_folds(
    choices: Choices, items: Items | None, fit_options: FitOptions, trials: Sequence[Trial]
) -> list[Population | None]:
    """Return the population of the people outside each fold; None if their answers are uninformative."""
    fits: list[Population | None] = []
    rows = np.arange(len(choices.people))
    for number in range(_FOLDS):
        others = choices.only(np.setdiff1d(rows, [trial.row for trial in trials if trial.fold == number]))
        try:
            model, state, _ = fit_model(others, items, fit_options, tolerance=_FIT_TOLERANCE)
            fits.append(Population.of(model, state, others, items, {}))
        except InvalidChoices:
            fits.append(None)
    return fits


def _predict_folds(fits: Sequence[Population | None], trials: Sequence[Trial], share: float) -> FloatArray:
    """Return the (2, people) `predictions` for each person by the fit to the other folds."""
    predicted = np.empty((2, len(trials)))
    for number, fit in enumerate(fits):
        indices = [index for index, trial in enumerate(trials) if trial.fold == number]
        if fit is None:
            predicted[:, indices] = [[-np.log(2.0)], [0.5]]
        elif indices:
            predicted[:, indices] = predictions(
                fit.with_residual(residual_of(share)), [trials[index] for index in indices]
            )
    return predicted


def predictions(population: Population, trials: Sequence[Trial]) -> tuple[FloatArray, FloatArray]:
    """Return (people,) mean log probabilities of hidden answers, and fractions of them predicted correctly."""
    people = [(trial.seen, trial.hidden) for trial in trials]
    return held_out_predictions(population.items, population.prior, population.response, people)
