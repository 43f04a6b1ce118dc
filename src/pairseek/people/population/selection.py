"""Selection of fit options and dimension by cross-validation over people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Literal

import numpy as np
from scipy.special import ndtr

from pairseek.core.types import JSON, BoolArray, FloatArray, IntArray
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.model.items import Items
from pairseek.people.choices import Choices
from pairseek.people.population.data import PairData
from pairseek.people.population.e_step import beliefs, rating_beliefs
from pairseek.people.population.fit import EM_TOLERANCE, LearningStep, data_of, fit
from pairseek.people.population.kernels import MIXTURE
from pairseek.people.population.model import FitOptions, fit_model, start_of
from pairseek.people.population.rating_data import RatingData

DIMENSIONS = (1, 2, 3, 4, 6, 8)
FOLDS = 4
# Maximum number of observed choices of a held-out person; the fit predicts the others.
MAX_SEEN = 10
# Improvement in nats per choice below which the simpler option wins, even if the difference is significant.
_MIN_GAIN = 2e-3


def candidate_options(
    n: int,
    *,
    dimension: int | Literal["auto"] | None,
    appeal: bool | str,
    rescale: bool | str,
    curvature: bool | str,
) -> list[FitOptions]:
    """List the candidate options in order of increasing complexity."""
    for name, value in (("appeal", appeal), ("rescale", rescale), ("curvature", curvature)):
        if not isinstance(value, bool) and value != "auto":
            raise InvalidParameter(f"{name} is {value!r}: give True, False or 'auto'", field=name)
    if dimension == "auto":
        tried = [d for d in DIMENSIONS if d <= max(1, n - 2)]
        return [FitOptions(d, *_plain((appeal, rescale, curvature))) for d in tried]
    if dimension is not None:
        if not isinstance(dimension, bool) and isinstance(dimension, int) and dimension > n - 1:
            raise InvalidParameter(
                f"dimension is {dimension} and there are {n} items: give at most {n - 1}", field="dimension"
            )
        return [FitOptions(dimension, *_plain((appeal, rescale, curvature)))]
    candidates = [
        FitOptions(None, *setting)
        for setting in product(*((False, True) if x == "auto" else (bool(x),) for x in (appeal, rescale, curvature)))
        if not (setting[0] and setting[1] and "auto" in (appeal, rescale))
    ]
    return sorted(candidates, key=_complexity)


def _plain(settings: tuple[bool | str, bool | str, bool | str]) -> tuple[bool, bool, bool]:
    appeal, rescale, curvature = settings
    # Learned coordinates leave no other option to select.
    return (appeal == "auto" or appeal is True, rescale is True, curvature is True)


def _complexity(fit_options: FitOptions) -> tuple[bool, bool, bool]:
    return fit_options.appeal, fit_options.curvature, fit_options.rescale


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Cross-validated scores of fit options.

    Attributes
    ----------
    options
        The candidates in order of increasing complexity.
    scores
        (options, people) mean log-likelihood of each person's held-out choices.
    accuracy
        (options, people) share of each person's held-out choices that were predicted correctly; NaN for ratings.
    people
        (people,) rows of the people with held-out choices.
    """

    options: tuple[FitOptions, ...]
    scores: FloatArray
    accuracy: FloatArray | None = None
    people: IntArray | None = None

    @property
    def best(self) -> FitOptions:
        """Simplest option whose score is within one standard error, or a negligible difference, of the best."""
        shortfall, error = self._shortfalls
        return self.options[int((shortfall <= np.fmax(error, _MIN_GAIN)).argmax())]

    @property
    def _shortfalls(self) -> tuple[FloatArray, FloatArray]:
        """(options,) differences from the best mean score, with standard errors over people."""
        shortfall = self.scores[int(self.scores.mean(axis=1).argmax())] - self.scores
        people = self.scores.shape[1]
        error = shortfall.std(axis=1, ddof=1) / np.sqrt(people) if people > 1 else np.zeros(len(shortfall))
        return shortfall.mean(axis=1), error

    def __str__(self) -> str:
        mean = self.scores.mean(axis=1)
        return "\n".join(
            f"{score:.4f}  {option}{'  chosen' if option == self.best else ''}"
            for option, score in zip(self.options, mean, strict=True)
        )

    def record(self) -> JSON:
        """Return the scores as JSON data."""
        mean, error = self.scores.mean(axis=1).tolist(), self._shortfalls[1].tolist()
        return {
            "tried": [
                {**option.record(), "log_likelihood": score, "standard_error": standard_error}
                for option, score, standard_error in zip(self.options, mean, error, strict=True)
            ],
            "people": self.scores.shape[1],
            "chosen": self.best.record(),
        }


def choose(
    choices: Choices,
    items: Items | None,
    tried: Sequence[FitOptions],
    *,
    rng: int = 0,
    folds: int = FOLDS,
    tolerance: float = EM_TOLERANCE,
    progress: Callable[[LearningStep], None] | None = None,
) -> CrossValidation:
    """Score fit options by cross-validation over people.

    Each fold fits a population to the people outside the fold. For each person in the fold the model observes half of
    the choices, at most ten, and predicts the others.
    """
    count = len(choices.people)
    folds = min(folds, count)
    fold, seen = _division(choices, folds, rng)
    tested = np.bincount(choices.person[~seen], minlength=count) > 0
    if choices.ratings is not None:
        tested = np.bincount(choices.ratings.person, minlength=count) > 1
    if not tested.any():
        raise InvalidChoices(
            "nobody made two choices, so cross-validation is impossible: replace 'auto' with a fixed option"
        )
    scores, accuracy = np.full((2, len(tried), count), np.nan)
    for number in range(folds):
        for row, fit_options in enumerate(tried):
            people = np.flatnonzero(fold == number)
            scores[row, people], accuracy[row, people] = _score(choices, items, fit_options, people, seen, tolerance)
            if progress is not None:
                text = f"fold {number + 1} of {folds}, {fit_options}: {np.nanmean(scores[row, people]):.4f}"
                done = (number * len(tried) + row + 1) / (folds * len(tried))
                progress(LearningStep("cross-validation", done, text))
    return CrossValidation(tuple(tried), scores[:, tested], accuracy[:, tested], np.flatnonzero(tested))


def _division(choices: Choices, folds: int, rng: int) -> tuple[IntArray, BoolArray]:
    """Return the fold of each person, and a mask of the choices that are observed."""
    generator = np.random.default_rng(rng)
    fold = generator.permutation(len(choices.people)) % folds
    return fold, _seen(choices, generator)


def _seen(choices: Choices, rng: np.random.Generator) -> BoolArray:
    out = np.zeros(len(choices), dtype=np.bool_)
    for first, last in pairwise(choices.starts.tolist()):
        chosen = rng.permutation(last - first)[: min(MAX_SEEN, (last - first) // 2)]
        out[first + chosen] = True
    return out


def _score(
    choices: Choices,
    items: Items | None,
    fit_options: FitOptions,
    people: IntArray,
    seen: BoolArray,
    tolerance: float,
) -> tuple[FloatArray, FloatArray]:
    """Return (people,) mean log-likelihoods of the held-out choices, and shares predicted correctly.

    Uninformative fits predict 1/2.
    """
    others = np.setdiff1d(np.arange(len(choices.people)), people)
    if choices.ratings is not None:
        return _score_ratings(choices, items, fit_options, people, others), np.full(len(people), np.nan)
    in_fold = np.isin(choices.person, people)
    try:
        model, _, _ = fit_model(choices.only(others), items, fit_options, tolerance=tolerance)
    except InvalidChoices:
        return np.full(len(people), -np.log(2.0)), np.full(len(people), 0.5)
    scores, accuracy = predict_choices(choices.rows(in_fold & seen), choices.rows(in_fold & ~seen), *model.utilities())
    return scores[people], accuracy[people]


def predict_choices(
    shown: Choices, hidden: Choices, base: FloatArray, factors: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return (people,) mean log-likelihoods of hidden choices given the shown ones, and shares predicted correctly.

    Utilities are base + V z with z ~ N(0, covariance). Both results are 0 for people without hidden choices.
    """
    # With so few shown, choices are nearly independent, so each has weight 1.
    data = PairData.of(shown)
    data = replace(data, weight=np.ones(len(data.weight)))
    mean, spread, _ = beliefs(data, base, factors, covariance)
    delta = factors[hidden.winner] - factors[hidden.loser]
    logit = base[hidden.winner] - base[hidden.loser] + np.einsum("md,md->m", delta, mean[hidden.person])
    variance = np.einsum("mi,mij,mj->m", delta, spread[hidden.person], delta)
    value = log_predicted(logit, np.sqrt(np.maximum(variance, 0.0)))
    count = len(hidden.people)
    total = np.maximum(np.bincount(hidden.person, minlength=count), 1)
    correct = 0.5 * (np.sign(logit) + 1.0)
    return tuple(np.bincount(hidden.person, part, minlength=count) / total for part in (value, correct))  # type: ignore[return-value]


def _score_ratings(
    choices: Choices, items: Items | None, fit_options: FitOptions, people: IntArray, others: IntArray
) -> FloatArray:
    """Return the (people,) mean log-likelihoods of held-out ratings, given half of a person's ratings, at most ten.

    Pairs of ratings would mislead: shown and hidden pairs share the noise of a rating, which rewards models that
    mistake noise for taste.
    """
    data = data_of(choices)
    assert isinstance(data, RatingData)
    held_out = data.only(np.isin(data.person, people))
    training = data.only(np.isin(data.person, others))
    start = start_of(training, fit_options, items)
    state = fit(training, start, people=np.isin(np.arange(data.people), others).astype(np.float64))
    # Shuffle each person's ratings, because people may have rated items in a systematic order.
    order = np.argsort(np.random.default_rng(0).random(len(held_out.item)) + held_out.person)
    positions = np.empty(len(order), dtype=np.int64)
    positions[order] = np.arange(len(order))
    count = np.diff(held_out.starts)[held_out.person]
    shown = positions - held_out.starts[held_out.person] < np.minimum(MAX_SEEN, count // 2)
    model, posteriors = rating_beliefs(held_out.only(shown), start, state)
    hidden = held_out.only(~shown)
    total = np.bincount(hidden.person, hidden.log_predictive(model, posteriors), minlength=len(choices.people))
    return np.asarray((total / np.maximum(np.diff(hidden.starts), 1))[people])


def log_predicted(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return log E f(z) for Gaussian logits z with these means and standard deviations."""
    shares, variances = MIXTURE
    probability = ndtr(mean[:, None] / np.sqrt(variances + deviation[:, None] ** 2)) @ shares
    return np.asarray(np.log(np.maximum(probability, 1e-12)))
