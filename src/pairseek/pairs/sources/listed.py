"""`ListedPairs`: the best pair of an explicit list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from pairseek.core.limits import BySize, Limit
from pairseek.core.text import plural
from pairseek.errors import InvalidParameter
from pairseek.pairs.context import Selection, SelectionContext, best_of

_LAST_ROW = BySize(lambda size: size.items - 1, "the last row of the items")


@dataclass(frozen=True)
class ListedPairs:
    """The best pair of an explicit list, such as pairs with recorded answers or printed pairs.

    Parameters
    ----------
    pairs
        Rows of the two items of each pair, counted from 0 in the order of `Items.ids`; their order does not matter.
    rescore
        Number of best pairs to rescore by samples; 0 for none.

    Examples
    --------
    >>> import pairseek as ps
    >>> items = ps.Items([[0.0], [1.0], [2.0]], ids=["a", "b", "c"])
    >>> search = ps.Search(items, candidates=ps.ListedPairs(((0, 2),)), rng=7)
    >>> query = search.ask()
    >>> sorted([query.left, query.right])
    ['a', 'c']
    """

    pairs: Annotated[tuple[tuple[int, int], ...], Limit(0, _LAST_ROW, entries=200_000)]
    rescore: Annotated[int, Limit(0, 2000)] = 32
    name: ClassVar[str] = "listed_pairs"

    def __post_init__(self) -> None:
        try:
            rows = np.array(self.pairs, dtype=np.float64).reshape(-1, 2)
        except (TypeError, ValueError):
            rows = np.full((1, 2), np.nan)
        if not len(rows) or not np.all((rows >= 0) & (rows == np.floor(rows))) or np.any(rows[:, 0] == rows[:, 1]):
            raise InvalidParameter(
                "ListedPairs received no or invalid pairs: give pairs of different rows, such as ((0, 3), (2, 5))",
                field="pairs",
            )
        if self.rescore < 0:
            raise InvalidParameter(f"ListedPairs(rescore={self.rescore}) is negative: give 0 or more", field="rescore")
        pairs = tuple((int(first), int(second)) for first, second in rows)
        object.__setattr__(self, "pairs", pairs)

    def choose(self, context: SelectionContext, rng: np.random.Generator) -> Selection | None:
        """Return the best pair of the list; None if the rest rules leave none."""
        first, second = np.array(self.pairs, dtype=np.int64).T
        n = len(context.points)
        last = int(max(first.max(), second.max()))
        if last >= n:
            raise InvalidParameter(
                f"ListedPairs names row {last}, but there are only {n} items: use rows from 0 to {n - 1}", field="pairs"
            )
        words = f"{plural(len(self.pairs), 'listed pair')}"
        return best_of(
            context, np.minimum(first, second), np.maximum(first, second), rng, rescore=self.rescore, words=words
        )
