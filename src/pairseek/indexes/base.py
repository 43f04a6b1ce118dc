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
from pairseek.model.curvature import extended_items, extended_prior
from pairseek.model.items import Items
from pairseek.model.priors import Prior, moments_of
from pairseek.model.recommendations import Recommendation
from pairseek.model.responses import Response
from pairseek.model.spaces import Space

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


class VectorIndex(Protocol):
    """A vector database that finds the highest inner products.

    Examples
    --------
    A class with these two methods is a vector index. This one computes all inner products, and has no filter.

    >>> import numpy as np
    >>> class PlainIndex:
    ...     def __init__(self):
    ...         self.vectors = {}
    ...
    ...     def add(self, ids, vectors, payload):
    ...         self.vectors.update(zip(ids, vectors))
    ...
    ...     def best(self, query, count, *, where=None, only=None, exclude=()):
    ...         names = set(self.vectors) if only is None else set(self.vectors) & set(only)
    ...         hits = [(one, float(self.vectors[one] @ query)) for one in names - set(exclude)]
    ...         return sorted(hits, key=lambda hit: -hit[1])[:count]
    >>> index = PlainIndex()
    >>> index.add(["tea", "coffee"], np.array([[1.0, 0.0], [0.0, 1.0]]), {})
    >>> index.best(np.array([0.5, 2.0]), 5, exclude=["coffee"])
    [('tea', 0.5)]
    """

    def add(self, ids: Sequence[ItemId], vectors: FloatArray, payload: Mapping[str, Sequence[Any]]) -> None:
        """Add items with their (n, d) vectors; ``payload`` has columns of n values by which items are filtered."""
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
        """Return up to `count` items of highest inner product, highest first.

        ``where`` is a filter, as the database takes it. ``only`` and ``exclude`` are ids; one that is not in the
        database is ignored.
        """
        ...


class ModelOfTaste(Protocol):
    """What a catalogue needs of a search like those that will recommend from it; a `Search` has it."""

    @property
    def items(self) -> Items | Space:
        """Return the items of the search."""
        ...

    @property
    def prior(self) -> Prior:
        """Return the prior of the user point."""
        ...

    @property
    def response(self) -> Response:
        """Return the response model."""
        ...


@dataclass(frozen=True, eq=False)
class CatalogueIndex:
    """A catalogue in a vector database, for ``search.recommend(count, among=catalogue)``.

    `of` makes one. The vectors depend on k and on the prior of the searches, so that all searches that recommend from
    it must agree in these, as searches among the same items do by default.

    Attributes
    ----------
    index
        The vector database.
    origin
        (d,) point from which the coordinates of the model are measured.
    k
        Noise constant that scales the utilities.
    d
        Number of coordinates of the items.
    places
        Function that returns items as the model has them: with one more coordinate where the curvature is unknown.
    filter
        Filter that the database applies: see `where`.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.indexes import CatalogueIndex, ExactIndex
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((500, 3)))
    >>> search = ps.Search(items, askable=50, rng=7)
    >>> stock = {"in_stock": np.arange(500) % 2 == 0}
    >>> shelf = CatalogueIndex.of(ExactIndex(), items, search, stock)
    >>> query = search.ask()
    >>> search.tell(query, winner=query.left)
    >>> found = search.recommend(3, among=shelf.where({"in_stock": True}))
    >>> all(one.id % 2 == 0 for one in found)
    True
    """

    index: VectorIndex
    origin: FloatArray
    k: float
    d: int
    places: Callable[[Items], Items]
    filter: object = None

    @classmethod
    def of(
        cls, index: VectorIndex, items: Items, search: ModelOfTaste, payload: Mapping[str, Sequence[Any]] | None = None
    ) -> Self:
        """Add items to a vector database and return the catalogue.

        Parameters
        ----------
        index
            An empty vector database, such as ``FaissIndex()``.
        items
            The items, in the coordinates of the search.
        search
            A search like those that will recommend: it provides k and the prior.
        payload
            Columns of one value for each item, by which the database filters.
        """
        prior = extended_prior(search.prior, search.response, search.items.d)
        d = search.items.d + (search.response.curvature_prior is not None)
        catalogue = cls(
            index,
            np.array(moments_of(prior, d)[0], dtype=np.float64),
            search.response.typical_k,
            search.items.d,
            partial(extended_items, prior=search.prior, response=search.response),
        )
        catalogue.add(items, payload)
        return catalogue

    def add(self, items: Items, payload: Mapping[str, Sequence[Any]] | None = None) -> None:
        """Add items to the database."""
        columns = dict(payload or {})
        for name, values in columns.items():
            if len(values) != items.n:
                raise InvalidItems(
                    f"the column {name!r} has {len(values)} values and there are {items.n} items: give one for each"
                )
        _reached(lambda: self.index.add(items.ids, self.vectors(items), columns))

    def vectors(self, items: Items) -> FloatArray:
        """Return the (n, d + 1) vectors of items: x - o and appeal/k - |x - o|²."""
        if items.d != self.d:
            raise InvalidItems(
                f"the items have {items.d} coordinates and the search has {self.d}: place their vectors by the same map"
            )
        modelled = self.places(items)
        moved = modelled.coordinates - self.origin
        squares = np.einsum("nd,nd->n", moved, moved)
        return np.column_stack([moved, modelled.appeal / self.k - squares])

    def where(self, filter: object) -> Self:
        """Return the catalogue with a filter, which the database gets as it is given here."""
        return replace(self, filter=filter)

    def recommend(
        self,
        belief: Belief,
        k: float,
        count: int,
        *,
        shown: Mapping[ItemId, float],
        only: Iterable[ItemId] | None = None,
        exclude: Iterable[ItemId] | None = None,
    ) -> list[Recommendation]:
        """Return the items of highest expected utility.

        ``shown`` has the mean residual utility of the items that the person has seen, which the database cannot know.
        """
        count = whole(count, "the count of recommend")
        if len(belief.mean) != len(self.origin) or not math.isclose(k, self.k, rel_tol=1e-9):
            raise InvalidParameter(
                f"among was filled for searches with k = {self.k:g} in {len(self.origin)} dimensions of the model, and "
                f"this one has k = {k:g} in {len(belief.mean)}: fill one with CatalogueIndex.of(index, items, search)",
                field="among",
            )
        allowed = None if only is None else list(only)
        barred = [] if exclude is None else list(exclude)
        moved = belief.mean - self.origin
        query = np.append(2.0 * moved, 1.0)
        best = partial(self.index.best, query, where=self.filter, exclude=barred)
        hits = dict(_reached(lambda: best(count + len(shown), only=allowed)))
        # Items that the person liked may be far from the best by their coordinates alone.
        known = [name for name in shown if name not in hits and (allowed is None or name in set(allowed))]
        if known:
            hits.update(_reached(lambda: best(len(known), only=known)))
        if not hits:
            raise InvalidParameter(
                "the filter, only and exclude leave no item to recommend: allow at least one", field="only"
            )
        common = float(moved @ moved) + float(np.trace(belief.covariance))
        utility = {name: self.k * (score - common) + shown.get(name, 0.0) for name, score in hits.items()}
        highest = sorted(utility, key=lambda name: (-utility[name], str(name)))[:count]
        return [Recommendation(name, str(name), math.nan, utility[name], math.nan) for name in highest]


def _reached(call: Callable[[], _Result]) -> _Result:
    """Return the result of a call of a database; raise `StoreUnavailable` if it fails."""
    try:
        return call()
    except PairseekError:
        raise
    except Exception as error:
        raise StoreUnavailable(
            "the vector database did not answer, so that nothing can be recommended from it, and the search goes on",
            f"{type(error).__name__}: {error}",
        ) from error
