"""What can be learned from people, and the way from a fit to the items, prior and k of a search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairseek.core.text import plural
from pairseek.core.types import JSON, FloatArray
from pairseek.defaults import default_prior
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.responses import Logistic
from pairseek.population.fit import Data, FitState, Start, first_factors

# A k below this share of the plain model's is not believed: people who love the extremes have no ideal point.
_LEAST = 0.05


@dataclass(frozen=True)
class FitOptions:
    """What a population learns beside where people are.

    Parameters
    ----------
    dimension
        Learn the items' coordinates in so many dimensions. None: they are given.
    appeal
        An appeal for each item.
    rescale
        A factor for each given coordinate. Only without appeal: a free appeal and a free spread of people can say the
        same, so there is nothing to tell factors by.
    curvature
        One more coordinate, |x|²/2 of the centred items: some people love extremes, others the middle.
    """

    dimension: int | None = None
    appeal: bool = True
    rescale: bool = False
    curvature: bool = False

    def __post_init__(self) -> None:
        if self.dimension is not None:
            if isinstance(self.dimension, bool) or not isinstance(self.dimension, int) or self.dimension < 1:
                raise InvalidParameter(f"dimension is {self.dimension!r}: give a whole number, at least 1")
            if self.rescale or self.curvature:
                raise InvalidParameter(
                    "coordinates that are learned have any scale and curvature already: leave out rescale and curvature"
                )
            if not self.appeal:
                raise InvalidParameter("coordinates are learned together with an appeal: leave out appeal=False")
        if self.rescale and self.appeal:
            raise InvalidParameter(
                "rescale with appeal: a free appeal and the spread of people say all that factors could; use one of "
                "the two"
            )

    def record(self) -> JSON:
        """As plain data."""
        return {
            "dimension": self.dimension,
            "appeal": self.appeal,
            "rescale": self.rescale,
            "curvature": self.curvature,
        }

    def __str__(self) -> str:
        parts = [name for name in ("appeal", "rescale", "curvature") if getattr(self, name)]
        if self.dimension is not None:
            return f"coordinates in {plural(self.dimension, 'dimension')}"
        return "given coordinates" + "".join(f", {name}" for name in parts)


@dataclass(frozen=True, eq=False)
class Plain:
    """The plain model in terms of utilities: what a search believes that is told nothing.

    Attributes
    ----------
    k
        Noise constant.
    mean, covariance
        Moments of the default prior.
    """

    k: float
    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, items: Items) -> Plain:
        """For these items, under constant noise."""
        mean, covariance = default_prior(items).moments(items.d)
        spread = float(np.sqrt(np.trace(covariance) / items.d))
        return cls(Logistic(noise="constant").for_spread(spread).constant, mean, covariance)


def coordinates_of(items: Items, learned: FitOptions) -> FloatArray:
    """The given coordinates, and the curvature where it is wanted."""
    points = np.asarray(items.coordinates)
    if not learned.curvature:
        return points
    centred = points - points.mean(axis=0)
    # In the unit of the coordinates themselves, so that no unit of length makes it large or small.
    unit = np.sqrt(np.mean(centred**2))
    return np.column_stack([points, np.sum(centred**2, axis=1) / (2.0 * unit)])


def start_of(data: Data, learned: FitOptions, items: Items | None) -> Start:
    """Where the fit begins, and what it is shrunk towards."""
    if items is None:
        assert learned.dimension is not None
        zero = np.zeros(data.n)
        factors = first_factors(data, learned.dimension)
        return Start(None, zero, np.full(data.n, np.nan), factors, np.eye(learned.dimension), free=True)
    plain = Plain.of(items)
    points = np.asarray(items.coordinates)
    factors = coordinates_of(items, learned)
    spread = np.diag(np.append(np.zeros(items.d), 4.0 * plain.k**2 * np.trace(plain.covariance) / items.d))
    spread = spread[: factors.shape[1], : factors.shape[1]]
    spread[: items.d, : items.d] = 4.0 * plain.k**2 * plain.covariance
    base = 2.0 * plain.k * points @ plain.mean - plain.k * np.sum(points**2, axis=1) + items.appeal
    if learned.appeal:
        return Start(None, base, np.full(data.n, np.nan), factors, spread, free=False)
    squares = points**2 if learned.rescale else np.sum(points**2, axis=1, keepdims=True)
    extra = factors[:, items.d :]
    basis = np.column_stack([points, extra, squares, items.appeal])
    centre = np.concatenate(
        [2.0 * plain.k * plain.mean, np.zeros(extra.shape[1]), np.full(squares.shape[1], -plain.k), [1.0]]
    )
    deviation = np.sqrt(np.diag(spread))
    # k may well be a few times another one; where people are on average, as far as they are spread; the items' own
    # appeal is what it is.
    looseness = np.concatenate([3.0 * deviation, np.full(squares.shape[1], 3.0 * plain.k), [1e-6]])
    return Start(basis, centre, looseness, factors, spread, free=False)


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fit in the terms of a search.

    Attributes
    ----------
    coordinates, appeal
        (n, d) and (n,), of the items.
    k
        Noise constant, of constant noise.
    mean, covariance
        (d,) and (d, d), of user points.
    """

    coordinates: FloatArray
    appeal: FloatArray
    k: float
    mean: FloatArray
    covariance: FloatArray


def fitted_model(start: Start, state: FitState, learned: FitOptions, items: Items | None) -> FittedModel:
    """Fix the gauge.

    Choices tell the differences of base = appeal - k|x|² + 2k x·m and the spread of utilities, V S V'. Many k, m and
    appeals give the same. Taken are: coordinates as given, or, if learned, principal axes with the mean at zero and
    people's covariance the identity; the k for which people are spread as widely as items, tr cov(people) =
    tr cov(items); the m for which appeal is uncorrelated with every coordinate; and appeal of mean zero. Without a free
    appeal, k and m are those that leave no appeal at all.
    """
    base = start.base(state.coefficients)
    factors, spread = state.factors, state.spread
    d = factors.shape[1]
    if items is None:
        points = factors - factors.mean(axis=0)
        # People have the identity as covariance: k puts the items on the same scale, V = 2k x.
        k = 0.5 * float(np.sqrt(max(np.sum(points**2) / (len(points) * d), 1e-12)))
        return _without_trend(points / (2.0 * k), base, k, np.eye(d))
    points = coordinates_of(items, learned)
    if not learned.appeal:
        return _exact(points, base, spread, state.coefficients, learned, items)
    return _without_trend(points, base, _common_scale(points, spread), None, spread)


def _common_scale(points: FloatArray, spread: FloatArray) -> float:
    return 0.5 * float(np.sqrt(np.trace(spread) / np.var(points, axis=0).sum()))


def _without_trend(
    points: FloatArray, base: FloatArray, k: float, covariance: FloatArray | None, spread: FloatArray | None = None
) -> FittedModel:
    if covariance is None:
        assert spread is not None
        covariance = spread / (4.0 * k**2)
    square = np.sum(points**2, axis=1)
    centred = points - points.mean(axis=0)
    rest = base + k * square
    mean = np.linalg.lstsq(2.0 * k * centred, rest - rest.mean(), rcond=None)[0]
    appeal = rest - 2.0 * k * points @ mean
    return FittedModel(points, appeal - appeal.mean(), k, mean, covariance)


def _exact(
    points: FloatArray, base: FloatArray, spread: FloatArray, found: FloatArray, learned: FitOptions, items: Items
) -> FittedModel:
    """The k, and the factors, that the fall of utility with |x|² tells; what they do not say is left to appeal."""
    least = _LEAST * Plain.of(items).k
    pull, fall = found[: points.shape[1]], np.maximum(-found[points.shape[1] : -1], least)
    k = float(fall.mean())
    if learned.rescale:
        factors = np.append(np.sqrt(fall / k), np.ones(points.shape[1] - items.d))
        points = points * factors
        spread = spread / np.outer(factors, factors)
        pull = pull / factors
    mean = pull / (2.0 * k)
    appeal = base - 2.0 * k * points @ mean + k * np.sum(points**2, axis=1)
    appeal = appeal - appeal.mean()
    # Rounding is no appeal.
    appeal[np.abs(appeal) < 1e-9 * max(1.0, float(np.abs(base).max()))] = 0.0
    return FittedModel(points, appeal, k, mean, spread / (4.0 * k**2))
