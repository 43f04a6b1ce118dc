"""Studies in the HTTP API: who may reach them, and what replies say about them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request

from pairseek.core.types import JSON
from pairseek.web.access.auth import Caller
from pairseek.web.service import Service
from pairseek.web.studies.catalogue import Study

Slug = Annotated[str, Path(max_length=200, description="name of the study in its link")]


def facts_of(study: Study, request: Request) -> JSON:
    """Return what replies say about a study."""
    return {
        "slug": study.row.slug,
        "title": study.configuration.title,
        "open": study.row.is_open,
        "items": study.items.n,
        "dimensions": study.items.d,
        "catalogue": study.items.hash,
        "created_at": study.row.created_at,
        "link": f"{str(request.base_url).rstrip('/')}/s/{study.row.slug}",
        "configuration": study.row.configuration,
    }


def permitted_study(service: Service, slug: str, who: Caller, scope: str) -> Study:
    """Return a study if the caller has the scope for it."""
    study = service.catalogue.by_slug(slug)
    who.require_scope(scope, study.row.id)
    return study
