"""Pairs that passed the sieve: their exact utility, and the list of the best."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pairseek.candidates.branch_and_bound.bounds import value
from pairseek.numerics.jit import inner
from pairseek.numerics.pair_kernels import pair_constant

# Places in an aim: what a pair must reach, how far under it ties are still kept, and how many are wanted.
LEAST, SLACK, WANTED = range(3)


@inner
def exact_value(i: int, j: int, rows: Any, mean: Any, root: Any, appeal: float, model: Any, scratch: Any) -> float:
    """The utility of a pair of positions, computed as `describe` does; -inf where the points coincide."""
    shape, noise, k, penalty, table = model
    d = rows.shape[1]
    margin = 0.0
    square = 0.0
    for h in range(d):
        p, q = rows[i, h], rows[j, h]
        scratch[h] = p - q
        margin += (p - q) * ((mean[h] - p) + (mean[h] - q))
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
    return value(shape, penalty, table, m, constant * 2.0 * math.sqrt(variance), distance, gain)


@inner
def keep(u: float, key: int, found: Any, keys: Any) -> bool:
    """Put a pair into a list sorted by falling utility, then rising key, if it belongs there."""
    place = len(found)
    while place > 0 and (u > found[place - 1] or (u == found[place - 1] and key < keys[place - 1])):
        if place < len(found):
            found[place] = found[place - 1]
            keys[place] = keys[place - 1]
        place -= 1
    if place == len(found):
        return False
    found[place] = u
    keys[place] = key
    return True


@inner
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


@inner
def consider(i: int, j: int, points: Any, model: Any, resting: Any, aim: Any, best: Any, scratch: Any) -> None:
    """Keep a pair of positions if it is good enough and may be asked; raise the aim where it can be."""
    columns, _, order, rows, mean, root = points
    d, n = rows.shape[1], len(order)
    appeal = columns[d + 1, i] - columns[d + 1, j]
    u = exact_value(i, j, rows, mean, root, appeal, model, scratch)
    if not u >= aim[LEAST] - aim[SLACK]:
        return
    p, q = order[i], order[j]
    key = min(p, q) * n + max(p, q)
    found, keys = best
    if not _listed(key, resting) and keep(u, key, found, keys):
        aim[LEAST] = max(aim[LEAST], found[int(aim[WANTED]) - 1])
