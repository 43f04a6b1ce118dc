"""Options of a population fit, and the conversion of a fit into the items, prior and k of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pairseek.core.text import plural
from pairseek.core.types import JSON, FloatArray
from pairseek.defaults import default_prior
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.model.items import Items
from pairseek.model.responses import Logistic
from pairseek.population.choices import Choices
from pairseek.population.data import Data, RatingData, data_of
from pairseek.population.fit import FitState, Start, fit

# Lower bound of k as a share of the default k. A smaller estimate means that people prefer extremes and that no ideal
# point exists.
_LEAST = 0.05


@dataclass(frozen=True)
class FitOptions:
    """Parameters that a population fit estimates in addition to the distribution of people.

    Parameters
    ----------
    dimension
        Number of dimensions in which to learn the items' coordinates. None means that the coordinates are given.
    appeal
        Whether to learn an appeal for each item.
    rescale
        Whether to learn a factor for each given coordinate. The factors are not identifiable together with a free
        appeal, so `rescale` requires ``appeal=False``.
    curvature
        Whether to add the coordinate |x|²/2 of the centred items, along which some people prefer extremes and others
        the middle.
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
                    "rescale and curvature apply to given coordinates only: leave them out when dimension is given"
                )
            if not self.appeal:
                raise InvalidParameter(
                    "appeal is False with a dimension: learned coordinates require an appeal; leave out appeal=False"
                )
        if self.rescale and self.appeal:
            raise InvalidParameter(
                "rescale is True with appeal=True: the factors are not identifiable together with an appeal; use one "
                "of the two"
            )

    def record(self) -> JSON:
        """Return the options as JSON data."""
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
class DefaultModel:
    """Default model of a search without a population.

    Attributes
    ----------
    k
        Noise constant under constant noise.
    mean, covariance
        Moments of the default prior.
    """

    k: float
    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, items: Items) -> DefaultModel:
        """Return the default model of these items."""
        mean, covariance = default_prior(items).moments(items.d)
        spread = float(np.sqrt(np.trace(covariance) / items.d))
        return cls(Logistic(noise="constant").for_spread(spread).constant, mean, covariance)


def coordinates_of(items: Items, learned: FitOptions) -> FloatArray:
    """Return the given coordinates, with the curvature coordinate appended if the options include it."""
    points = np.asarray(items.coordinates)
    if not learned.curvature:
        return points
    centred = points - points.mean(axis=0)
    # Dividing by the root mean square gives the curvature the unit of the coordinates.
    unit = np.sqrt(np.mean(centred**2))
    return np.column_stack([points, np.sum(centred**2, axis=1) / (2.0 * unit)])


def start_of(data: Data | RatingData, learned: FitOptions, items: Items | None) -> Start:
    """Return the initial values of a fit, which are also the centres of its hyperpriors."""
    if items is None:
        assert learned.dimension is not None
        zero = np.zeros(data.n)
        factors = data.first_factors(learned.dimension)
        return Start(None, zero, np.full(data.n, np.nan), factors, np.eye(learned.dimension), free=True)
    plain = DefaultModel.of(items)
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
    # The prior allows k to differ by a few multiples of its default, and the people's mean by a few of their standard
    # deviations. The coefficient of the items' own appeal is fixed to 1.
    looseness = np.concatenate([3.0 * deviation, np.full(squares.shape[1], 3.0 * plain.k), [1e-6]])
    return Start(basis, centre, looseness, factors, spread, free=False)


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Parameters of a search that a fit implies.

    Attributes
    ----------
    coordinates, appeal
        (n, d) coordinates and (n,) appeals of the items.
    k
        Noise constant under constant noise.
    mean, covariance
        (d,) mean and (d, d) covariance of the user points.
    """

    coordinates: FloatArray
    appeal: FloatArray
    k: float
    mean: FloatArray
    covariance: FloatArray


def fitted_model(start: Start, state: FitState, learned: FitOptions, items: Items | None) -> FittedModel:
    """Convert a fit into the parameters of a search, and fix the gauge.

    Choices identify the differences of base = appeal - k|x|² + 2k x·m and the covariance of utilities V S V'. Many
    combinations of k, m and appeal are equivalent. The gauge is: the given coordinates, or, if they are learned,
    principal axes with mean zero and the identity as the people's covariance; the k at which people and items have
    equal variance, tr cov(people) = tr cov(items); the m at which appeal is uncorrelated with every coordinate; and an
    appeal of mean zero. Without a free appeal, k and m are the values at which the appeal vanishes.
    """
    base = start.base(state.coefficients)
    factors, spread = state.factors, state.spread
    d = factors.shape[1]
    if items is None:
        points = factors - factors.mean(axis=0)
        # The people's covariance is the identity: choose the k at which the items, V = 2k x, have the same variance.
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
    """Compute k and the factors from the coefficients of |x|²; the residual becomes the appeal."""
    least = _LEAST * DefaultModel.of(items).k
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
    # Set rounding errors to zero.
    appeal[np.abs(appeal) < 1e-9 * max(1.0, float(np.abs(base).max()))] = 0.0
    return FittedModel(points, appeal, k, mean, spread / (4.0 * k**2))


def _penalty(choices: Choices, start: Start) -> float:
    """Return the penalty on the gain in log evidence over random answers, in nats.

    Each parameter costs (1 + log m)/2 nats, where m is the number of people who inform it. This is the BIC penalty with
    two changes: only the people who compared an item inform its parameters, and the additional 1/2 corrects for the
    expected gain by chance in small samples.
    """
    d, n = start.factors.shape[1], len(choices.ids)
    sides = np.concatenate([choices.winner, choices.loser]) + n * np.tile(choices.person, 2)
    tellers = np.bincount(np.unique(sides) % n, minlength=n)
    of_items = (start.basis is None) + d * start.free
    of_people = (0 if start.basis is None else start.coefficients.size) + (0 if start.free else d * (d + 1) / 2)
    own = np.sum(1.0 + np.log(tellers[tellers > 0]))
    return 0.5 * float(of_items * own + of_people * (1.0 + np.log(len(choices.people))))


def fit_model(
    choices: Choices,
    items: Items | None,
    learned: FitOptions,
    *,
    people: FloatArray | None = None,
    state: FitState | None = None,
    rounds: int = 300,
    progress: Callable[[str], None] | None = None,
) -> tuple[FittedModel, FitState, str | None]:
    """Fit a population model, and fall back to the default model if the choices are uninformative.

    Parameters
    ----------
    choices, items, learned
        The choices, the items with given coordinates, and the options of the fit.
    people
        (people,) weight of each person. None gives everybody the weight 1.
    state
        A fit to nearly the same choices that serves as a warm start.
    rounds
        Maximum number of EM iterations.
    progress
        Called with one line of text after each iteration.

    Returns
    -------
    tuple
        The parameters of a search, the state of the fit, and a note if the choices are uninformative.
    """
    data = data_of(choices)
    start = start_of(data, learned, items)
    state = fit(data, start, people=people, state=state, rounds=rounds, progress=progress)
    gain = state.objective - float(data.random_likelihood() @ (np.ones(data.people) if people is None else people))
    if gain > _penalty(choices, start):
        return fitted_model(start, state, learned, items), state, None
    if items is None:
        raise InvalidChoices(
            f"the choices of {len(choices.people)} people are no more informative than random answers: coordinates "
            f"cannot be learned from them; give more choices, or items with coordinates"
        )
    plain, points = DefaultModel.of(items), coordinates_of(items, learned)
    covariance = np.diag(np.full(points.shape[1], np.trace(plain.covariance) / items.d))
    covariance[: items.d, : items.d] = plain.covariance
    mean = np.append(plain.mean, np.zeros(points.shape[1] - items.d))
    # Cancel the curvature coordinate in the utilities: the data give no evidence of curvature.
    appeal = np.asarray(items.appeal) + plain.k * np.sum(points[:, items.d :] ** 2, axis=1)
    note = (
        f"the choices of {len(choices.people)} people are no more informative than random answers: nothing was learned "
        f"from them"
    )
    return FittedModel(points, appeal, plain.k, mean, covariance), state, note
