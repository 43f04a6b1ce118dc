"""`SampledPairs`: a uniform random sample of the pairs, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from pairseek.core.limits import BySize, Limit
from pairseek.core.types import IntArray
from pairseek.errors import InvalidParameter
from pairseek.pairs.context import Selection, SelectionContext, best_of

# Largest number of pairs to enumerate when every sample was without a permitted pair.
_LISTABLE = 2_000_000
_DRAWS = 10
# Largest sample in a study of the service.
_MOST_PAIRS = 1_000_000
_MOST_OF_ALL = BySize(lambda size: min(1.0, _MOST_PAIRS / size.pairs), f"1, and {_MOST_PAIRS:,} pairs")


@dataclass(frozen=True)
class SampledPairs:
    """Uniformly drawn pairs: the P_β of algorithm 1 of the paper.

    Parameters
    ----------
    rate
        β, the fraction of all pairs, above 0 and up to 1.
    count
        Number of pairs. Exactly one of `rate` and `count` must be given.
    rescore
        Number of the best pairs to rescore by samples; 0 for none.
    shared
        Whether people who have given the same answers are asked the same pair: the draw then depends on the belief
        instead of the seed of the search.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), candidates=ps.SampledPairs(rate=0.001), rng=7)
    >>> search.ask().info.considered < 1000
    True
    """

    rate: Annotated[float | None, Limit(0, _MOST_OF_ALL)] = None
    count: Annotated[int | None, Limit(1, _MOST_PAIRS)] = None
    rescore: Annotated[int, Limit(0, 2000)] = 512
    shared: bool = False
    name: ClassVar[str] = "sampled_pairs"

    def __post_init__(self) -> None:
        if (self.rate is None) == (self.count is None):
            raise InvalidParameter(
                f"SampledPairs expects rate or count, got {self.rate} and {self.count}: give one", field="rate"
            )
        if self.rate is not None and not 0 < self.rate <= 1:
            raise InvalidParameter(f"SampledPairs(rate={self.rate}): give a share above 0 and up to 1", field="rate")
        if self.count is not None and self.count < 1:
            raise InvalidParameter(f"SampledPairs(count={self.count}): give at least 1", field="count")
        if self.rescore < 0:
            raise InvalidParameter(f"SampledPairs(rescore={self.rescore}): give 0 or more", field="rescore")

    def choose(self, context: SelectionContext, rng: np.random.Generator) -> Selection | None:
        """Return the best of a sample, enlarged while the rules of rest leave none of it; None if all pairs rest."""
        n = len(context.points)
        total = n * (n - 1) // 2
        # A sample has at least one pair, also where the rate times the number of pairs is below 1.
        count = max(1, int(self.rate * total)) if self.rate is not None else min(self.count or 1, total)
        draws = context.generator(self.name) if self.shared else rng
        for _ in range(_DRAWS):
            first, second = sampled_pairs(n, count, draws)
            words = f"{len(first):,} of {total:,} pairs, drawn at random"
            choice = best_of(context, first, second, rng, rescore=self.rescore, words=words)
            if choice is not None:
                return choice
            count = min(4 * count, total, _LISTABLE)
        if total > _LISTABLE:
            return None
        first, second = pair_rows(np.arange(total), n)
        return best_of(context, first, second, rng, rescore=self.rescore, words=f"all {total:,} pairs")


def sampled_pairs(n: int, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw `count` pairs of different rows: without replacement from a tenth of all pairs on, otherwise with."""
    total = n * (n - 1) // 2
    if 10 * count >= total:
        return pair_rows(rng.permutation(total)[:count], n)
    first = rng.integers(0, n, size=count)
    second = rng.integers(0, n - 1, size=count)
    return first, second + (second >= first)


def pair_rows(keys: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return the rows of pairs numbered 0 to n(n-1)/2 - 1: row i of the upper triangle starts at i(2n - i - 1)/2."""
    keys = keys.astype(np.int64)
    i = np.floor((2 * n - 1 - np.sqrt((2.0 * n - 1) ** 2 - 8.0 * keys)) / 2).astype(np.int64)
    # Rounding of the square root may shift i by one at the ends of a row.
    i -= (i * (2 * n - i - 1) // 2) > keys
    i += ((i + 1) * (2 * n - i - 2) // 2) <= keys
    return i, keys - i * (2 * n - i - 1) // 2 + i + 1
