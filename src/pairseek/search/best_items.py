"""Probability that an item is the best one for a person."""

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
from pairseek.numerics.jit import kernel
from pairseek.numerics.parallel import for_ranges
from pairseek.pairs.features import residual_unit

# Below this k an item's appeal outweighs any distance, and appeal / k could overflow.
_MIN_K = 1e-100
# In more dimensions a tree would visit nearly every item, so a matrix product is faster.
_MAX_TREE_DIMENSIONS = 8
# User points per matrix product.
_POINTS_PER_PRODUCT = 64
# With residual utilities, the number of samples times the number of items is about _SAMPLES_TIMES_ITEMS, and the number
# of samples stays within these limits.
_SAMPLES_TIMES_ITEMS = 1 << 18
_MIN_SAMPLES = 256
_MAX_SAMPLES = 1024
# Number of items of highest expected utility that are treated exactly; as many others represent the remaining items.
_MAX_EXACT_ITEMS = 1024
# Width of the bins of utilities, in standard deviations of a residual utility.
_BIN_WIDTH = 0.125
# Number of bins of utilities.
_BIN_COUNT = 96
# Samples whose histograms one thread computes at a time.
_SAMPLES_PER_CHUNK = 64
# Grid of the best utility, in standard deviations of a residual utility.
_GRID_STEP = 0.25
_GRID = np.arange(-4.0, 7.0, _GRID_STEP)


@dataclass(frozen=True, eq=False)
class RecommendationPool:
    """Items that may be recommended, and the belief about them.

    Attributes
    ----------
    given_items
        The items as given.
    items
        The items in the coordinates of the model: see `SearchConfiguration.modelled`.
    belief
        The belief about the user point, and about the residual utilities of the items shown so far.
    response
        Response model with typical values of k and lapse.
    unit
        Factor that converts residual utilities to the unit of the utilities: see `residual_unit`.
    rows
        Ascending rows of the items that may be recommended; None for all.
    """

    given_items: Items
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
        """(n,) expectations of appeal - k|w - x|² + ε; -inf for items that may not be recommended."""
        belief, k = self.belief, self.response.typical_k
        square = squared_distances(self.items.coordinates, belief.mean)
        out = self.items.appeal - k * (square + np.trace(belief.covariance))
        if belief.residuals is not None:
            out[belief.residuals.rows] += self.unit * belief.residuals.mean
        if self.rows is not None:
            is_excluded = np.ones(len(out), dtype=np.bool_)
            is_excluded[self.rows] = False
            out[is_excluded] = -np.inf
        return np.asarray(out)

    def highest(self, count: int) -> IntArray:
        """Return the rows of highest expected utility, in descending order; ties are in the order of the items."""
        utility, count = self.utilities, min(count, len(self.allowed))
        threshold = np.partition(utility, len(utility) - count)[len(utility) - count]
        rows = np.flatnonzero(utility >= threshold)
        return np.asarray(rows[np.argsort(-utility[rows], kind="stable")][:count])


@lru_cache(maxsize=4)
def cached_residual_unit(items: Items, noise: str) -> float:
    """Return the `residual_unit` of items under a noise kind; cached, because it takes a pass over all items."""
    return residual_unit(items.coordinates, Logistic(1.0, noise))  # type: ignore[arg-type]


def best_probabilities(pool: RecommendationPool, rows: IntArray) -> FloatArray:
    """Return the (m,) posterior probabilities that these items are the best of all that may be recommended.

    Without residual utilities the best item follows from the user point: an item's probability is the fraction of
    samples for which it is the best, whatever their reliability. Residual utilities are integrated out: see
    `_residual_probabilities`. The probabilities of all items sum to 1, within about 1 % if there are more than 2048
    items. An item's probability does not depend on which other items are requested.
    """
    if pool.belief.residuals is not None:
        return _residual_probabilities(pool, pool.belief.residuals, rows)
    allowed = pool.allowed
    if len(allowed) == 1:
        return np.ones(len(rows))
    items = pool.items if pool.rows is None else pool.items.subset(allowed)
    best = best_items(items, pool.belief.samples, pool.response)
    probabilities = np.bincount(best, weights=pool.belief.weights, minlength=items.n)
    return np.asarray(probabilities[np.searchsorted(allowed, rows)])


@lru_cache(maxsize=4)
def _nearest_item_tree(items: Items, k: float) -> Any:
    # k|w - x|² - appeal = k|(w, 0) - (x, h)|² - constant, with h² = (top appeal - appeal)/k. So appeal becomes an extra
    # coordinate, and the best item is the nearest neighbour. For k = 0 it is the nearest item of highest appeal.
    if not np.ptp(items.appeal):
        return scipy.spatial.cKDTree(items.coordinates)
    height = np.sqrt((items.appeal.max() - items.appeal) / max(k, _MIN_K))
    return scipy.spatial.cKDTree(np.column_stack([items.coordinates, height]))


def best_items(items: Items, points: FloatArray, response: Response) -> IntArray:
    """Return the (s,) rows of the items of highest utility appeal - k|w - x|² for (s, d) user points.

    A person at such a point prefers that item to any other more often than not, under every noise kind and at any
    reliability.
    """
    tree = _nearest_item_tree(items, response.typical_k)
    if tree.m > items.d:
        points = np.column_stack([points, np.zeros(len(points))])
    if tree.m <= _MAX_TREE_DIMENSIONS:
        return np.asarray(tree.query(points)[1], dtype=np.int64)
    coordinates = np.asarray(tree.data)
    # Centre the coordinates, so that items far from the origin keep their digits; the heights start at 0 already.
    centre = np.zeros(tree.m)
    centre[: items.d] = items.coordinates.mean(axis=0)
    coordinates = coordinates - centre
    squares = np.einsum("nd,nd->n", coordinates, coordinates)
    out = np.empty(len(points), dtype=np.int64)
    for start in range(0, len(points), _POINTS_PER_PRODUCT):
        part = slice(start, start + _POINTS_PER_PRODUCT)
        out[part] = np.argmin(squares - 2.0 * (points[part] - centre) @ coordinates.T, axis=1)
    return out


def _residual_probabilities(pool: RecommendationPool, residuals: Residuals, rows: IntArray) -> FloatArray:
    """Return the probabilities that items of these rows are the best, if utilities have residuals.

    Given a sample of the user point and of the residual utilities of the items shown so far, the residual utilities of
    the other, unseen items are independent. Let u_i be the utilities of the unseen items without their residuals. The
    highest utility among them is below t with probability F(t) = Π_i Φ((t - u_i)/σ). The density that item j has the
    highest utility, and that it equals t, is F(t) φ(z)/(σ Φ(z)) for z = (t - u_j)/σ. So the best item shown so far is
    the best of all with probability F(its utility); for an unseen item, this probability is the integral of its density
    above that utility. The result averages over samples.
    """
    shown = residuals.rows[np.isfinite(pool.utilities[residuals.rows])]
    candidates, counts = _representatives(pool, np.union1d(pool.highest(_MAX_EXACT_ITEMS), shown))
    size = min(max(_SAMPLES_TIMES_ITEMS // len(candidates), _MIN_SAMPLES), _MAX_SAMPLES)
    sample_rows, weights = _select_samples(pool.belief.weights, size)
    points = pool.belief.samples[sample_rows]
    utility = _utilities_without_residuals(pool, points, shown)
    utility += pool.unit * residuals.samples[np.ix_(sample_rows, np.isin(residuals.rows, shown))]
    best_shown = utility.max(axis=1, initial=-np.inf)
    probabilities, is_unseen = np.zeros(pool.items.n), np.isin(candidates, shown, invert=True)
    all_worse = np.ones(len(points))
    if np.any(is_unseen):
        unseen_rows = rows[np.isin(rows, shown, invert=True)]
        sigma = pool.unit * residuals.deviation
        top, histogram = _histograms(pool, points, candidates[is_unseen], counts[is_unseen], sigma * _BIN_WIDTH)
        unseen_items = _UnseenItems(top, histogram, best_shown, sigma)
        by_sample = weights[:, None] * unseen_items.probabilities(
            _utilities_without_residuals(pool, points, unseen_rows)
        )
        # Sum each item separately, so that its last digits do not depend on the other items requested.
        probabilities[unseen_rows] = np.ascontiguousarray(by_sample.T).sum(axis=1)
        all_worse = unseen_items.all_worse
    if len(shown):
        probabilities[shown] = np.bincount(utility.argmax(axis=1), weights * all_worse, len(shown))
    return probabilities[rows]


class _UnseenItems:
    """Items not shown so far, with independent residual utilities, compared with the best item shown.

    log F is a sum over a histogram of the utilities, and φ/Φ is tabulated for each bin. The integrals of a sample are
    scaled to sum to 1 - F(the best utility shown).

    Parameters
    ----------
    top, histogram
        (s,) highest utilities without residuals, and (s, bins) histograms of the distances below them.
    best_shown
        (s,) utility of the best item that was shown; -inf without any.
    sigma
        Standard deviation of a residual utility.

    Attributes
    ----------
    all_worse
        (s,) probability that all of these items are worse than the best item shown.
    """

    def __init__(self, top: FloatArray, histogram: FloatArray, best_shown: FloatArray, sigma: float) -> None:
        self._top, self._bin = top, sigma * _BIN_WIDTH
        log_below, ratio = _log_cdf_tables()
        # einsum, because the last digits of matrix products depend on the number of threads.
        log_f = np.einsum("sb,bg->sg", histogram, log_below)
        position = (best_shown - self._top) / sigma
        f = np.exp(_interpolate_cubic(log_f, (position - _GRID[0]) / _GRID_STEP))
        self.all_worse = np.where(position > _GRID[0], f, 0.0)
        above = np.clip((_GRID - position[:, None]) / _GRID_STEP + 0.5, 0.0, 1.0)
        self._by_bin = np.einsum("sg,bg->sb", np.exp(log_f) * above, ratio)
        total = np.einsum("sb,sb->s", histogram, self._by_bin)
        self._by_bin *= ((1.0 - self.all_worse) / np.maximum(total, 1e-300))[:, None]

    def probabilities(self, utility: FloatArray) -> FloatArray:
        """Return the (s, n) probabilities that items with these utilities are the best of all."""
        return _interpolate_linear(self._by_bin, (self._top[:, None] - utility) / self._bin)


def _interpolate_linear(table: FloatArray, positions: FloatArray) -> FloatArray:
    """Interpolate (s, m) tables linearly at (s, ...) fractional indices."""
    last_index = table.shape[1] - 1
    positions = np.clip(positions, 0.0, last_index)
    indices = np.minimum(positions.astype(np.int64), last_index - 1)
    share = positions - indices
    rows = np.arange(len(table)).reshape(-1, *[1] * (positions.ndim - 1))
    return np.asarray((1.0 - share) * table[rows, indices] + share * table[rows, indices + 1])


def _interpolate_cubic(table: FloatArray, positions: FloatArray) -> FloatArray:
    """Interpolate (s, m) tables at (s,) fractional indices by the cubic through the four nearest entries."""
    positions = np.clip(positions, 0.0, table.shape[1] - 1)
    indices = np.clip(positions.astype(np.int64), 1, table.shape[1] - 3)
    t = positions - indices
    before, here, after, two_after = (table[np.arange(len(table)), indices + i] for i in (-1, 0, 1, 2))
    return np.asarray(
        -before * t * (t - 1.0) * (t - 2.0) / 6.0
        + here * (t + 1.0) * (t - 1.0) * (t - 2.0) / 2.0
        - after * (t + 1.0) * t * (t - 2.0) / 2.0
        + two_after * (t + 1.0) * t * (t - 1.0) / 6.0
    )


def _utilities_without_residuals(pool: RecommendationPool, points: FloatArray, rows: IntArray) -> FloatArray:
    """Return the (s, m) utilities appeal - k|w - x|² of items for (s, d) user points."""
    square = np.zeros((len(points), len(rows)))
    difference = np.empty_like(square)
    # Add one coordinate at a time: an array with three axes would take d times the memory, and the digits of a matrix
    # product depend on the other items.
    for user_coordinate, item_coordinates in zip(points.T, pool.items.coordinates[rows].T, strict=True):
        np.subtract(user_coordinate[:, None], item_coordinates, out=difference)
        np.multiply(difference, difference, out=difference)
        square += difference
    return np.asarray(pool.items.appeal[rows] - pool.response.typical_k * square)


def _select_samples(weights: FloatArray, size: int) -> tuple[IntArray, FloatArray]:
    """Select samples of a belief: their rows and weights.

    The first samples of a single posterior are evenly spread, so they suffice. A mixture lists its samples component by
    component, so they are resampled by weight.
    """
    if len(weights) <= 2 * _MAX_SAMPLES:
        rows = np.arange(min(len(weights), size))
        return rows, weights[rows] / weights[rows].sum()
    quantiles = (np.arange(size) + np.random.default_rng(0).random(size)) / size
    mass = np.cumsum(weights)
    rows = np.minimum(np.searchsorted(mass, quantiles * mass[-1]), len(weights) - 1)
    return np.asarray(rows, dtype=np.int64), np.full(size, 1.0 / size)


def _representatives(pool: RecommendationPool, top: IntArray) -> tuple[IntArray, FloatArray]:
    """Return ascending rows that represent all items that may be recommended, and how many items each represents."""
    allowed = pool.allowed
    if len(allowed) <= len(top) + _MAX_EXACT_ITEMS:
        return allowed, np.ones(len(allowed))
    # A grid over the rows is deterministic: equal answers give equal numbers.
    indices = ((np.arange(_MAX_EXACT_ITEMS) + 0.618) * (len(allowed) / _MAX_EXACT_ITEMS)).astype(np.int64)
    others = np.setdiff1d(allowed[indices], top)
    rows = np.union1d(top, others)
    counts = np.ones(len(rows))
    counts[np.searchsorted(rows, others)] = (len(allowed) - len(top)) / max(len(others), 1)
    return rows, counts


def _histograms(
    pool: RecommendationPool, points: FloatArray, rows: IntArray, counts: FloatArray, width: float
) -> tuple[FloatArray, FloatArray]:
    """Return the (s,) highest utilities of items without residuals, and (s, bins) histograms of the distances below.

    An item between two bins is divided between them, which matches linear interpolation. Distant items are omitted.
    """
    top, histogram = np.empty(len(points)), np.zeros((len(points), _BIN_COUNT))
    columns = np.ascontiguousarray(pool.items.coordinates[rows].T)
    items = columns, pool.items.appeal[rows], counts
    for_ranges(
        _write_histograms,
        len(points),
        _SAMPLES_PER_CHUNK,
        points,
        items,
        pool.response.typical_k,
        width,
        top,
        histogram,
    )
    return top, histogram


@kernel
def _write_histograms(
    start: int,
    stop: int,
    points: FloatArray,
    items: tuple[FloatArray, FloatArray, FloatArray],
    k: float,
    width: float,
    top: FloatArray,
    histogram: FloatArray,
) -> None:
    columns, appeal, counts = items
    d, n = columns.shape
    utility = np.empty(n)
    for sample in range(start, stop):
        utility[:] = 0.0
        for h in range(d):
            coordinate = points[sample, h]
            for i in range(n):
                utility[i] += (coordinate - columns[h, i]) ** 2
        highest = -np.inf
        for i in range(n):
            utility[i] = appeal[i] - k * utility[i]
            highest = max(highest, utility[i])
        top[sample] = highest
        for i in range(n):
            position = (highest - utility[i]) / width
            if position < _BIN_COUNT - 1:
                lower = int(position)
                share = counts[i] * (position - lower)
                histogram[sample, lower] += counts[i] - share
                histogram[sample, lower + 1] += share


@lru_cache(maxsize=1)
def _log_cdf_tables() -> tuple[FloatArray, FloatArray]:
    """Return (bins, grid) tables of log Φ(z) and of φ(z)/Φ(z)."""
    z = np.arange(_BIN_COUNT)[:, None] * _BIN_WIDTH + _GRID
    below = log_ndtr(z)
    return below, np.exp(-0.5 * z * z - below) / np.sqrt(2.0 * np.pi)
