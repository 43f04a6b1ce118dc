"""Route of the planner in the form for a new study."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response

from pairseek.core.messages import words
from pairseek.people.ranking.precision import ranking_precision
from pairseek.web.routes.researcher_access import Researcher
from pairseek.web.service import page_language
from pairseek.web.views.planning import plan_text

router = APIRouter(include_in_schema=False)

# Largest number of items, people or answers that the planner takes.
_MAX_PLANNED = 1_000_000


@router.get("/studies/new/plan.json")
async def plan(
    request: Request,
    who: Researcher,  # noqa: ARG001 - any signed-in user
    items: Annotated[int, Query(ge=2, le=_MAX_PLANNED)],
    people: Annotated[int, Query(ge=3, le=_MAX_PLANNED)],
    answers: Annotated[int, Query(ge=1, le=_MAX_PLANNED)],
) -> Response:
    """Return what a study of this size is expected to tell."""
    catalogue = words(page_language(request))
    return JSONResponse(plan_text(ranking_precision(items, people, answers), catalogue))
