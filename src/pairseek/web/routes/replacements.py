"""Routes of the API that replace the items of a study."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from pairseek.core.types import JSON
from pairseek.web.errors import Problem
from pairseek.web.routes import schemas
from pairseek.web.routes.api_access import TheCaller, TheService, other_catalogue
from pairseek.web.routes.item_bodies import ItemsRoute
from pairseek.web.routes.study_facts import Slug, facts_of, permitted_study
from pairseek.web.service import Service
from pairseek.web.sessions.warmup import warm_study
from pairseek.web.studies import replacement

_items_router = APIRouter(route_class=ItemsRoute, generate_unique_id_function=lambda route: route.name)
router = APIRouter(generate_unique_id_function=lambda route: route.name)


@_items_router.put("/studies/{slug}/items", tags=["studies"], status_code=202, response_model=schemas.ReplacementSchema)
async def replace_items(
    body: schemas.OtherItems, slug: Slug, request: Request, response: Response, service: TheService, who: TheCaller
) -> JSON:
    """Replace the items of a study with others in the same coordinate space, such as tomorrow's catalogue.

    The items are checked at once and stored in the background: `read_replacement` shows the state. Sessions that have
    begun keep their items, and answers about removed items still count. The request is idempotent, also while an
    identical one is being worked on.
    """

    def begin() -> JSON:
        study = permitted_study(service, slug, who, "write")
        items = body.items.items(placed=True)
        if body.catalogue not in (None, study.items.hash) and items.hash != study.items.hash:
            raise other_catalogue(body.catalogue, f"The current version of the study's items is {study.items.hash}.")
        items = replacement.checked_items(study, items)
        state, has_begun = replacement.begin(service.database, study, items)

        def finish() -> None:
            replacement.finish(service.database, study, items, state, who=who.label)
            warm_study(service.catalogue.by_slug(slug))

        if has_begun:
            service.run_later(finish)
        return _with_study(service, slug, request, state)

    try:
        state = await service.run_heavy(begin)
    except Problem as problem:
        if problem.code != "items_changed":
            raise
        # An identical request may have been finished in the meantime.
        state = await service.run_heavy(begin)
    response.headers["location"] = f"/api/v1/studies/{slug}/replacements/{state['replacement']}"
    return state


router.include_router(_items_router)


@router.get("/studies/{slug}/replacements/{replacement_id}", tags=["studies"], response_model=schemas.ReplacementSchema)
def read_replacement(
    slug: Slug,
    replacement_id: Annotated[str, Path(max_length=64)],
    request: Request,
    service: TheService,
    who: TheCaller,
) -> JSON:
    """Return the state of a replacement of items: running, done, or failed with an error."""
    study = permitted_study(service, slug, who, "write")
    return _with_study(service, slug, request, replacement.state(service.database, study, replacement_id))


def _with_study(service: Service, slug: str, request: Request, state: JSON) -> JSON:
    """Return a state with the study, once its items are replaced."""
    is_done = state["state"] == "done"
    return state | {"study": facts_of(service.catalogue.by_slug(slug), request) if is_done else None}
