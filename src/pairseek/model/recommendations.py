"""Recommended items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pairseek.core import notebook
from pairseek.core.types import ItemId
from pairseek.model.items import Items


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A recommended item.

    Attributes
    ----------
    id, label
        Id and label of the item.
    probability
        Posterior probability that it is the best of all items.
    expected_utility
        E[appeal - k|w - x|² + ε], where ε is the residual utility, if the response has one. k is taken at reliability
        1: the reliability scales all utilities alike, so it does not affect the order.
    distance
        Distance from the estimated point.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.Items([[0.0], [1.0], [2.0]], ids=["a", "b", "c"]), rng=7)
    >>> best = search.recommend(1)[0]
    >>> best.id in "abc", 0 <= best.probability <= 1
    (True, True)
    """

    id: ItemId
    label: str
    probability: float
    expected_utility: float
    distance: float

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("id", self.id),
            ("best with probability", notebook.bar(self.probability)),
            ("expected utility", self.expected_utility),
            ("distance", self.distance),
        ]
        return notebook.panel(self.label, notebook.facts(rows))


class Recommendations(list[Recommendation]):
    """List of recommended items, best first, shown in notebooks as a table and a map."""

    def __init__(self, recommended: Iterable[Recommendation] = (), items: Items | None = None) -> None:
        super().__init__(recommended)
        self._items = items

    def _repr_html_(self) -> str:
        title = f"{len(self)} recommended items" if len(self) != 1 else "1 recommended item"
        if self._items is None:
            return notebook.panel(title, *(item._repr_html_() for item in self))
        rows = [self._items.index(item.id) for item in self]
        drawing, note = notebook.items_map(self._items, {row: self._items.labels[row] for row in rows})
        return notebook.panel(title, recommended_rows(self._items, self), drawing, note=note)


def recommended_rows(items: Items, recommended: Sequence[Recommendation]) -> notebook.Html:
    """Return a table of recommended items."""
    bars = [notebook.bar(item.probability) for item in recommended]
    return notebook.item_rows(items, [items.index(item.id) for item in recommended], {"best with probability": bars})
