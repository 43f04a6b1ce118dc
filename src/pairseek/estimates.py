"""Results of a search: the estimate of the user point, reliability, and recommended items."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import scipy
from scipy.special import log_ndtr

from pairseek.core import notebook
from pairseek.core.lazy import cached_property
from pairseek.core.maps import map_plane
from pairseek.core.text import plural
from pairseek.core.types import Belief, FloatArray, IntArray, ItemId, Residuals
from pairseek.core.validation import is_number, whole
from pairseek.errors import InvalidParameter
from pairseek.model.curvature import CurvedUtility
from pairseek.model.items import Items
from pairseek.model.responses import Logistic, Response
from pairseek.numerics.balls import radius_of_share
from pairseek.numerics.distances import squared_distances
from pairseek.numerics.jit import read_only
from pairseek.strategies import item_utilities
from pairseek.strategies.features import residual_unit


@dataclass(frozen=True, slots=True)
class Interval:
    """Posterior median and 95 % credible interval of a number."""

    median: float
    low: float
    high: float


Manner: TypeAlias = Literal["consistent", "noisy", "random"]
# Below this k an item's appeal outweighs any distance, and the quotient of the two would overflow.
_LEAST_K = 1e-100
# In more dimensions a tree looks at nearly every item, and a product of matrices does so faster.
_MOST_OF_A_TREE = 8
# With residual utilities: samples that are used, how many of them at a time, and items whose draws stay in memory.
_SAMPLES = 1024
_RADIUS_POINTS = 1024
_CHUNK = 64
_FEW = 2000
# Items whose utility must be so many deviations above its mean to be the best are left out: a probability of 1e-5.
_UNLIKELY = 4.27
# Diverse lists: the least share of a distance, and the items among which `count` are chosen.
_LEAST_SHARE, _MANY_TIMES = 0.01, 20
# Probabilities of being best with residual utilities: items that are all counted (and a sample as large of the
# others), samples times items, the most samples, bins of utilities, and a grid of the best utility, both in deviations
# of a residual utility.
_COUNTED, _WORK, _MOST_SAMPLES = 1024, 1 << 17, 256
# Allowed items up to which the probabilities of all are computed, to divide by their sum.
_SUMMED = 8
_BIN, _BINS, _STEP = 0.125, 128, 0.125
_GRID = np.arange(-4.0, 7.0, _STEP)
CONSISTENT, RANDOM = 0.8, 0.6
"""Bounds on `agreement`: answers are consistent from the first bound on, and random below the second."""


@dataclass(frozen=True, slots=True)
class ReliabilityEstimate:
    """Inferred reliability of a person's answers.

    Attributes
    ----------
    k
        Noise constant.
    lapse
        Share of answers given at random.
    agreement
        Share of answers that follow the person's own taste, for questions whose plane is one standard deviation of
        the prior away from the person: lapse/2 + (1 - lapse) f(z). It is 0.5 for random answers, and 0.88 for the
        default response of a search.
    word
        The likeliest of consistent (`agreement` of 0.8 or more), noisy, and random (below 0.6).
    """

    k: Interval
    lapse: Interval
    agreement: Interval
    word: Manner


@dataclass(frozen=True, eq=False)
class IdealPoint:
    """The point at which a person's utility is highest.

    For the user point w, the curvature c and the prior's mean m it is m + (w - m)/c, if c is above 0. Otherwise there
    is none: the utility grows without bound.

    Attributes
    ----------
    probability
        Posterior probability that the person has an ideal point: that c is above 0.
    point
        (d,) the point of highest expected utility, which has the posterior means of w and c in place of w and c. None
        if the mean of c is not above 0: the expected utility then has no maximum.
    low, high
        (d,) ends of the 95 % credible interval of each coordinate, given that the person has an ideal point. None where
        `point` is None.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), rng=7)
    >>> ideal = search.estimate().ideal
    >>> 0 < ideal.probability < 1, ideal.point.shape
    (True, (3,))
    >>> bool((ideal.low < ideal.high).all())
    True
    """

    probability: float
    point: FloatArray | None
    low: FloatArray | None
    high: FloatArray | None


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimate of the user point with its uncertainty.

    Attributes
    ----------
    point
        (d,) the posterior mean, or a procedure's own estimate.
    covariance
        (d, d) posterior covariance.
    belief
        The belief that the estimate summarizes. Where the curvature is unknown, it has one more dimension, which
        `curvature` and `ideal` translate.
    note
        A remark of a procedure on its own estimate, for example that the answers contradict each other.
    reliability
        Inferred reliability; None where k is known and there are no lapses.
    utility
        Shape of the person's utility, from which `curvature` and `ideal` follow; None for items without coordinates.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), rng=7)
    >>> estimate = search.estimate()
    >>> estimate.point.shape, estimate.credible_radius(0.5) < estimate.credible_radius(0.95)
    ((3,), True)
    >>> estimate.curvature.low < 0 < estimate.curvature.high
    True
    >>> estimate.ideal.point.shape, 0 < estimate.ideal.probability < 1
    ((3,), True)
    """

    point: FloatArray
    covariance: FloatArray
    belief: Belief
    note: str | None = None
    reliability: ReliabilityEstimate | None = None
    utility: CurvedUtility | None = field(default=None, repr=False)

    @cached_property
    def curvature(self) -> Interval | None:
        """Curvature of the person's utility: 1 for the distance from an ideal point, 0 for a linear utility.

        The posterior `median`, with the ends `low` and `high` of the 95 % credible interval; all three are the number
        that was given, if one was. None for items without coordinates.
        """
        if self.utility is None:
            return None
        if self.utility.given is not None:
            return Interval(self.utility.given, self.utility.given, self.utility.given)
        return _interval(self.utility.curvatures(self.belief.samples), self.belief.weights)

    @cached_property
    def ideal(self) -> IdealPoint | None:
        """The point at which the person's utility is highest, if there is one; None for items without coordinates.

        It follows from the belief, also where a procedure has an estimate of its own. `point` is the user point, which
        is the ideal for a curvature of 1 only.
        """
        if self.utility is None:
            return None
        mean, samples, weights = self.belief.mean[None], self.belief.samples, self.belief.weights
        curved = self.utility.curvatures(samples) > 0.0
        probability = min(float(np.sum(weights[curved]) / np.sum(weights)), 1.0)
        if not (self.utility.curvatures(mean)[0] > 0.0 and np.any(curved)):
            return IdealPoint(probability, None, None, None)
        ideals = self.utility.ideals(samples[curved])
        ends = [_interval(column, weights[curved]) for column in ideals.T]
        low, high = (np.array([getattr(one, end) for one in ends]) for end in ("low", "high"))
        return IdealPoint(probability, self.utility.ideals(mean)[0], low, high)

    def credible_radius(self, level: float = 0.95) -> float:
        """Return the radius of the ball around the point that contains this share of the posterior, to about 2 %."""
        if not (is_number(level) and 0 < level < 1):
            raise InvalidParameter(f"the level of a credible radius is {level!r}: give a share between 0 and 1")
        belief = self.belief
        # With residual utilities samples are points of Gaussians, of which some thousands are too many for one number.
        points, weights = (belief.samples, belief.weights) if belief.residuals is None else belief.draw(_RADIUS_POINTS)
        points = read_only(np.ascontiguousarray(points))
        return float(radius_of_share(points, read_only(weights), read_only(self.point), float(level)))

    def _repr_html_(self) -> str:
        return estimate_panel(self)


def estimate_panel(estimate: Estimate) -> str:
    """Return the representation of an estimate: the point, and the samples of the belief in two dimensions."""
    point, deviation = estimate.point, np.sqrt(np.diag(estimate.covariance))
    rows = [(f"x{i}", f"{x:.3g} ± {s:.2g}") for i, (x, s) in enumerate(zip(point, deviation, strict=True))]
    drawing, note = notebook.Html(""), estimate.note or ""
    if len(point) > 1:
        # Where the curvature is unknown, samples have one more coordinate, which is no place on a map.
        samples = estimate.belief.samples[:, : len(point)]
        plane = map_plane(samples)
        mean, outline = plane.region(point, estimate.covariance, notebook.LEVEL)
        drawing = notebook.plane_map(
            plane.project(samples),
            words="Samples of the posterior, and the region that contains the point with a probability of 95 %",
            point=mean,
            outline=outline,
        )
        shown = f"The map shows the two widest axes of {len(point)}: {plane.share:.0%} of the variance."
        note = " ".join(filter(None, (note, shown if len(point) > 2 else "")))
    found = estimate.reliability
    further: list[tuple[str, object]] = []
    curvature = estimate.curvature
    if curvature is not None and curvature.low < curvature.high:
        further = [("curvature", f"{curvature.median:.2g} ({curvature.low:.2g} to {curvature.high:.2g})")]
    if found is not None:
        further += [("answers are", found.word), ("k", found.k.median), ("lapse", found.lapse.median)]
    if len(point):
        further.insert(0, ("95 % radius", estimate.credible_radius()))
    title = f"Estimate in {plural(len(point), 'dimension')}"
    values = notebook.table(["coordinate", "mean ± deviation"], rows, most=8) if rows else ""
    return notebook.panel(title, drawing, values, notebook.facts(further) if further else "", note=note)


def reliability_estimate(belief: Belief, response: Response, spread: float) -> ReliabilityEstimate | None:
    """Return the reliability of a person, for a prior with this standard deviation along a coordinate."""
    known = belief.reliability
    if known is None:
        return None
    try:
        usual = dataclasses.replace(response, k=None, lapse=0.0).for_spread(spread).constant
    except InvalidParameter:  # decaying noise at a scale without a default k
        usual = response.reference
    ks, lapses, weights = known.distribution()
    f = response.link_function(response.typical * ks / usual)
    agreement = np.asarray(0.5 * lapses + (1.0 - lapses) * f)
    likely = [
        float(np.sum(weights[within]))
        for within in (agreement >= CONSISTENT, (agreement >= RANDOM) & (agreement < CONSISTENT), agreement < RANDOM)
    ]
    k, lapse, agrees = (_interval(values, weights) for values in (ks, lapses, agreement))
    return ReliabilityEstimate(k, lapse, agrees, get_args(Manner)[int(np.argmax(likely))])


def _interval(values: FloatArray, weights: FloatArray) -> Interval:
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weights[order])
    places = np.searchsorted(mass, np.array([0.5, 0.025, 0.975]) * mass[-1])
    return Interval(*values[order[np.minimum(places, len(order) - 1)]].tolist())


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A recommended item.

    Attributes
    ----------
    id, label
        The item.
    probability
        Posterior probability that it is the best of all items.
    expected_utility
        E[appeal - k|w - x|² + ε], with the k of a reliability of 1, which scales all utilities alike, and the residual
        utility ε where the response has any.
    distance
        From the estimated point.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.Items([[0.0], [1.0], [2.0]], ids=["a", "b", "c"]), rng=7)
    >>> best = search.recommend(1)[0]
    >>> best.id in "abc", 0 <= best.probability <= 1
    (True, True)
    """

    id: ItemId
    label: str
    probability: float
    expected_utility: float
    distance: float

    def _repr_html_(self) -> str:
        rows = [("id", self.id), ("best with probability", notebook.bar(self.probability))]
        more = [("expected utility", self.expected_utility), ("distance", self.distance)]
        return notebook.panel(self.label, notebook.facts([*rows, *more]))


class Recommendations(list[Recommendation]):
    """A list of recommended items, best first, which a notebook shows as a table with a map."""

    def __init__(self, found: Iterable[Recommendation] = (), items: Items | None = None) -> None:
        super().__init__(found)
        self._items = items

    def _repr_html_(self) -> str:
        title = f"{len(self)} recommended items" if len(self) != 1 else "1 recommended item"
        if self._items is None:
            return notebook.panel(title, *(one._repr_html_() for one in self))
        rows = [self._items.index(one.id) for one in self]
        drawing, note = notebook.items_map(self._items, {row: self._items.labels[row] for row in rows})
        return notebook.panel(title, recommended_rows(self._items, self), drawing, note=note)


def recommended_rows(items: Items, found: Sequence[Recommendation]) -> notebook.Html:
    """Return a table of recommended items."""
    chances = [notebook.bar(one.probability) for one in found]
    return notebook.item_rows(items, [items.index(one.id) for one in found], {"best with probability": chances})


@lru_cache(maxsize=4)
def _index(items: Items, k: float) -> Any:
    # k|w - x|² - appeal = k|(w, 0) - (x, h)|² - constant, with h² = (top appeal - appeal)/k: appeal is an additional
    # coordinate, and the best item the nearest neighbour. With k = 0 that is the nearest of those of highest appeal.
    if not np.ptp(items.appeal):
        return scipy.spatial.cKDTree(items.coordinates)
    height = np.sqrt((items.appeal.max() - items.appeal) / max(k, _LEAST_K))
    return scipy.spatial.cKDTree(np.column_stack([items.coordinates, height]))


def best_items(items: Items, points: FloatArray, response: Response) -> IntArray:
    """Return the (s,) rows of the item of highest utility appeal - k|w - x|² for each of (s, d) user points.

    It beats every other item more often than not, under every noise kind and for a person of any reliability.
    """
    tree = _index(items, response.reference)
    if tree.m > items.d:
        points = np.column_stack([points, np.zeros(len(points))])
    if tree.m <= _MOST_OF_A_TREE:
        return np.asarray(tree.query(points)[1], dtype=np.int64)
    places = np.asarray(tree.data)
    # From the middle, so that items far from zero keep their digits; heights are 0 for the highest appeal already.
    centre = np.zeros(tree.m)
    centre[: items.d] = items.coordinates.mean(axis=0)
    places = places - centre
    squares = np.einsum("nd,nd->n", places, places)
    out = np.empty(len(points), dtype=np.int64)
    for start in range(0, len(points), _CHUNK):
        some = slice(start, start + _CHUNK)
        out[some] = np.argmin(squares - 2.0 * (points[some] - centre) @ places.T, axis=1)
    return out


def best_probabilities(items: Items, belief: Belief, response: Response) -> FloatArray:
    """Return the (n,) posterior probability that each item is the best: the share of the samples that it is best for.

    A sample has a reliability of its own where that is inferred, but its best item depends on the point alone, and on
    residual utilities where the response has any.
    """
    if belief.residuals is not None:
        return _best_with_residuals(items, belief, belief.residuals, response)
    counts = np.bincount(best_items(items, belief.samples, response), weights=belief.weights, minlength=items.n)
    return np.asarray(counts, dtype=np.float64)


def expected_utilities(items: Items, belief: Belief, response: Response) -> FloatArray:
    """Return the (n,) expectations of appeal - k|w - x|² + ε."""
    utility = item_utilities.expected_utilities(items.coordinates, items.appeal, belief, response)
    return np.asarray(utility - response.reference * np.trace(belief.covariance))


def _best_with_residuals(items: Items, belief: Belief, found: Residuals, response: Response) -> FloatArray:
    """Return the (n,) probabilities of being best: samples of the point and of the residual utilities of all items.

    The difference of two utilities is linear in both, so its mean and variance are known. Items that exceed the item of
    highest expected utility with a probability below 1e-5 are left out of the samples.
    """
    n, unit, k = items.n, residual_unit(items.coordinates, response), response.reference
    mean = expected_utilities(items, belief, response)
    top = int(np.argmax(mean))
    shown = np.full(n, -1)
    shown[found.rows] = np.arange(len(found.rows))
    place, best = shown, shown[top]
    variance, cross, beside = np.full(n, found.deviation**2), np.zeros((n, items.d)), np.zeros(n)
    variance[found.rows], cross[found.rows] = np.diag(found.covariance), found.cross.T
    if best >= 0:
        beside[found.rows] = found.covariance[:, best]
    beside[top] = variance[top]
    normal = 2.0 * k * (items.coordinates - items.coordinates[top])
    spread = (
        np.einsum("nd,de,ne->n", normal, belief.covariance, normal)
        + unit**2 * (variance + variance[top] - 2.0 * beside)
        + 2.0 * unit * np.einsum("nd,nd->n", normal, cross - cross[top])
    )
    rows = np.flatnonzero(mean + _UNLIKELY * np.sqrt(np.maximum(spread, 0.0)) >= mean[top])
    some_rows = _some_samples(belief.weights)
    points, weights, drawn = belief.samples[some_rows], belief.weights[some_rows], found.samples[some_rows]
    if len(belief.weights) > 2 * _SAMPLES:
        weights = np.full(_SAMPLES, 1.0 / _SAMPLES)
    rng = np.random.default_rng([n, len(points)])
    # Of a few items, the draws are the same for every belief, and are made once.
    kept = _standard_normals(len(points), n) if n <= _FEW else None
    counts, known = np.zeros(n), np.flatnonzero(place[rows] >= 0)
    appeal, coordinates = items.appeal[rows], items.coordinates[rows]
    for start in range(0, len(points), _CHUNK):
        some = slice(start, start + _CHUNK)
        utility = rng.standard_normal((len(points[some]), len(rows))) if kept is None else kept[some][:, rows]
        utility *= unit * found.deviation
        utility[:, known] = unit * drawn[some][:, place[rows[known]]]
        utility += appeal - k * _squared_distances(points[some], coordinates)
        counts += np.bincount(rows[np.argmax(utility, axis=1)], weights=weights[some], minlength=n)
    return np.asarray(counts / np.sum(weights))


def _some_samples(weights: FloatArray) -> IntArray:
    """Return the rows of about 1024 samples.

    Those of one posterior come in an order that is spread evenly, so that the first of them suffice. Those of a mixture
    come one part after the other, and are resampled by their weights.
    """
    if len(weights) <= 2 * _SAMPLES:
        return np.arange(min(len(weights), _SAMPLES))
    places = (np.arange(_SAMPLES) + np.random.default_rng(0).random(_SAMPLES)) / _SAMPLES
    mass = np.cumsum(weights)
    return np.asarray(np.minimum(np.searchsorted(mass, places * mass[-1]), len(weights) - 1), dtype=np.int64)


@lru_cache(maxsize=2)
def _standard_normals(samples: int, n: int) -> FloatArray:
    draws = np.random.default_rng([n, samples]).standard_normal((samples, n))
    draws.flags.writeable = False
    return draws


def _squared_distances(points: FloatArray, others: FloatArray) -> FloatArray:
    """Return the (s, n) squared distances of (s, d) and (n, d) points, by one coordinate after the other."""
    square = np.zeros((len(points), len(others)))
    for i in range(points.shape[1]):
        square += (points[:, i, None] - others[:, i]) ** 2
    return square


@lru_cache(maxsize=4)
def typical_unit(items: Items, noise: str) -> float:
    """Return `residual_unit` of items under a noise kind, which takes a pass over all of them."""
    return residual_unit(items.coordinates, Logistic(1.0, noise))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Shelf:
    """Items that may be recommended, and how.

    Attributes
    ----------
    own
        The items as they were given.
    items
        The items as the model has them: see `Search.modelled_items`.
    belief
        The belief about the point, and about those of these items that were shown.
    response
        Response model with its typical k and lapse.
    unit
        Conversion of residual utilities to the unit of the utilities: see `residual_unit`.
    rows
        Ascending rows of the items that may be recommended; None for all.
    """

    own: Items
    items: Items
    belief: Belief
    response: Response
    unit: float
    rows: IntArray | None = None

    @property
    def allowed(self) -> int:
        """Number of items that may be recommended."""
        return self.items.n if self.rows is None else len(self.rows)

    def utilities(self) -> FloatArray:
        """Return the (n,) expectations of appeal - k|w - x|² + ε, -inf for items that may not be recommended."""
        belief, k = self.belief, self.response.reference
        square = squared_distances(self.items.coordinates, belief.mean)
        out = self.items.appeal - k * (square + np.trace(belief.covariance))
        if belief.residuals is not None:
            out[belief.residuals.rows] += self.unit * belief.residuals.mean
        if self.rows is not None:
            barred = np.ones(len(out), dtype=np.bool_)
            barred[self.rows] = False
            out[barred] = -np.inf
        return np.asarray(out)


def recommendations(
    shelf: Shelf, estimate: Estimate, count: int, *, by_utility: bool = False, diversity: float = 0.0
) -> Recommendations:
    """Return the items most likely to be the best, equally likely ones by expected utility.

    With `by_utility` or residual utilities, the items of highest expected utility. `diversity` is the least distance of
    two of them, as a share of the root mean square distance of two items; it is halved as often as too few are left.
    """
    count = whole(count, "the count of recommend")
    if not (is_number(diversity) and 0.0 <= diversity <= 1.0):
        raise InvalidParameter(f"diversity is {diversity!r}: give a share of a distance, from 0 to 1")
    items, belief, utility = shelf.own, shelf.belief, shelf.utilities()
    count = min(count, shelf.allowed)
    if belief.residuals is None and not by_utility:
        distance = np.linalg.norm(items.coordinates - estimate.point, axis=1)
        order = np.lexsort((distance, -utility, -_share_best(shelf)))[: shelf.allowed]
        highest = order
    else:
        pool = max(_MANY_TIMES * count, _COUNTED) if diversity else count
        highest = _highest(utility, min(shelf.allowed, max(pool, _COUNTED)))
        order = highest[:pool]
    order = _apart(items, order, count, diversity)
    if belief.residuals is None:
        chances = _share_best(shelf)[order]
    else:
        chances = _normalized_chances(shelf, utility, highest, order)
    distances = np.linalg.norm(items.coordinates[order] - estimate.point, axis=1)
    found = (
        Recommendation(items.ids[i], items.labels[i], chance, float(utility[i]), away)
        for i, chance, away in zip(order.tolist(), chances.tolist(), distances.tolist(), strict=True)
    )
    return Recommendations(found, items)


def _highest(utility: FloatArray, count: int) -> IntArray:
    """Return the rows of the highest utilities in descending order, equal ones in the order of the items."""
    cut = np.partition(utility, len(utility) - count)[len(utility) - count]
    rows = np.flatnonzero(utility >= cut)
    return np.asarray(rows[np.argsort(-utility[rows], kind="stable")][:count])


def _share_best(shelf: Shelf) -> FloatArray:
    """Return the (n,) probabilities of being the best of the items that may be recommended, without residuals."""
    items, allowed = shelf.items, shelf.allowed
    if allowed == items.n:
        return best_probabilities(items, shelf.belief, shelf.response)
    assert shelf.rows is not None
    out = np.zeros(items.n)
    if allowed == 1:
        out[shelf.rows] = 1.0
        return out
    part = items.subset(shelf.rows)
    out[shelf.rows] = np.bincount(
        best_items(part, shelf.belief.samples, shelf.response), weights=shelf.belief.weights, minlength=allowed
    )
    return out


def _apart(items: Items, order: IntArray, count: int, diversity: float) -> IntArray:
    """Return the first items of an order that are far enough from each other."""
    if not diversity or not items.d:
        return order[:count]
    typical = items.spread * np.sqrt(2.0)
    points = items.coordinates[order]
    while True:
        chosen: list[int] = []
        nearest = np.full(len(order), np.inf)
        while len(chosen) < count:
            free = np.flatnonzero(nearest >= diversity * typical)
            if not len(free):
                break
            chosen.append(int(free[0]))
            away = np.linalg.norm(points - points[chosen[-1]], axis=1)
            nearest = np.minimum(nearest, away)
            nearest[chosen] = -1.0
        if len(chosen) == count:
            return np.asarray(order[np.sort(chosen)])
        diversity = diversity / 2.0 if diversity > _LEAST_SHARE else 0.0


def _normalized_chances(shelf: Shelf, utility: FloatArray, highest: IntArray, wanted: IntArray) -> FloatArray:
    """Return `residual_chances`; of few items, or if all are wanted, their sum over all that are allowed is 1.

    The sum of the quadratures is 1 to about 1e-3.
    """
    if shelf.allowed > max(_SUMMED, len(wanted)):
        return residual_chances(shelf, utility, highest, wanted)
    every = np.arange(shelf.items.n) if shelf.rows is None else shelf.rows
    chances = residual_chances(shelf, utility, highest, every)
    return np.asarray(chances[np.searchsorted(every, wanted)] / np.sum(chances))


def residual_chances(shelf: Shelf, utility: FloatArray, highest: IntArray, wanted: IntArray) -> FloatArray:
    """Return the probabilities that the `wanted` items are the best of those that may be recommended.

    For each of some samples of the point and of the residual utilities of the items that were shown, the residual
    utilities of all others are independent, so that P(j is best) = ∫ φ(t; u_j, σ) Π_i Φ((t - u_i)/σ) dt, i ≠ j, over t
    above the best item that was shown. The logarithm of the product is a sum over a histogram of the u_i. Of many
    items, those of `highest` expected utility are all counted, and a sample of the others by its weight.
    """
    belief, items, k = shelf.belief, shelf.items, shelf.response.reference
    found = belief.residuals
    assert found is not None
    known = np.flatnonzero(np.isfinite(utility[found.rows]))
    rows, counts = _counted(shelf, np.union1d(highest, found.rows[known]))
    some, size = _some_samples(belief.weights), max(_WORK // len(rows), 32)
    # Samples of a mixture come one part after the other.
    size = min(size, _MOST_SAMPLES)
    some = some[:size] if len(belief.weights) <= 2 * _SAMPLES else some[:: _SAMPLES // size]
    weights = belief.weights[some] if len(belief.weights) <= 2 * _SAMPLES else np.ones(len(some))
    points, weights = belief.samples[some], weights / weights.sum()
    drawn = shelf.unit * found.samples[some][:, known]
    level = items.appeal[rows] - k * _squared_distances(points, items.coordinates[rows])
    shown = np.searchsorted(rows, found.rows[known])
    told = level[:, shown] + drawn
    place = np.searchsorted(rows, wanted)
    hidden = np.ones(len(rows), dtype=np.bool_)
    hidden[shown] = False
    sigma = shelf.unit * found.deviation
    best = told.max(axis=1, initial=-np.inf)
    if not hidden.any() or sigma <= 0.0:
        values = np.array(level)
        values[:, shown] = told
        first = np.argmax(values, axis=1)
        return np.asarray([weights[first == row].sum() for row in place])
    top = level[:, hidden].max(axis=1)
    log_below = _log_below(level[:, hidden], counts[hidden], top, sigma)
    out = np.empty(len(wanted))
    for index, row in enumerate(place.tolist()):
        if hidden[row]:
            z = (top - level[:, row])[:, None] / sigma + _GRID
            density = np.exp(log_below - log_ndtr(z) - 0.5 * z * z) / np.sqrt(2.0 * np.pi)
            above = np.clip(((top - best)[:, None] / sigma + _GRID) / _STEP + 0.5, 0.0, 1.0)
            chance = np.sum(density * above, axis=1) * _STEP
        else:
            own = level[:, row] + drawn[:, int(np.flatnonzero(shown == row)[0])]
            at = np.clip((own - top) / sigma, _GRID[0], _GRID[-1])
            spot = np.minimum(((at - _GRID[0]) / _STEP).astype(np.int64), len(_GRID) - 2)
            share = (at - _GRID[spot]) / _STEP
            each = np.arange(len(own))
            value = (1.0 - share) * log_below[each, spot] + share * log_below[each, spot + 1]
            chance = np.exp(value) * (own >= best)
        out[index] = weights @ chance
    return np.clip(out, 0.0, 1.0)


def _counted(shelf: Shelf, top: IntArray) -> tuple[IntArray, FloatArray]:
    """Return ascending rows that stand for all items that may be recommended, and how many each stands for."""
    if shelf.allowed <= len(top) + _COUNTED:
        rows = np.arange(shelf.items.n) if shelf.rows is None else shelf.rows
        return rows, np.ones(len(rows))
    # A grid over the rows: equal answers give equal numbers.
    places = ((np.arange(_COUNTED) + 0.618) * (shelf.allowed / _COUNTED)).astype(np.int64)
    others = np.setdiff1d(places if shelf.rows is None else shelf.rows[places], top)
    rows = np.union1d(top, others)
    counts = np.ones(len(rows))
    counts[np.searchsorted(rows, others)] = (shelf.allowed - len(top)) / max(len(others), 1)
    return rows, counts


def _log_below(level: FloatArray, counts: FloatArray, top: FloatArray, sigma: float) -> FloatArray:
    """Return (s, grid) log Π_i Φ((t - u_i)/σ) at t = top + σ grid, by a histogram of (s, n) utilities."""
    away = (top[:, None] - level) / (sigma * _BIN)
    samples, items = np.nonzero(away < _BINS - 1)
    away = away[samples, items]
    bins = away.astype(np.int64)
    # An item between two bins counts for both of them, so that their mean is where it is.
    share, keys, size = counts[items] * (away - bins), bins + _BINS * samples, len(level) * _BINS
    histogram = np.bincount(keys, counts[items] - share, size) + np.bincount(keys + 1, share, size)
    histogram = histogram.reshape(len(level), _BINS)
    # einsum, because the last digits of matrix products depend on the number of threads.
    return np.asarray(np.einsum("sb,bg->sg", histogram, _log_ndtr_table()))


@lru_cache(maxsize=1)
def _log_ndtr_table() -> FloatArray:
    return np.asarray(log_ndtr(np.arange(_BINS)[:, None] * _BIN + _GRID))
