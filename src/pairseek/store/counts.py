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


@dataclass(frozen=True, slots=True)
class Totals:
    """Numbers of sessions and answers in a study; see `Counts`."""

    started: int = 0
    finished: int = 0
    answers: int = 0
    last_answer: str | None = None


def totals(connection: sa.Connection, study_id: int | None = None) -> dict[int, Totals]:
    """Count sessions and answers, by study id, for one study or for all that have any."""
    study = sessions.c.study_id
    people = (sessions.c.kind == "person") & (sa.true() if study_id is None else study == study_id)
    begun = sa.select(study, sa.func.count(), sa.func.count(sessions.c.finished_at)).where(people).group_by(study)
    is_answer, is_undo = events.c.kind == "answer", events.c.kind == "undo"
    answers = sa.func.sum(sa.case((is_answer, 1), (is_undo, -1), else_=0))
    given = (
        sa.select(study, answers, sa.func.max(sa.case((is_answer, events.c.at))))
        .select_from(events.join(sessions, sessions.c.id == events.c.session_id))
        .where(people)
        .group_by(study)
    )
    by_study = {number: (int(count), last) for number, count, last in connection.execute(given)}
    return {
        number: Totals(int(started), int(finished), *by_study.get(number, (0, None)))
        for number, started, finished in connection.execute(begun)
    }


def counts(connection: sa.Connection, study_id: int, since: str | None = None) -> Counts:
    """Count the sessions and answers of a study."""
    people = (sessions.c.study_id == study_id) & (sessions.c.kind == "person")
    joined = events.join(sessions, sessions.c.id == events.c.session_id)
    is_answer = people & (events.c.kind == "answer")
    total = totals(connection, study_id).get(study_id, Totals())
    recent = 0
    if since is not None:
        recent = connection.execute(
            sa.select(sa.func.count(events.c.number)).select_from(joined).where(is_answer & (events.c.at >= since))
        ).scalar_one()
    newest = sa.select(events.c.rt_ms).select_from(joined).where(is_answer & events.c.rt_ms.is_not(None))
    times = connection.execute(newest.order_by(events.c.at.desc()).limit(500)).scalars()
    response_times = [int(ms) for ms in times]
    return Counts(total.started, total.finished, total.answers, int(recent), total.last_answer, response_times)


def newest_marks(connection: sa.Connection, study_id: int) -> list[dict[str, object]]:
    """Return the newest marks of a study, newest first."""
    joined = marks.join(sessions, sessions.c.id == marks.c.session_id)
    statement = sa.select(marks).select_from(joined).where(sessions.c.study_id == study_id)
    return [dict(row) for row in connection.execute(statement.order_by(marks.c.id.desc()).limit(200)).mappings()]
