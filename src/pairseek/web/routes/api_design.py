"""Routes of the HTTP API that edit and duplicate studies."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from pairseek.core.types import JSON
from pairseek.web.routes import schemas
from pairseek.web.routes.api_access import TheCaller, TheService
from pairseek.web.routes.study_facts import Slug, facts_of, permitted_study
from pairseek.web.studies import duplication, editing

router = APIRouter(generate_unique_id_function=lambda route: route.name)


@router.patch("/studies/{slug}", tags=["studies"], response_model=schemas.StudySchema)
def edit_study(body: schemas.EditBody, slug: Slug, request: Request, service: TheService, who: TheCaller) -> JSON:
    """Change the texts or the appearance of a study; each change is recorded with its time."""
    study = permitted_study(service, slug, who, "write")
    settings: dict[str, Any] = body.model_dump(exclude_unset=True)
    editing.edit_settings(service.database, study, settings, who=who.label)
    return facts_of(service.catalogue.by_slug(slug), request)


@router.post("/studies/{slug}/duplicate", tags=["studies"], status_code=201, response_model=schemas.StudySchema)
def duplicate_study(
    body: schemas.DuplicateBody, slug: Slug, request: Request, service: TheService, who: TheCaller
) -> JSON:
    """Create a closed copy of a study with its settings, items and pictures, but without people."""
    who.require_scope("write")
    study = service.catalogue.by_slug(slug)
    copy = duplication.duplicate(service.database, study, who=who.label, slug=body.slug)
    return facts_of(service.catalogue.by_slug(copy), request)
