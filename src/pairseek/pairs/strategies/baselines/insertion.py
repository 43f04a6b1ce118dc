"""Binary insertion that skips comparisons implied by a region of user points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.pairs.strategies.baselines.planes import bisector
from pairseek.pairs.strategies.baselines.region import Region


@dataclass(frozen=True, slots=True)
class Insertion:
    """A ranking of the first items of an order, and the binary search for the position of the next item.

    Attributes
    ----------
    order
        Rows in the order of insertion.
    ranking
        Rows placed so far, most preferred first. Never mutated.
    low, high
        The next item belongs at a position from `low` to `high` + 1.
    """

    order: tuple[int, ...]
    ranking: list[int]
    low: int = 0
    high: int = 0

    @property
    def pending(self) -> tuple[int, int] | None:
        """The item to be placed and the item in the middle of the remaining range; None if all are placed."""
        if len(self.ranking) == len(self.order):
            return None
        return self.order[len(self.ranking)], self.ranking[(self.low + self.high) // 2]

    def decide(self, *, nearer: bool) -> Self:
        """Return the state after the pending comparison, won (`nearer`) or lost by the item to be placed."""
        middle = (self.low + self.high) // 2
        low, high = (self.low, middle - 1) if nearer else (middle + 1, self.high)
        if low <= high:
            return type(self)(self.order, self.ranking, low, high)
        item = self.order[len(self.ranking)]
        return type(self)(self.order, [*self.ranking[:low], item, *self.ranking[low:]], 0, len(self.ranking))

    def infer(self, region: Region, points: FloatArray) -> Self:
        """Return the state after all comparisons implied by the region, up to the next open one, if any.

        Tens of thousands of comparisons can lie between two open ones. Most need only two numbers: if the distances of
        two items from an interior point differ by more than twice the region's radius, their order is constant over the
        region.

        Parameters
        ----------
        points
            (n, d) coordinates of the items.
        """
        if self.pending is None:
            return self
        distances = np.linalg.norm(points - region.centre, axis=1).tolist()
        threshold = np.inf if region.is_empty else 2.0 * region.reach
        ranking, low, high = self.ranking.copy(), self.low, self.high
        for item in self.order[len(ranking) :]:
            distance = distances[item]
            while low <= high:
                middle = (low + high) // 2
                ahead = distances[ranking[middle]] - distance
                if -threshold <= ahead <= threshold:
                    side = _order(region, points[item], points[ranking[middle]])
                    if side == 0:
                        return type(self)(self.order, ranking, low, high)
                    ahead = side
                if ahead > 0:
                    high = middle - 1
                else:
                    low = middle + 1
            ranking.insert(low, item)
            low, high = 0, len(ranking) - 1
        return type(self)(self.order, ranking, low, high)


def _order(region: Region, item: FloatArray, other: FloatArray) -> int:
    """Return 1 if the item is nearer than the other in the whole region, -1 if it never is, 0 if it varies."""
    plane = bisector(item, other)
    return -1 if plane is None else region.side(*plane)
