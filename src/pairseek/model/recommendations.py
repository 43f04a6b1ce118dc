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
        The item.
    probability
        Posterior probability that it is the best of all items.
    expected_utility
        E[appeal - k|w - x|² + ε], with the k of a reliability of 1, which scales all utilities alike, and the residual
        utility ε where the response has any.
    distance
        From the estimated point.

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
        rows = [("id", self.id), ("best with probability", notebook.bar(self.probability))]
        more = [("expected utility", self.expected_utility), ("distance", self.distance)]
        return notebook.panel(self.label, notebook.facts([*rows, *more]))


class Recommendations(list[Recommendation]):
    """A list of recommended items, best first, which a notebook shows as a table with a map."""

    def __init__(self, found: Iterable[Recommendation] = (), items: Items | None = None) -> None:
        super().__init__(found)
        self._items = items

    def _repr_html_(self) -> str:
        title = f"{len(self)} recommended items" if len(self) != 1 else "1 recommended item"
        if self._items is None:
            return notebook.panel(title, *(one._repr_html_() for one in self))
        rows = [self._items.index(one.id) for one in self]
        drawing, note = notebook.items_map(self._items, {row: self._items.labels[row] for row in rows})
        return notebook.panel(title, recommended_rows(self._items, self), drawing, note=note)


def recommended_rows(items: Items, found: Sequence[Recommendation]) -> notebook.Html:
    """Return a table of recommended items."""
    chances = [notebook.bar(one.probability) for one in found]
    return notebook.item_rows(items, [items.index(one.id) for one in found], {"best with probability": chances})
