"""`SampledPairs`: a uniform random sample of all pairs, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from pairseek.core.limits import BySize, Limit
from pairseek.core.types import IntArray
from pairseek.errors import InvalidParameter
from pairseek.pairs.context import Selection, SelectionContext, best_of

# If no sample contained a permitted pair, up to this many pairs are enumerated.
_MAX_ENUMERATED = 2_000_000
_MAX_ATTEMPTS = 10
# Largest sample in a study of the service.
_MAX_PAIRS = 1_000_000
_MAX_RATE = BySize(lambda size: min(1.0, _MAX_PAIRS / size.pairs), f"1, and {_MAX_PAIRS:,} pairs")


@dataclass(frozen=True)
class SampledPairs:
    """Uniformly drawn pairs: P_β in algorithm 1 of the paper.

    Parameters
    ----------
    rate
        β, the fraction of all pairs, above 0 and up to 1.
    count
        Number of pairs. Exactly one of `rate` and `count` must be given.
    rescore
        Number of best pairs to rescore by samples; 0 for none.
    shared
        Whether people who have given identical answers are asked the same pair: the draw then depends on the belief
        instead of the search's seed.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), candidates=ps.SampledPairs(rate=0.001), rng=7)
    >>> search.ask().info.considered < 1000
    True
    """

    rate: Annotated[float | None, Limit(0, _MAX_RATE)] = None
    count: Annotated[int | None, Limit(1, _MAX_PAIRS)] = None
    rescore: Annotated[int, Limit(0, 2000)] = 512
    shared: bool = False
    name: ClassVar[str] = "sampled_pairs"

    def __post_init__(self) -> None:
        if (self.rate is None) == (self.count is None):
            raise InvalidParameter(
                f"SampledPairs(rate={self.rate}, count={self.count}) is ambiguous: give either rate or count",
                field="rate",
            )
        if self.rate is not None and not 0 < self.rate <= 1:
            raise InvalidParameter(
                f"SampledPairs(rate={self.rate}) is invalid: give a fraction above 0 and up to 1", field="rate"
            )
        if self.count is not None and self.count < 1:
            raise InvalidParameter(f"SampledPairs(count={self.count}) is too few: give at least 1", field="count")
        if self.rescore < 0:
            raise InvalidParameter(f"SampledPairs(rescore={self.rescore}) is negative: give 0 or more", field="rescore")

    def choose(self, context: SelectionContext, rng: np.random.Generator) -> Selection | None:
        """Return the best pair of a sample, enlarged while all its pairs rest; None if no permitted pair is found."""
        n = len(context.points)
        total = n * (n - 1) // 2
        # A sample has at least one pair, even if the rate times the number of pairs is below 1.
        count = max(1, int(self.rate * total)) if self.rate is not None else min(self.count or 1, total)
        draws = context.generator(self.name) if self.shared else rng
        for _ in range(_MAX_ATTEMPTS):
            first, second = sampled_pairs(n, count, draws)
            words = f"{len(first):,} of {total:,} pairs, drawn at random"
            choice = best_of(context, first, second, rng, rescore=self.rescore, words=words)
            if choice is not None:
                return choice
            count = min(4 * count, total, _MAX_ENUMERATED)
        if total > _MAX_ENUMERATED:
            return None
        first, second = pair_rows(np.arange(total), n)
        return best_of(context, first, second, rng, rescore=self.rescore, words=f"all {total:,} pairs")


def sampled_pairs(n: int, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw `count` pairs of different rows; without replacement if they are at least a tenth of all pairs."""
    total = n * (n - 1) // 2
    if 10 * count >= total:
        return pair_rows(rng.permutation(total)[:count], n)
    first = rng.integers(0, n, size=count)
    second = rng.integers(0, n - 1, size=count)
    return first, second + (second >= first)


def pair_rows(keys: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return the rows of pairs numbered 0 to n(n-1)/2 - 1; row i of the upper triangle starts at i(2n - i - 1)/2."""
    keys = keys.astype(np.int64)
    i = np.floor((2 * n - 1 - np.sqrt((2.0 * n - 1) ** 2 - 8.0 * keys)) / 2).astype(np.int64)
    # Rounding of the square root may shift i by one at the ends of a row.
    i -= (i * (2 * n - i - 1) // 2) > keys
    i += ((i + 1) * (2 * n - i - 2) // 2) <= keys
    return i, keys - i * (2 * n - i - 1) // 2 + i + 1
