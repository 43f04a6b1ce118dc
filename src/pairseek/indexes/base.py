"""Protocol of vector databases, and the catalogue that a search recommends from: `CatalogueIndex`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from pairseek.core.types import Belief, FloatArray, ItemId
from pairseek.core.validation import whole
from pairseek.errors import InvalidItems, InvalidParameter, PairseekError, StoreUnavailable
from pairseek.model.curvature import CurvedUtility
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.recommendations import Recommendation
from pairseek.model.responses import Response

Hit: TypeAlias = tuple[ItemId, float]
"""An item and the inner product of its vector with the query.

Examples
--------
>>> import numpy as np
>>> from pairseek.indexes import ExactIndex, Hit
>>> index = ExactIndex()
>>> index.add(["tea", "coffee"], np.array([[1.0, 0.0], [0.0, 1.0]]), {})
>>> best: Hit = index.best(np.array([0.5, 2.0]), 1)[0]
>>> best
('coffee', 2.0)
"""
_Result = TypeVar("_Result")
# Largest distance from the origin, in units of the spread: there, single precision changes utilities by about 1e-3.
_MAX_DISTANCE = 100.0


class VectorIndex(Protocol):
    """A vector database that finds the vectors with the highest inner products.

    Examples
    --------
    Any class with these methods is a vector index. This one computes all inner products, and has no filter.

    >>> import numpy as np
    >>> class PlainIndex:
    ...     def __init__(self):
    ...         self.vectors = {}
    ...
    ...     def add(self, ids, vectors, payload):
    ...         self.vectors.update(zip(ids, vectors))
    ...
    ...     def remove(self, ids):
    ...         for item in ids:
    ...             self.vectors.pop(item, None)
    ...
    ...     def update(self, ids, payload):
    ...         raise NotImplementedError("this index has no payload")
    ...
    ...     def best(self, query, count, *, where=None, only=None, exclude=()):
    ...         ids = set(self.vectors) if only is None else set(self.vectors) & set(only)
    ...         ids -= set(exclude)
    ...         hits = [(item, float(self.vectors[item] @ query)) for item in ids]
    ...         return sorted(hits, key=lambda hit: -hit[1])[:count]
    >>> index = PlainIndex()
    >>> index.add(["tea", "coffee"], np.array([[1.0, 0.0], [0.0, 1.0]]), {})
    >>> index.best(np.array([0.5, 2.0]), 5, exclude=["coffee"])
    [('tea', 0.5)]
    """

    def add(self, ids: Sequence[ItemId], vectors: FloatArray, payload: Mapping[str, Sequence[Any]]) -> None:
        """Add items with their (n, d) vectors, or replace those with the same ids.

        ``payload`` has columns of n values to filter items by.
        """
        ...

    def remove(self, ids: Sequence[ItemId]) -> None:
        """Remove items; ids that are not in the database are ignored."""
        ...

    def update(self, ids: Sequence[ItemId], payload: Mapping[str, Sequence[Any]]) -> None:
        """Change these columns of the payload; ids that are not in the database are ignored."""
        ...

    def best(
        self,
        query: FloatArray,
        count: int,
        *,
        where: object = None,
        only: Sequence[ItemId] | None = None,
        exclude: Sequence[ItemId] = (),
    ) -> list[Hit]:
        """Return up to `count` items with the highest inner products, highest first.

        ``where`` is a filter in the form that the database accepts. ``only`` and ``exclude`` are ids; ids that are not
        in the database are ignored.
        """
        ...


@dataclass(frozen=True)
class UtilityQuery:
    """Expected utility of any item x for one person: appeal + linear·x + quadratic |x|² + constant.

    Attributes
    ----------
    linear
        (d,) coefficients of the coordinates.
    quadratic
        Coefficient of the squared norm.
    constant
        Part that does not depend on the item.
    """

    linear: FloatArray
    quadratic: float
    constant: float

    @classmethod
    def of(cls, belief: Belief, prior: Prior, response: Response, d: int) -> Self:
        """Return the query for the person whom a belief describes; `d` counts the coordinates of the items."""
        k = response.typical_k
        if not d:
            return cls(np.zeros(0), 0.0, 0.0)
        utility = CurvedUtility.of(prior, response, d)
        assert utility is not None
        centre, curvature = utility.centre, float(utility.curvatures(belief.mean[None])[0])
        # An unknown curvature is one more coordinate of the point: see `pairseek.model.curvature`.
        squares = float(belief.mean @ belief.mean) + float(np.trace(belief.covariance))
        bend = (1.0 - curvature) * k
        linear = 2.0 * k * belief.mean[:d] - 2.0 * bend * centre
        return cls(linear, -curvature * k, bend * float(centre @ centre) - k * squares)


@dataclass(frozen=True, eq=False)
class CatalogueIndex:
    """A catalogue in a vector database, for ``search.recommend(count, among=catalogue)``.

    `of` fills a database, and `attach` uses one that was filled earlier. The vectors depend only on the items, so every
    search over the same coordinates can recommend from a catalogue, whatever its k, prior or curvature.

    Attributes
    ----------
    index
        The vector database.
    d
        Number of coordinates of the items.
    filter
        Filter for the database: see `where`.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.indexes import CatalogueIndex, ExactIndex
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((500, 3)))
    >>> search = ps.Search(items, askable=50, rng=7)
    >>> stock = {"in_stock": np.arange(500) % 2 == 0}
    >>> catalogue = CatalogueIndex.of(ExactIndex(), items, stock)
    >>> query = search.ask()
    >>> search.tell(query, winner=query.left)
    >>> available = catalogue.where({"in_stock": True})
    >>> best = search.recommend(3, among=available)
    >>> all(item.id % 2 == 0 for item in best)
    True
    >>> catalogue.update([best[0].id], {"in_stock": [False]})
    >>> best[0] in search.recommend(3, among=available)
    False
    """

    index: VectorIndex
    d: int
    filter: object = None

    @classmethod
    def of(cls, index: VectorIndex, items: Items, payload: Mapping[str, Sequence[Any]] | None = None) -> Self:
        """Add items to a vector database and return the catalogue.

        Parameters
        ----------
        index
            An empty vector database, such as ``FaissIndex()``.
        items
            The items, in the coordinates of the searches.
        payload
            Columns to filter by, with one value for each item.
        """
        distance = float(np.max(np.linalg.norm(items.coordinates, axis=1), initial=0.0))
        if distance > _MAX_DISTANCE * items.spread > 0.0:
            raise InvalidItems(
                f"the items are up to {distance:g} from the origin, but their spread is only {items.spread:g}, so the "
                f"single precision of vector databases cannot tell them apart: centre them, for example by "
                f"items.scaled()"
            )
        catalogue = cls(index, items.d)
        catalogue.add(items, payload)
        return catalogue

    @classmethod
    def attach(cls, index: VectorIndex, items: Items) -> Self:
        """Return the catalogue of a database that was filled earlier, with items in the coordinates of these."""
        return cls(index, items.d)

    def add(self, items: Items, payload: Mapping[str, Sequence[Any]] | None = None) -> None:
        """Add items to the database, or replace those with the same ids."""
        columns = _checked_payload(payload or {}, items.n)
        vectors = self.vectors(items)
        _call_database(lambda: self.index.add(items.ids, vectors, columns))

    def remove(self, ids: Iterable[ItemId]) -> None:
        """Remove items from the database; removing an absent item succeeds."""
        names = list(ids)
        _call_database(lambda: self.index.remove(names))

    def update(self, ids: Iterable[ItemId], payload: Mapping[str, Sequence[Any]]) -> None:
        """Change columns of the payload, such as the stock; absent items are ignored."""
        names = list(ids)
        columns = _checked_payload(payload, len(names))
        _call_database(lambda: self.index.update(names, columns))

    def vectors(self, items: Items) -> FloatArray:
        """Return the (n, d + 2) vectors of items: x, |x|² and appeal."""
        if items.d != self.d:
            raise InvalidItems(
                f"the items have {items.d} coordinates and the catalogue has {self.d}: place their vectors with the "
                f"same map"
            )
        squares = np.einsum("nd,nd->n", items.coordinates, items.coordinates)
        return np.column_stack([items.coordinates, squares, items.appeal])

    def where(self, filter: object) -> Self:
        """Return the catalogue with a filter, which is passed to the database unchanged."""
        return replace(self, filter=filter)

    def recommend(
        self,
        query: UtilityQuery,
        count: int,
        *,
        shown: Mapping[ItemId, float],
        only: Iterable[ItemId] | None = None,
        exclude: Iterable[ItemId] | None = None,
    ) -> list[Recommendation]:
        """Return the items of highest expected utility.

        ``shown`` holds the mean residual utility of each item that the person has seen; the database lacks it.
        """
        count = whole(count, "the count of recommend", field="count")
        if len(query.linear) != self.d:
            raise InvalidParameter(
                f"among holds items of {self.d} coordinates, but the items of this search have {len(query.linear)}: "
                f"place their vectors with the same map",
                field="among",
            )
        only_ids = None if only is None else list(only)
        excluded_ids = [] if exclude is None else list(exclude)
        vector = np.append(query.linear, [query.quadratic, 1.0])
        best = partial(self.index.best, vector, where=self.filter, exclude=excluded_ids)
        hits = dict(_call_database(lambda: best(count + len(shown), only=only_ids)))
        # Shown items with high residual utilities may rank low by their coordinates.
        missing_ids = [name for name in shown if name not in hits and (only_ids is None or name in set(only_ids))]
        if missing_ids:
            hits.update(_call_database(lambda: best(len(missing_ids), only=missing_ids)))
        if not hits:
            raise InvalidParameter(
                "the filter, only and exclude leave no item to recommend: allow at least one", field="only"
            )
        utility = {name: score + query.constant + shown.get(name, 0.0) for name, score in hits.items()}
        highest = sorted(utility, key=lambda name: (-utility[name], str(name)))[:count]
        return [Recommendation(name, str(name), math.nan, utility[name], math.nan) for name in highest]


def _checked_payload(payload: Mapping[str, Sequence[Any]], count: int) -> dict[str, Sequence[Any]]:
    """Return the columns of a payload; reject a column of another length."""
    if not isinstance(payload, Mapping):
        raise InvalidParameter(
            f"payload is a {type(payload).__name__}: give a mapping from columns to values", field="payload"
        )
    for name, values in payload.items():
        if len(values) != count:
            raise InvalidItems(
                f"the column {name!r} has {len(values)} values and there are {count} items: give one value per item"
            )
    return dict(payload)


def _call_database(call: Callable[[], _Result]) -> _Result:
    """Call the database; raise `StoreUnavailable` if it fails."""
    try:
        return call()
    except PairseekError:
        raise
    except Exception as error:
        raise StoreUnavailable(
            "the vector database did not answer, so it cannot recommend items now; the search itself can continue",
            f"{type(error).__name__}: {error}",
        ) from error
