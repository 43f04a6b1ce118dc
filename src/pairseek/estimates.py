"""Results of a search: the estimate of the user point, reliability, and recommended items."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import scipy

from pairseek.core import notebook
from pairseek.core.text import plural
from pairseek.core.types import Belief, FloatArray, IntArray, ItemId, Residuals
from pairseek.core.validation import is_number, whole
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.responses import Response
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
_CHUNK = 64
_FEW = 2000
# Items whose utility must be so many deviations above its mean to be the best are left out: a probability of 1e-5.
_UNLIKELY = 4.27
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
class Estimate:
    """Estimate of the user point with its uncertainty.

    Attributes
    ----------
    point
        (d,) the posterior mean, or a procedure's own estimate.
    covariance
        (d, d) posterior covariance.
    belief
        The belief that the estimate summarizes.
    note
        A remark of a procedure on its own estimate, for example that the answers contradict each other.
    reliability
        Inferred reliability; None where k is known and there are no lapses.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), rng=7)
    >>> estimate = search.estimate()
    >>> estimate.point.shape, estimate.credible_radius(0.5) < estimate.credible_radius(0.95)
    ((3,), True)
    """

    point: FloatArray
    covariance: FloatArray
    belief: Belief
    note: str | None = None
    reliability: ReliabilityEstimate | None = None

    def credible_radius(self, level: float = 0.95) -> float:
        """Return the radius of the ball around the point that contains this share of the posterior."""
        if not (is_number(level) and 0 < level < 1):
            raise InvalidParameter(f"the level of a credible radius is {level!r}: give a share between 0 and 1")
        distances = np.linalg.norm(self.belief.samples - self.point, axis=1)
        order = np.argsort(distances, kind="stable")
        mass = np.cumsum(self.belief.weights[order])
        return float(distances[order[min(np.searchsorted(mass, level * mass[-1]), len(order) - 1)]])

    def _repr_html_(self) -> str:
        return estimate_panel(self)


def estimate_panel(estimate: Estimate) -> str:
    """Return the representation of an estimate: the point, and the samples of the belief in two dimensions."""
    point, deviation = estimate.point, np.sqrt(np.diag(estimate.covariance))
    rows = [(f"x{i}", f"{x:.3g} ± {s:.2g}") for i, (x, s) in enumerate(zip(point, deviation, strict=True))]
    drawing, note = notebook.Html(""), estimate.note or ""
    if len(point) > 1:
        centre, axes, share = notebook.plane_of(estimate.belief.samples)
        mean = (point - centre) @ axes
        drawing = notebook.plane_map(
            (estimate.belief.samples - centre) @ axes,
            words="Samples of the posterior, and the region that contains the point with a probability of 95 %",
            point=mean,
            outline=notebook.ellipse_of(mean, axes.T @ estimate.covariance @ axes),
        )
        shown = f"The map shows the two widest axes of {len(point)}: {share:.0%} of the variance."
        note = " ".join(filter(None, (note, shown if len(point) > 2 else "")))
    found = estimate.reliability
    further = [("answers are", found.word), ("k", found.k.median), ("lapse", found.lapse.median)] if found else []
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


def recommendations(
    items: Items, estimate: Estimate, response: Response, count: int, *, by_utility: bool = False
) -> Recommendations:
    """Return the items most likely to be the best, equally likely ones by expected utility.

    With `by_utility` or residual utilities, the items of highest expected utility.
    """
    count = whole(count, "the count of recommend")
    belief = estimate.belief
    probability = best_probabilities(items, belief, response)
    utility = expected_utilities(items, belief, response)
    distance = np.linalg.norm(items.coordinates - estimate.point, axis=1)
    by_utility = by_utility or belief.residuals is not None
    keys = (distance, -probability, -utility) if by_utility else (distance, -utility, -probability)
    order = np.lexsort(keys)[:count]
    found = (
        Recommendation(items.ids[i], items.labels[i], float(probability[i]), float(utility[i]), float(distance[i]))
        for i in order.tolist()
    )
    return Recommendations(found, items)
