"""Learning state of a study: whether learning is on, the chosen population version, and the last attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store.database import now
from pairseek.store.schema import events, learning, marks, queries, sessions, studies
from pairseek.store.studies import STUDY_COLUMNS, StudyRow

# Largest number of answers to random pairs on which predictions are scored.
_MAX_RANDOM_ANSWERS = 20_000


@dataclass(frozen=True, slots=True)
class LearningRow:
    """Learning state; the defaults apply to a study whose state was never changed.

    Attributes
    ----------
    is_on
        Whether learning is on; None if the study's configuration decides.
    chosen
        Version that sessions begin with: 0 for none, None for the newest.
    tried
        Number of finished sessions at the last attempt.
    failure, failed_at
        Why and when the last attempt failed; None if it succeeded.
    requested_by
        Who has requested to learn; None if nobody has since the last requested learning began.
    """

    is_on: bool | None = None
    chosen: int | None = None
    tried: int | None = None
    failure: str | None = None
    failed_at: str | None = None
    requested_by: str | None = None


@dataclass(frozen=True, slots=True)
class LearningProgress:
    """Study with its learning state and its number of people's finished sessions that are not void."""

    study: StudyRow
    state: LearningRow
    finished: int


def state(connection: sa.Connection, study_id: int) -> LearningRow:
    """Return the learning state of a study."""
    columns = [learning.c[name] for name in LearningRow.__slots__]
    row = connection.execute(sa.select(*columns).where(learning.c.study_id == study_id)).first()
    return LearningRow() if row is None else LearningRow(*row)


def progress(connection: sa.Connection) -> list[LearningProgress]:
    """Return the progress of all studies, those with requests first, by one query that reads no items."""
    columns = [learning.c[name] for name in LearningRow.__slots__]
    count = _finished().where(sessions.c.study_id == studies.c.id).scalar_subquery()
    statement = (
        sa.select(*STUDY_COLUMNS, *columns, count)
        .select_from(studies.outerjoin(learning, learning.c.study_id == studies.c.id))
        .order_by(learning.c.requested_by.is_(None), studies.c.id)
    )
    width = len(STUDY_COLUMNS)
    return [
        LearningProgress(StudyRow(*row[:width]), LearningRow(*row[width:-1]), int(row[-1]))
        for row in connection.execute(statement)
    ]


def request(connection: sa.Connection, study_id: int, who: str) -> None:
    """Request to learn; repeated requests count as one until learning begins."""
    _put(connection, study_id, {"requested_by": who})


def take_request(connection: sa.Connection, study_id: int) -> str | None:
    """Remove the request of a study, and return who made it; None if another worker has taken it."""
    who = state(connection, study_id).requested_by
    condition = (learning.c.study_id == study_id) & learning.c.requested_by.is_not(None)
    taken = connection.execute(learning.update().where(condition).values(requested_by=None)).rowcount
    return who if taken else None


def switch(connection: sa.Connection, study_id: int, *, is_on: bool) -> None:
    """Switch learning on or off; switching it on makes sessions begin with the newest version again."""
    _put(connection, study_id, {"is_on": is_on, **({"chosen": None} if is_on else {})})


def choose(connection: sa.Connection, study_id: int, version: int) -> None:
    """Choose the version that sessions begin with (0 for none), and switch learning off to keep it."""
    _put(connection, study_id, {"is_on": False, "chosen": version})


def record_attempt(connection: sa.Connection, study_id: int, finished: int, failure: str | None = None) -> None:
    """Store the number of finished sessions at an attempt, and why the attempt failed, if it did."""
    failed_at = None if failure is None else now()
    _put(connection, study_id, {"tried": finished, "failure": failure, "failed_at": failed_at})


def forget_attempt(connection: sa.Connection, study_id: int) -> None:
    """Forget the last attempt, so that a study whose newest version was dropped learns again as soon as possible."""
    connection.execute(learning.update().where(learning.c.study_id == study_id).values(tried=None))


def count_finished(connection: sa.Connection, study_id: int) -> int:
    """Count people's finished sessions that are not void."""
    return int(connection.execute(_finished().where(sessions.c.study_id == study_id)).scalar_one())


def random_answers(connection: sa.Connection, study_id: int) -> list[tuple[int, JSON, str]]:
    """Return people's newest answers to random pairs: population version, details of the query, outcome.

    Undone answers and void sessions are left out.
    """
    answers, undos = events.alias(), events.alias()
    joined = queries.join(sessions, sessions.c.id == queries.c.session_id).join(
        answers, (answers.c.session_id == queries.c.session_id) & (answers.c.query == queries.c.name)
    )
    undone = sa.exists().where(
        (undos.c.session_id == queries.c.session_id) & (undos.c.query == queries.c.name) & (undos.c.kind == "undo")
    )
    condition = (sessions.c.study_id == study_id) & (sessions.c.kind == "person") & sessions.c.population.is_not(None)
    asked = (queries.c.kind == "random") & (answers.c.kind == "answer") & ~undone
    statement = sa.select(sessions.c.population, queries.c.details, answers.c.outcome).select_from(joined)
    statement = statement.where(condition & asked & (sa.func.coalesce(_last_mark(), "") != "void"))
    return [
        tuple(row) for row in connection.execute(statement.order_by(answers.c.at.desc()).limit(_MAX_RANDOM_ANSWERS))
    ]


def _finished() -> sa.Select[Any]:
    """Return the number of people's finished sessions that are not void, of all studies."""
    condition = (sessions.c.kind == "person") & sessions.c.finished_at.is_not(None)
    not_void = sa.func.coalesce(_last_mark(), "") != "void"
    return sa.select(sa.func.count()).select_from(sessions).where(condition & not_void)


def _last_mark() -> sa.ScalarSelect[str]:
    """Return the subquery of the last mark, void or restore, on a whole session."""
    condition = (
        (marks.c.session_id == sessions.c.id) & marks.c.query.is_(None) & marks.c.action.in_(["void", "restore"])
    )
    return sa.select(marks.c.action).where(condition).order_by(marks.c.id.desc()).limit(1).scalar_subquery()


def _put(connection: sa.Connection, study_id: int, values: dict[str, object]) -> None:
    condition = learning.c.study_id == study_id
    if not connection.execute(learning.update().where(condition).values(values)).rowcount:
        connection.execute(learning.insert().values(study_id=study_id, **values))
