"""Options of a population fit, and the conversion of a fit into the items, prior and k of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pairseek.core.text import plural
from pairseek.core.types import JSON, FloatArray
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.model.defaults import default_prior
from pairseek.model.items import Items
from pairseek.model.responses import Logistic
from pairseek.people.choices import Choices
from pairseek.people.population.data import PairData
from pairseek.people.population.fit import EM_TOLERANCE, LearningStep, data_of, fit, log_evidence
from pairseek.people.population.fit_state import FitState, Smoother, Start
from pairseek.people.population.predictive import MAX_TREND_ITEMS, PredictiveUtilities, predictive_utilities
from pairseek.people.population.rating_data import RatingData

# Lower bound on k, as a share of the default k. A smaller estimate means that people prefer extremes and have no ideal
# point.
_MIN_K_SHARE = 0.05
# Prior standard deviations of the people's mean and of k, in multiples of the default deviations of people and of the
# default k.
_PRIOR_DEVIATIONS = 3.0


@dataclass(frozen=True)
class FitOptions:
    """Parameters that a population fit estimates in addition to the distribution of people.

    Parameters
    ----------
    dimension
        Number of dimensions in which to learn the items' coordinates; with 0, items have only an appeal. None: the
        coordinates are given.
    appeal
        Whether to learn the appeal of each item.
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
            if isinstance(self.dimension, bool) or not isinstance(self.dimension, int) or self.dimension < 0:
                raise InvalidParameter(
                    f"dimension is {self.dimension!r}: give a whole number, at least 0", field="dimension"
                )
            if self.rescale or self.curvature:
                raise InvalidParameter(
                    "rescale and curvature apply only to given coordinates: leave them out when dimension is given"
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
        if self.dimension == 0:
            return "appeal only"
        if self.dimension is not None:
            return f"coordinates in {plural(self.dimension, 'dimension')}"
        return "given coordinates" + "".join(f", {name}" for name in parts)


@dataclass(frozen=True, eq=False)
class DefaultModel:
    """Model of a search without a population.

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
        """Return the default model for these items."""
        mean, covariance = default_prior(items).moments(items.d)
        spread = float(np.sqrt(np.trace(covariance) / items.d))
        return cls(Logistic(noise="constant").for_spread(spread).constant, mean, covariance)


def coordinates_of(items: Items, fit_options: FitOptions) -> FloatArray:
    """Return the given coordinates, with the curvature coordinate appended if the options include it."""
    points = np.asarray(items.coordinates)
    if not fit_options.curvature:
        return points
    centred = points - points.mean(axis=0)
    # Dividing by the root mean square gives the curvature the unit of the coordinates.
    unit = np.sqrt(np.mean(centred**2))
    return np.column_stack([points, np.sum(centred**2, axis=1) / (2.0 * unit)])


def start_of(data: PairData | RatingData, fit_options: FitOptions, items: Items | None) -> Start:
    """Return the initial values of a fit, which are also the centres of its hyperpriors."""
    if items is None:
        assert fit_options.dimension is not None
        zero = np.zeros(data.n)
        factors = data.first_factors(fit_options.dimension) if fit_options.dimension else np.zeros((data.n, 0))
        return Start(
            None, zero, np.full(data.n, np.nan), factors, np.eye(fit_options.dimension), estimates_factors=True
        )
    default_model = DefaultModel.of(items)
    points = np.asarray(items.coordinates)
    factors = coordinates_of(items, fit_options)
    spread = np.diag(
        np.append(np.zeros(items.d), 4.0 * default_model.k**2 * np.trace(default_model.covariance) / items.d)
    )
    spread = spread[: factors.shape[1], : factors.shape[1]]
    spread[: items.d, : items.d] = 4.0 * default_model.k**2 * default_model.covariance
    if fit_options.appeal and (isinstance(data, RatingData) or data.n > MAX_TREND_ITEMS):
        base = (
            2.0 * default_model.k * points @ default_model.mean
            - default_model.k * np.sum(points**2, axis=1)
            + items.appeal
        )
        return Start(None, base, np.full(data.n, np.nan), factors, spread, estimates_factors=False)
    squares = points**2 if fit_options.rescale else np.sum(points**2, axis=1, keepdims=True)
    if fit_options.appeal and fit_options.curvature:
        # |x|² is a linear combination of the coordinates, up to a constant; the appeal absorbs the rest.
        squares = squares[:, :0]
    linear = np.append(2.0 * default_model.k * default_model.mean, np.zeros(factors.shape[1] - items.d))
    centre = np.append(linear, np.full(squares.shape[1], -default_model.k))
    deviation = _PRIOR_DEVIATIONS * np.append(np.sqrt(np.diag(spread)), np.full(squares.shape[1], default_model.k))
    item_appeal = np.asarray(items.appeal)
    if not fit_options.appeal:
        # The items' own appeal has the fixed coefficient 1.
        basis = np.column_stack([factors, squares, item_appeal])
        return Start(
            basis, np.append(centre, 1.0), np.append(deviation, 1e-6), factors, spread, estimates_factors=False
        )
    if fit_options.curvature:
        item_appeal = item_appeal - default_model.k * np.sum(points**2, axis=1)
    # Each item deviates from the trend by an appeal of its own, whose standard deviation is estimated.
    basis = np.column_stack([factors, squares, np.eye(data.n)])
    deviation = np.append(deviation, np.full(data.n, np.nan))
    return Start(basis, np.append(centre, item_appeal), deviation, factors, spread, estimates_factors=False)


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Parameters of a search, converted from a fit.

    Attributes
    ----------
    coordinates, appeal
        (n, d) coordinates and (n,) appeals of the items.
    k
        Noise constant under constant noise.
    mean, covariance
        (d,) mean and (d, d) covariance of the user points.
    error
        (n,) standard errors of the items' utilities for a typical person; None if not estimated.
    """

    coordinates: FloatArray
    appeal: FloatArray
    k: float
    mean: FloatArray
    covariance: FloatArray
    error: FloatArray | None = None

    def scaled(self, factor: float) -> FittedModel:
        """Multiply all utilities by a factor."""
        error = None if self.error is None else factor * self.error
        return replace(self, appeal=factor * self.appeal, k=factor * self.k, error=error)

    def utilities(self, scale: float = 1.0) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the (n,) utilities for a person at the mean, the (n, d) factors, and the covariance of people."""
        points = self.coordinates
        factors = 2.0 * self.k * points
        base = factors @ self.mean - self.k * np.sum(points**2, axis=1) + self.appeal
        return scale * base, scale * factors, self.covariance


def fitted_model(
    utilities: PredictiveUtilities, state: FitState, fit_options: FitOptions, items: Items | None
) -> FittedModel:
    """Convert a fit into the parameters of a search, and fix the gauge.

    Choices identify the differences of base = appeal - k|x|² + 2k x·m and the covariance of utilities V S V'. Many
    combinations of k, m and appeal are equivalent. The gauge uses the given coordinates or, if they are learned,
    principal axes with mean zero and the identity as the people's covariance. It takes the k at which people and items
    have equal variance, tr cov(people) = tr cov(items), the m at which appeal is uncorrelated with every coordinate,
    and an appeal of mean zero. Without a free appeal, k and m are the values at which the appeal vanishes.
    """
    if items is None:
        base, factors = utilities.base, utilities.factors
        d = factors.shape[1]
        if not d:
            return FittedModel(factors, base - base.mean(), 1.0, np.zeros(0), np.zeros((0, 0)))
        points = factors - factors.mean(axis=0)
        # The people's covariance is the identity: choose the k at which the items, V = 2k x, have the same variance.
        k = 0.5 * float(np.sqrt(max(np.sum(points**2) / (len(points) * d), 1e-12)))
        return _without_trend(points / (2.0 * k), base, k, np.eye(d))
    if not fit_options.appeal:
        return _exact(utilities, state.coefficients, fit_options, items)
    points, spread = utilities.factors, utilities.spread
    k = _balanced_k(points, spread)
    return _without_trend(points, utilities.base, k, spread / (4.0 * k**2))


def _balanced_k(points: FloatArray, spread: FloatArray) -> float:
    """Return the k at which people and items have equal variance."""
    return 0.5 * float(np.sqrt(np.trace(spread) / np.var(points, axis=0).sum()))


def _without_trend(points: FloatArray, base: FloatArray, k: float, covariance: FloatArray) -> FittedModel:
    """Return the model whose mean m leaves an appeal uncorrelated with every coordinate."""
    square = np.sum(points**2, axis=1)
    centred = points - points.mean(axis=0)
    residual_utilities = base + k * square
    mean = np.linalg.lstsq(2.0 * k * centred, residual_utilities - residual_utilities.mean(), rcond=None)[0]
    appeal = residual_utilities - 2.0 * k * points @ mean
    return FittedModel(points, appeal - appeal.mean(), k, mean, covariance)


def _exact(
    utilities: PredictiveUtilities, coefficients: FloatArray, fit_options: FitOptions, items: Items
) -> FittedModel:
    """Compute k and the factors from the coefficients of |x|²; the residual becomes the appeal."""
    base, points, spread = utilities.base, utilities.factors, utilities.spread
    min_k = _MIN_K_SHARE * DefaultModel.of(items).k
    linear, quadratic = coefficients[: points.shape[1]], np.maximum(-coefficients[points.shape[1] : -1], min_k)
    k = float(quadratic.mean())
    if fit_options.rescale:
        factors = np.append(np.sqrt(quadratic / k), np.ones(points.shape[1] - items.d))
        points = points * factors
        spread = spread / np.outer(factors, factors)
        linear = linear / factors
    mean = linear / (2.0 * k)
    appeal = base - 2.0 * k * points @ mean + k * np.sum(points**2, axis=1)
    appeal = appeal - appeal.mean()
    # Set rounding errors to zero.
    appeal[np.abs(appeal) < 1e-9 * max(1.0, float(np.abs(base).max()))] = 0.0
    return FittedModel(points, appeal, k, mean, spread / (4.0 * k**2))


def fit_model(
    choices: Choices,
    items: Items | None,
    fit_options: FitOptions,
    *,
    people: FloatArray | None = None,
    state: FitState | None = None,
    rounds: int = 300,
    tolerance: float = EM_TOLERANCE,
    cautious: bool = True,
    progress: Callable[[LearningStep], None] | None = None,
    smoother: Smoother | None = None,
) -> tuple[FittedModel, FitState, str | None]:
    """Fit a population model.

    Parameters
    ----------
    choices, items, fit_options
        The choices, the items if their coordinates are given, and the options of the fit.
    people
        (people,) weight of each person. None gives everybody the weight 1.
    state
        A fit to nearly the same choices, as a warm start.
    rounds, tolerance
        Maximum number of EM iterations, and the improvement in nats per person below which they stop.
    cautious
        Whether the parameters describe a new person, including the uncertainty of the fit, or are the estimates
        themselves.
    progress
        Called after each iteration.
    smoother
        Regression of the items' parameters on features of the items, if their coordinates are learned.

    Returns
    -------
    tuple
        The parameters of a search, the state of the fit, and a note if the choices are uninformative.
    """
    data = data_of(choices)
    start = replace(start_of(data, fit_options, items), smoother=smoother)
    counts = np.ones(data.people) if people is None else people
    state = fit(data, start, people=people, state=state, rounds=rounds, tolerance=tolerance, progress=progress)
    utilities = (
        predictive_utilities(data, start, state, counts) if cautious else PredictiveUtilities.exact(start, state)
    )
    model = fitted_model(utilities, state, fit_options, items)
    model = replace(model, error=utilities.error)
    if log_evidence(data, start, state, counts) > float(counts @ data.random_likelihood()):
        return model, state, None
    finding = f"the choices of {len(choices.people)} people are no more informative than random answers"
    if items is None and fit_options.dimension:
        raise InvalidChoices(
            f"{finding}: coordinates cannot be learned from them; give more choices, or items with coordinates"
        )
    return (
        model,
        state,
        f"{finding}: the population knows little, and a search that starts from it trusts answers little",
    )
