"""Every pair of two cells, looked at: vectorised distances, a coarse sieve, and exact utilities of what it leaves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pairseek._kernels import kernel, primitive
from pairseek._pairs import pair_constant
from pairseek.candidates._bounds import CONSTANT, DISTANCE, NORMALIZED, value

LANES = 16
_BLOCK = 64
# Relative width that the sieve leaves for rounding.
_LOOSE = 1e-9


@primitive
def exact_value(i: int, j: int, points: Any, model: Any, scratch: Any) -> float:
    """The utility of a pair of positions, computed as `describe` does; -inf where the points coincide."""
    columns, rows, mean, root = points
    _, noise, k, _, _ = model
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
    appeal = columns[d + 1, i] - columns[d + 1, j]
    m = abs(constant * margin + appeal)
    distance = m / (constant * length) if constant > 0.0 else abs(margin) / length
    gain = reach / variance if variance > 0.0 else 0.0
    return value(model, m, constant * 2.0 * math.sqrt(variance), distance, gain)


@primitive
def lowest_deviation(least: float, top: float, gain: float, model: Any) -> float:
    """The s under which even m = 0 gives less than `least`; by bisection up to `top`."""
    low, high = 0.0, top
    if value(model, 0.0, top, 0.0, gain) < least:
        return top
    for _ in range(40):
        middle = 0.5 * (low + high)
        if value(model, 0.0, middle, 0.0, gain) < least:
            low = middle
        else:
            high = middle
    return low


@primitive
def highest_mean_logit(least: float, top: float, steep: float, gain: float, model: Any) -> float:
    """The \\|m\\| above which even s = top gives less than `least`."""
    shape, _, _, penalty, _ = model
    if shape == DISTANCE:
        return max(top - least, 0.0) / penalty * steep if penalty > 0.0 else np.inf
    low, high = 0.0, 1.0
    while high < 1e9 and value(model, high, top, 0.0, gain) >= least:
        high *= 4.0
    if high >= 1e9:
        return np.inf
    for _ in range(40):
        middle = 0.5 * (low + high)
        if value(model, middle, top, 0.0, gain) < least:
            high = middle
        else:
            low = middle
    return high


@primitive
def set_sieve(least: float, scale: Any, model: Any, weights: Any, sieve: Any) -> None:
    """What a pair must have to reach `least`: Σ weights Δ² from sieve[0] to sieve[1], s² at least sieve[2], |m| at most sieve[3].

    The sum is all that is computed for every pair, so it stands for what each noise makes of s: a'Σa/4 itself if
    constant, |a|²/4 if decaying, and if normalized a'Σa/4 - (s/k)² |a|²/4, which must not be negative.
    """
    top, steep, values, reach = scale
    _, noise, k, _, _ = model
    s = lowest_deviation(least, top, values[0], model) * (1.0 - _LOOSE)
    sieve[2] = s * s
    sieve[3] = highest_mean_logit(least, top, steep, values[0], model) * (1.0 + _LOOSE)
    error = 1e-14 * reach
    sieve[0] = -np.inf
    sieve[1] = np.inf
    for h in range(len(values)):
        weights[h] = values[h]
    if not k > 0.0 or not values[0] > 0.0:
        return
    share = s / (k * math.sqrt(values[0]))
    if noise == CONSTANT:
        sieve[0] = max(0.5 * s / k - error * math.sqrt(values[0]), 0.0) ** 2
    elif noise == NORMALIZED:
        for h in range(len(values)):
            weights[h] -= values[0] * (share * share - 8.0 * _LOOSE)
        sieve[0] = -values[0] * _LOOSE * error * reach
    else:
        for h in range(len(values)):
            weights[h] = 1.0
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            if middle * math.exp(-middle) < share:
                low = middle
            else:
                high = middle
        sieve[0] = max(0.5 * low * (1.0 - _LOOSE) - error, 0.0) ** 2
        low, high = 1.0, 800.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            if middle * math.exp(-middle) < share:
                high = middle
            else:
                low = middle
        sieve[1] = (0.5 * high * (1.0 + _LOOSE) + error) ** 2


@primitive
def keep(u: float, key: int, found: Any, keys: Any, piece: int) -> bool:
    """Put a pair into a list sorted by falling utility, then rising key, if it belongs there."""
    size = found.shape[1]
    place = size
    while place > 0 and (u > found[piece, place - 1] or (u == found[piece, place - 1] and key < keys[piece, place - 1])):
        place -= 1
    if place == size:
        return False
    for r in range(size - 1, place, -1):
        found[piece, r] = found[piece, r - 1]
        keys[piece, r] = keys[piece, r - 1]
    found[piece, place] = u
    keys[piece, place] = key
    return True


@primitive
def _resting(key: int, resting: Any) -> bool:
    place = np.searchsorted(resting, key)
    return place < len(resting) and resting[place] == key


@primitive
def _passes(i: int, j: int, columns: Any, values: Any, model: Any, sieve: Any, trusted: float) -> bool:
    """Whether a pair may reach what the sieve is set for, by s and |m| to `_LOOSE`."""
    noise, k = model[1], model[2]
    d = len(values)
    square = 0.0
    variance = 0.0
    for h in range(d):
        part = (columns[h, i] - columns[h, j]) ** 2
        square += part
        variance += values[h] * part
    if square < trusted * trusted:
        # Rotated coordinates of points that nearly coincide say little of their direction.
        return True
    constant = pair_constant(2.0 * math.sqrt(square), k, noise)
    if 4.0 * constant * constant * variance < sieve[2]:
        return False
    m = constant * (columns[d, j] - columns[d, i]) + columns[d + 1, i] - columns[d + 1, j]
    # |q - μ|² - |p - μ|² cancels: what that may have cost.
    slack = 1e-13 * constant * (columns[d, j] + columns[d, i])
    return abs(m) - slack <= sieve[3]


@kernel
def look_at(
    start: int,
    stop: int,
    chunk: int,
    tiles: Any,
    points: Any,
    order: Any,
    resting: Any,
    scale: Any,
    model: Any,
    aim: Any,
    found: Any,
    keys: Any,
) -> None:
    """Look at every pair of the tiles start to stop and keep the best in row start // chunk of `found` and `keys`.

    ``tiles`` has rows (from, to, from, to): ranges of positions, the same twice for pairs within a cell. ``aim`` is
    (what a pair must reach, how many are wanted, how far under the last of these ties are still kept).
    """
    columns = points[0]
    values = scale[2]
    trusted = 1e-6 * scale[3]
    d, n = len(values), len(order)
    piece = start // chunk
    least, wanted, slack = aim
    sieve = np.empty(4)
    weights = np.empty(d)
    set_sieve(least - slack, scale, model, weights, sieve)
    sums = np.empty(_BLOCK)
    scratch = np.empty(d)
    for row in range(start, stop):
        for i in range(tiles[row, 0], tiles[row, 1]):
            if math.isnan(columns[0, i]):
                continue
            begin = i + 1 if tiles[row, 0] == tiles[row, 2] else tiles[row, 2]
            for block in range(begin, tiles[row, 3], _BLOCK):
                size = min(_BLOCK, tiles[row, 3] - block)
                _weighted_squares(i, block, size, columns, weights, sums)
                if not _any_between(sums, size, sieve[0], sieve[1]):
                    continue
                for t in range(size):
                    if not (sums[t] >= sieve[0] and sums[t] <= sieve[1]):
                        continue
                    j = block + t
                    if not _passes(i, j, columns, values, model, sieve, trusted):
                        continue
                    u = exact_value(i, j, points, model, scratch)
                    if not u >= least - slack:
                        continue
                    p, q = order[i], order[j]
                    key = min(p, q) * n + max(p, q)
                    if _resting(key, resting):
                        continue
                    if keep(u, key, found, keys, piece) and found[piece, wanted - 1] > least:
                        least = found[piece, wanted - 1]
                        set_sieve(least - slack, scale, model, weights, sieve)


@primitive
def _weighted_squares(i: int, block: int, size: int, columns: Any, weights: Any, sums: Any) -> None:
    """Σ weights Δ² of one position with `size` others, and with some more to fill the vector registers.

    Four axes at a time: a sum is then loaded and stored a quarter as often.
    """
    full = (size + LANES - 1) // LANES * LANES
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
def _any_between(sums: Any, size: int, low: float, high: float) -> bool:
    hits = 0
    for t in range(size):
        hits += 1 if (sums[t] >= low) & (sums[t] <= high) else 0
    return hits > 0
