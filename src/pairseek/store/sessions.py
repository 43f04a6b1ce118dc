"""Sessions of participants."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store.database import now
from pairseek.store.schema import blurs, events, learned_from, marks, queries, sessions, studies
from pairseek.store.studies import IS_OPEN

IDENTITIES = ("participant", "prolific_pid", "prolific_study", "prolific_session")


@dataclass(frozen=True, slots=True)
class SessionRow:
    """Session of a participant.

    Attributes
    ----------
    version
        Number of its events and marks, for optimistic locking.
    finished_at, confirmed_at
        Time of the last answer, and time at which the person went on to the result.
    browser
        Hash of a secret that only the browser that began the session has.
    population
        Version of the study's population that the session began with; None if the study had none.
    parts
        Key of the resolved parts of its search.
    catalogue
        Number of the item catalogue that the session began with.
    variables
        Further variables of the link, by name.
    replies
        Replies to the researcher's own questions, by stage (before, after) and name.
    """

    id: str
    study_id: int
    kind: str
    seed: int
    participant: str | None
    prolific_pid: str | None
    prolific_study: str | None
    prolific_session: str | None
    created_at: str
    version: int
    finished_at: str | None
    confirmed_at: str | None
    reason: str | None
    final: JSON | None
    truth: JSON | None
    population: int | None
    parts: str
    browser: str | None
    catalogue: int
    is_open: bool
    variables: JSON | None = None
    replies: JSON | None = None

    @property
    def accepts_answers(self) -> bool:
        """Whether the session accepts answers; previews and simulated sessions do so even in a closed study."""
        return self.is_open or self.kind != "person"

    @property
    def participant_name(self) -> str | None:
        """Participant's id from the link, or else the Prolific id; None without either."""
        return self.participant or self.prolific_pid


# Sessions are joined with their study, because every answer depends on whether the study is open.
_COLUMNS = [IS_OPEN if name == "is_open" else sessions.c[name] for name in SessionRow.__slots__]
_JOINED = sessions.join(studies, studies.c.id == sessions.c.study_id)
# Statements are built once, because building takes as long as executing.
_BY_TOKEN = sa.select(*_COLUMNS).select_from(_JOINED).where(sessions.c.token_hash == sa.bindparam("token"))
_BY_ID = sa.select(*_COLUMNS).select_from(_JOINED).where(sessions.c.id == sa.bindparam("session"))
_MARKS = sa.select(marks).where(marks.c.session_id.in_(sa.bindparam("chosen", expanding=True))).order_by(marks.c.id)


def add(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    """Add a session."""
    connection.execute(sessions.insert().values(created_at=now(), version=0, **values))


def by_token(connection: sa.Connection, token_hash: str) -> SessionRow | None:
    """Return the session that this token opens."""
    row = connection.execute(_BY_TOKEN, {"token": token_hash}).first()
    return None if row is None else SessionRow(*row)


def by_id(connection: sa.Connection, session_id: str) -> SessionRow | None:
    """Return the session with this id."""
    row = connection.execute(_BY_ID, {"session": session_id}).first()
    return None if row is None else SessionRow(*row)


def of_person(connection: sa.Connection, study_id: int, identity: Mapping[str, str | None]) -> SessionRow | None:
    """Return the session that holds the person's claim, or else the newest with their id; None without ids.

    The claim comes first: a link may carry two ids, so this id may also occur, as the second one, in a newer session of
    somebody else.
    """
    for name in ("prolific_pid", "participant"):
        if identity.get(name):
            condition = (sessions.c.study_id == study_id) & (sessions.c[name] == identity[name])
            claim_first = sa.case((sessions.c.claim == claim_of(identity), 0), else_=1)
            return _newest(connection, condition & (sessions.c.kind == "person"), claim_first)
    return None


def of_study(connection: sa.Connection, study_id: int, kinds: Sequence[str]) -> list[SessionRow]:
    """Return all sessions of a study, oldest first."""
    condition = (sessions.c.study_id == study_id) & sessions.c.kind.in_(kinds)
    statement = (
        sa.select(*_COLUMNS).select_from(_JOINED).where(condition).order_by(sessions.c.created_at, sessions.c.id)
    )
    return [SessionRow(*row) for row in connection.execute(statement)]


def state_of_study(connection: sa.Connection, study_id: int, kinds: Sequence[str]) -> str:
    """Return a text that changes with every answer, mark and reply in the sessions of a study.

    Only a deletion could restore an earlier text.
    """
    condition = (sessions.c.study_id == study_id) & sessions.c.kind.in_(kinds)
    replies = sa.func.sum(sa.func.length(sa.cast(sessions.c.replies, sa.Text)))
    columns = (sa.func.count(), sa.func.sum(sessions.c.version), sa.func.count(sessions.c.finished_at), replies)
    return ",".join(str(value or 0) for value in connection.execute(sa.select(*columns).where(condition)).one())


def by_ids(connection: sa.Connection, ids: Sequence[str]) -> list[SessionRow]:
    """Return those of these sessions that are stored, in this order."""
    statement = sa.select(*_COLUMNS).select_from(_JOINED).where(sessions.c.id.in_(ids))
    stored = {row.id: SessionRow(*row) for row in connection.execute(statement)}
    return [stored[session_id] for session_id in ids if session_id in stored]


def newest_finished(connection: sa.Connection, study_id: int, at: str, limit: int) -> list[SessionRow]:
    """Return people's sessions that finished before a time, at most ``limit``, newest first."""
    condition = (sessions.c.study_id == study_id) & (sessions.c.kind == "person") & (sessions.c.finished_at < at)
    order = sessions.c.finished_at.desc(), sessions.c.id
    statement = sa.select(*_COLUMNS).select_from(_JOINED).where(condition).order_by(*order).limit(limit)
    return [SessionRow(*row) for row in connection.execute(statement)]


def claim_of(identity: Mapping[str, str | None]) -> str | None:
    """Return the claim of a person, which is unique within a study; None for a person without ids."""
    for name in ("prolific_pid", "participant"):
        if identity.get(name):
            return hashlib.sha256(f"{name}:{identity[name]}".encode()).hexdigest()
    return None


def release_claim(connection: sa.Connection, study_id: int, claim: str, until: str) -> None:
    """Remove the claim from the session that holds it, unless that began after a time."""
    condition = (sessions.c.study_id == study_id) & (sessions.c.claim == claim) & (sessions.c.created_at <= until)
    connection.execute(sessions.update().where(condition).values(claim=None))


def count_by_catalogue(connection: sa.Connection, study_id: int) -> dict[int, int]:
    """Return the number of sessions by catalogue number, without previews."""
    condition = (sessions.c.study_id == study_id) & (sessions.c.kind != "preview")
    statement = sa.select(sessions.c.catalogue, sa.func.count()).where(condition).group_by(sessions.c.catalogue)
    return {int(number): int(count) for number, count in connection.execute(statement)}


def count(connection: sa.Connection, study_id: int, kinds: Sequence[str]) -> int:
    """Return the number of sessions of a study."""
    condition = (sessions.c.study_id == study_id) & sessions.c.kind.in_(kinds)
    return int(connection.execute(sa.select(sa.func.count()).select_from(sessions).where(condition)).scalar_one())


def set_token(connection: sa.Connection, session_id: str, token_hash: str) -> None:
    """Replace the token of a resumed session; its old token and the API token that began it lose access."""
    values = {"token_hash": token_hash, "opened_by": None}
    connection.execute(sessions.update().where(sessions.c.id == session_id).values(values))


def finish(connection: sa.Connection, session_id: str, reason: str, final: JSON, at: str) -> None:
    """Store the end of a session and its result, unless it has already ended."""
    condition = (sessions.c.id == session_id) & sessions.c.finished_at.is_(None)
    connection.execute(sessions.update().where(condition).values(finished_at=at, reason=reason, final=final))


def reopen(connection: sa.Connection, session_id: str) -> bool:
    """Remove the end of a session whose last answer was undone; return whether that was still possible."""
    condition = (sessions.c.id == session_id) & sessions.c.confirmed_at.is_(None)
    changed = connection.execute(
        sessions.update().where(condition).values(finished_at=None, reason=None, final=sa.null())
    )
    return changed.rowcount == 1


def confirm(connection: sa.Connection, session_id: str) -> bool:
    """Confirm the end of a session; return False if it has not ended."""
    ended = (sessions.c.id == session_id) & sessions.c.finished_at.is_not(None)
    connection.execute(sessions.update().where(ended & sessions.c.confirmed_at.is_(None)).values(confirmed_at=now()))
    return connection.execute(sa.select(sessions.c.id).where(ended)).first() is not None


def put_replies(connection: sa.Connection, session_id: str, stage: str, replies: JSON) -> bool:
    """Store the replies of a stage in place of earlier ones; return False if the result was opened since then.

    The first replies of a stage are stored in any case.
    """
    chosen = sessions.c.id == session_id
    row = connection.execute(
        sa.select(sessions.c.replies, sessions.c.confirmed_at).where(chosen).with_for_update()
    ).first()
    if row is None or (row.confirmed_at is not None and stage in (row.replies or {})):
        return False
    connection.execute(sessions.update().where(chosen).values(replies={**(row.replies or {}), stage: replies}))
    return True


def count_places(connection: sa.Connection, study_id: int, begun_after: str) -> tuple[int, int]:
    """Count people's finished sessions, and the unfinished ones that began after a time."""
    people = (sessions.c.study_id == study_id) & (sessions.c.kind == "person")
    is_under_way = sessions.c.finished_at.is_(None) & (sessions.c.created_at > begun_after)
    statement = sa.select(
        sa.func.count(sessions.c.finished_at), sa.func.count(sa.case((is_under_way, sessions.c.id)))
    ).where(people)
    finished, under_way = connection.execute(statement).one()
    return int(finished), int(under_way)


def variable_names(connection: sa.Connection, study_id: int) -> list[str]:
    """Return the names of the variables that links to a study had, sorted."""
    has_some = (sessions.c.study_id == study_id) & sessions.c.variables.is_not(None)
    rows = connection.execute(sa.select(sessions.c.variables).where(has_some)).scalars()
    return sorted({name for variables in rows for name in variables})


def mark(connection: sa.Connection, session_id: str, query: str | None, action: str, reason: str, who: str) -> None:
    """Void or restore a session (``query`` None) or an answer, and keep a permanent record of it."""
    values = {"session_id": session_id, "query": query, "action": action, "reason": reason, "who": who}
    connection.execute(marks.insert().values(at=now(), **values))
    connection.execute(sessions.update().where(sessions.c.id == session_id).values(version=sessions.c.version + 1))


def marks_of(connection: sa.Connection, session_ids: Sequence[str]) -> list[JSON]:
    """Return the marks of sessions, in order."""
    return [dict(row) for row in connection.execute(_MARKS, {"chosen": session_ids}).mappings()]


def add_blur(connection: sa.Connection, session_id: str, query: str, lost_at: str, ms: int) -> None:
    """Store that the page lost focus."""
    connection.execute(blurs.insert().values(session_id=session_id, query=query, lost_at=lost_at, ms=ms))


def count_blurs(connection: sa.Connection, session_id: str) -> int:
    """Count how often the page of a session lost focus."""
    statement = sa.select(sa.func.count()).select_from(blurs).where(blurs.c.session_id == session_id)
    return int(connection.execute(statement).scalar_one())


def blurs_of(connection: sa.Connection, session_ids: Sequence[str]) -> list[JSON]:
    """Return when the pages of sessions lost focus."""
    statement = sa.select(blurs).where(blurs.c.session_id.in_(session_ids)).order_by(blurs.c.id)
    return [dict(row) for row in connection.execute(statement).mappings()]


def delete_previews(connection: sa.Connection, before: str) -> None:
    """Delete previews that began before a time."""
    _delete(connection, (sessions.c.kind == "preview") & (sessions.c.created_at < before))


def delete_empty(connection: sa.Connection, study_id: int, before: str) -> int:
    """Delete people's sessions without answers that began before a time, and return their number."""
    empty = (sessions.c.study_id == study_id) & (sessions.c.kind == "person") & (sessions.c.version == 0)
    return _delete(connection, empty & (sessions.c.created_at < before))


def _delete(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> int:
    ids = sa.select(sessions.c.id).where(condition)
    for table in (learned_from, events, queries, marks, blurs):
        connection.execute(table.delete().where(table.c.session_id.in_(ids)))
    return connection.execute(sessions.delete().where(condition)).rowcount


def was_opened_by(connection: sa.Connection, session_id: str, token_hash: str) -> bool:
    """Return whether the API token with this hash began a session."""
    statement = sa.select(sessions.c.opened_by).where(sessions.c.id == session_id)
    return connection.execute(statement).scalar() == token_hash


def _newest(
    connection: sa.Connection, condition: sa.ColumnElement[bool], first: sa.ColumnElement[int]
) -> SessionRow | None:
    newest = (
        sa.select(*_COLUMNS)
        .select_from(_JOINED)
        .where(condition)
        .order_by(first, sessions.c.created_at.desc(), sessions.c.id)
        .limit(1)
    )
    row = connection.execute(newest).first()
    return None if row is None else SessionRow(*row)
