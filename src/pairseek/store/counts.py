"""Counts of sessions and answers of a study, computed by the database."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from pairseek.store.schema import events, marks, sessions


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts that exclude simulated sessions, previews and undone answers.

    Attributes
    ----------
    started, finished
        Numbers of sessions.
    answers
        Number of answers.
    recent
        Number of answers since a given time; 0 if no time was given.
    last_answer
        Time of the last answer.
    times
        Newest response times in milliseconds.
    """

    started: int
    finished: int
    answers: int
    recent: int
    last_answer: str | None
    times: list[int]


def counts(connection: sa.Connection, study_id: int, since: str | None = None) -> Counts:
    """Count the sessions and answers of a study."""
    people = (sessions.c.study_id == study_id) & (sessions.c.kind == "person")
    joined = events.join(sessions, sessions.c.id == events.c.session_id)
    is_answer = people & (events.c.kind == "answer")
    started, finished = connection.execute(
        sa.select(sa.func.count(sessions.c.id), sa.func.count(sessions.c.finished_at)).where(people)
    ).one()
    given, last = connection.execute(
        sa.select(sa.func.count(events.c.number), sa.func.max(events.c.at)).select_from(joined).where(is_answer)
    ).one()
    undone = connection.execute(
        sa.select(sa.func.count(events.c.number)).select_from(joined).where(people & (events.c.kind == "undo"))
    ).scalar_one()
    recent = 0
    if since is not None:
        recent = connection.execute(
            sa.select(sa.func.count(events.c.number)).select_from(joined).where(is_answer & (events.c.at >= since))
        ).scalar_one()
    newest = sa.select(events.c.rt_ms).select_from(joined).where(is_answer & events.c.rt_ms.is_not(None))
    times = connection.execute(newest.order_by(events.c.at.desc()).limit(500)).scalars()
    return Counts(int(started), int(finished), int(given) - int(undone), int(recent), last, [int(ms) for ms in times])


def newest_marks(connection: sa.Connection, study_id: int) -> list[dict[str, object]]:
    """Return the newest marks of a study, newest first."""
    joined = marks.join(sessions, sessions.c.id == marks.c.session_id)
    statement = sa.select(marks).select_from(joined).where(sessions.c.study_id == study_id)
    return [dict(row) for row in connection.execute(statement.order_by(marks.c.id.desc()).limit(200)).mappings()]
