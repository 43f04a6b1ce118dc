"""Simulated users: a point and a response model."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairseek.core.text import plural
from pairseek.core.types import FloatArray, Query, Side
from pairseek.core.validation import seed_of
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.responses import Response
from pairseek.model.spaces import Space


@dataclass(frozen=True, eq=False)
class SimulatedUser:
    """A simulated person who answers queries by the response model.

    Answers are a pure function of the seed and the query, so repeating a query repeats its answer.

    Parameters
    ----------
    point
        (d,) user point.
    response
        Response model; its k must be set. With a residual, the seed and the id of an item determine the user's residual
        utility of it. None: the user always chooses the nearer item, and ignores appeal, which cannot be weighed
        against distance without k.
    rng
        A seed, or a generator from which to draw one.

    Examples
    --------
    >>> import pairseek as ps
    >>> items = ps.Items([[0.0], [4.0]], ids=["near", "far"])
    >>> person = ps.SimulatedUser([0.0], ps.Logistic(k=10.0), rng=1)
    >>> person.answer(items, ps.Search(items, rng=7).ask())
    'near'
    """

    point: FloatArray
    response: Response | None
    seed: int

    def __init__(
        self, point: npt.ArrayLike, response: Response | None, rng: int | np.random.Generator | None = None
    ) -> None:
        try:
            coordinates = np.array(point, dtype=np.float64) if np.isrealobj(point) else np.empty(())
        except (TypeError, ValueError):
            coordinates = np.empty(())
        if coordinates.ndim != 1 or not np.all(np.isfinite(coordinates)):
            raise InvalidParameter(
                f"a user's point is {point!r}: give d finite numbers, and [] for items without coordinates",
                field="point",
            )
        coordinates.flags.writeable = False
        if response is not None and not isinstance(response, Response):
            raise InvalidParameter(
                f"a user's response is {response!r}: give an instance, such as Logistic(k=1.5), or None",
                field="response",
            )
        if response is not None:
            _ = response.constant, response.lapse_rate  # raises InvalidParameter if they are not set
        generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(seed_of(rng))
        seed = int(generator.integers(2**63))
        for name, value in (("point", coordinates), ("response", response), ("seed", seed)):
            object.__setattr__(self, name, value)

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self.point.flags.writeable = False  # unpickled arrays are writable

    def answer(self, items: Items | Space, query: Query, *, repeat: int | None = None) -> Side | None:
        """Return the preferred side; None for a tie, if the response has a tie width.

        Parameters
        ----------
        items
            The items or the space of the query.
        query
            The pair.
        repeat
            How often this user has answered this pair before. If given, the answer depends only on the pair and this
            number, not on the query's id or sides, so that users can be paired across strategies.
        """
        if len(self.point) != items.d:
            raise InvalidParameter(
                f"the user's point has {plural(len(self.point), 'number')} and the items have "
                f"{plural(items.d, 'dimension')}: give one number per dimension",
                field="point",
            )
        (left, left_appeal), (right, right_appeal) = (items._place_of(side) for side in (query.left, query.right))
        appeal = left_appeal - right_appeal
        if self.response is None:
            nearer = np.sum((self.point - left) ** 2) <= np.sum((self.point - right) ** 2)
            return query.left if nearer else query.right
        slopes, offsets = self.response.planes(left[None], right[None], appeal)
        logit = slopes[0] @ self.point + offsets
        if self.response.residual_deviation > 0.0:
            scale = self.response.typical_reliability * self.response.residual_deviation
            logit = logit + scale * (self._residual(query.left) - self._residual(query.right))
        for_left, tie, for_right = (
            float(part[0])
            for part in (
                self.response.probability(logit),
                self.response.tie_probability(logit),
                self.response.probability(-logit),
            )
        )
        if repeat is None:
            draw = np.random.default_rng([self.seed, 0, zlib.crc32(query.id.encode())]).random()
            return query.left if draw < for_left else None if draw < for_left + tie else query.right
        # The draw decides for the lexicographically smaller point, so that the order of the sides does not matter.
        in_order = left.tolist() <= right.tolist()
        ordered = np.concatenate([left, right] if in_order else [right, left])
        draw = np.random.default_rng([self.seed, 1, repeat, zlib.crc32(ordered.tobytes())]).random()
        for_lower = for_left if in_order else for_right
        if for_lower <= draw < for_lower + tie:
            return None
        return query.left if (draw < for_lower) == in_order else query.right

    def _residual(self, side: Side) -> float:
        """Return the standardized residual utility of an item."""
        return float(np.random.default_rng([self.seed, 2, zlib.crc32(repr(side).encode())]).standard_normal())
