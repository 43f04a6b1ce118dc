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
    """A vector database that finds the vectors with the highest inner products.

    Examples
    --------
    Any class with these two methods is a vector index. This one computes all inner products, and has no filter.

    >>> import numpy as np
    >>> class PlainIndex:
    ...     def __init__(self):
    ...         self.vectors = {}
    ...
    ...     def add(self, ids, vectors, payload):
    ...         self.vectors.update(zip(ids, vectors))
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
        """Add items with their (n, d) vectors; ``payload`` has columns of n values to filter items by."""
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


class ModelOfTaste(Protocol):
    """The parts of a `Search` that determine the vectors of a catalogue."""

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

    Build it with `of`. The vectors depend on k and on the prior, so all searches that recommend from a catalogue must
    agree on these. Searches among the same items do so by default.

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
        Function that converts items to the coordinates of the model, which has one more if the curvature is unknown.
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
    >>> catalogue = CatalogueIndex.of(ExactIndex(), items, search, stock)
    >>> query = search.ask()
    >>> search.tell(query, winner=query.left)
    >>> best = search.recommend(3, among=catalogue.where({"in_stock": True}))
    >>> all(item.id % 2 == 0 for item in best)
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
            A search like those that will recommend from the catalogue; it provides k and the prior.
        payload
            Columns to filter by, with one value for each item.
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
                    f"the column {name!r} has {len(values)} values and there are {items.n} items: give one value "
                    f"per item"
                )
        _call_database(lambda: self.index.add(items.ids, self.vectors(items), columns))

    def vectors(self, items: Items) -> FloatArray:
        """Return the (n, d + 1) vectors of items: x - o and appeal/k - |x - o|²."""
        if items.d != self.d:
            raise InvalidItems(
                f"the items have {items.d} coordinates and the search has {self.d}: place their vectors with the same "
                f"map"
            )
        modelled = self.places(items)
        shifted = modelled.coordinates - self.origin
        squares = np.einsum("nd,nd->n", shifted, shifted)
        return np.column_stack([shifted, modelled.appeal / self.k - squares])

    def where(self, filter: object) -> Self:
        """Return the catalogue with a filter, which is passed to the database unchanged."""
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

        ``shown`` holds the mean residual utility of each item that the person has seen; the database lacks it.
        """
        count = whole(count, "the count of recommend", field="count")
        if len(belief.mean) != len(self.origin) or not math.isclose(k, self.k, rel_tol=1e-9):
            raise InvalidParameter(
                f"among was built for searches with k = {self.k:g} in {len(self.origin)} dimensions of the model, but "
                f"this one has k = {k:g} in {len(belief.mean)}: build it with CatalogueIndex.of(index, items, search)",
                field="among",
            )
        only_ids = None if only is None else list(only)
        excluded_ids = [] if exclude is None else list(exclude)
        shifted = belief.mean - self.origin
        query = np.append(2.0 * shifted, 1.0)
        best = partial(self.index.best, query, where=self.filter, exclude=excluded_ids)
        hits = dict(_call_database(lambda: best(count + len(shown), only=only_ids)))
        # Shown items with high residual utilities may rank low by their coordinates.
        missing_ids = [name for name in shown if name not in hits and (only_ids is None or name in set(only_ids))]
        if missing_ids:
            hits.update(_call_database(lambda: best(len(missing_ids), only=missing_ids)))
        if not hits:
            raise InvalidParameter(
                "the filter, only and exclude leave no item to recommend: allow at least one", field="only"
            )
        shared_term = float(shifted @ shifted) + float(np.trace(belief.covariance))
        utility = {name: self.k * (score - shared_term) + shown.get(name, 0.0) for name, score in hits.items()}
        best_ids = sorted(utility, key=lambda name: (-utility[name], str(name)))[:count]
        return [Recommendation(name, str(name), math.nan, utility[name], math.nan) for name in best_ids]


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
