"""Routes of the API for the populations of a study: upload, list and choice."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from pairseek.core.types import JSON
from pairseek.core.validation import MAX_ID_LENGTH
from pairseek.store import populations as stored
from pairseek.web.learning import populations
from pairseek.web.routes import schemas
from pairseek.web.routes.api_access import TheCaller, TheService
from pairseek.web.routes.item_bodies import ItemsRoute
from pairseek.web.routes.study_facts import Slug, permitted_study
from pairseek.web.service import Service
from pairseek.web.studies.catalogue import Study

_uploads = APIRouter(route_class=ItemsRoute, generate_unique_id_function=lambda route: route.name)
router = APIRouter(generate_unique_id_function=lambda route: route.name)
Name = Annotated[str, Path(max_length=MAX_ID_LENGTH, description="name of the population")]


@_uploads.put("/studies/{slug}/populations/{name}", tags=["studies"], response_model=schemas.PopulationSchema)
async def upload_population(
    body: schemas.PopulationBody, slug: Slug, name: Name, service: TheService, who: TheCaller
) -> JSON:
    """Store a population under a name, and let new sessions begin with it. The request is idempotent.

    Automatic learning is switched off, so that the population stays until another one is uploaded or chosen.
    """

    def upload() -> JSON:
        study = permitted_study(service, slug, who, "write")
        version = populations.upload(service.database, study, body.population, name, who.label)
        return next(row for row in _listed(service, study) if row["version"] == version)

    return await service.run_heavy(upload)


router.include_router(_uploads)


@router.get("/studies/{slug}/populations", tags=["studies"], response_model=list[schemas.PopulationSchema])
def list_populations(slug: Slug, service: TheService, who: TheCaller) -> list[JSON]:
    """List the populations of a study, learned and uploaded, newest first."""
    return _listed(service, permitted_study(service, slug, who, "read"))


@router.put("/studies/{slug}/population", tags=["studies"], response_model=list[schemas.PopulationSchema])
def choose_population(body: schemas.ChosenPopulation, slug: Slug, service: TheService, who: TheCaller) -> list[JSON]:
    """Choose the population with which new sessions begin, and switch automatic learning off."""
    study = permitted_study(service, slug, who, "write")
    populations.choose_version(service.database, study, who.label, body.version)
    return _listed(service, study)


def _listed(service: Service, study: Study) -> list[JSON]:
    number = study.row.id
    rows, current = service.database.read(lambda c: (stored.summaries(c, number), stored.current(c, number)))
    return [
        {
            "version": row["version"],
            "name": (row["facts"] or {}).get("name"),
            "created_at": row["created_at"],
            "created_by": row["created_by"],
            "current": row["version"] == current,
            "dropped": row["dropped_at"] is not None,
        }
        for row in rows
    ]
