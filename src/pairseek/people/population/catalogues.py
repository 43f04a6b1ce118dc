"""Catalogues that a population describes: the one of a search, and new items in the same coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairseek.core.text import quoted
from pairseek.core.types import FloatArray, ItemId
from pairseek.errors import InvalidParameter, Unsupported
from pairseek.model.catalogues import same_space
from pairseek.model.items import Items
from pairseek.model.spaces import Space
from pairseek.model.vector_tables import read_vectors
from pairseek.people.population.vector_fit import appeal_of

if TYPE_CHECKING:
    from pairseek.people.population.population import Population


def catalogue_of(
    coordinates: FloatArray,
    ids: Sequence[ItemId],
    labels: Sequence[str] | None,
    appeal: FloatArray,
    data: Mapping[str, Sequence[object]] | None,
) -> Items:
    """Return items with (n, d) coordinates, where d may be 0."""
    return Items._without_warnings(coordinates if coordinates.shape[1] else None, ids, labels, appeal, data)


def vector_items(
    population: Population, vectors: object, ids: Sequence[ItemId] | None, labels: Sequence[str] | None
) -> tuple[Items, FloatArray | None]:
    """Return the items of these vectors with their standard errors, if known: see `Population.with_vectors`."""
    if population.vector_map is None:
        raise Unsupported("this population has no vector map: fit it with Population.fit(choices, vectors=...)")
    table = read_vectors(vectors)
    names: list[Any] = list(ids if ids is not None else table.ids or ())
    places = population.vector_map.place(table.vectors, names)
    if len(names) != len(places):
        raise InvalidParameter(
            f"there are {len(places)} vectors and {len(names)} ids: give one id for each vector, ids=[...]"
        )
    points, appeal = np.array(places[:, 1:]), appeal_of(places, population.k, np.asarray(population.mean))
    error = None if population.utility_error is None else errors_of(population, names)
    for row, name in enumerate(names):
        own = population.items.find(name)
        if own >= 0:
            points[row], appeal[row] = population.items.coordinates[own], population.items.appeal[own]
    texts = table.labels if labels is None else labels
    return catalogue_of(points, names, texts, appeal, dict(table.data)), error


def errors_of(population: Population, ids: Sequence[ItemId]) -> FloatArray:
    """Return the standard errors of items; a new item differs from the mean as much as items differ from each other."""
    assert population.utility_error is not None
    error = np.full(len(ids), float(np.std(population.utilities()[0])))
    rows = np.array([population.items.find(name) for name in ids])
    error[rows >= 0] = population.utility_error[rows[rows >= 0]]
    return error


def placed_items(population: Population, items: Items) -> Items:
    """Return other items with the coordinates and appeal that a regression predicts: see `Population.placed`."""
    learned_items, d = population.items, items.d
    if population.vector_map is not None and d == learned_items.d and same_space(learned_items, items):
        rows = np.array([learned_items.find(name) for name in items.ids])
        appeal = np.array(items.appeal)
        appeal[rows >= 0] = learned_items.appeal[rows[rows >= 0]]
        return Items._without_warnings(items.coordinates, items.ids, items.labels, appeal, items.data)
    if population.given is None or d > learned_items.d or population.provenance.get("configuration", {}).get("rescale"):
        raise Unsupported(
            "this population learned its own coordinates, so it cannot place other items: fit one to given coordinates"
        )
    learned_coordinates, new_coordinates = (
        np.column_stack([points, np.sum(points**2, axis=1), np.ones(len(points))])
        for points in (np.asarray(learned_items.coordinates)[:, :d], np.asarray(items.coordinates))
    )
    learned = np.column_stack([learned_items.coordinates[:, d:], learned_items.appeal])
    predicted = new_coordinates @ np.linalg.lstsq(learned_coordinates, learned, rcond=None)[0]
    predicted[:, -1] += items.appeal
    rows = np.array([learned_items.find(name) for name in items.ids])
    predicted[rows >= 0] = learned[rows[rows >= 0]]
    points = np.column_stack([items.coordinates, predicted[:, :-1]])
    return Items._without_warnings(points, items.ids, items.labels, predicted[:, -1], items.data)


def matched_items(population: Population, items: Items | Space) -> Items:
    """Return the items of a search with the learned appeal and coordinates: see `Population.matched`."""
    items = items._require_catalogue(
        Unsupported(
            "population is given with a Space: a population describes items, and a continuous Space has none; "
            "leave population out"
        )
    )
    if items.hash == population.items.hash:
        return items
    known, given = set(population.items.ids), set(items.ids)
    if not items.d and population.given is None and known <= given:
        full = population.extended(items.ids).items
        return catalogue_of(full.coordinates, items.ids, items.labels, full.appeal, items.data)
    missing = [name for name in items.ids if name not in known]
    extra = [name for name in population.items.ids if name not in given]
    if missing or extra:
        words = [f"the population does not contain {quoted(missing)}"] if missing else []
        words += [f"the search lacks {quoted(extra)}"] if extra else []
        raise InvalidParameter(
            f"this population was fitted to other items: {' and '.join(words)}; fit it to these items, or search "
            f"population.items"
        )
    if items.hash != population.given:
        raise InvalidParameter(
            f"this population was fitted to other coordinates or another order of the items: "
            f"{_difference(population, items)}; fit it to these items, or search population.items"
        )
    return Items._without_warnings(
        population.items.coordinates, items.ids, items.labels, population.items.appeal, items.data
    )


def _difference(population: Population, items: Items) -> str:
    """Describe how items differ from those that a population was fitted to, which have the same ids."""
    if population.given is None:
        return "the population learned its own coordinates, which differ from those of the search"
    fitted = population.items
    d = min(items.d, fitted.d)
    rows = [fitted.index(name) for name in items.ids]
    gap = np.abs(fitted.coordinates[rows, :d] - items.coordinates[:, :d]).max(axis=1)
    moved = [items.ids[row] for row in np.flatnonzero(gap > 0)]
    if moved and not population.provenance.get("configuration", {}).get("rescale"):
        return f"the coordinates of {quoted(moved)} differ"
    return "appeal, order or coordinates differ"
