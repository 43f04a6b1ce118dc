"""HTTP API for programs, version 1."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Security
from fastapi.security import HTTPBearer
from starlette.responses import Response

from pairseek.core.messages import DEFAULT, words
from pairseek.core.types import JSON
from pairseek.errors import InvalidParameter
from pairseek.store import sessions, studies
from pairseek.store.deletion import Deleted
from pairseek.web.pages.contexts.shared import StateSchema
from pairseek.web.results import workbook
from pairseek.web.routes import api_design, populations, recommendations, replacements, schemas
from pairseek.web.routes.api_access import (
    DeletableSession,
    ReadableSession,
    TheCaller,
    TheService,
    TheSession,
    check_preference,
    limit_rate,
)
from pairseek.web.routes.downloads import bundle_reply, slide_reply, table_reply, workbook_reply
from pairseek.web.routes.item_bodies import ItemsRoute
from pairseek.web.routes.study_facts import Slug, facts_of, permitted_study
from pairseek.web.service import Service
from pairseek.web.sessions import forgetting
from pairseek.web.sessions.access import session_deleted, study_closed
from pairseek.web.sessions.advance import Answer
from pairseek.web.sessions.links import signed_link
from pairseek.web.sessions.warmup import warm_study
from pairseek.web.studies import attributes, creation
from pairseek.web.studies.configuration import configured
from pairseek.web.studies.items import study_items
from pairseek.web.studies.questions import checked_replies, replies_by_question
from pairseek.web.studies.recruitment import set_limits
from pairseek.web.views.result import estimate_facts

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.ErrorReply} for status in (400, 401, 403, 404, 409, 410, 413, 422, 429, 503)
}
_TEXT: JSON = {"schema": {"type": "string"}}
_BINARY: JSON = {"schema": {"type": "string", "format": "binary"}}
_bearer = HTTPBearer(auto_error=False, description="A token for programs, or the token of one session.")


# Generated clients name their functions after the operation ids.
router = APIRouter(
    prefix="/api/v1",
    responses=_ERRORS,
    dependencies=[Security(_bearer), Depends(limit_rate)],
    generate_unique_id_function=lambda route: route.name,
)
items_router = APIRouter(route_class=ItemsRoute, generate_unique_id_function=lambda route: route.name)
Language = Annotated[str, Query(max_length=20, description="language of the texts, such as en or de")]


@router.get("/studies", tags=["studies"], response_model=list[schemas.StudySchema])
def list_studies(request: Request, service: TheService, who: TheCaller) -> list[JSON]:
    """List the studies that this token may read."""
    who.require_scope("read", who.study_id)
    rows = service.database.read(studies.all_studies)
    readable = [row for row in rows if who.study_id in (None, row.id)]
    return [facts_of(service.catalogue.by_slug(row.slug), request) for row in readable]


@items_router.post("/studies", tags=["studies"], status_code=201, response_model=schemas.StudySchema)
async def create_study(body: schemas.NewStudy, request: Request, service: TheService, who: TheCaller) -> JSON:
    """Create a study."""
    who.require_scope("write")

    def created() -> JSON:
        configuration = configured(body.configuration)
        if configuration.coordinates is not None:
            raise InvalidParameter(
                "the setting 'coordinates' names columns of a file, but these items have no columns: leave it out",
                field="coordinates",
            )
        items = body.items.items(placed=not configuration.is_similarity)
        items = study_items(items, scaled=configuration.scaled, standardize=configuration.standardize)
        slug = creation.create_study(service.database, configuration, items, is_open=body.open, who=who.label)
        service.run_later(lambda: warm_study(service.catalogue.by_slug(slug)))
        return facts_of(service.catalogue.by_slug(slug), request)

    return await service.run_heavy(created)


@items_router.patch("/studies/{slug}/attributes", tags=["studies"], response_model=schemas.AttributesSchema)
async def set_attributes(body: schemas.AttributesBody, slug: Slug, service: TheService, who: TheCaller) -> JSON:
    """Change attributes of a study's items, such as stock and prices. The request is idempotent."""

    def changed() -> JSON:
        study = permitted_study(service, slug, who, "write")
        present, ignored = attributes.set_attributes(
            service.database, study, body.attributes, missing=body.missing, who=who.label
        )
        return {"attributes": present.counts, "ignored": ignored}

    return await service.run_heavy(changed)


router.include_router(items_router)
router.include_router(api_design.router)
router.include_router(populations.router)
router.include_router(recommendations.router)
router.include_router(replacements.router)


@router.get("/studies/{slug}/attributes", tags=["studies"], response_model=schemas.AttributesSchema)
def list_attributes(slug: Slug, service: TheService, who: TheCaller) -> JSON:
    """List the attributes of a study's items, with the number of items that have each."""
    study = permitted_study(service, slug, who, "read")
    return {"attributes": service.attributes.of_study(study.row.id).counts}


@router.get("/studies/{slug}/catalogues", tags=["studies"], response_model=list[schemas.CatalogueSchema])
def list_catalogues(slug: Slug, service: TheService, who: TheCaller) -> list[JSON]:
    """List the versions of the items of a study, newest first; replaced versions without sessions may be missing."""
    study = permitted_study(service, slug, who, "read")
    earlier, counts = service.database.read(
        lambda c: (studies.replaced_catalogues(c, study.row.id), sessions.count_by_catalogue(c, study.row.id))
    )
    versions: list[tuple[int, str, int, str | None]] = [(study.row.catalogue, study.items.hash, study.items.n, None)]
    versions += [(row.number, row.hash, row.count, row.replaced_at) for row in reversed(earlier)]
    return [
        {"catalogue": name, "items": count, "sessions": counts.get(number, 0), "replaced_at": at}
        for number, name, count, at in versions
    ]


@router.get("/studies/{slug}", tags=["studies"], response_model=schemas.StudySchema)
def read_study(slug: Slug, request: Request, service: TheService, who: TheCaller) -> JSON:
    """Return a study."""
    return facts_of(permitted_study(service, slug, who, "read"), request)


@router.post("/studies/{slug}/open", tags=["studies"], response_model=schemas.StudySchema)
def open_study(slug: Slug, request: Request, service: TheService, who: TheCaller) -> JSON:
    """Open a study, so that it accepts answers."""
    creation.set_open(service.database, permitted_study(service, slug, who, "write").row, is_open=True, who=who.label)
    return facts_of(service.catalogue.by_slug(slug), request)


@router.post("/studies/{slug}/close", tags=["studies"], response_model=schemas.StudySchema)
def close_study(slug: Slug, request: Request, service: TheService, who: TheCaller) -> JSON:
    """Close a study, so that it accepts no answers."""
    creation.set_open(service.database, permitted_study(service, slug, who, "write").row, is_open=False, who=who.label)
    return facts_of(service.catalogue.by_slug(slug), request)


@router.put("/studies/{slug}/limits", tags=["studies"], response_model=schemas.StudySchema)
def put_limits(body: schemas.LimitsBody, slug: Slug, request: Request, service: TheService, who: TheCaller) -> JSON:
    """Set the quota and the closing date of a study; the request is idempotent."""
    row = permitted_study(service, slug, who, "write").row
    set_limits(service.database, row, body.model_dump(mode="json"), who.label)
    return facts_of(service.catalogue.by_slug(slug), request)


@router.delete("/studies/{slug}", tags=["studies"], response_model=schemas.DeletedSchema)
def delete_study(slug: Slug, service: TheService, who: TheCaller) -> JSON:
    """Delete a study with its items, sessions, populations and tokens."""
    study = permitted_study(service, slug, who, "delete")
    return _deleted(service, forgetting.delete_study(service.database, study, who.label))


@router.post("/studies/{slug}/forget", tags=["studies"], response_model=schemas.DeletedSchema)
def forget_participant(body: schemas.ForgetBody, slug: Slug, service: TheService, who: TheCaller) -> JSON:
    """Delete all sessions of a participant, and what was learned from them.

    The id is sent in the body, because proxies log addresses.
    """
    study = permitted_study(service, slug, who, "delete")
    return _deleted(service, forgetting.forget(service.database, study, body.participant, who.label))


@router.delete("/sessions/{session_id}", tags=["sessions"], response_model=schemas.DeletedSchema)
def delete_session(session: DeletableSession, service: TheService) -> JSON:
    """Delete a session, and what was learned from it."""
    who, row = session
    study = service.catalogue.by_id(row.study_id)
    return _deleted(service, forgetting.forget_session(service.database, study, row.id, who.label))


def _deleted(service: Service, deleted: Deleted) -> JSON:
    service.housekeeper.clear_soon()
    return {"sessions": deleted.sessions, "answers": deleted.answers, "populations": list(deleted.populations)}


@router.get("/studies/{slug}/sessions", tags=["sessions"], response_model=list[schemas.SessionSchema])
def list_sessions(slug: Slug, service: TheService, who: TheCaller) -> list[JSON]:
    """List the sessions of a study."""
    study = permitted_study(service, slug, who, "read")
    rows, earlier = service.database.read(
        lambda c: (
            sessions.of_study(c, study.row.id, ["person", "simulated"]),
            studies.replaced_catalogues(c, study.row.id),
        )
    )
    hashes = {catalogue.number: catalogue.hash for catalogue in earlier}
    return [
        {
            "session": row.id,
            "catalogue": hashes.get(row.catalogue, study.items.hash),
            "participant": row.participant,
            "prolific_pid": row.prolific_pid,
            "simulated": row.kind == "simulated",
            "started_at": row.created_at,
            "finished_at": row.finished_at,
            "reason": row.reason,
            "variables": row.variables or {},
            "replies": replies_by_question(row.replies),
        }
        for row in rows
    ]


@router.post("/studies/{slug}/sessions", tags=["sessions"], status_code=201, response_model=schemas.OpenedSession)
def open_session(body: schemas.NewSession, slug: Slug, service: TheService, who: TheCaller) -> JSON:
    """Begin a session; the response contains the session's own token."""
    study = permitted_study(service, slug, who, "answer")
    if not study.row.is_open:
        raise study_closed(slug)
    identity = {name: getattr(body, name) for name in sessions.IDENTITIES}
    session_id, token = service.sessions.open(
        study, identity, seed=body.seed, opened_by=who.token_hash, variables=body.variables
    )
    row = service.sessions.by_id(session_id)
    if row is None:
        raise session_deleted()
    with service.gate.working():
        return {"session": session_id, "token": token, "state": service.sessions.state(row)}


@router.post("/studies/{slug}/links", tags=["sessions"], response_model=list[schemas.LinkSchema])
def sign_links(
    body: schemas.NewLinks, slug: Slug, request: Request, service: TheService, who: TheCaller
) -> list[dict[str, str]]:
    """Create a signed link per participant, which proves their id and lets its holder continue in any browser.

    Needs the scope ``write``, because whoever can create links can act on behalf of every participant.
    """
    study, address = permitted_study(service, slug, who, "write").row, str(request.base_url)
    links = [
        {"participant": name, "link": signed_link(service.link_key, address, study, name, body.days)}
        for name in body.participants
    ]
    service.database.write(lambda connection: studies.log_action(connection, who.label, "link", slug, count=len(links)))
    return links


@router.get("/sessions/{session_id}/query", tags=["sessions"], response_model=StateSchema)
def current_query(row: TheSession, service: TheService) -> StateSchema:
    """Return the current query, which stays the same until it is answered."""
    with service.gate.working():
        return service.sessions.state(row)


@router.post("/sessions/{session_id}/answers", tags=["sessions"], response_model=StateSchema)
def post_answer(body: Answer, row: TheSession, service: TheService) -> StateSchema:
    """Answer the current query. The request is idempotent; a different answer to the same query is a conflict."""
    with service.gate.working():
        return service.store_answer(row, body)


@router.post("/sessions/{session_id}/undo", tags=["sessions"], response_model=StateSchema)
def undo_answer(body: schemas.UndoBody, row: TheSession, service: TheService) -> StateSchema:
    """Undo the last answer."""
    with service.gate.working():
        return service.undo_answer(row, body.query)


@router.put("/sessions/{session_id}/replies", tags=["sessions"], status_code=204)
def put_replies(body: schemas.RepliesBody, row: TheSession, service: TheService) -> None:
    """Store the replies to the researcher's own questions of a stage, in place of earlier ones.

    Pages ask the questions at the right time; a program decides that itself.
    """
    service.rates.answers.check(row.id)
    study = service.catalogue.by_id(row.study_id)
    service.sessions.reply(row, body.stage, checked_replies(study.configuration.questions, body.stage, body.replies))


@router.get("/sessions/{session_id}/estimate", tags=["sessions"], response_model=schemas.EstimateSchema)
def estimate(row: ReadableSession, service: TheService) -> JSON:
    """Return the estimated user point."""
    check_preference(service, row)
    with service.gate.working():
        state = service.sessions.snapshot(row).state
        facts = estimate_facts(state if state.parts.computes_results(row) else None, row.final)
        assert facts is not None
        return {
            "point": facts["mean"],
            "covariance": facts["covariance"],
            "radius": facts["radius"],
            "answers": state.answer_count,
            "reliability": facts.get("reliability"),
        }


@router.get(
    "/studies/{slug}/export/{table}.{ending}",
    tags=["data"],
    response_class=Response,
    responses={200: {"content": {"text/csv": _TEXT, "application/vnd.apache.parquet": _BINARY}}},
)
async def export_table(
    slug: Slug,
    table: Literal["answers", "participants", "estimates", "items", "ranking", "people"],
    ending: Literal["csv", "parquet"],
    service: TheService,
    who: TheCaller,
) -> Response:
    """Export a table with the current data of a study."""
    return await table_reply(
        service, await service.run_for_result(lambda: permitted_study(service, slug, who, "read")), table, ending
    )


@router.get(
    "/studies/{slug}/slide.{ending}",
    tags=["data"],
    response_class=Response,
    responses={200: {"content": {"image/svg+xml": _TEXT, "image/png": _BINARY}}},
)
async def export_slide(
    slug: Slug, ending: Literal["svg", "png"], service: TheService, who: TheCaller, language: Language = DEFAULT
) -> Response:
    """Return the ranking of a study as a slide with three sentences about it."""
    study = await service.run_for_result(lambda: permitted_study(service, slug, who, "read"))
    return await slide_reply(service, study, ending, words(language).language)


@router.get(
    "/studies/{slug}/workbook.xlsx",
    tags=["data"],
    response_class=Response,
    responses={200: {"content": {workbook.MEDIA_TYPE: _BINARY}}},
)
async def export_workbook(slug: Slug, service: TheService, who: TheCaller, language: Language = DEFAULT) -> Response:
    """Export the study as an Excel workbook: ranking, people, person x item, answers and codebook."""
    study = await service.run_for_result(lambda: permitted_study(service, slug, who, "read"))
    return await workbook_reply(service, study, words(language).language)


@router.get(
    "/studies/{slug}/bundle.zip",
    tags=["data"],
    response_class=Response,
    responses={200: {"content": {"application/zip": _BINARY}}},
)
async def export_bundle(slug: Slug, service: TheService, who: TheCaller) -> Response:
    """Export the study as a zip."""
    return await bundle_reply(
        service, await service.run_for_result(lambda: permitted_study(service, slug, who, "read"))
    )
