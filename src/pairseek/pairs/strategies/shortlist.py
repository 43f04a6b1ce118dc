"""Shortlist: the expected gain in value of the best few items after the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from pairseek.core.limits import Limit
from pairseek.core.types import Belief, FloatArray, IntArray
from pairseek.core.validation import whole
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.spaces import Space
from pairseek.numerics.jit import kernel
from pairseek.numerics.parallel import for_ranges
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.item_utilities import expected_utilities, promising_rows, utility_covariance
from pairseek.pairs.strategies.base import BaseUtility

# Number of items that may enter the list, and whose pairs are scored.
_PROMISING_ITEMS = 200
# Pairs whose gains one thread computes at a time.
_PAIRS_PER_THREAD_CHUNK = 256
# Pairs whose covariances with all these items are held in memory at a time.
_PAIRS_PER_CHUNK = 1 << 14
# The unlikelier answer counts as at least this likely.
_MIN_PROBABILITY = 1e-12
# Weight of the information, in logits per bit, which breaks ties between pairs that would not change the list.
_INFORMATION_WEIGHT = 1e-3


@dataclass(frozen=True)
class Shortlist(BaseUtility):
    """Expected gain in the mean utility of the best `size` items, from before to after the answer.

    This is the knowledge gradient (Frazier, Powell and Dayanik, 2008) for a list of several items: how much, in logits,
    the answer is expected to raise the mean expected utility of the recommended items. With `size` = 1 it is the
    expected gain of the best pick.

    For a logit z with mean m and standard deviation s, and an item whose utility has covariance c with z, Stein's lemma
    gives E[u | y] = E u ± c E f'(z)/P(y), so the expectation after either answer has a closed form. It is exact for a
    Gaussian belief under constant noise. Under other noise kinds, z is treated as proportional to the difference of the
    two utilities. Where ties are permitted, the gain assumes an answer that is not a tie.

    One thousandth of the information in bits is added, to rank pairs for which neither answer would change the list.

    From larger catalogues, only the 200 most promising items are compared.

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
    most_pairs: ClassVar[int] = _PROMISING_ITEMS * (_PROMISING_ITEMS - 1) // 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size of Shortlist", field="size"))

    def resolved(self, items: Items | Space, prior: Prior) -> Self:  # noqa: ARG002
        """Return the strategy itself; reject a list that would hold every item."""
        n = len(items.coordinates)
        if n and not self.size < min(n, _PROMISING_ITEMS):
            raise InvalidParameter(
                f"Shortlist(size={self.size}) is too long for {n} items: give a size below {min(n, _PROMISING_ITEMS)}",
                field="size",
            )
        return self

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) expected gains, in logits of a typical pair, plus the tie-breaker."""
        points, response = candidates.points, candidates.response
        utility = expected_utilities(points, candidates.item_appeal, belief, response)
        rows = self.promising(candidates, belief)
        likely = candidates.tabulated("probability")
        explained = np.sqrt(np.maximum(candidates.tabulated("explained"), 0.0))
        sign = np.where(candidates.logit_mean < 0.0, -1.0, 1.0) / np.maximum(candidates.utility_deviation, 1e-300)
        unlikely = np.maximum(1.0 - likely, _MIN_PROBABILITY)
        steps = np.stack([sign * explained * np.sqrt(unlikely / likely), sign * explained * np.sqrt(likely / unlikely)])
        out = np.empty(len(candidates))
        for start in range(0, len(candidates), _PAIRS_PER_CHUNK):
            chunk = slice(start, start + _PAIRS_PER_CHUNK)
            used, index = np.unique([candidates.first[chunk], candidates.second[chunk]], return_inverse=True)
            covariance = utility_covariance(points, used, rows, belief, response)
            first, second = index.reshape(2, -1)
            for_ranges(
                _gains,
                len(first),
                _PAIRS_PER_THREAD_CHUNK,
                (np.ascontiguousarray(first), np.ascontiguousarray(second)),
                np.ascontiguousarray(covariance),
                utility[rows],
                np.ascontiguousarray(likely[chunk]),
                np.ascontiguousarray(steps[:, chunk]),
                self.size,
                out[chunk],
            )
        return out / candidates.residual_unit + _INFORMATION_WEIGHT * candidates.tabulated("information")

    def promising(self, candidates: PairFeatures, belief: Belief) -> IntArray:
        """Return the rows of the most promising items: see `promising_rows`."""
        return promising_rows(candidates.points, candidates.item_appeal, belief, candidates.response, _PROMISING_ITEMS)


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
    """Write the gain in the mean of the `size` largest expected utilities, averaged over the two answers.

    `covariance` is between the utilities of the pairs' items (rows) and the items that may enter the list (columns).
    """
    first, second = pairs
    best = np.empty(size)
    for pair in range(start, stop):
        value = 0.0
        for answer in range(3):
            # The third round subtracts the list before any answer.
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
