"""Every pair of two cells, looked at: vectorised sums, a coarse sieve, and exact utilities of what it leaves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pairseek._kernels import kernel, primitive
from pairseek._pairs import pair_constant
from pairseek.candidates._bounds import CONSTANT, DECAYING, SHELL, SQUARE_HIGH, SQUARE_LOW, value
from pairseek.candidates._sieve import DEVIATION, FROM, LOGIT, SIZE, SQUARES, TO, set_sieve
from pairseek.candidates._tree import LANES

ROW_COST = 4
"""A check of an item against a cell takes as long as a look at so many pairs, and counts as much."""
HIT_COST = 8
"""So does a pair that passes the first look."""
_BLOCK = 64
_FEW = 2


@primitive
def exact_value(
    i: int, j: int, rows: Any, mean: Any, root: Any, appeal: float, k: float, noise: int, model: Any, scratch: Any
) -> float:
    """The utility of a pair of positions, computed as `describe` does; -inf where the points coincide."""
    d = rows.shape[1]
    margin = 0.0
    square = 0.0
    for h in range(d):
        p, q = rows[i, h], rows[j, h]
        scratch[h] = p - q
        margin += (p - q) * (2.0 * mean[h] - p - q)
        square += (p - q) * (p - q)
    if not square > 0.0:
        return -np.inf
    variance = 0.0
    reach = 0.0
    for c in range(d):
        total = 0.0
        weight = 0.0
        for h in range(d):
            total += root[h, c] * scratch[h]
            weight += root[h, c] * root[h, c]
        variance += total * total
        reach += weight * total * total
    length = 2.0 * math.sqrt(square)
    constant = pair_constant(length, k, noise)
    m = abs(constant * margin + appeal)
    distance = m / (constant * length) if constant > 0.0 else abs(margin) / length
    gain = reach / variance if variance > 0.0 else 0.0
    return value(model[0], model[3], model[4], m, constant * 2.0 * math.sqrt(variance), distance, gain)


@primitive
def _worse(u: float, key: int, other: float, other_key: int) -> bool:
    """Whether a pair comes after another: by falling utility, then rising key."""
    return u < other or (u == other and key > other_key)


@primitive
def keep(u: float, key: int, found: Any, keys: Any) -> bool:
    """Put a pair in the place of the worst of a heap, which is its root, if it is better."""
    size = len(found)
    if not _worse(found[0], keys[0], u, key):
        return False
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _worse(found[child + 1], keys[child + 1], found[child], keys[child]):
            child += 1
        if not _worse(found[child], keys[child], u, key):
            break
        found[place] = found[child]
        keys[place] = keys[child]
        place = child
    found[place] = u
    keys[place] = key
    return True


@primitive
def _listed(key: int, keys: Any) -> bool:
    """Whether sorted keys hold a key."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < len(keys) and keys[low] == key


@primitive
def _limits(block: int, full: int, columns: Any, centre: Any, half: Any, weights: Any, nearest: bool, out: Any) -> None:
    """For each of `full` positions the lowest (`nearest`) or highest Σ weights Δ² with any point of a box."""
    for t in range(full):
        out[t] = 0.0
    for h in range(len(weights)):
        c, w, weight = centre[h], half[h], weights[h]
        x = columns[h, block : block + full]
        if (weight > 0.0) != nearest:
            for t in range(full):
                far = abs(x[t] - c) + w
                out[t] += weight * (far * far)
        else:
            for t in range(full):
                near = max(abs(x[t] - c) - w, 0.0)
                out[t] += weight * (near * near)


@primitive
def _weighted_squares(i: int, block: int, full: int, columns: Any, weights: Any, sums: Any) -> None:
    """Σ weights Δ² of one position with `full` others. Four axes at a time: sums are loaded and stored less often."""
    d = len(weights)
    for t in range(full):
        sums[t] = 0.0
    for h in range(0, d - 3, 4):
        x0, x1, x2, x3 = columns[h, i], columns[h + 1, i], columns[h + 2, i], columns[h + 3, i]
        w0, w1, w2, w3 = weights[h], weights[h + 1], weights[h + 2], weights[h + 3]
        y0 = columns[h, block : block + full]
        y1 = columns[h + 1, block : block + full]
        y2 = columns[h + 2, block : block + full]
        y3 = columns[h + 3, block : block + full]
        for t in range(full):
            z0, z1, z2, z3 = x0 - y0[t], x1 - y1[t], x2 - y2[t], x3 - y3[t]
            sums[t] += (w0 * (z0 * z0) + w1 * (z1 * z1)) + (w2 * (z2 * z2) + w3 * (z3 * z3))
    for h in range(d - d % 4, d):
        x, w = columns[h, i], weights[h]
        y = columns[h, block : block + full]
        for t in range(full):
            sums[t] += w * ((x - y[t]) * (x - y[t]))


@primitive
def _hits(full: int, sums: Any, squares: Any, square: float, sieve: Any, hit: Any) -> int:
    """How many of the positions meet the first conditions; marked in `hit`."""
    low, high, window = sieve[FROM], sieve[TO], sieve[SQUARES]
    count = 0
    for t in range(full):
        inside = (sums[t] >= low) & (sums[t] <= high) & (abs(squares[t] - square) <= window)
        hit[t] = inside
        count += 1 if inside else 0
    return count


@primitive
def _passes(i: int, j: int, columns: Any, values: Any, k: float, noise: int, sieve: Any, trusted: float) -> bool:
    """Whether a pair meets all conditions."""
    d = len(values)
    square = 0.0
    variance = 0.0
    for h in range(d):
        part = (columns[h, i] - columns[h, j]) ** 2
        square += part
        variance += values[h] * part
    if square < trusted:
        # Rotated coordinates of points that nearly coincide say little of their direction.
        return True
    constant = pair_constant(2.0 * math.sqrt(square), k, noise)
    if not constant > 0.0:
        # The logit says nothing of the distance then.
        return True
    if 4.0 * constant * constant * variance < sieve[DEVIATION]:
        return False
    m = constant * (columns[d, j] - columns[d, i]) + columns[d + 1, i] - columns[d + 1, j]
    # |q - μ|² - |p - μ|² cancels: what that may have cost.
    return abs(m) - 1e-13 * constant * (columns[d, j] + columns[d, i]) <= sieve[LOGIT]


@primitive
def _rows(
    block: int, full: int, b: int, points: Any, cells: Any, noise: int, weights: Any, sieve: Any, out: Any
) -> bool:
    """Mark in `out` which of `full` positions may reach the aim with anything in cell b; False if none. NaN never may."""
    columns, still = points[0], points[1]
    centre, half, still_centre, still_half, ranges, values = cells
    d = len(values)
    limits, marks = out
    squares, shells = columns[d, block : block + full], columns[d + 2, block : block + full]
    low, high = ranges[b, SQUARE_LOW] - sieve[SQUARES], ranges[b, SQUARE_HIGH] + sieve[SQUARES]
    shell = math.sqrt(max(sieve[FROM], 0.0)) - ranges[b, SHELL] if noise == CONSTANT else 0.0
    count = 0
    for t in range(full):
        marks[t] = (shells[t] >= shell) & (squares[t] >= low) & (squares[t] <= high)
        count += 1 if marks[t] else 0
    if count <= _FEW:
        # To look at so few is no more work than to check them.
        return count > 0
    if noise == DECAYING:
        _limits(block, full, still, still_centre[b], still_half[b], weights, True, limits)
        for t in range(full):
            marks[t] &= limits[t] <= sieve[TO]
    else:
        _limits(block, full, columns, centre[b], half[b], weights, False, limits)
        for t in range(full):
            marks[t] &= limits[t] >= sieve[FROM]
    return True


@kernel
def look_at(start: int, stop: int, chunk: int, tiles: Any, view: Any, resting: Any, aim: Any, out: Any) -> None:
    """Look at the pairs of the tiles start to stop that may reach the aim, and keep the best.

    ``tiles`` has rows (cell, cell, from, to, from, to) with the ranges of positions of the two cells. ``view`` is
    (model, cells, points, scale). ``aim`` is (what a pair must reach, how many are wanted, how far under the last of
    these ties are still kept, effort allowed: no tile is begun beyond it). ``out`` is (utilities, keys, counts), a
    row for every chunk of tiles; counts are tiles done, pairs looked at, effort.
    """
    model, cells, points, scale = view
    columns, _, order, rows, mean, root = points
    values = scale[5]
    noise, k = model[1], model[2]
    d, n = len(values), len(order)
    found, keys, counts = out[0][start // chunk], out[1][start // chunk], out[2][start // chunk]
    least, wanted, slack, allowed = aim
    trusted = (1e-6 * scale[4]) ** 2
    sieve, weights = np.empty(SIZE), np.empty(d)
    set_sieve(least - slack, scale, model, weights, sieve)
    sums, hit, scratch = np.empty(_BLOCK), np.empty(_BLOCK, dtype=np.bool_), np.empty(d)
    marks = (np.empty(_BLOCK), np.empty(_BLOCK, dtype=np.bool_))
    looked, effort, stale = 0, 0, False
    for row in range(start, stop):
        if row > start and effort >= allowed:
            break
        counts[0] += 1
        a, b = tiles[row, 0], tiles[row, 1]
        for above in range(tiles[row, 2], tiles[row, 3], _BLOCK):
            height = min(_BLOCK, tiles[row, 3] - above)
            if stale:
                set_sieve(least - slack, scale, model, weights, sieve)
                stale = False
            full = (height + LANES - 1) // LANES * LANES
            effort += ROW_COST * height
            if not _rows(above, full, b, points, cells, noise, weights, sieve, marks):
                continue
            for i in range(above, above + height):
                if not marks[1][i - above]:
                    continue
                # One that is wanted rarely improves, a thousand often: then a new sieve costs more than it spares.
                if stale and wanted == 1:
                    set_sieve(least - slack, scale, model, weights, sieve)
                    stale = False
                begin = i + 1 if a == b else tiles[row, 4]
                for block in range(begin, tiles[row, 5], _BLOCK):
                    size = min(_BLOCK, tiles[row, 5] - block)
                    full = (size + LANES - 1) // LANES * LANES
                    looked += size
                    _weighted_squares(i, block, full, columns, weights, sums)
                    hits = _hits(full, sums, columns[d, block : block + full], columns[d, i], sieve, hit)
                    if hits == 0:
                        continue
                    effort += HIT_COST * hits
                    for t in range(size):
                        j = block + t
                        if not (hit[t] and _passes(i, j, columns, values, k, noise, sieve, trusted)):
                            continue
                        appeal = columns[d + 1, i] - columns[d + 1, j]
                        u = exact_value(i, j, rows, mean, root, appeal, k, noise, model, scratch)
                        if not u >= least - slack:
                            continue
                        p, q = order[i], order[j]
                        key = min(p, q) * n + max(p, q)
                        if _listed(key, resting) or not keep(u, key, found, keys):
                            continue
                        # Where one is wanted, the heap is for ties; else its root may be a few places too low.
                        reached = u if wanted == 1 else found[0]
                        if reached > least:
                            least = reached
                            stale = True
        counts[1] = looked
        counts[2] = looked + effort
