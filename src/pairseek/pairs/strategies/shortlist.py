"""Shortlist: the expected value of the best few items after the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from pairseek.core.limits import Limit
from pairseek.core.types import Belief, FloatArray, IntArray
from pairseek.core.validation import whole
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items, Space
from pairseek.model.priors import Prior
from pairseek.numerics.jit import kernel
from pairseek.numerics.parallel import for_ranges
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.item_utilities import expected_utilities, highest_reach, utility_covariance
from pairseek.pairs.strategies.base import BaseUtility

# Items that may enter the list, and among which pairs are asked.
_PROMISING = 200
_CHUNK = 256
# Pairs whose covariances with all items are held at a time.
_HELD = 1 << 14
_LEAST = 1e-12
_TIE_BREAKER = 1e-3


@dataclass(frozen=True)
class Shortlist(BaseUtility):
    """E Σ_i u_i of the best `size` items after the answer, less that before it, divided by `size`.

    This is the knowledge gradient (Frazier, Powell and Dayanik, 2008) for a list of several items: the answer is
    expected to raise the mean expected utility of the items that would be recommended by so many logits. With
    `size` = 1 it is the gain of the pick.

    For a logit z of mean m and deviation s, and an item whose utility has the covariance c with z, Stein's lemma gives
    E[u | y] = E u ± c E f'(z)/P(y), so that the expectation after either answer is a formula. It is exact for a
    Gaussian belief under constant noise. Under the other kinds, z is taken to be proportional to the difference of the
    two utilities; where ties are offered, the value is that of an answer that is no tie.

    A thousandth of the information in bits is added, for pairs of which neither answer would change the list.

    Of more than 200 items, the 200 that reach highest are compared.

    Parameters
    ----------
    size
        Length of the list: at least 1, and below the number of items.

    Examples
    --------
    >>> import pairseek as ps
    >>> strategy = ps.Shortlist(3)   # as with goal="list"
    >>> search = ps.Search(ps.datasets.colours(), strategy=strategy, rng=7)
    >>> search.ask().info.strategy
    'shortlist'
    """

    size: Annotated[int, Limit(1, 100)] = 3
    name: ClassVar[str] = "shortlist"
    most_pairs: ClassVar[int] = _PROMISING * (_PROMISING - 1) // 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size of Shortlist", field="size"))

    def resolved(self, items: Items | Space, prior: Prior) -> Self:  # noqa: ARG002
        """Return the strategy itself; reject a list that holds every item."""
        n = len(items.coordinates)
        if n and not self.size < min(n, _PROMISING):
            raise InvalidParameter(
                f"Shortlist(size={self.size}) has no item to leave out of {n}: give a size below {min(n, _PROMISING)}",
                field="size",
            )
        return self

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) expected gains in logits of a typical person under constant noise, and a little more."""
        points, response = candidates.points, candidates.response
        utility = expected_utilities(points, candidates.item_appeal, belief, response)
        rows = self.promising(candidates, belief)
        likely = candidates.tabulated("probability")
        explained = np.sqrt(np.maximum(candidates.tabulated("explained"), 0.0))
        sign = np.where(candidates.logit_mean < 0.0, -1.0, 1.0) / np.maximum(candidates.utility_deviation, 1e-300)
        unlikely = np.maximum(1.0 - likely, _LEAST)
        steps = np.stack([sign * explained * np.sqrt(unlikely / likely), sign * explained * np.sqrt(likely / unlikely)])
        out = np.empty(len(candidates))
        for start in range(0, len(candidates), _HELD):
            some = slice(start, start + _HELD)
            used, place = np.unique([candidates.first[some], candidates.second[some]], return_inverse=True)
            covariance = utility_covariance(points, used, rows, belief, response)
            first, second = place.reshape(2, -1)
            for_ranges(
                _gains,
                len(first),
                _CHUNK,
                (np.ascontiguousarray(first), np.ascontiguousarray(second)),
                np.ascontiguousarray(covariance),
                utility[rows],
                np.ascontiguousarray(likely[some]),
                np.ascontiguousarray(steps[:, some]),
                self.size,
                out[some],
            )
        return out + _TIE_BREAKER * candidates.tabulated("information")

    def promising(self, candidates: PairFeatures, belief: Belief) -> IntArray:
        """Return the rows of the items that reach highest."""
        return highest_reach(candidates.points, candidates.item_appeal, belief, candidates.response, _PROMISING)


@kernel
def _gains(
    start: int,
    stop: int,
    pairs: tuple[IntArray, IntArray],
    covariance: FloatArray,
    mean: FloatArray,
    likely: FloatArray,
    steps: FloatArray,
    size: int,
    out: FloatArray,
) -> None:
    """Write the gain of the mean of the `size` largest expectations, averaged over the two answers.

    `covariance` is that of the utilities of the items of pairs (rows) with those that may enter the list (columns).
    """
    first, second = pairs
    best = np.empty(size)
    for pair in range(start, stop):
        value = 0.0
        for answer in range(3):
            # The list before any answer comes last, with the weight -1.
            step = steps[0, pair] if answer == 0 else (-steps[1, pair] if answer == 1 else 0.0)
            weight = likely[pair] if answer == 0 else (1.0 - likely[pair] if answer == 1 else -1.0)
            for k in range(size):
                best[k] = -np.inf
            for i in range(len(mean)):
                u = mean[i] + step * (covariance[first[pair], i] - covariance[second[pair], i])
                if u > best[size - 1]:
                    k = size - 1
                    while k > 0 and best[k - 1] < u:
                        best[k] = best[k - 1]
                        k -= 1
                    best[k] = u
            total = 0.0
            for k in range(size):
                total += best[k]
            value += weight * total
        out[pair] = max(value / size, 0.0)
