"""Routes of the researcher's pages for the quota and the closing date of a study."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from pairseek.core.types import JSON
from pairseek.errors import InvalidParameter
from pairseek.web.routes.researcher_access import CsrfChecked, FormText, Researcher, TheService
from pairseek.web.studies.recruitment import closing_time, set_limits

router = APIRouter(include_in_schema=False)


@router.post("/studies/{slug}/limits", dependencies=[CsrfChecked])
def change_limits(
    slug: str, service: TheService, who: Researcher, quota: FormText = "", closes: FormText = ""
) -> Response:
    """Set the quota and the closing date, which the form gives in UTC."""
    if quota.strip() and not quota.strip().isdecimal():
        raise InvalidParameter(f"the setting 'quota' is {quota[:40]!r}: give a whole number", field="quota")
    limits: JSON = {"quota": int(quota) if quota.strip() else None, "closes": closing_time(closes)}
    set_limits(service.database, service.catalogue.row(slug), limits, who.name)
    return RedirectResponse(f"/studies/{slug}#recruitment", 303)
