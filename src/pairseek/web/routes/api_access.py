"""Access to the HTTP API: rate limits, callers, and the sessions that they may use."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Request

from pairseek.store import sessions
from pairseek.store.sessions import SessionRow
from pairseek.web.access.auth import Caller, authenticated_caller
from pairseek.web.access.tokens import hash_token, token_of_header
from pairseek.web.errors import Problem, not_found
from pairseek.web.service import Service, service_of

TheService = Annotated[Service, Depends(service_of)]
SessionId = Annotated[str, Path(max_length=64, description="id of the session")]


async def limit_rate(request: Request, service: TheService) -> None:
    """Apply the rate limit of a token. Asynchronous, because starting a thread would cost more than the call."""
    service.rates.calls.check(hash_token(token_of_header(request.headers.get("authorization"))))


def who_calls(request: Request, service: TheService) -> Caller:
    """Return the holder of the token."""
    return authenticated_caller(service.database, request.headers.get("authorization"))


TheCaller = Annotated[Caller, Depends(who_calls)]


def the_session(session_id: SessionId, request: Request, service: TheService) -> SessionRow:
    """Return a session that the caller may use, with its own token or with the API token that began it.

    A token with the scope ``answer`` is often used by a program on a stranger's device, and must not give access to
    other people's answers.
    """
    row = _own_session(session_id, request, service)
    if row is None:
        who, row = _named_session(session_id, request, service)
        who.require_scope("answer", row.study_id)
        _require_opener(service, row, who)
    return row


def readable_session(session_id: SessionId, request: Request, service: TheService) -> SessionRow:
    """Return a session that the caller may read, as in `the_session` or with a token with the scope ``read``.

    Only the scope ``read`` gives access to the result if the study does not show it.
    """
    row = _own_session(session_id, request, service)
    if row is None:
        who, row = _named_session(session_id, request, service)
        if "read" in who.scopes:
            who.require_scope("read", row.study_id)
            return row
        who.require_scope("answer", row.study_id)
        _require_opener(service, row, who)
    if not service.catalogue.by_id(row.study_id).configuration.result:
        raise Problem(
            403, "result_hidden", "this study does not show its result", hint="Use a token with the scope read."
        )
    return row


def deletable_session(session_id: SessionId, request: Request, service: TheService) -> tuple[Caller, SessionRow]:
    """Return a session that the caller may delete."""
    who, row = _named_session(session_id, request, service)
    who.require_scope("delete", row.study_id)
    return who, row


def _own_session(session_id: str, request: Request, service: Service) -> SessionRow | None:
    """Return the session if the caller has its own token; None if the token is not a session's."""
    header = request.headers.get("authorization", "")
    own = service.database.read(
        lambda connection: sessions.by_token(connection, hash_token(header.partition(" ")[2].strip()))
    )
    if own is not None and header.lower().startswith("bearer "):
        if own.id != session_id:
            raise Problem(
                403, "other_session", "this token is for another session", hint="Use the session's own token."
            )
        return own
    return None


def _named_session(session_id: str, request: Request, service: Service) -> tuple[Caller, SessionRow]:
    who = authenticated_caller(service.database, request.headers.get("authorization"))
    row = service.sessions.by_id(session_id)
    if row is None:
        raise not_found("session", session_id)
    return who, row


def _require_opener(service: Service, row: SessionRow, who: Caller) -> None:
    if not service.database.read(lambda connection: sessions.was_opened_by(connection, row.id, who.token_hash)):
        raise Problem(
            403,
            "other_session",
            "this token did not begin this session",
            hint="Use the session's own token, or the token that began it.",
        )


TheSession = Annotated[SessionRow, Depends(the_session)]
ReadableSession = Annotated[SessionRow, Depends(readable_session)]
DeletableSession = Annotated[tuple[Caller, SessionRow], Depends(deletable_session)]


def other_catalogue(received: object, hint: str) -> Problem:
    """Return the problem for a version of the items that the study does not have."""
    return Problem(
        409,
        "other_catalogue",
        "the study does not have the version of its items that the request names",
        received=received,
        hint=hint,
    )


def check_preference(service: Service, row: SessionRow) -> None:
    """Raise a `Problem` for a session of a similarity study, which is not about the person."""
    study = service.catalogue.by_id(row.study_id)
    if study.configuration.is_similarity:
        raise Problem(
            409,
            "no_estimate",
            f"the study {study.row.slug!r} asks what is alike, so its sessions have no estimate",
            hint="Export its answers, or create a preference study from its map.",
        )
