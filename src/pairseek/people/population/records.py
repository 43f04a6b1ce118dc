"""Populations as JSON data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pairseek._version import __version__
from pairseek.core.types import JSON
from pairseek.errors import InvalidFile
from pairseek.model.item_records import items_from
from pairseek.model.priors import GaussianPrior
from pairseek.model.responses import Logistic
from pairseek.model.vectors import VectorMap

if TYPE_CHECKING:
    from pairseek.people.population.population import Population


def record_of(population: Population) -> JSON:
    """Return a population as JSON data."""
    return {
        "pairseek_version": __version__,
        "provenance": population.provenance,
        "items": population.items.record(),
        "mean": population.mean.tolist(),
        "covariance": population.covariance.tolist(),
        "k": population.k,
        "honest": population.honest,
        "people": population.people,
        "given": population.given,
        "tie_width": population.tie_width,
        "utility_error": None if population.utility_error is None else population.utility_error.tolist(),
        "residual": population.residual,
        "vector_map": None if population.vector_map is None else population.vector_map.record(),
    }


def fields_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a population from the data that `record_of` returns."""
    refused = InvalidFile("items is a continuous space: expected items with coordinates")
    items = items_from(record["items"])._require_catalogue(refused)
    mean, covariance = np.array(record["mean"], dtype=float), np.array(record["covariance"], dtype=float)
    if items.d or len(mean):
        GaussianPrior(mean, covariance).moments(items.d)
    covariance = covariance.reshape(items.d, items.d)
    k, honest, width = float(record["k"]), float(record["honest"]), float(record.get("tie_width", 0.0))
    Logistic(k)  # raises InvalidParameter for an invalid k
    if not 0.0 <= width < np.inf:
        raise InvalidFile(f"tie_width is {width}: expected a finite number, at least 0")
    residual = Logistic(residual=float(record.get("residual", 0.0))).residual_deviation
    if not 0.0 <= honest <= 1.0:
        raise InvalidFile(f"honest is {honest}: expected a share from 0 to 1")
    error = record.get("utility_error")
    if error is not None:
        error = np.array(error, dtype=float)
        if error.shape != (items.n,) or not np.all((error >= 0.0) & (error < np.inf)):
            raise InvalidFile(
                f"utility_error is invalid: expected one number, at least 0, for each of the {items.n} items"
            )
    people, given, provenance = int(record["people"]), record["given"], dict(record["provenance"])
    vector_map = None if record.get("vector_map") is None else VectorMap.from_record(record["vector_map"])
    return {
        "items": items,
        "mean": mean,
        "covariance": covariance,
        "k": k,
        "honest": honest,
        "people": people,
        "given": given,
        "provenance": provenance,
        "tie_width": width,
        "utility_error": error,
        "residual": residual,
        "vector_map": vector_map,
    }
