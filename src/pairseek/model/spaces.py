"""Continuous spaces, in which any point can be shown."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import NoReturn, Self

import numpy as np

from pairseek.core.types import JSON, FloatArray, Point, Side
from pairseek.errors import InvalidParameter, UnknownItem
from pairseek.model.item_validation import real_array


@dataclass(frozen=True)
class Space:
    """A box in which any point can be shown: colours, faces, recipes, sounds.

    The two sides of a query mirror each other in the chosen plane, at the distance that suits the noise model best.

    Parameters
    ----------
    low
        Lower bounds, one number per dimension.
    high
        Upper bounds, one number per dimension.
    min_separation
        Minimum distance between the two points.
    max_separation
        Maximum distance between the two points. None: limited only by the box.

    Examples
    --------
    >>> import pairseek as ps
    >>> space = ps.Space([0.0, 0.0], [1.0, 1.0])
    >>> query = ps.Search(space, rng=7).ask()
    >>> len(query.left), len(query.right)
    (2, 2)
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    min_separation: float = 0.0
    max_separation: float | None = None

    def __post_init__(self) -> None:
        try:
            low, high = np.atleast_1d(real_array(self.low)), np.atleast_1d(real_array(self.high))
            smallest = float(self.min_separation)
            largest = None if self.max_separation is None else float(self.max_separation)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidParameter(
                f"a Space from {self.low!r} to {self.high!r}, separation {self.min_separation!r} to "
                f"{self.max_separation!r} ({error}): give one number per dimension, and numbers for the separation"
            ) from None
        if low.ndim != 1 or low.shape != high.shape or not len(low):
            raise InvalidParameter(f"low and high have shapes {low.shape} and {high.shape}: give as many of each")
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high)) and np.all(low < high)):
            raise InvalidParameter(
                f"the space from {self.low} to {self.high} is empty or infinite: give finite low < high"
            )
        object.__setattr__(self, "low", tuple(low.tolist()))
        object.__setattr__(self, "high", tuple(high.tolist()))
        largest = float(np.min(high - low)) if largest is None else largest
        if not 0 <= smallest <= largest or largest <= 0:
            raise InvalidParameter(
                f"min_separation {self.min_separation} and max_separation {self.max_separation} leave no pair: "
                f"give 0 <= min <= max, and min at most the narrowest side ({float(np.min(high - low)):g})"
            )

    @property
    def d(self) -> int:
        """Return the number of dimensions."""
        return len(self.low)

    @property
    def coordinates(self) -> FloatArray:
        """Return an empty (0, d) array: a space has no items."""
        return np.empty((0, self.d))

    @property
    def appeal(self) -> FloatArray:
        """Return an empty (0,) array: a space has no items."""
        return np.empty(0)

    @property
    def spread(self) -> None:
        """Return None: a space has no items whose spread could be measured."""

    def scaled(self) -> Self:
        """Return the space itself: its box is its scale."""
        return self

    def _with_coordinates(self, coordinates: FloatArray, appeal: FloatArray) -> Self:  # noqa: ARG002
        """Return the space itself: it has no items to move."""
        return self

    def _side(self, value: object) -> Side:
        """Return a point, as one side of a query."""
        return self.point(value)

    def _side_of(self, row: int, point: FloatArray) -> Side:  # noqa: ARG002
        """Return a point, as one side of a query."""
        return self.point(point)

    def _place_of(self, side: Side) -> tuple[FloatArray, float]:
        """Return the (d,) coordinates and the appeal, 0, of one side of a query."""
        return np.asarray(self.point(side)), 0.0

    def _require_catalogue(self, error: Exception) -> NoReturn:
        """Raise the error, because a space has no catalogue; `Items` return themselves instead."""
        raise error

    def record(self) -> JSON:
        """Return the space as plain data for a file."""
        return {"kind": "space", **asdict(self)}

    @property
    def _fingerprint(self) -> str:
        """Return a text that identifies this space."""
        return repr(self)

    @property
    def _key(self) -> str:
        """Return the key of this space in the record of an experiment."""
        return f"space:{self}"

    @property
    def _summary(self) -> str:
        """Return a short description."""
        return "a space"

    def point(self, value: object) -> Point:
        """Return a point of the space as a tuple of floats."""
        try:
            array = real_array(value)
        except (TypeError, ValueError, OverflowError):
            array = np.empty(0)
        if array.shape != (self.d,) or not np.all(np.isfinite(array)):
            raise UnknownItem(f"{value!r} is not a point of this space: give {self.d} finite numbers")
        return tuple(array.tolist())
