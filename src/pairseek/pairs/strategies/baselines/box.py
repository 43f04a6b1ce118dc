"""Validation and defaults of the `box` of a procedure, the bounds of the user point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.priors import Prior, box_of, moments_of

BoxLimit: TypeAlias = float | tuple[float, ...]
BoxLimits: TypeAlias = tuple[BoxLimit, BoxLimit]
"""Lower and upper bounds of the coordinates: one number for all dimensions, or one for each."""

GAUSSIAN_REACH = 4.0
"""Half width of the box in standard deviations, for a prior without bounds."""


def checked_box(box: object, who: str) -> BoxLimits | None:
    """Validate a box and return it as plain floats and tuples."""
    if box is None:
        return None
    if not isinstance(box, Sequence) or isinstance(box, str) or len(box) != 2:
        raise InvalidParameter(f"box of {who} is {box!r}: give (low, high), or None for the prior's box", field="box")
    bounds = [_bound(value, box, who) for value in box]
    low, high = (np.asarray(value) for value in bounds)
    if low.ndim and high.ndim and low.shape != high.shape:
        raise InvalidParameter(
            f"box of {who} has {low.size} lower and {high.size} upper bounds: give one of each per dimension",
            field="box",
        )
    if not np.all(low < high):
        raise InvalidParameter(
            f"box of {who} from {bounds[0]} to {bounds[1]} is empty: low must be below high", field="box"
        )
    return bounds[0], bounds[1]


def _bound(value: object, box: object, who: str) -> BoxLimit:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim > 1 or not array.size or not np.all(np.isfinite(array)):
        raise InvalidParameter(
            f"box of {who} is {box!r}: give finite numbers, one for all dimensions or one per dimension", field="box"
        )
    return float(array) if array.ndim == 0 else tuple(array.tolist())


def prior_box(prior: Prior, d: int) -> BoxLimits:
    """Return the prior's box; where it is unbounded, the mean plus and minus four standard deviations."""
    low, high = box_of(prior, d)
    mean, covariance = moments_of(prior, d)
    reach = GAUSSIAN_REACH * np.sqrt(np.diag(covariance))
    low = np.where(np.isfinite(low), low, mean - reach)
    high = np.where(np.isfinite(high), high, mean + reach)
    return tuple(low.tolist()), tuple(high.tolist())


def box_bounds(box: BoxLimits | None, items: Items, who: str) -> tuple[FloatArray, FloatArray]:
    """Return (d,) lower and upper bounds of the box or, without a box, of the items, padded if they are constant."""
    if box is None:
        low, high = items.coordinates.min(axis=0), items.coordinates.max(axis=0)
        pad = np.where(high > low, 0.0, 0.5 * float(np.max(high - low)))
        return low - pad, high + pad
    bounds = []
    for value in box:
        array = np.asarray(value, dtype=np.float64)
        if array.ndim and len(array) != items.d:
            raise InvalidParameter(
                f"box of {who} has {len(array)} dimensions, but the items have {items.d}: give one bound per dimension",
                field="box",
            )
        bounds.append(np.broadcast_to(array, (items.d,)).copy())
    return bounds[0], bounds[1]
