"""Sketches of many items along the leading axes of a belief, from which good pairs are proposed.

The logit of a pair has a large standard deviation if its items differ along the directions in which the belief is
widest, and a mean near 0 if they have similar cost |x - μ|² - appeal/k. Both follow approximately from the items'
coordinates along the leading eigenvectors of Σ and the squared length of the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.covariances import principal_root
from pairseek.numerics.jit import read_only
from pairseek.numerics.pair_kernels import CONSTANT, steepest_length
from pairseek.numerics.parallel import for_ranges
from pairseek.numerics.tables import S_MAX
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.features import credits_of
from pairseek.pairs.sources.branch_and_bound.bounds import UtilityModel, steepness
from pairseek.pairs.sources.branch_and_bound.view import residual_variance, utility_model
from pairseek.pairs.sources.sketch_kernels import (
    KEPT_PAIRS,
    best_of_strata,
    multiply,
    scan_pairs,
    sketch_items,
    write_mean,
    write_value_at,
)
from pairseek.pairs.strategies.shape import UtilityShape

# Number of axes of a sketch: min(d, max(_MIN_AXES, _AXES_TIMES_DIMENSION // d)).
_MIN_AXES = 12
_AXES_TIMES_DIMENSION = 512
# Up to this many dimensions eigenvectors are exact; in more, the leading ones are approximated by subspace iteration.
_EXACT_DIMENSIONS = 64
# Number of subspace iterations.
_SUBSPACE_ITERATIONS = 12
# Rows of a matrix product computed by one thread at a time.
_ROWS_PER_PRODUCT = 64
# Half of the promising items come from strata of similar cost, so that they are partners for each other.
_STRATA = 32
# Items below this quantile of the potential occur in no good pair, and are left out of the strata.
_MIN_QUANTILE = 0.6
# Number of items from which strata are formed and the middle is computed.
_SUBSAMPLE = 1024
# Items sketched by one thread at a time.
_ITEMS_PER_CHUNK = 2048
# Rows of a piece of a scan over the pairs of promising items. The utility reached is not shared between pieces.
_ROWS_PER_PIECE = 256
# Approximate number of pairs of a piece of any other scan.
_PAIRS_PER_PIECE = 32_768


@dataclass(frozen=True, eq=False)
class Sketch:
    """Items along the leading axes of a belief.

    Attributes
    ----------
    rows
        (m,) rows of the items.
    columns
        (r + 2, m) coordinates along the r leading eigenvectors of Σ relative to the middle of the items, the squared
        length of the rest (tail), and the cost.
    magnitudes
        (3, m) potential (the standard deviation of the logit of an item and its mirror image), upper bound on the
        item's squared length in the metric of Σ, and its squared length, all relative to the middle.
    values
        (r + 2,) the leading eigenvalues, the mean of the others weighted by how far items vary along them, and the
        largest of the others.
    model
        The utility, in the form the branch-and-bound kernels take.
    residual_variance
        Variance that the residual utilities of two items not shown yet add to their logit.
    resting
        Sorted keys of resting pairs.
    total
        Number of items in the catalogue.
    """

    rows: IntArray
    columns: FloatArray
    magnitudes: FloatArray
    values: FloatArray
    model: UtilityModel
    residual_variance: float
    resting: IntArray
    total: int

    @classmethod
    def of(cls, context: SelectionContext, shape: UtilityShape, rows: IntArray) -> Sketch:
        """Sketch m items of a catalogue, in O(m d r)."""
        belief = context.belief
        axes, values = leading_axes(belief.covariance)
        r = axes.shape[1]
        credit = np.ascontiguousarray(credits_of(context.appeal[rows], context.response))
        columns, magnitudes = np.empty((r + 2, len(rows))), np.empty((3, len(rows)))
        variance = residual_variance(context.response)
        model = utility_model(context, shape, 0.0)
        points, middle = read_only(context.points), np.empty(context.points.shape[1])
        write_mean(points, rows, max(1, len(rows) // _SUBSAMPLE), middle)
        frame = (middle, np.array(belief.mean), axes, credit)
        noise = (model[1], model[2])
        for_ranges(sketch_items, len(rows), _ITEMS_PER_CHUNK, points, rows, frame, values, noise, columns, magnitudes)
        return cls(rows, columns, magnitudes, values, model, variance, context.resting.pairs, len(context.points))

    def best_pairs(self, items: int, improved: int) -> tuple[IntArray | None, int]:
        """Return the keys of the best pairs by the sketch (None if all rest) and the number of pairs scored."""
        promising = self._promising(min(items, len(self.rows)))
        utilities, keys = self._scan(promising, promising)
        scored = len(promising) * (len(promising) - 1) // 2
        if not len(keys):
            return None, scored
        pairs = np.stack(np.divmod(keys, self.total), axis=1)
        # Seek partners among all items for the items of the best pairs.
        best_items = np.searchsorted(self.rows, list(dict.fromkeys(pairs.ravel().tolist()))[:improved])
        threshold = float(utilities[-1]) if len(keys) == KEPT_PAIRS else -np.inf
        more_utilities, more_keys = self._scan(best_items, np.arange(len(self.rows)), threshold)
        utilities, keys = _best(np.append(utilities, more_utilities), np.append(keys, more_keys), KEPT_PAIRS)
        return keys, scored + len(best_items) * len(self.rows)

    def _promising(self, count: int) -> IntArray:
        """Return the sorted positions of the items whose mirror images would be good partners.

        An item and its mirror image in the middle differ by twice its offset. Half of the items have the highest
        potential of all, the other half the highest among items of similar cost.
        """
        potential, cost = self.magnitudes[0], self.columns[-1]
        chosen = np.zeros(len(cost), dtype=np.bool_)
        chosen[_highest(potential, count - count // 2)] = True
        edges = np.sort(cost[:: max(1, len(cost) // _SUBSAMPLE)])
        inside = edges[:: max(1, len(edges) // _STRATA)][1:]
        bounds = np.full(2 * _STRATA - 1, np.inf)
        bounds[: len(inside)] = inside[: len(bounds)]
        best = np.empty((len(bounds) + 1, count // (2 * _STRATA)), dtype=np.int64)
        subsample = potential[:: max(1, len(potential) // _SUBSAMPLE)]
        # An interpolated quantile, in a tenth of the time of `np.quantile`.
        position = _MIN_QUANTILE * (len(subsample) - 1)
        neighbours = int(position), min(int(position) + 1, len(subsample) - 1)
        low, high = np.partition(subsample, neighbours)[list(neighbours)]
        low += (position - int(position)) * (high - low)
        best_of_strata(potential, cost, float(low), bounds, best)
        chosen[best[best >= 0]] = True
        return np.flatnonzero(chosen)

    def _scan(self, first: IntArray, second: IntArray, threshold: float = -np.inf) -> tuple[FloatArray, IntArray]:
        """Return utilities and keys of the best pairs above `threshold` between two lists of positions, each once."""
        is_triangle = first is second
        columns = self.columns if len(second) == len(self.rows) else np.ascontiguousarray(self.columns[:, second])
        first_columns = np.ascontiguousarray(self.columns[:, first].T)
        rows = _ROWS_PER_PIECE if is_triangle else max(1, _PAIRS_PER_PIECE // len(second))
        pieces = -(-len(first) // rows)
        utilities, keys = np.full((pieces, KEPT_PAIRS), threshold), np.full((pieces, KEPT_PAIRS), -1)
        names = (self.rows[first], self.rows[second], self.total)
        model = (*self.model, self.residual_variance, self._highest_deviation())
        arguments = (
            first_columns,
            columns,
            self.values,
            model,
            names,
            self.resting,
            int(is_triangle),
            rows,
            utilities,
            keys,
        )
        for_ranges(scan_pairs, len(first), rows, *arguments)
        if pieces == 1:
            count = np.count_nonzero(keys[0] >= 0)
            return utilities[0, :count], keys[0, :count]
        return _best(utilities.ravel(), keys.ravel(), KEPT_PAIRS)

    def _highest_deviation(self) -> float:
        """Return a bound on the standard deviation of a logit under constant noise, at most the table's range."""
        k, reach = self.model[2], float(np.max(self.magnitudes[1]))
        square = 16.0 * k * k * reach + self.residual_variance
        # NaN if the length of an item overflows.
        return math.sqrt(square) if square < S_MAX**2 else S_MAX

    def bound(self) -> float:
        """Return an upper bound on the utility of any pair of the items."""
        if not np.max(self.values) < np.inf:
            return math.inf
        noise, k = self.model[1], self.model[2]
        longest = 4.0 * float(np.sqrt(np.max(self.magnitudes[2]))) * (1.0 + 1e-9)
        steep = float(steepness(steepest_length(0.0, longest, noise), k, noise))
        highest = steep * float(np.max(self.values)) ** 0.5
        if noise == CONSTANT:
            first = int(np.argmax(self.magnitudes[1]))
            second = np.max(np.delete(self.magnitudes[1], first), initial=0.0)
            highest = min(highest, 2.0 * k * float(np.sqrt(self.magnitudes[1, first]) + np.sqrt(second)))
        out = np.empty(1)
        deviation = math.sqrt(highest**2 + self.residual_variance) * (1.0 + 1e-9)
        write_value_at(deviation, float(np.max(self.values)), self.model, out)
        return float(out[0]) * (1.0 + 1e-9)


def leading_axes(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (d, r) leading eigenvectors and (r + 2,) `Sketch.values`.

    In more dimensions than `_EXACT_DIMENSIONS` they are approximated by subspace iteration, and the largest of the
    other eigenvalues, which is unknown, is given as infinite.
    """
    d = len(covariance)
    r = min(d, max(_MIN_AXES, _AXES_TIMES_DIMENSION // d))
    if d <= _EXACT_DIMENSIONS:
        root = principal_root(covariance)
        values = np.einsum("dc,dc->c", root, root)
        order = np.argsort(-values, kind="stable")
        top, others = order[:r], values[order[r:]]
        axes = root[:, top] / np.sqrt(np.maximum(values[top], np.finfo(float).tiny))
        # The mean of the others, weighted by how far items vary along them: by default, as the prior does.
        tail = float(np.sum(others**2) / np.sum(others)) if np.sum(others) > 0.0 else 0.0
        return np.ascontiguousarray(axes), np.append(values[top], [tail, np.max(others, initial=0.0)])
    block, product = np.random.default_rng(0).standard_normal((d, r)), np.empty((d, r))
    for _ in range(_SUBSPACE_ITERATIONS):
        for_ranges(multiply, d, _ROWS_PER_PRODUCT, read_only(covariance), np.ascontiguousarray(block), product)
        block = np.linalg.qr(product)[0]
    for_ranges(multiply, d, _ROWS_PER_PRODUCT, read_only(covariance), np.ascontiguousarray(block), product)
    values, turn = np.linalg.eigh(np.einsum("dc,de->ce", block, product))
    rest = max(float(np.trace(covariance) - np.sum(values)), 0.0) / (d - r)
    return np.ascontiguousarray(np.einsum("dc,ce->de", block, turn)), np.append(np.maximum(values, 0.0), [rest, np.inf])


def _highest(values: FloatArray, count: int) -> IntArray:
    """Return the positions of the highest values, the first among equals: `np.partition` varies by processor."""
    if count >= len(values):
        return np.arange(len(values))
    if count == 0:
        return np.empty(0, dtype=np.int64)
    threshold = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > threshold)
    return np.concatenate([above, np.flatnonzero(values == threshold)[: count - len(above)]])


def _best(utilities: FloatArray, keys: IntArray, count: int) -> tuple[FloatArray, IntArray]:
    """Return the best distinct pairs in descending order of utility, ties by key."""
    keys, indices = np.unique(keys, return_index=True)
    utilities = utilities[indices]
    order = np.lexsort((keys, -utilities))[:count]
    order = order[keys[order] >= 0]
    return utilities[order], keys[order]
