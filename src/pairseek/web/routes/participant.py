"""Routes of the participant's browser."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Self
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from pairseek.core.validation import MAX_ID_LENGTH
from pairseek.store.sessions import IDENTITIES, SessionRow
from pairseek.web.access.rates import network_of
from pairseek.web.access.security import check_form, check_guard, set_cookie, signature
from pairseek.web.access.tokens import new_token
from pairseek.web.errors import Problem, not_found
from pairseek.web.routes.schemas import UndoBody
from pairseek.web.service import Service, service_of
from pairseek.web.sessions.access import Visitor, already_took_part, is_expired, session_expired, study_closed
from pairseek.web.sessions.advance import TIMESTAMP, Answer
from pairseek.web.sessions.limits import has_reached_quota
from pairseek.web.sessions.link_variables import variables_of
from pairseek.web.sessions.links import (
    SIGNATURE_PARAMETER,
    invitation_needed,
    is_valid,
    link_expired,
    verify_link,
)
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.face import style_sheet
from pairseek.web.studies.questions import pending_stage
from pairseek.web.views import participant as views

router = APIRouter(include_in_schema=False)

TheService = Annotated[Service, Depends(service_of)]
# Query parameters of a link, and the columns that store them.
_LINK_PARAMETERS = {
    "PROLIFIC_PID": "prolific_pid",
    "STUDY_ID": "prolific_study",
    "SESSION_ID": "prolific_session",
    "participant": "participant",
    "puid": "participant",
    "workerId": "participant",
    "survey_code": "participant",
}
# Parameters of a link that are not kept as variables.
_KNOWN_PARAMETERS = frozenset({*_LINK_PARAMETERS, SIGNATURE_PARAMETER, "until"})
# Maximum size of a cookie; browsers drop cookies larger than 4096 bytes.
_MAX_COOKIE_BYTES = 3800
# Characters that stay as they are in an address.
_ADDRESS_CHARACTERS = ":/%#?=@[]!$&'()*+,;"
# Seconds that a request waits for prefetched pairs; the page asks again after a pause.
_WAIT_SECONDS = 1.0


class FocusBody(BaseModel):
    """Loss of focus: when it began and how long it lasted."""

    query: str = Field(max_length=64)
    lost_at: str = Field(max_length=32, pattern=TIMESTAMP)
    ms: int = Field(ge=0, le=2**31 - 1)


def cookie_of(slug: str) -> str:
    """Return the name of a study's session cookie, which is unique because slugs have no underscore."""
    return f"pairseek_s_{slug}"


def _identity_cookie(slug: str) -> str:
    """Return the name of the cookie with the ids from a link."""
    return f"pairseek_who_{slug}"


def session_of(slug: str, request: Request, service: TheService) -> SessionRow:
    """Return the session of this browser in this study."""
    row = _browser_session(slug, request, service)
    if row is None:
        _study(slug, request, service)
        raise Problem(
            401, "no_session", "this browser has no session in this study", hint="Open the link of the study again."
        )
    if is_expired(row, service.catalogue.by_id(row.study_id)):
        _study(slug, request, service)
        raise session_expired()
    return row


TheSession = Annotated[SessionRow, Depends(session_of)]


def _study(slug: str, request: Request, service: Service) -> Study:
    """Return a study, and let its pages and later errors speak like it."""
    return speak_like(request, service.catalogue.by_slug(slug))


def speak_like(request: Request, study: Study) -> Study:
    """Let the pages that answer a request use the language and the texts of a study; return the study."""
    request.state.language = study.configuration.language
    request.state.texts = study.configuration.texts
    return study


def _browser_session(slug: str, request: Request, service: Service) -> SessionRow | None:
    # Sessions that began before schema version 0005 have a cookie without the letter s.
    token = request.cookies.get(cookie_of(slug)) or request.cookies.get(f"pairseek_{slug}")
    row = None if token is None else service.sessions.by_token(token)
    if row is None or service.catalogue.by_id(row.study_id).row.slug != slug:
        return None
    return row


@router.get("/s/{slug}")
def start(slug: str, request: Request, service: TheService) -> Response:
    """Show consent and instructions."""
    study = _study(slug, request, service)
    who = _LinkIdentity.of_link(request, study, service)
    row = _unless_other_person(_browser_session(slug, request, service), who.ids)
    begun = row is not None and row.kind != "preview" and _is_resumed(row, study)
    if not study.row.is_open and not (row is not None and row.kind == "preview"):
        return _closed_reply(service, request, study, row)
    if row is None:
        who.check(study)
        if service.database.read(lambda connection: has_reached_quota(connection, study)):
            return _full_reply(service, request, study, who)
    data = views.start_page(study, begun=begun, preview=row is not None and row.kind == "preview")
    response = service.page(request, "start", data, language=study.configuration.language)
    if who.ids or who.variables or _identity_cookie(slug) in request.cookies:
        # Replaced even without an id, because the visitor may be a different person than before.
        set_cookie(
            response, _identity_cookie(slug), who.signed(service.secret, slug), service.settings, path=f"/s/{slug}"
        )
    return response


@router.get("/s/{slug}/face.css")
def face(slug: str, service: TheService) -> Response:
    """Return the style sheet with the study's colour; its address changes with the colour."""
    accent = service.catalogue.by_slug(slug).configuration.accent
    if accent is None:
        raise not_found("style sheet", slug)
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(style_sheet(accent), media_type="text/css", headers=headers)


@router.post("/s/{slug}/start")
def begin(
    slug: str,
    request: Request,
    service: TheService,
    csrf: Annotated[str, Form()] = "",
    texts: Annotated[str, Form(max_length=64)] = "",
) -> Response:
    """Begin a session, or resume the previous one; show the start page again if its texts have changed meanwhile."""
    study = _study(slug, request, service)
    check_form(request, service.secret, csrf)
    who = _LinkIdentity.of_cookie(request, service.secret, slug)
    row = _unless_other_person(_browser_session(slug, request, service), who.ids)
    to_run = RedirectResponse(f"/s/{slug}/run", 303)
    if row is not None and _is_resumed(row, study):
        return to_run
    if not study.row.is_open:
        raise study_closed(slug)
    if texts not in ("", views.texts_version(study)):
        data = views.start_page(study, begun=False, preview=False, changed=True)
        return service.page(request, "start", data, language=study.configuration.language)
    service.rates.starts.check(network_of(request.client.host if request.client else ""))
    visitor = who.visitor()
    if row is None or study.configuration.resume.policy == "restart" or is_expired(row, study):
        # A new session needs a valid link, even in a browser that had one before.
        who.check(study)
    if row is not None and not who.ids:
        visitor = Visitor({name: getattr(row, name) for name in IDENTITIES}, variables=row.variables or {})
        if study.configuration.resume.policy == "block" and not is_expired(row, study):
            raise already_took_part()
    try:
        _, token = service.sessions.arrive(study, visitor)
    except Problem as problem:
        if problem.code == "study_full":
            return _full_reply(service, request, study, who)
        raise
    set_cookie(to_run, cookie_of(slug), token, service.settings, path=f"/s/{slug}")
    return to_run


@router.post("/s/{slug}/decline")
def decline(slug: str, request: Request, service: TheService, csrf: Annotated[str, Form()] = "") -> Response:
    """Show the page for people who do not consent; nothing is stored."""
    study = _study(slug, request, service)
    check_form(request, service.secret, csrf)
    who = _LinkIdentity.of_cookie(request, service.secret, slug)
    return service.page(request, "declined", views.declined_page(study, who.ids), language=study.configuration.language)


@router.get("/s/{slug}/run")
def run(slug: str, request: Request, service: TheService) -> Response:
    """Show the pairs."""
    study = _study(slug, request, service)
    row = _browser_session(slug, request, service)
    if row is None or is_expired(row, study):
        return RedirectResponse(f"/s/{slug}", 303)
    state = service.sessions.state(row)
    if state["status"] == "finished" and state["can"]["undo"] is None:
        return RedirectResponse(f"/s/{slug}/result", 303)
    if state["status"] == "closed":
        return _closed_reply(service, request, study, row)
    if pending_stage(study.configuration.questions, row.replies, finished=False) and not row.version:
        return RedirectResponse(f"/s/{slug}/questions", 303)
    data = views.run_page(study, row, state, prefetch=service.prefetcher_of(row) is not None)
    return service.page(request, "run", data, language=study.configuration.language)


@router.get("/s/{slug}/result")
async def result(slug: str, request: Request, service: TheService, row: TheSession) -> Response:
    """Show the result with the completion code; afterwards no answer can be undone."""
    return await service.run_for_result(lambda: _result(slug, request, service, row))


def _result(slug: str, request: Request, service: Service, row: SessionRow) -> Response:
    study = _study(slug, request, service)
    if service.sessions.state(row)["status"] != "finished":
        return RedirectResponse(f"/s/{slug}/run", 303)
    if row.confirmed_at is None and pending_stage(study.configuration.questions, row.replies, finished=True):
        return RedirectResponse(f"/s/{slug}/questions", 303)
    if not service.sessions.confirm(row):
        return RedirectResponse(f"/s/{slug}/run", 303)
    if study.configuration.completion.wait == 0 and row.kind != "preview":
        address = views.result_page(service, study, row)["redirect"]
        if address is not None:
            return _lead_to(address)

    def render() -> str:
        data = views.result_page(service, study, row)
        page = service.page(request, "result", data, language=study.configuration.language)
        return bytes(page.body).decode()

    return HTMLResponse(service.result_pages.get(row.id, row.version, render))


@router.get("/s/{slug}/state")
async def state(slug: str, request: Request, service: TheService) -> Response:
    """Return the state of the session."""
    return await service.run_in_turn(
        lambda: JSONResponse(service.sessions.state(session_of(slug, request, service))),
    )


async def answer(request: Request) -> Response:
    """Store an answer and return the next state.

    A plain route, because the framework's routes take 0.2 ms longer, which is 5 % of the time per answer.
    """
    slug, service, answered = request.path_params["slug"], await service_of(request), await _answer_of(request)

    def store_answer() -> Response:
        row = session_of(slug, request, service)
        check_guard(request)
        # The page reports what was played, so a missing report means that nothing was played.
        return JSONResponse(service.store_answer(row, answered.model_copy(update={"played": answered.played or {}})))

    return await service.run_in_turn(store_answer)


async def _answer_of(request: Request) -> Answer:
    """Parse the answer in a request to a plain route, with the same errors as the framework's routes."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        message = f"the content type is {kind or 'missing'}: send application/json"
        raise RequestValidationError([{"type": "content_type", "loc": ("body",), "msg": message, "input": None}])
    try:
        return Answer.model_validate_json(await request.body())
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None


class PlainRoute(Route):
    """Route without the framework's validation, logged under its path like the other routes."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether the route matches, and the scope of the request with the route."""
        match, child_scope = super().matches(scope)
        return match, {**child_scope, "route": self}


plain_routes = [PlainRoute("/s/{slug}/answer", answer, methods=["POST"])]


@router.post("/s/{slug}/undo")
async def undo(slug: str, body: UndoBody, request: Request, service: TheService) -> Response:
    """Undo the last answer."""

    def undo_answer() -> Response:
        row = session_of(slug, request, service)
        check_guard(request)
        return JSONResponse(service.undo_answer(row, body.query))

    return await service.run_in_turn(undo_answer)


@router.post("/s/{slug}/focus")
def focus(body: FocusBody, request: Request, row: TheSession, service: TheService) -> Response:
    """Store a loss of focus."""
    check_guard(request)
    service.rates.answers.check(row.id)
    service.sessions.blur(row, body.query, body.lost_at, body.ms)
    return Response(status_code=204)


@router.get("/s/{slug}/prefetch")
async def prefetch(query: str, row: TheSession, service: TheService) -> Response:
    """Return the pairs that follow each possible answer to the open query, if they are ready in time."""
    prefetcher = service.prefetcher_of(row)
    if prefetcher is None:
        return Response(status_code=204)
    future = asyncio.wrap_future(prefetcher.prefetch(row, query))
    try:
        pairs = await asyncio.wait_for(asyncio.shield(future), _WAIT_SECONDS)
    except (TimeoutError, asyncio.CancelledError):
        return Response(status_code=204)
    return Response(status_code=204) if pairs is None else JSONResponse(pairs)


@router.get("/s/{slug}/mine")
def mine(slug: str, row: TheSession, service: TheService) -> Response:
    """Download the person's own data."""
    headers = {"content-disposition": f'attachment; filename="{slug}-my-answers.json"'}
    return JSONResponse(views.own_data(service, row), headers=headers)


def _unless_other_person(row: SessionRow | None, identity: Mapping[str, str | None]) -> SessionRow | None:
    """Return the browser's session; None if the link identifies another person."""
    if row is None or row.kind == "preview":
        return row
    names = [name for name in ("prolific_pid", "participant") if identity.get(name)]
    return row if all(getattr(row, name) == identity[name] for name in names) else None


def _is_resumed(row: SessionRow, study: Study) -> bool:
    """Return whether the browser's session should be resumed."""
    if row.kind == "preview":
        return True
    policy = study.configuration.resume.policy
    return (policy == "resume" or (policy == "block" and row.version == 0)) and not is_expired(row, study)


def _lead_to(address: str) -> Response:
    """Lead to another site.

    Browsers refuse a redirect after a form, because the content policy lets forms lead only to this site.
    A refresh is a navigation of its own.
    """
    return Response(headers={"refresh": f"0; url={quote(address, safe=_ADDRESS_CHARACTERS)}"}, media_type="text/html")


def _full_reply(service: Service, request: Request, study: Study, who: _LinkIdentity) -> Response:
    """Show that the quota is reached, with the way back to the panel."""
    data = views.full_page(study, who.ids)
    return service.page(request, "closed", data, status=200, language=study.configuration.language)


def _closed_reply(service: Service, request: Request, study: Study, row: SessionRow | None) -> Response:
    data = views.closed_page(study, row)
    return service.page(request, "closed", data, status=200, language=study.configuration.language)


@dataclass(frozen=True, slots=True)
class _LinkIdentity:
    """Visitor as identified by their link.

    It has ids, the expiry of a signed link (None without one), the browser's nonce, and further variables of the link.

    A signed cookie carries it from the start page to the beginning of the session.
    """

    ids: dict[str, str]
    until: int | None = None
    nonce: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_link(cls, request: Request, study: Study, service: Service) -> Self:
        """Read the link; raise a `Problem` if its signature is not valid."""
        until = None
        if SIGNATURE_PARAMETER in request.query_params:
            # Ids that the signature does not cover are ignored.
            participant, until = verify_link(service.link_key, study.row, request.query_params)
            ids = {"participant": participant}
        else:
            ids = _identity(request.query_params)
        nonce = cls.of_cookie(request, service.secret, study.row.slug).nonce
        return cls(ids, until, nonce or new_token(), variables_of(request.query_params, _KNOWN_PARAMETERS))

    @classmethod
    def of_cookie(cls, request: Request, secret: str, slug: str) -> Self:
        """Read the cookie; return an empty identity if it is missing or was not signed for this study."""
        body, _, mark = request.cookies.get(_identity_cookie(slug), "").partition(".")
        if not body or not hmac.compare_digest(signature(secret, "who", f"{slug}:{body}").encode(), mark.encode()):
            return cls({})
        return cls(*json.loads(base64.urlsafe_b64decode(body)))

    def signed(self, secret: str, slug: str) -> str:
        """Return the content of the cookie."""
        content = json.dumps([self.ids, self.until, self.nonce, dict(self.variables)], ensure_ascii=False)
        body = base64.urlsafe_b64encode(content.encode()).decode()
        if len(body) > _MAX_COOKIE_BYTES:
            raise _too_long()
        return f"{body}.{signature(secret, 'who', f'{slug}:{body}')}"

    def check(self, study: Study) -> None:
        """Raise a `Problem` if the link has expired, or if it is unsigned and the study needs a signed one."""
        if self.until is not None and not is_valid(self.until):
            raise link_expired()
        if study.configuration.invited and self.until is None:
            raise invitation_needed()

    def visitor(self) -> Visitor:
        """Return the visitor for the session service."""
        signed = self.until is not None and is_valid(self.until)
        return Visitor(dict(self.ids), signed, self.nonce, self.variables)


def _identity(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the ids in a link, without control characters."""
    ids = {column: parameters[name] for name, column in _LINK_PARAMETERS.items() if parameters.get(name)}
    if any(len(text) > MAX_ID_LENGTH for text in ids.values()):
        raise _too_long()
    plain = {column: "".join(ch for ch in text if ch.isprintable()) for column, text in ids.items()}
    return {column: text for column, text in plain.items() if text.strip()}


def _too_long() -> Problem:
    return Problem(
        422,
        "id_too_long",
        f"an id in this link has more than {MAX_ID_LENGTH} characters",
        hint="Open the link exactly as you received it.",
    )
