"""Exact utilities of pairs that pass the prefilter, and the sorted list of the best."""

from __future__ import annotations

import math

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.jit import inner
from pairseek.numerics.pair_kernels import pair_constant
from pairseek.pairs.sources.branch_and_bound.bounds import PointArrays, UtilityModel, utility_value

# Indices into a target: utility to reach, tolerance below it within which ties are kept, number of pairs to find.
TARGET_UTILITY = 0
TARGET_SLACK = 1
TARGET_COUNT = 2


@inner
def exact_value(
    i: int,
    j: int,
    rows: FloatArray,
    mean: FloatArray,
    root: FloatArray,
    credit: float,
    model: UtilityModel,
    scratch: FloatArray,
) -> float:
    """Return the utility of a pair of positions, by the arithmetic of `pair_geometry`; -inf if the points coincide.

    ``credit`` is the difference of appeal/k.
    """
    shape, noise, k, penalty, table, _ = model
    d = rows.shape[1]
    margin = credit
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
    gain = reach / variance if variance > 0.0 else 0.0
    s = constant * 2.0 * math.sqrt(variance)
    return utility_value(shape, penalty, table, constant * abs(margin), s, abs(margin) / length, gain)


@inner
def insert_sorted(u: float, key: int, utilities: FloatArray, keys: IntArray) -> bool:
    """Insert a pair into a list sorted by descending utility, then ascending key; return whether it fits."""
    slot = len(utilities)
    while slot > 0 and (u > utilities[slot - 1] or (u == utilities[slot - 1] and key < keys[slot - 1])):
        if slot < len(utilities):
            utilities[slot] = utilities[slot - 1]
            keys[slot] = keys[slot - 1]
        slot -= 1
    if slot == len(utilities):
        return False
    utilities[slot] = u
    keys[slot] = key
    return True


@inner
def contains(key: int, keys: IntArray) -> bool:
    """Return whether sorted keys contain a key, by binary search."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < len(keys) and keys[low] == key


@inner
def consider(
    i: int,
    j: int,
    points: PointArrays,
    model: UtilityModel,
    resting: IntArray,
    target: FloatArray,
    best: tuple[FloatArray, IntArray],
    scratch: FloatArray,
) -> None:
    """Insert a pair of positions into the best list if it reaches the target and may be asked; raise the target."""
    _, _, order, rows, mean, root, credit = points
    n = len(order)
    u = exact_value(i, j, rows, mean, root, credit[i] - credit[j], model, scratch)
    if not u >= target[TARGET_UTILITY] - target[TARGET_SLACK]:
        return
    p, q = order[i], order[j]
    key = min(p, q) * n + max(p, q)
    utilities, keys = best
    if not contains(key, resting) and insert_sorted(u, key, utilities, keys):
        target[TARGET_UTILITY] = max(target[TARGET_UTILITY], utilities[int(target[TARGET_COUNT]) - 1])
