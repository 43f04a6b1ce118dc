"""Routes of the researcher's downloads to present: slide and workbook."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import Response

from pairseek.web.routes.downloads import slide_reply, workbook_reply
from pairseek.web.routes.researcher_access import Researcher, TheService
from pairseek.web.service import page_language

router = APIRouter(include_in_schema=False)


@router.get("/studies/{slug}/slide.{ending}")
async def download_slide(
    slug: str,
    ending: Literal["svg", "png"],
    request: Request,
    service: TheService,
    who: Researcher,  # noqa: ARG001 - any signed-in user
    language: str = "",
    everyone: Literal["", "1"] = "",
) -> Response:
    """Return the ranking of a study as a slide."""
    study = await service.run_for_result(lambda: service.catalogue.by_slug(slug))
    return await slide_reply(service, study, ending, page_language(request, language), everyone=bool(everyone))


@router.get("/studies/{slug}/workbook.xlsx")
async def export_workbook(
    slug: str,
    request: Request,
    service: TheService,
    who: Researcher,  # noqa: ARG001 - any signed-in user
    language: str = "",
) -> Response:
    """Export the study as an Excel workbook."""
    study = await service.run_for_result(lambda: service.catalogue.by_slug(slug))
    return await workbook_reply(service, study, page_language(request, language))
