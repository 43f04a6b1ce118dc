"""The probability that an item is the best one for a person."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from scipy.special import log_ndtr

from pairseek.core.lazy import cached_property
from pairseek.core.types import Belief, FloatArray, IntArray, Residuals
from pairseek.model.items import Items
from pairseek.model.responses import Logistic, Response
from pairseek.numerics.distances import squared_distances
from pairseek.pairs.features import residual_unit

# Below this k an item's appeal outweighs any distance, and the quotient of the two would overflow.
_LEAST_K = 1e-100
# In more dimensions a tree looks at nearly every item, and a product of matrices does so faster.
_MOST_OF_A_TREE = 8
_CHUNK = 64
# With residual utilities: the least and the most samples of the belief, and samples times items between the two.
_FEWEST, _SAMPLES, _WORK = 256, 1024, 1 << 18
# Items of highest expected utility that are all counted, and the size of a sample that stands for all others.
_COUNTED = 1024
# Bins of utilities, and a grid of the best utility, both in deviations of a residual utility.
_BIN, _BINS, _STEP = 0.125, 96, 0.25
_GRID = np.arange(-4.0, 7.0, _STEP)


@dataclass(frozen=True, eq=False)
class RecommendationPool:
    """Items that may be recommended, and what is believed of them.

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
    def allowed(self) -> IntArray:
        """Ascending rows of the items that may be recommended."""
        return np.arange(self.items.n) if self.rows is None else self.rows

    @cached_property
    def utilities(self) -> FloatArray:
        """(n,) expectations of appeal - k|w - x|² + ε, -inf for items that may not be recommended."""
        belief, k = self.belief, self.response.typical_k
        square = squared_distances(self.items.coordinates, belief.mean)
        out = self.items.appeal - k * (square + np.trace(belief.covariance))
        if belief.residuals is not None:
            out[belief.residuals.rows] += self.unit * belief.residuals.mean
        if self.rows is not None:
            barred = np.ones(len(out), dtype=np.bool_)
            barred[self.rows] = False
            out[barred] = -np.inf
        return np.asarray(out)

    def highest(self, count: int) -> IntArray:
        """Return the rows of highest expected utility in descending order, equal ones in the order of the items."""
        utility, count = self.utilities, min(count, len(self.allowed))
        cut = np.partition(utility, len(utility) - count)[len(utility) - count]
        rows = np.flatnonzero(utility >= cut)
        return np.asarray(rows[np.argsort(-utility[rows], kind="stable")][:count])


@lru_cache(maxsize=4)
def typical_unit(items: Items, noise: str) -> float:
    """Return `residual_unit` of items under a noise kind, which takes a pass over all of them."""
    return residual_unit(items.coordinates, Logistic(1.0, noise))  # type: ignore[arg-type]


def best_probabilities(pool: RecommendationPool, rows: IntArray) -> FloatArray:
    """Return the (m,) posterior probabilities that items of these rows are the best of all that may be recommended.

    Without residual utilities the best item follows from the point: each item has the share of the samples for which it
    is the best, whatever their reliability. Residual utilities are integrated out: see `_residual_chances`. The
    probabilities of all items sum to 1, of more than 2048 to about 1 %. That of an item does not depend on what else is
    asked for.
    """
    if pool.belief.residuals is not None:
        return _residual_chances(pool, pool.belief.residuals, rows)
    allowed = pool.allowed
    if len(allowed) == 1:
        return np.ones(len(rows))
    items = pool.items if pool.rows is None else pool.items.subset(allowed)
    best = best_items(items, pool.belief.samples, pool.response)
    chances = np.bincount(best, weights=pool.belief.weights, minlength=items.n)
    return np.asarray(chances[np.searchsorted(allowed, rows)])


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
    tree = _index(items, response.typical_k)
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


def _residual_chances(pool: RecommendationPool, found: Residuals, wanted: IntArray) -> FloatArray:
    """Return the probabilities of being the best item where utilities have residuals.

    For each of some samples of the point and of the residual utilities of the items shown so far, the residual
    utilities of the other items are independent. These have utilities u_i before their residuals, and the best of them
    is below t with the probability F(t) = Π_i Φ((t - u_i)/σ); it is item j, at t, with the density F(t) φ(z)/(σ Φ(z)),
    z = (t - u_j)/σ. The best item shown so far is therefore the best of all with the probability F(its utility), and
    each other item with the integral of its density above that utility.
    """
    shown = found.rows[np.isfinite(pool.utilities[found.rows])]
    rows, counts = _counted(pool, np.union1d(pool.highest(_COUNTED), shown))
    some, weights = _some_samples(pool.belief.weights, min(max(_WORK // len(rows), _FEWEST), _SAMPLES))
    points = pool.belief.samples[some]
    told = _levels(pool, points, shown) + pool.unit * found.samples[np.ix_(some, np.isin(found.rows, shown))]
    rival = told.max(axis=1, initial=-np.inf)
    chances, others = np.zeros(pool.items.n), np.isin(rows, shown, invert=True)
    beaten = np.ones(len(points))
    if np.any(others):
        new = wanted[np.isin(wanted, shown, invert=True)]
        level = _levels(pool, points, rows[others])
        unmet = _Unmet(level, counts[others], rival, pool.unit * found.deviation)
        each = weights[:, None] * unmet.chances(_levels(pool, points, new))
        # Each item's sum by itself, so that its last digits do not depend on the other items asked for.
        chances[new] = np.ascontiguousarray(each.T).sum(axis=1)
        beaten = unmet.beaten
    if len(shown):
        chances[shown] = np.bincount(told.argmax(axis=1), weights * beaten, len(shown))
    return chances[wanted]


class _Unmet:
    """Items that were not shown, with independent residual utilities, against the best item that was.

    The log of F is a sum over a histogram of the utilities, and φ/Φ is tabulated by its bins. All integrals of a sample
    are scaled so that they sum to 1 - F(the best utility shown).

    Parameters
    ----------
    level, counts
        (s, n) utilities without residuals, and (n,) the number of items that each stands for.
    rival
        (s,) utility of the best item that was shown; -inf without any.
    sigma
        Standard deviation of a residual utility.

    Attributes
    ----------
    beaten
        (s,) probability that all of these items are worse than the rival.
    """

    def __init__(self, level: FloatArray, counts: FloatArray, rival: FloatArray, sigma: float) -> None:
        self._top, self._bin = level.max(axis=1), sigma * _BIN
        log_below, ratio = _tables()
        histogram = _histogram((self._top[:, None] - level) / self._bin, counts)
        # einsum, because the last digits of matrix products depend on the number of threads.
        log_f = np.einsum("sb,bg->sg", histogram, log_below)
        place = (rival - self._top) / sigma
        self.beaten = np.where(place > _GRID[0], np.exp(_smooth(log_f, (place - _GRID[0]) / _STEP)), 0.0)
        above = np.clip((_GRID - place[:, None]) / _STEP + 0.5, 0.0, 1.0)
        self._chances = np.einsum("sg,bg->sb", np.exp(log_f) * above, ratio)
        total = np.einsum("sb,sb->s", histogram, self._chances)
        self._chances *= ((1.0 - self.beaten) / np.maximum(total, 1e-300))[:, None]

    def chances(self, level: FloatArray) -> FloatArray:
        """Return the (s, n) probabilities that items with these utilities are the best of all."""
        return _interpolated(self._chances, (self._top[:, None] - level) / self._bin)


def _interpolated(table: FloatArray, places: FloatArray) -> FloatArray:
    """Return the values of (s, m) tables at (s, ...) places in steps, linear between them."""
    most = table.shape[1] - 1
    places = np.clip(places, 0.0, most)
    spots = np.minimum(places.astype(np.int64), most - 1)
    share = places - spots
    rows = np.arange(len(table)).reshape(-1, *[1] * (places.ndim - 1))
    return np.asarray((1.0 - share) * table[rows, spots] + share * table[rows, spots + 1])


def _smooth(table: FloatArray, places: FloatArray) -> FloatArray:
    """Return the values of (s, m) tables at (s,) places in steps, by the cubic through the four nearest entries."""
    places = np.clip(places, 0.0, table.shape[1] - 1)
    spots = np.clip(places.astype(np.int64), 1, table.shape[1] - 3)
    t = places - spots
    before, here, next_, last = (table[np.arange(len(table)), spots + i] for i in (-1, 0, 1, 2))
    return np.asarray(
        -before * t * (t - 1.0) * (t - 2.0) / 6.0
        + here * (t + 1.0) * (t - 1.0) * (t - 2.0) / 2.0
        - next_ * (t + 1.0) * t * (t - 2.0) / 2.0
        + last * (t + 1.0) * t * (t - 1.0) / 6.0
    )


def _levels(pool: RecommendationPool, points: FloatArray, rows: IntArray) -> FloatArray:
    """Return the (s, m) utilities appeal - k|w - x|² of some items for (s, d) points."""
    square = np.zeros((len(points), len(rows)))
    # One coordinate after the other: an array of three axes would take d times the memory.
    for own, others in zip(points.T, pool.items.coordinates[rows].T, strict=True):
        square += (own[:, None] - others) ** 2
    return np.asarray(pool.items.appeal[rows] - pool.response.typical_k * square)


def _some_samples(weights: FloatArray, size: int) -> tuple[IntArray, FloatArray]:
    """Return the rows of some samples, with their weights.

    Those of one posterior come in an order that is spread evenly, so that the first of them suffice. Those of a mixture
    come one part after the other, and are resampled by their weights.
    """
    if len(weights) <= 2 * _SAMPLES:
        rows = np.arange(min(len(weights), size))
        return rows, weights[rows] / weights[rows].sum()
    places = (np.arange(size) + np.random.default_rng(0).random(size)) / size
    mass = np.cumsum(weights)
    rows = np.minimum(np.searchsorted(mass, places * mass[-1]), len(weights) - 1)
    return np.asarray(rows, dtype=np.int64), np.full(size, 1.0 / size)


def _counted(pool: RecommendationPool, top: IntArray) -> tuple[IntArray, FloatArray]:
    """Return ascending rows that stand for all items that may be recommended, and how many each stands for."""
    allowed = pool.allowed
    if len(allowed) <= len(top) + _COUNTED:
        return allowed, np.ones(len(allowed))
    # A grid over the rows: equal answers give equal numbers.
    places = ((np.arange(_COUNTED) + 0.618) * (len(allowed) / _COUNTED)).astype(np.int64)
    others = np.setdiff1d(allowed[places], top)
    rows = np.union1d(top, others)
    counts = np.ones(len(rows))
    counts[np.searchsorted(rows, others)] = (len(allowed) - len(top)) / max(len(others), 1)
    return rows, counts


def _histogram(away: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the (s, bins) histograms of (s, n) distances below the highest utility, in bins; omit distant items.

    An item between two bins counts for both of them, as `_interpolated` reads it.
    """
    size = len(away) * _BINS
    samples, items = np.nonzero(away < _BINS - 1)
    away = away[samples, items]
    bins = away.astype(np.int64)
    share, keys = counts[items] * (away - bins), bins + _BINS * samples
    histogram = np.bincount(keys, counts[items] - share, size) + np.bincount(keys + 1, share, size)
    return np.asarray(histogram.reshape(-1, _BINS))


@lru_cache(maxsize=1)
def _tables() -> tuple[FloatArray, FloatArray]:
    """Return (bins, grid) tables of log Φ(z) and of φ(z)/Φ(z)."""
    z = np.arange(_BINS)[:, None] * _BIN + _GRID
    below = log_ndtr(z)
    return below, np.exp(-0.5 * z * z - below) / np.sqrt(2.0 * np.pi)
