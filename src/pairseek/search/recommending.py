"""Recommendations of a search: from its items, from another catalogue, or from a vector database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypedDict

from pairseek.best_items import Shelf, typical_unit
from pairseek.catalogues import permitted_rows
from pairseek.core.types import Belief, ItemId
from pairseek.errors import InvalidParameter, Unsupported
from pairseek.estimates import Estimate, Recommendation, recommendations
from pairseek.model.items import Items
from pairseek.search import engine
from pairseek.search.configuration import SearchConfiguration
from pairseek.strategies.features import typical_response

if TYPE_CHECKING:
    from pairseek.indexes import CatalogueIndex


class RecommendOptions(TypedDict, total=False):
    """Options of `Search.recommend`."""

    only: Iterable[object] | None
    exclude: Iterable[object] | None
    among: Items | CatalogueIndex | None
    diversity: float


def recommend(
    configuration: SearchConfiguration,
    estimate: Estimate,
    count: int,
    *,
    only: Iterable[object] | None = None,
    exclude: Iterable[object] | None = None,
    among: Items | CatalogueIndex | None = None,
    diversity: float = 0.0,
) -> list[Recommendation]:
    """Return the recommended items: see `Search.recommend`."""
    refused = Unsupported("a continuous Space has no items to recommend: read estimate().point")
    own = configuration.items._catalogue(refused)
    if among is not None and not isinstance(among, Items):
        _check_index(among, diversity)
        return _from_index(configuration, estimate.belief, among, count, only, exclude)
    items = _catalogue(own, among)
    typical = typical_response(configuration.response, estimate.belief)
    unit = typical_unit(own, typical.noise_kind.name)
    rows = permitted_rows(items, only, exclude)
    belief = engine.belief_about(configuration, estimate.belief, items)
    shelf = Shelf(items, configuration.modelled(items), belief, typical, unit, rows)
    by_utility = configuration.goal.name == "list"
    return recommendations(shelf, estimate, count, by_utility=by_utility, diversity=diversity)


def _catalogue(own: Items, among: Items | None) -> Items:
    """Return the items to recommend from; raise `InvalidParameter` if their coordinates are not those of the search."""
    if among is None:
        return own
    if among.d != own.d:
        raise InvalidParameter(
            f"among has {among.d} coordinates and the search {own.d}: place its vectors by the same map, "
            f"Items.from_vectors(vectors, vector_map=items.vector_map)",
            field="among",
        )
    return among


def _check_index(among: object, diversity: float) -> None:
    from pairseek.indexes import CatalogueIndex

    if not isinstance(among, CatalogueIndex):
        raise InvalidParameter(
            f"among is of the type {type(among).__name__}: give Items, such as Items.from_vectors(...)",
            field="among",
        )
    if diversity:
        raise Unsupported("diversity needs the coordinates of the items: give Items as among, or no diversity")


def _from_index(
    configuration: SearchConfiguration,
    belief: Belief,
    among: CatalogueIndex,
    count: int,
    only: Iterable[object] | None,
    exclude: Iterable[object] | None,
) -> list[Recommendation]:
    """Return the items of highest expected utility in a vector database."""
    items, typical = configuration.catalogue, typical_response(configuration.response, belief)
    shown: dict[ItemId, float] = {}
    if belief.residuals is not None:
        unit = typical_unit(items, typical.noise_kind.name)
        means = (unit * belief.residuals.mean).tolist()
        rows = belief.residuals.rows.tolist()
        shown = {items.ids[row]: mean for row, mean in zip(rows, means, strict=True) if row >= 0}
    names: list[Any] = [None if some is None else list(some) for some in (only, exclude)]
    return among.recommend(belief, typical.reference, count, shown=shown, only=names[0], exclude=names[1])
