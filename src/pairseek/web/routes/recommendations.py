"""Routes of the API that recommend items to a person."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query

from pairseek.core.types import JSON
from pairseek.errors import InvalidParameter
from pairseek.model.catalogues import rows_of
from pairseek.model.items import Items
from pairseek.people.population import Population
from pairseek.store import studies
from pairseek.store.sessions import SessionRow
from pairseek.web.routes import schemas
from pairseek.web.routes.api_access import ReadableSession, TheService, check_preference, other_catalogue
from pairseek.web.service import Service
from pairseek.web.sessions.state import SessionState

router = APIRouter(generate_unique_id_function=lambda route: route.name)


def _recommended_items(service: Service, row: SessionRow, state: SessionState, version: str | None) -> Items | None:
    """Return the items of a version to recommend from; None for the session's own items."""
    # The hash of the study's items, without the appeal that a population gives them.
    session_version = state.parts.study_items.hash
    if version is None or version == session_version:
        return None
    study = service.catalogue.reread(row.study_id)
    rows = service.database.read(lambda connection: studies.replaced_catalogues(connection, row.study_id))
    numbers = {row.hash: row.number for row in rows} | {study.items.hash: study.row.catalogue}
    if version not in numbers:
        raise other_catalogue(
            version, f"Read the study again; this session has version {session_version} of the items."
        )
    items = study.with_catalogue(numbers[version]).items
    population = state.parts.population
    return population.placed(items) if isinstance(population, Population) else items


def _allowed(service: Service, row: SessionRow, items: Items, body: schemas.RecommendBody) -> Any:
    """Return the ids, or a mask of the items, that may be recommended; None for all."""
    if body.where is None:
        return body.only
    where = {
        name: value.model_dump(exclude_none=True) if isinstance(value, schemas.RangeSchema) else value
        for name, value in body.where.items()
    }
    mask = service.attributes.of_study(row.study_id).mask(where, items)
    if body.only is not None:
        only_mask = np.zeros(items.n, dtype=np.bool_)
        only_mask[rows_of(items, body.only, "only", body.missing)] = True
        mask &= only_mask
    if not mask.any():
        raise InvalidParameter(f"where leaves none of {items.n} items to recommend: allow at least one", field="where")
    return mask


def _recommended(service: Service, row: SessionRow, body: schemas.RecommendBody) -> list[JSON]:
    check_preference(service, row)
    with service.gate.working():
        state = service.sessions.snapshot(row).state
        among = _recommended_items(service, row, state, body.catalogue)
        items = state.search.recommend(
            body.count,
            only=_allowed(service, row, state.parts.study_items if among is None else among, body),
            exclude=body.exclude or None,
            missing=body.missing,
            among=among,
            diversity=body.diversity,
        )
    return [
        {
            "id": str(item.id),
            "label": item.label,
            "probability": item.probability,
            "expected_utility": item.expected_utility,
            "distance": item.distance,
        }
        for item in items
    ]


_Recommended = list[schemas.RecommendationSchema]


@router.get("/sessions/{session_id}/recommendations", tags=["sessions"], response_model=_Recommended)
async def recommendations(
    row: ReadableSession,
    service: TheService,
    count: Annotated[int, Query(ge=1, le=100)] = 5,
    only: Annotated[list[schemas.ItemName] | None, Query(max_length=100)] = None,
    exclude: Annotated[list[schemas.ItemName] | None, Query(max_length=100)] = None,
) -> list[JSON]:
    """Return the items to recommend to this person, in the order that fits the goal of the study."""
    body = schemas.RecommendBody(count=count, only=only, exclude=exclude or [])
    return await service.run_for_result(lambda: _recommended(service, row, body))


@router.post("/sessions/{session_id}/recommendations", tags=["sessions"], response_model=_Recommended)
async def filtered_recommendations(
    body: schemas.RecommendBody, row: ReadableSession, service: TheService
) -> list[JSON]:
    """Return the items to recommend to this person among those that the body allows; nothing is stored."""
    return await service.run_for_result(lambda: _recommended(service, row, body))
