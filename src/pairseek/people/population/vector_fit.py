"""Maps from vectors of items to their coordinates and appeal, learned together with a population.

An item's parameters, its utility for the mean person and its factors, have a linear function of its vector as their
prior mean; the fit estimates the size of deviations from it. Items that nobody compared are placed by the function. It
is a ridge regression on the principal axes of the vectors, with the shrinkage under which choices about items left out
of a fit are likeliest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pairseek.core.types import BoolArray, FloatArray, IntArray, ItemId
from pairseek.errors import InvalidChoices
from pairseek.model.vectors import VectorMap, principal_map
from pairseek.people.choices import Choices, Ratings
from pairseek.people.population.fit import LearningStep
from pairseek.people.population.fit_state import Smoother
from pairseek.people.population.model import FitOptions, FittedModel, fit_model
from pairseek.people.population.selection import predict_choices

SHRINKAGES = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Candidate ridges: the variance of the deviations from the map over the variance of the map."""
_DEFAULT_SHRINKAGE = 1.0
_FOLDS = 3
_MAX_AXES = 64
# Maximum number of choices about left-out items by which a shrinkage is judged.
_MAX_CHOICES = 20_000


@dataclass(frozen=True, eq=False)
class VectorFeatures:
    """Principal components of the vectors of items, with a total variance of 1.

    Attributes
    ----------
    map
        The map from vectors to features.
    features
        (n, q) features of the items.
    """

    map: VectorMap
    features: FloatArray

    @classmethod
    def of(cls, vectors: object, ids: Sequence[ItemId]) -> VectorFeatures:
        """Return the features of vectors: at most 64, and at most half the number of items."""
        widest = principal_map(vectors, dimension=1, ids=ids)
        most = min(_MAX_AXES, widest.provenance["directions"], max(len(ids) // 2, 1))
        principal = principal_map(vectors, dimension=most, ids=ids)
        scale = 1.0 / np.sqrt(principal.axes.shape[1])
        scaled = replace(principal, axes=principal.axes * scale)
        return cls(scaled, scaled.place(vectors, ids))

    def smoother(self, compared: BoolArray, shrinkage: float) -> Smoother:
        """Return the ridge regression on the features, fitted to the items that were compared."""
        design = np.column_stack([np.ones(len(self.features)), self.features])
        seen = np.where(compared[:, None], design, 0.0)
        ridge = np.full(design.shape[1], shrinkage)
        ridge[0] = 1e-9
        return Smoother(design, np.linalg.solve(seen.T @ seen + np.diag(ridge), seen.T))


@dataclass(frozen=True, eq=False)
class VectorFit:
    """The chosen shrinkage, and the held-out log-likelihood of each candidate."""

    shrinkage: float
    tried: tuple[tuple[float, float], ...]


def without_items(choices: Choices, left_out: BoolArray) -> Choices:
    """Return the choices that do not involve any of these items."""
    keep = ~(left_out[choices.winner] | left_out[choices.loser])
    tied = choices.tied[~left_out[choices.tied[:, 1:]].any(axis=1)] if len(choices.tied) else choices.tied
    ratings = choices.ratings
    if ratings is not None:
        kept = ~left_out[ratings.item]
        ratings = Ratings(ratings.person[kept], ratings.item[kept], ratings.value[kept])
    return replace(choices.rows(keep), tied=tied, ratings=ratings)


def choose_shrinkage(
    choices: Choices,
    features: VectorFeatures,
    fit_options: FitOptions,
    rng: int = 0,
    progress: Callable[[LearningStep], None] | None = None,
) -> VectorFit:
    """Return the shrinkage under which choices about items left out of a fit are likeliest."""
    n = len(choices.ids)
    compared = compared_items(choices)
    fold = np.random.default_rng(rng).permutation(n) % _FOLDS
    total = np.zeros(len(SHRINKAGES))
    for number in range(_FOLDS):
        left_out = fold == number
        kept = without_items(choices, left_out).usable()
        try:
            model, _, _ = fit_model(
                kept, None, fit_options, smoother=features.smoother(compared & ~left_out, _DEFAULT_SHRINKAGE)
            )
        except InvalidChoices:
            continue
        shown, hidden = _divided(choices, left_out, rng)
        for row, shrinkage in enumerate(SHRINKAGES):
            placed = placed_model(model, features.smoother(compared & ~left_out, shrinkage), left_out)
            total[row] += float(predict_choices(shown, hidden, *placed.utilities())[0].mean())
        if progress is not None:
            text = f"left-out items, fold {number + 1} of {_FOLDS}: {total.max() / (number + 1):.4f}"
            progress(LearningStep("cross-validation", (number + 1) / _FOLDS, text))
    tried = tuple(zip(SHRINKAGES, (total / _FOLDS).tolist(), strict=True))
    return VectorFit(SHRINKAGES[int(np.argmax(total))] if total.any() else _DEFAULT_SHRINKAGE, tried)


def _divided(choices: Choices, left_out: BoolArray, rng: int) -> tuple[Choices, Choices]:
    """Return the choices between items of the fit, and a sample of the choices that involve left-out items."""
    about = left_out[choices.winner] | left_out[choices.loser]
    hidden = np.flatnonzero(about)
    drawn: IntArray = np.random.default_rng(rng).permutation(hidden)[:_MAX_CHOICES]
    asked = np.zeros(len(about), dtype=np.bool_)
    asked[drawn] = True
    return choices.rows(~about), choices.rows(asked)


def compared_items(choices: Choices) -> BoolArray:
    """Return a mask of the items that somebody compared or rated."""
    out = np.zeros(len(choices.ids), dtype=np.bool_)
    out[choices.winner] = out[choices.loser] = True
    if choices.ratings is not None:
        out[choices.ratings.item] = True
    return out


def linear_map(model: FittedModel, smoother: Smoother) -> FloatArray:
    """Return (1 + q, 1 + d) coefficients of a constant and the features for utility over k and the coordinates."""
    return smoother.coefficients(np.column_stack([model.utilities()[0] / model.k, model.coordinates]))


def placed_model(model: FittedModel, smoother: Smoother, left_out: BoolArray) -> FittedModel:
    """Return the model with the left-out items placed by the map."""
    places = smoother.design[left_out] @ linear_map(model, smoother)
    points, appeal = np.array(model.coordinates), np.array(model.appeal)
    points[left_out] = places[:, 1:]
    appeal[left_out] = appeal_of(places, model.k, model.mean)
    return replace(model, coordinates=points, appeal=appeal)


def appeal_of(places: FloatArray, k: float, mean: FloatArray) -> FloatArray:
    """Return the (n,) appeals of items, given their (n, 1 + d) utilities over k and coordinates."""
    points = places[:, 1:]
    return np.asarray(k * (places[:, 0] + np.sum(points**2, axis=1) - 2.0 * points @ mean))


def population_map(features: VectorFeatures, coefficients: FloatArray) -> VectorMap:
    """Return the map from vectors to utility over k and coordinates."""
    return VectorMap(
        features.map.centre, features.map.axes @ coefficients[1:], features.map.provenance, coefficients[0]
    )
