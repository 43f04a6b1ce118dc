"""Metrics of estimates, embeddings and credible balls against a known truth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairseek.core.types import FloatArray, IntArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items

# Pairs or triplets evaluated at a time, which limits memory to a few megabytes.
_ROWS_PER_CHUNK = 1 << 18


def _checked_array(name: str, values: npt.ArrayLike, shape: str, *axes: int) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} is {values!r}: give {shape} numbers") from None
    if array.ndim not in axes or not array.size:
        raise InvalidParameter(f"{name} has shape {array.shape}: give {shape} numbers")
    if not np.all(np.isfinite(array)):
        position = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        raise InvalidParameter(f"{name} is {array[position]} at {position}: give finite numbers")
    return array


def _checked_count(name: str, value: int, least: int, most: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidParameter(f"{name} is {value!r}: give a whole number")
    if value < least or (most is not None and value > most):
        allowed = f"at least {least}" if most is None else f"from {least} to {most}, the number of items"
        raise InvalidParameter(f"{name} is {value}: give a whole number {allowed}")
    return int(value)


def squared_error(estimate: npt.ArrayLike, point: npt.ArrayLike) -> float:
    """Return |estimate - point|², whose mean over trials is the paper's MSE.

    Parameters
    ----------
    estimate, point
        Both (d,).

    Examples
    --------
    >>> squared_error([0.0, 1.0], [3.0, 5.0])
    25.0
    """
    estimated, true = _checked_array("estimate", estimate, "(d,)", 1), _checked_array("point", point, "(d,)", 1)
    if estimated.shape != true.shape:
        raise InvalidParameter(f"estimate has {len(estimated)} dimensions, point has {len(true)}: give the same number")
    return float(np.sum((estimated - true) ** 2))


def kendall_tau_distance(
    items: Items,
    estimate: npt.ArrayLike,
    point: npt.ArrayLike,
    *,
    batch: int = 15,
    batches: int | None = 1000,
    rng: int | np.random.Generator | None = None,
) -> float:
    """Return the fraction of item pairs in the wrong order (section 4, "Item ranking evaluation").

    Items are ranked by distance from the estimate and by distance from the true point. The normalized Kendall tau
    distance between the two rankings is 0 for equal orders and 1 for reversed ones; a pair tied in only one ranking
    counts half. The average over random batches of items, drawn without replacement, estimates the distance over all
    pairs; ``batches=None`` computes it exactly, in O(n²) time (a second for ten thousand items).

    As in the paper, appeal is ignored: this metric is about the position of the point, not about which item wins.

    Parameters
    ----------
    items
        The items to rank.
    estimate, point
        (d,) estimated point, and true user point.
    batch
        Items per batch, from 2 to n.
    batches
        Number of batches; None for all pairs of all items.
    rng
        Seed or generator, required to draw batches.
    """
    estimated, true = (
        _squared_distances(items, _checked_array(name, value, f"({items.d},)", 1), name)
        for name, value in (("estimate", estimate), ("point", point))
    )
    if batches is None:
        return _all_pairs_distance(estimated, true)
    if rng is None:
        raise InvalidParameter("rng is None, but batches are random: give a seed, or batches=None for all pairs")
    batch, batches = _checked_count("batch", batch, 2, items.n), _checked_count("batches", batches, 1)
    generator = np.random.default_rng(rng)
    first, second = np.triu_indices(batch, 1)
    step = max(1, _ROWS_PER_CHUNK // len(first))
    wrong = 0.0
    for start in range(0, batches, step):
        drawn = _subsets(items.n, batch, min(step, batches - start), generator)
        wrong += _disagreement(estimated[drawn], true[drawn], first, second)
    return wrong / (batches * len(first))


def _squared_distances(items: Items, point: FloatArray, name: str) -> FloatArray:
    if len(point) != items.d:
        raise InvalidParameter(f"{name} has {len(point)} dimensions but the items have {items.d}: give {items.d}")
    return np.asarray(((items.coordinates - point) ** 2).sum(axis=1))


def _subsets(n: int, size: int, count: int, rng: np.random.Generator) -> IntArray:
    """Draw (count, size) rows of distinct numbers below n, each subset equally likely (Floyd's algorithm by column).

    The order within a row is not uniform, which does not matter here.
    """
    drawn = np.empty((count, size), dtype=np.int64)
    for column, top in enumerate(range(n - size, n)):
        pick = rng.integers(0, top + 1, size=count)
        taken = (drawn[:, :column] == pick[:, None]).any(axis=1)
        drawn[:, column] = np.where(taken, top, pick)
    return drawn


def _disagreement(estimated: FloatArray, true: FloatArray, first: IntArray, second: IntArray) -> float:
    """Return the sum of |sign - sign|/2 over pairs of columns: 1 if reversed, 1/2 if tied in one of the two."""
    estimated_order = np.sign(estimated[:, first] - estimated[:, second])
    true_order = np.sign(true[:, first] - true[:, second])
    return float(np.abs(estimated_order - true_order).sum()) / 2.0


def _all_pairs_distance(estimated: FloatArray, true: FloatArray) -> float:
    n = len(estimated)
    step = max(1, _ROWS_PER_CHUNK // n)
    wrong = 0.0
    for start in range(0, n, step):
        # Rows against all: every pair is counted twice, and an item paired with itself adds nothing.
        rows = slice(start, start + step)
        estimated_order = np.sign(estimated[rows, None] - estimated)
        true_order = np.sign(true[rows, None] - true)
        wrong += float(np.abs(estimated_order - true_order).sum()) / 2.0
    return wrong / (n * (n - 1))


def triplet_error(items: Items | npt.ArrayLike, triplets: npt.ArrayLike) -> float:
    """Return the fraction of triplets that the embedding violates (supplement, "triplet error fraction").

    A triplet (anchor, near, far) states that the anchor is more similar to ``near`` than to ``far``. It is violated if
    ``near`` is farther from the anchor than ``far``; equal distances count half.

    Parameters
    ----------
    items
        `Items`, or (n, d) coordinates.
    triplets
        (m, 3) rows of the items, counted from 0 (not ids).

    Examples
    --------
    >>> triplet_error([[0.0], [1.0], [5.0]], [[0, 1, 2], [1, 2, 0]])
    0.5
    """
    points = items.coordinates if isinstance(items, Items) else _checked_array("coordinates", items, "(n, d)", 2)
    rows = np.asarray(triplets)
    if rows.ndim != 2 or rows.shape[1] != 3 or not len(rows):
        raise InvalidParameter(f"triplets have shape {rows.shape}: give (m, 3) rows of anchor, near and far, m >= 1")
    if not np.issubdtype(rows.dtype, np.integer):
        raise InvalidParameter(f"triplets have type {rows.dtype}: give whole numbers, the rows of the items")
    outside = (rows < 0) | (rows >= len(points))
    if outside.any():
        row = int(outside.any(axis=1).argmax())
        raise InvalidParameter(
            f"triplet {row} is {rows[row].tolist()}: there are {len(points)} items, give rows from 0 to "
            f"{len(points) - 1}"
        )
    step = max(1, _ROWS_PER_CHUNK // points.shape[1])
    wrong = 0.0
    for start in range(0, len(rows), step):
        anchor, near, far = (points[column] for column in rows[start : start + step].T)
        excess = np.sign(((anchor - near) ** 2).sum(axis=1) - ((anchor - far) ** 2).sum(axis=1))
        wrong += float((1.0 + excess).sum()) / 2.0
    return wrong / len(rows)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Fraction of trials in which the true point was within the credible ball.

    Attributes
    ----------
    share
        Fraction of the `count` trials.
    standard_error
        Standard error of `share`, sqrt(share (1 - share) / count). It is 0 for shares 0 and 1; to test a nominal level,
        use sqrt(level (1 - level) / count) instead.
    count
        Number of trials.
    """

    share: float
    standard_error: float
    count: int


def coverage(distances: npt.ArrayLike, radii: npt.ArrayLike) -> Coverage:
    """Return the fraction of trials in which the true point is within the credible ball around the estimate.

    A calibrated posterior gives about the level of the radii, if points are drawn from the prior and answers from the
    response model of the search.

    Parameters
    ----------
    distances
        (m,) |estimate - point| of each trial (not squared).
    radii
        (m,) ``estimate.credible_radius(level)`` of each trial, or one number for all trials.

    Examples
    --------
    >>> coverage([0.1, 0.2, 0.9, 0.3], [0.5, 0.5, 0.5, 0.2])
    Coverage(share=0.5, standard_error=0.25, count=4)
    """
    lengths = _checked_array("distances", distances, "(m,)", 1)
    limits = _checked_array("radii", radii, f"one or ({len(lengths)},)", 0, 1)
    count = len(lengths)
    if limits.ndim == 1 and limits.shape != lengths.shape:
        raise InvalidParameter(f"{len(limits)} radii for {count} distances: give one per distance, or a single one")
    for name, values in (("distances", lengths), ("radii", limits)):
        if values.min() < 0:
            raise InvalidParameter(f"the smallest of {name} is {values.min():g}: give lengths of at least 0")
    share = float(np.mean(lengths <= limits))
    return Coverage(share, math.sqrt(share * (1.0 - share) / count), count)
