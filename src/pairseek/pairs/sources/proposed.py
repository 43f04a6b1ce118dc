"""`ProposedPairs`: good pairs in many dimensions, where bounds over cells no longer prune.

In many dimensions a cell of items is nearly as wide as the catalogue, and branch and bound visits most pairs. A good
pair is then proposed instead. The logit of a pair has a large deviation if its items differ along the directions in
which the belief is widest, and a mean near 0 if they have about the same cost |x - μ|² - appeal/k. Both are read off a
sketch of the items: their coordinates along the leading eigenvectors of Σ, and the energy of the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import numpy as np

from pairseek.core.limits import Limit
from pairseek.core.types import FloatArray, IntArray
from pairseek.core.validation import whole
from pairseek.numerics.covariances import principal_root
from pairseek.numerics.jit import inner, kernel, read_only
from pairseek.numerics.pair_kernels import CONSTANT, DECAYING, pair_constant, steepest_length
from pairseek.numerics.parallel import for_ranges
from pairseek.numerics.tables import S_MAX, interpolate
from pairseek.pairs.context import Selection, SelectionContext
from pairseek.pairs.features import credits_of
from pairseek.pairs.sources.all_pairs import AllPairs, certified_gap, description, median_score
from pairseek.pairs.sources.branch_and_bound import SearchResult
from pairseek.pairs.sources.branch_and_bound.bounds import TABLE, Model, steepness, value
from pairseek.pairs.sources.branch_and_bound.finalists import keep, listed
from pairseek.pairs.sources.branch_and_bound.view import residual_variance, utility_model
from pairseek.pairs.sources.core_set import SIZE, core_set
from pairseek.pairs.strategies.shape import UtilityShape

ScanModel: TypeAlias = tuple[int, int, float, float, FloatArray, FloatArray, float, float]
"""A model, the own variance of a logit, and the highest deviation of one."""

# The sketch has so many axes at least, and d of them while d² is no larger than the second number.
_AXES, _SQUARE = 12, 512
# Dimensions up to which eigenvectors are exact, and iterations that approximate the leading ones in more.
_EXACT, _ITERATIONS, _PRODUCT_ROWS = 64, 12, 64
# Half of the promising items come from strata of equal cost, which holds partners for each other.
_STRATA = 32
# Items below this quantile of the potential are in no good pair, and are not looked at there.
_LOW = 0.6
# Pairs that are kept by the sketch to be scored exactly.
_KEPT = 64
# Items from which strata are made, and the middle of all is taken.
_SAMPLE = 1024
_CHUNK = 2048
# A thread looks at so many rows of pairs of promising items, or at rows with about so many pairs, before it forgets
# which utility it has reached.
_ROWS, _PAIRS = 256, 32_768
_LANES = 512
# The highest mean of a good pair is looked up at these multiples of the least deviation of its logit, or of _LEAST_S
# if it is smaller, then at deviations that grow by a factor; the bound that follows gets some slack.
_NEAR, _LEAST_S, _GROWTH, _SLACK = (1.01, 1.05), 0.05, 1.2, 1.2
# Growth of the utility reached after which that bound is computed again, and the highest ratio of mean and deviation.
_STEP, _FAR = 1.02, 40.0


@dataclass(frozen=True)
class ProposedPairs:
    """The best pair of a proposal: promising items, all pairs of these, and the best partners of the best of them.

    There is no guarantee. For up to 4096 items, ``gap`` of the choice is what is certain all the same: the distance to
    a bound on the utility of any pair, which is loose. Of more items, that many stand for all, so that the time of a
    question does not grow with their number: those farthest from the middle, and some at random. Under decaying noise,
    whose best pairs are near neighbours, all items are looked at.

    Where pairs are few, or the score of the strategy is not a function of mean and deviation of the logit, it is
    `AllPairs`.

    Parameters
    ----------
    items
        Number of promising items, of which all pairs are scored; at least 2.
    improved
        Number of the best of these whose best partner among all items is sought.
    rescore
        Number of the best pairs to rescore by samples; 0 for none.
    listed
        Largest number of pairs to enumerate instead.
    """

    items: Annotated[int, Limit(2, 4096)] = 1024
    improved: Annotated[int, Limit(0, 64)] = 8
    rescore: Annotated[int, Limit(0, _KEPT)] = 0
    listed: Annotated[int, Limit(0, 1_000_000)] = 100_000
    name: ClassVar[str] = "proposed_pairs"

    def __post_init__(self) -> None:
        for setting, least in (("items", 2), ("improved", 0), ("rescore", 0), ("listed", 0)):
            whole(getattr(self, setting), f"{setting} of ProposedPairs", least, field=setting)

    def choose(self, context: SelectionContext, rng: np.random.Generator) -> Selection | None:
        """Return the best pair of the proposal; None if the rules of rest leave none."""
        shape = context.shape
        rows = _permitted(context)
        if shape is None or not self._applies(context, shape) or len(rows) < 2:
            return self._all_pairs.choose(context, rng)
        n = len(context.points)
        everything = n <= SIZE or context.response.noise_kind.code == DECAYING
        sketch = Sketch.of(context, shape, rows)
        keys, scored = sketch.best_pairs(self.items, self.improved)
        if keys is None:
            return self._all_pairs.choose(context, rng)
        first, second = np.divmod(keys, n)
        features = context.features(first, second)
        scores = context.scores(features)
        rescored = min(self.rescore, len(scores)) if context.rescores else 0
        if rescored:
            best = np.argsort(-scores, kind="stable")[:rescored]
            features, first, second = features.take(best), first[best], second[best]
            scores = context.rescored(features)
        row = int(np.lexsort((first * n + second, -scores))[0])
        if not scores[row] > -np.inf:
            return self._all_pairs.choose(context, rng)
        utility = float(scores[row])
        bound = max(utility, sketch.bound()) if everything else math.inf
        zero = median_score(context) if shape.signed else 0.0
        gap = certified_gap(SearchResult(keys, utility, bound, scored), zero)
        known = gap < math.inf
        words = description(len(rows), scored, gap if known else None, rescored, context.caveat)
        return Selection(
            int(first[row]),
            int(second[row]),
            utility,
            scored,
            words,
            bound=bound if known else None,
            gap=gap if known else None,
        )

    @property
    def _all_pairs(self) -> AllPairs:
        return AllPairs(gap=0.03, budget=2_000_000, rescore=self.rescore, listed=self.listed)

    def _applies(self, context: SelectionContext, shape: UtilityShape) -> bool:
        """Return whether pairs are many, and scored by the mean and deviation of their logit."""
        n, d = context.points.shape
        residuals = context.belief.residuals
        plain = context.strategy.enough_pairs is None and context.strategy.promising is None
        few = n * (n - 1) // 2 <= self.listed
        shown = residuals is not None and (shape.kind != "table" or 2 * len(residuals.rows) > n)
        return bool(d) and plain and not (few or shown or context.drawn)


def _permitted(context: SelectionContext) -> IntArray:
    """Return the rows of items that are looked at: those that do not rest and, with residuals, were not shown.

    Of a large catalogue, a part stands for all, unless most of it was shown already.
    """
    everything = np.arange(len(context.points))
    # Under decaying noise good pairs are near neighbours, of which a part of the items has few.
    known = everything if context.response.noise_kind.code == DECAYING else core_set(context.points)
    shown = context.resting.items
    if context.belief.residuals is not None:
        # Each has a residual variance of its own; all others have the same.
        told = context.belief.residuals.rows
        shown = np.union1d(shown, told) if len(shown) else told
    rows = _without(known, shown)
    return rows if 2 * len(rows) > len(known) else _without(everything, shown)


def _without(rows: IntArray, some: IntArray) -> IntArray:
    """Return sorted rows without some sorted others."""
    kept = np.ones(len(rows), dtype=np.bool_)
    places = np.minimum(rows.searchsorted(some), len(rows) - 1)
    kept[places[rows[places] == some]] = False
    return rows[kept]


@dataclass(frozen=True, eq=False)
class Sketch:
    """Items along the leading axes of a belief.

    Attributes
    ----------
    rows
        (m,) rows of the items.
    columns
        (r + 2, m) coordinates relative to the middle of the items along the r leading eigenvectors of Σ, the squared
        length of the rest (tail), and the cost.
    facts
        (3, m) deviation of the logit of an item and its mirror image, upper bound of its squared length in the metric
        of Σ, and its squared length, all relative to the middle.
    values
        (r + 2,) the leading eigenvalues, the mean of the others as items vary along them, and the largest of these.
    model
        The utility, as the kernels of branch and bound take it.
    own
        Variance that the residual utilities of two items not shown yet add to their logit.
    resting
        Sorted keys of the pairs that rest.
    total
        Number of items of the catalogue.
    """

    rows: IntArray
    columns: FloatArray
    facts: FloatArray
    values: FloatArray
    model: Model
    own: float
    resting: IntArray
    total: int

    @classmethod
    def of(cls, context: SelectionContext, shape: UtilityShape, rows: IntArray) -> Sketch:
        """Sketch some items of a catalogue, in O(m d r)."""
        belief = context.belief
        axes, values = leading_axes(belief.covariance)
        r = axes.shape[1]
        credit = np.ascontiguousarray(credits_of(context.appeal[rows], context.response))
        columns, facts = np.empty((r + 2, len(rows))), np.empty((3, len(rows)))
        own = residual_variance(context.response)
        model = utility_model(context, shape, 0.0)
        points, middle = read_only(context.points), np.empty(context.points.shape[1])
        _middle(points, rows, max(1, len(rows) // _SAMPLE), middle)
        places = (middle, np.array(belief.mean), axes, credit)
        noise = (model[1], model[2])
        for_ranges(_sketch, len(rows), _CHUNK, points, rows, places, values, noise, columns, facts)
        return cls(rows, columns, facts, values, model, own, context.resting.pairs, len(context.points))

    def best_pairs(self, items: int, improved: int) -> tuple[IntArray | None, int]:
        """Return the keys of the best pairs by the sketch, None if all rest, and the number of pairs scored."""
        some = self._promising(min(items, len(self.rows)))
        utilities, keys = self._scan(some, some)
        scored = len(some) * (len(some) - 1) // 2
        if not len(keys):
            return None, scored
        pairs = np.stack(np.divmod(keys, self.total), axis=1)
        # The first items of the best pairs, best first.
        good = np.searchsorted(self.rows, list(dict.fromkeys(pairs.ravel().tolist()))[:improved])
        least = float(utilities[-1]) if len(keys) == _KEPT else -np.inf
        more = self._scan(good, np.arange(len(self.rows)), least)
        utilities, keys = _best(np.append(utilities, more[0]), np.append(keys, more[1]), _KEPT)
        return keys, scored + len(good) * len(self.rows)

    def _promising(self, count: int) -> IntArray:
        """Return sorted places of the items whose mirror images would be good partners.

        An item and its mirror image in the middle differ by twice its offset. Half of the items are the best of all,
        and half the best among items of like cost.
        """
        potential, cost = self.facts[0], self.columns[-1]
        chosen = np.zeros(len(cost), dtype=np.bool_)
        chosen[_highest(potential, count - count // 2)] = True
        edges = np.sort(cost[:: max(1, len(cost) // _SAMPLE)])
        inside = edges[:: max(1, len(edges) // _STRATA)][1:]
        bounds = np.full(2 * _STRATA - 1, np.inf)
        bounds[: len(inside)] = inside[: len(bounds)]
        best = np.empty((len(bounds) + 1, count // (2 * _STRATA)), dtype=np.int64)
        some = potential[:: max(1, len(potential) // _SAMPLE)]
        # The quantile between two of the numbers, which `np.quantile` takes ten times as long to find.
        place = _LOW * (len(some) - 1)
        beside = int(place), min(int(place) + 1, len(some) - 1)
        low, high = np.partition(some, beside)[list(beside)]
        low += (place - int(place)) * (high - low)
        _best_of_strata(potential, cost, float(low), bounds, best)
        chosen[best[best >= 0]] = True
        return np.flatnonzero(chosen)

    def _scan(self, first: IntArray, second: IntArray, least: float = -np.inf) -> tuple[FloatArray, IntArray]:
        """Return utilities and keys of the best pairs above `least` of two lists of places, each pair once."""
        same = first is second
        columns = self.columns if len(second) == len(self.rows) else np.ascontiguousarray(self.columns[:, second])
        mine = np.ascontiguousarray(self.columns[:, first].T)
        rows = _ROWS if same else max(1, _PAIRS // len(second))
        pieces = -(-len(first) // rows)
        utilities, keys = np.full((pieces, _KEPT), least), np.full((pieces, _KEPT), -1)
        names = (self.rows[first], self.rows[second], self.total)
        model = (*self.model, self.own, self._widest())
        arguments = (mine, columns, self.values, model, names, self.resting, int(same), rows, utilities, keys)
        for_ranges(_scan_pairs, len(first), rows, *arguments)
        if pieces == 1:
            found = np.count_nonzero(keys[0] >= 0)
            return utilities[0, :found], keys[0, :found]
        return _best(utilities.ravel(), keys.ravel(), _KEPT)

    def _widest(self) -> float:
        """Return an upper bound on the deviation of a logit under constant noise, or that of the table."""
        k, reach = self.model[2], float(np.max(self.facts[1]))
        square = 16.0 * k * k * reach + self.own
        # Not a number where the length of an item overflows.
        return math.sqrt(square) if square < S_MAX**2 else S_MAX

    def bound(self) -> float:
        """Return an upper bound on the utility of any pair of the items."""
        if not np.max(self.values) < np.inf:
            return math.inf
        noise, k = self.model[1], self.model[2]
        longest = 4.0 * float(np.sqrt(np.max(self.facts[2]))) * (1.0 + 1e-9)
        steep = float(steepness(steepest_length(0.0, longest, noise), k, noise))
        highest = steep * float(np.max(self.values)) ** 0.5
        if noise == CONSTANT:
            first = int(np.argmax(self.facts[1]))
            second = np.max(np.delete(self.facts[1], first), initial=0.0)
            highest = min(highest, 2.0 * k * float(np.sqrt(self.facts[1, first]) + np.sqrt(second)))
        out = np.empty(1)
        deviation = math.sqrt(highest**2 + self.own) * (1.0 + 1e-9)
        _value_at(deviation, float(np.max(self.values)), self.model, out)
        return float(out[0]) * (1.0 + 1e-9)


def leading_axes(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (d, r) leading eigenvectors and (r + 2,) `Sketch.values`.

    In more dimensions than `_EXACT` they are approximate, by subspace iteration, and the largest of the other
    eigenvalues is infinite, because it is not known.
    """
    d = len(covariance)
    r = min(d, max(_AXES, _SQUARE // d))
    if d <= _EXACT:
        root = principal_root(covariance)
        values = np.einsum("dc,dc->c", root, root)
        order = np.argsort(-values, kind="stable")
        top, others = order[:r], values[order[r:]]
        axes = root[:, top] / np.sqrt(np.maximum(values[top], np.finfo(float).tiny))
        # The mean of the others, weighted by how far items vary along them: as the prior does, by default.
        tail = float(np.sum(others**2) / np.sum(others)) if np.sum(others) > 0.0 else 0.0
        return np.ascontiguousarray(axes), np.append(values[top], [tail, np.max(others, initial=0.0)])
    block, product = np.random.default_rng(0).standard_normal((d, r)), np.empty((d, r))
    for _ in range(_ITERATIONS):
        for_ranges(_multiply, d, _PRODUCT_ROWS, read_only(covariance), np.ascontiguousarray(block), product)
        block = np.linalg.qr(product)[0]
    for_ranges(_multiply, d, _PRODUCT_ROWS, read_only(covariance), np.ascontiguousarray(block), product)
    values, turn = np.linalg.eigh(np.einsum("dc,de->ce", block, product))
    rest = max(float(np.trace(covariance) - np.sum(values)), 0.0) / (d - r)
    return np.ascontiguousarray(np.einsum("dc,ce->de", block, turn)), np.append(np.maximum(values, 0.0), [rest, np.inf])


@kernel
def _multiply(start: int, stop: int, matrix: FloatArray, block: FloatArray, out: FloatArray) -> None:
    """Write rows of a matrix product, whose digits do not depend on the number of threads."""
    for row in range(start, stop):
        out[row, :] = 0.0
        for h in range(matrix.shape[1]):
            x = matrix[row, h]
            for c in range(block.shape[1]):
                out[row, c] += x * block[h, c]


def _highest(values: FloatArray, count: int) -> IntArray:
    """Return the places of the highest values; of equal ones, the first. A partition alone differs by processor."""
    if count >= len(values):
        return np.arange(len(values))
    if count == 0:
        return np.empty(0, dtype=np.int64)
    least = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > least)
    return np.concatenate([above, np.flatnonzero(values == least)[: count - len(above)]])


def _best(utilities: FloatArray, keys: IntArray, count: int) -> tuple[FloatArray, IntArray]:
    """Return the best of listed pairs, each once, in descending order; ties by key."""
    keys, places = np.unique(keys, return_index=True)
    utilities = utilities[places]
    order = np.lexsort((keys, -utilities))[:count]
    order = order[keys[order] >= 0]
    return utilities[order], keys[order]


@kernel
def _best_of_strata(values: FloatArray, cost: FloatArray, low: float, bounds: FloatArray, out: IntArray) -> None:
    """Write the places of the highest values of each stratum, of equal ones the first, and -1 where it has fewer.

    Values below ``low`` are left out. The strata are a power of two, and ``bounds`` are the sorted upper bounds of all
    but the last.
    """
    strata, count = out.shape
    out[:] = -1
    if count == 0:
        return
    least = np.full(strata, -math.inf)
    for place in range(len(values)):
        if values[place] < low:
            continue
        stratum, step = 0, strata // 2
        while step > 0:
            # Without a branch, which would be mispredicted half of the time.
            stratum += step if bounds[stratum + step - 1] < cost[place] else 0
            step //= 2
        if not values[place] > least[stratum]:
            continue
        mine = out[stratum]
        at = count - 1
        while at > 0 and (mine[at - 1] < 0 or values[place] > values[mine[at - 1]]):
            mine[at] = mine[at - 1]
            at -= 1
        mine[at] = place
        if mine[count - 1] >= 0:
            least[stratum] = values[mine[count - 1]]


@kernel
def _middle(points: FloatArray, rows: IntArray, step: int, out: FloatArray) -> None:
    """Write the mean of every `step`-th of some points."""
    out[:] = 0.0
    for place in range(0, len(rows), step):
        for h in range(len(out)):
            out[h] += points[rows[place], h]
    out /= -(-len(rows) // step)


@kernel
def _sketch(  # noqa: C901
    start: int,
    stop: int,
    points: FloatArray,
    rows: IntArray,
    places: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    values: FloatArray,
    model: tuple[int, float],
    columns: FloatArray,
    facts: FloatArray,
) -> None:
    """Write the columns and facts of a `Sketch` for the places from start to stop.

    One coordinate of many items at a time, so that the loops use vector registers.
    """
    middle, mean, axes, credit = places
    noise, k = model
    d, r = axes.shape
    moved = np.empty(_LANES)
    for begin in range(start, stop, _LANES):
        width = min(_LANES, stop - begin)
        potential, reach, energy = facts[:, begin : begin + width]
        tail, cost = columns[r:, begin : begin + width]
        energy[:] = 0.0
        for j in range(width):
            cost[j] = -credit[begin + j]
        for c in range(r):
            columns[c, begin : begin + width] = 0.0
        for h in range(d):
            for j in range(width):
                moved[j] = points[rows[begin + j], h]
            for j in range(width):
                cost[j] += (moved[j] - mean[h]) * (moved[j] - mean[h])
                moved[j] -= middle[h]
                energy[j] += moved[j] * moved[j]
            for c in range(r):
                line, weight = columns[c, begin : begin + width], axes[h, c]
                for j in range(width):
                    line[j] += moved[j] * weight
        reach[:] = 0.0
        for j in range(width):
            tail[j] = energy[j]
        for c in range(r):
            line, weight = columns[c, begin : begin + width], values[c]
            for j in range(width):
                tail[j] -= line[j] * line[j]
                reach[j] += weight * line[j] * line[j]
        for j in range(width):
            tail[j] = max(tail[j], 0.0)
            length = 4.0 * math.sqrt(energy[j])
            deviation = 4.0 * math.sqrt(reach[j] + values[r] * tail[j])
            potential[j] = pair_constant(length, k, noise) * deviation if length > 0.0 else 0.0
            # All eigenvalues of the rest are at most the last number.
            reach[j] += values[r + 1] * tail[j] if tail[j] > 0.0 else 0.0


@kernel
def _value_at(s: float, gain: float, model: Model, out: FloatArray) -> None:
    """Write the bound of the utility at a mean of 0 and a deviation of s."""
    shape, _, _, penalty, _, table = model
    out[0] = value(shape, penalty, table, 0.0, s, 0.0, gain)


@inner
def _least_deviation(reached: float, shape: int, table: FloatArray) -> float:
    """Return a deviation below which no pair exceeds a utility, to spare looks into the table; 0 if unknown."""
    low, high = 0.0, S_MAX
    for _ in range(20):
        middle = 0.5 * (low + high)
        if interpolate(table, 0.0, middle) <= reached:
            low = middle
        else:
            high = middle
    return low if shape == TABLE else 0.0


@inner
def _highest_square(reached: float, s: float, table: FloatArray) -> float:
    """Return the highest m² at which a pair with a deviation of s exceeds a utility."""
    low, high = 0.0, _FAR * math.sqrt(1.0 + s * s)
    for _ in range(16):
        middle = 0.5 * (low + high)
        if interpolate(table, middle, s) > reached:
            low = middle
        else:
            high = middle
    return high * high


@inner
def _highest_line(reached: float, least: float, most: float, table: FloatArray) -> tuple[float, float]:
    """Return a and b with m² <= a + b (s² - least²), about, where a pair exceeds a utility; it spares looking up most.

    The highest such m² is nearly a line from 0 on or, where ties are offered, from the square of their width on. It
    bends slowly and to one side, so that a few values of s stand for all from the least to the most.
    """
    near = max(least, _LEAST_S) * _NEAR[0]
    s = max(least, _LEAST_S) * _NEAR[1]
    first = _highest_square(reached, near, table)
    slope = (_highest_square(reached, s, table) - first) / (s * s - near * near)
    while s < most:
        s = min(_GROWTH * s, most)
        slope = max(slope, (_highest_square(reached, s, table) - first) / (s * s - near * near))
    return _SLACK * first, _SLACK * slope


@inner
def _variances(
    item: FloatArray, columns: FloatArray, values: FloatArray, begin: int, width: int, out: FloatArray
) -> None:
    """Write Δ'ΣΔ of an item and the columns from `begin` on."""
    r = len(item) - 2
    for j in range(width):
        out[j] = values[r] * (item[r] + columns[r, begin + j])
    for c in range(r):
        x, weight = item[c], values[c]
        line = columns[c, begin : begin + width]
        for j in range(width):
            out[j] += weight * (x - line[j]) * (x - line[j])


@inner
def _distances(item: FloatArray, columns: FloatArray, values: FloatArray, j: int) -> tuple[float, float]:
    """Return |Δ|² and |ΣΔ|² of an item and column j."""
    r = len(item) - 2
    square = item[r] + columns[r, j]
    reach = values[r] * values[r] * square
    for c in range(r):
        part = (item[c] - columns[c, j]) * (item[c] - columns[c, j])
        square += part
        reach += values[c] * values[c] * part
    return square, reach


@kernel
def _scan_pairs(
    start: int,
    stop: int,
    mine: FloatArray,
    columns: FloatArray,
    values: FloatArray,
    model: ScanModel,
    names: tuple[IntArray, IntArray, int],
    resting: IntArray,
    once: int,
    chunk: int,
    utilities: FloatArray,
    keys: IntArray,
) -> None:
    """Keep the best pairs of the first items from start to stop and all second ones, by the sketch.

    ``names`` is (rows of the first items, rows of the second ones, number of items); ``once`` is 1 where both are the
    same list, of which half of the pairs are looked at. Else a pair of two first items is kept at the first of them.
    """
    shape, noise, k, penalty, table, above, own, most = model
    rows, others, total = names
    r, m = columns.shape[0] - 2, columns.shape[1]
    found, kept = utilities[start // chunk], keys[start // chunk]
    variances, hopes = np.empty(_LANES), np.empty(_LANES)
    reached, least, narrow = math.nan, 0.0, 0.0
    certain, steep, free = 0.0, 0.0, math.inf
    for i in range(start, stop):
        if found[_KEPT - 1] != reached:
            reached = found[_KEPT - 1]
            least = _least_deviation(reached, shape, above)
            # Under constant noise both follow without a root.
            narrow = max(least * least - own, 0.0) / (4.0 * k * k) if noise == CONSTANT else 0.0
        if noise == CONSTANT and shape == TABLE and reached > certain:
            certain = reached * _STEP
            free, steep = _highest_line(reached, least, most, above)
            free += steep * (own - least * least)
        for begin in range(once * (i + 1), m, _LANES):
            width = min(_LANES, m - begin)
            _variances(mine[i], columns, values, begin, width, variances)
            for j in range(width):
                apart = mine[i, r + 1] - columns[r + 1, begin + j]
                possible = free + steep * 4.0 * k * k * variances[j] - k * k * apart * apart
                hopes[j] = min(possible, variances[j] - narrow)
            for j in range(width):
                if hopes[j] < 0.0:
                    continue
                square, reach = _distances(mine[i], columns, values, begin + j)
                variance = variances[j]
                margin = abs(mine[i, r + 1] - columns[r + 1, begin + j])
                length = 2.0 * math.sqrt(square)
                constant = pair_constant(length, k, noise)
                s = math.sqrt(4.0 * constant * constant * variance + own)
                if s < least or not square > 0.0:
                    continue
                gain = reach / variance if variance > 0.0 else 0.0
                u = value(shape, penalty, table, constant * margin, s, margin / length, gain)
                p, q = rows[i], others[begin + j]
                key = min(p, q) * total + max(p, q)
                if u > found[_KEPT - 1] and p != q and not (listed(key, resting) or (not once and q in rows[:i])):
                    keep(u, key, found, kept)
