"""Recommendations from the items of a search, another catalogue or a vector database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from pairseek.core.types import Belief, FloatArray, IntArray, ItemId
from pairseek.core.validation import is_number, whole
from pairseek.errors import InvalidParameter, Unsupported
from pairseek.model.catalogues import Missing, permitted_rows
from pairseek.model.items import Items
from pairseek.model.recommendations import Recommendation, Recommendations
from pairseek.model.responses import Response
from pairseek.pairs import item_utilities
from pairseek.pairs.features import typical_response
from pairseek.search import engine
from pairseek.search.best_items import RecommendationPool, best_probabilities, cached_residual_unit
from pairseek.search.configuration import SearchConfiguration
from pairseek.search.estimates import Estimate

if TYPE_CHECKING:
    from pairseek.indexes import CatalogueIndex

# Halving stops at about this `diversity`; the next value is 0.
_MIN_DIVERSITY = 0.01
# Number of best items, per item of the list, from which a diverse list is chosen.
_CANDIDATES_PER_ITEM = 20
# Smallest number of items from which a diverse list is chosen.
_MIN_CANDIDATES = 1024


class RecommendOptions(TypedDict, total=False):
    """Options of `Search.recommend`."""

    only: Iterable[object] | None
    exclude: Iterable[object] | None
    where: Mapping[str, object] | None
    missing: Missing
    among: Items | CatalogueIndex | None
    diversity: float


def recommend(
    configuration: SearchConfiguration,
    estimate: Estimate,
    count: int,
    *,
    only: Iterable[object] | None = None,
    exclude: Iterable[object] | None = None,
    where: Mapping[str, object] | None = None,
    missing: Missing = "error",
    among: Items | CatalogueIndex | None = None,
    diversity: float = 0.0,
) -> list[Recommendation]:
    """Return the recommended items: see `Search.recommend`."""
    no_items = Unsupported("a continuous Space has no items to recommend: read estimate().point")
    search_items = configuration.items._require_catalogue(no_items)
    if among is not None and not isinstance(among, Items):
        _check_index(among, diversity)
        catalogue = among if where is None else among.where(where)
        return _from_index(configuration, estimate.belief, catalogue, count, only, exclude)
    items = _items_to_recommend(search_items, among)
    response = typical_response(configuration.response, estimate.belief)
    unit = cached_residual_unit(search_items, response.noise_kind.name)
    rows = permitted_rows(items, only, exclude, where, missing)
    belief = engine.belief_about(configuration, estimate.belief, items)
    pool = RecommendationPool(items, configuration.modelled(items), belief, response, unit, rows)
    by_utility = configuration.goal.name == "list"
    return recommendations(pool, estimate, count, by_utility=by_utility, diversity=diversity)


def _items_to_recommend(search_items: Items, among: Items | None) -> Items:
    """Return the items to recommend from; raise `InvalidParameter` if their number of coordinates differs."""
    if among is None:
        return search_items
    if among.d != search_items.d:
        raise InvalidParameter(
            f"among has {among.d} coordinates and the search has {search_items.d}: place its vectors with the same "
            f"map, Items.from_vectors(vectors, vector_map=items.vector_map)",
            field="among",
        )
    return among


def _check_index(among: object, diversity: float) -> None:
    from pairseek.indexes import CatalogueIndex

    if not isinstance(among, CatalogueIndex):
        raise InvalidParameter(
            f"among is a {type(among).__name__}: give Items, such as Items.from_vectors(...), or a CatalogueIndex",
            field="among",
        )
    if diversity:
        raise Unsupported("diversity needs the coordinates of the items: give Items as among, or leave diversity out")


def _from_index(
    configuration: SearchConfiguration,
    belief: Belief,
    among: CatalogueIndex,
    count: int,
    only: Iterable[object] | None,
    exclude: Iterable[object] | None,
) -> list[Recommendation]:
    """Return the items of highest expected utility from a vector database."""
    from pairseek.indexes.base import UtilityQuery

    items, response = configuration.catalogue, typical_response(configuration.response, belief)
    residual_means: dict[ItemId, float] = {}
    if belief.residuals is not None:
        unit = cached_residual_unit(items, response.noise_kind.name)
        means = (unit * belief.residuals.mean).tolist()
        rows = belief.residuals.rows.tolist()
        residual_means = {items.ids[row]: mean for row, mean in zip(rows, means, strict=True) if row >= 0}
    id_lists: list[Any] = [None if ids is None else list(ids) for ids in (only, exclude)]
    query = UtilityQuery.of(belief, configuration.prior, response, items.d)
    return among.recommend(query, count, shown=residual_means, only=id_lists[0], exclude=id_lists[1])


def expected_utilities(items: Items, belief: Belief, response: Response) -> FloatArray:
    """Return the (n,) expectations of appeal - k|w - x|² + ε."""
    utility = item_utilities.expected_utilities(items.coordinates, items.appeal, belief, response)
    return np.asarray(utility - response.typical_k * np.trace(belief.covariance))


def recommendations(
    pool: RecommendationPool, estimate: Estimate, count: int, *, by_utility: bool = False, diversity: float = 0.0
) -> Recommendations:
    """Return the items most likely to be the best, with ties broken by expected utility.

    With `by_utility` or residual utilities, return the items of highest expected utility. `diversity` is the minimum
    distance between two of them, as a fraction of the typical (RMS) distance between items; it is halved until enough
    items are left.
    """
    count = whole(count, "the count of recommend", field="count")
    if not (is_number(diversity) and 0.0 <= diversity <= 1.0):
        raise InvalidParameter(
            f"diversity is {diversity!r}: give a fraction of the typical distance, from 0 to 1", field="diversity"
        )
    items, utility, allowed = pool.given_items, pool.utilities, pool.allowed
    count = min(count, len(allowed))
    if pool.belief.residuals is None and not by_utility:
        distance = np.linalg.norm(items.coordinates[allowed] - estimate.point, axis=1)
        order = allowed[np.lexsort((distance, -utility[allowed], -best_probabilities(pool, allowed)))]
    else:
        order = pool.highest(max(_CANDIDATES_PER_ITEM * count, _MIN_CANDIDATES) if diversity else count)
    order = _select_diverse(items, order, count, diversity)
    probabilities = best_probabilities(pool, order)
    distances = np.linalg.norm(items.coordinates[order] - estimate.point, axis=1)
    rows = zip(order.tolist(), probabilities.tolist(), distances.tolist(), strict=True)
    return Recommendations(
        (
            Recommendation(items.ids[i], items.labels[i], best, float(utility[i]), distance)
            for i, best, distance in rows
        ),
        items,
    )


def _select_diverse(items: Items, order: IntArray, count: int, diversity: float) -> IntArray:
    """Return the first rows of an order whose items are far enough from each other."""
    if not diversity or not items.d:
        return order[:count]
    typical_distance = items.spread * np.sqrt(2.0)
    points = items.coordinates[order]
    while True:
        chosen: list[int] = []
        nearest = np.full(len(order), np.inf)
        while len(chosen) < count:
            eligible = np.flatnonzero(nearest >= diversity * typical_distance)
            if not len(eligible):
                break
            chosen.append(int(eligible[0]))
            distance = np.linalg.norm(points - points[chosen[-1]], axis=1)
            nearest = np.minimum(nearest, distance)
            nearest[chosen] = -1.0
        if len(chosen) == count:
            return np.asarray(order[np.sort(chosen)])
        diversity = diversity / 2.0 if diversity > _MIN_DIVERSITY else 0.0
