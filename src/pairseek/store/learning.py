"""Learning state of a study: whether learning is on, the chosen version, and the last attempt."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store.database import now
from pairseek.store.schema import events, learning, marks, queries, sessions

# Predictions are scored on at most this number of answers to random pairs.
_MAX_RANDOM_ANSWERS = 20_000


@dataclass(frozen=True, slots=True)
class LearningRow:
    """Learning state; the defaults hold for a study whose state was never changed."""

    is_on: bool | None = None
    chosen: int | None = None
    tried: int | None = None
    failure: str | None = None
    failed_at: str | None = None


def state(connection: sa.Connection, study_id: int) -> LearningRow:
    """Return the learning state of a study."""
    columns = [learning.c[name] for name in LearningRow.__slots__]
    row = connection.execute(sa.select(*columns).where(learning.c.study_id == study_id)).first()
    return LearningRow() if row is None else LearningRow(*row)


def switch(connection: sa.Connection, study_id: int, *, is_on: bool) -> None:
    """Switch learning on or off. After it is switched on, sessions begin with the newest version again."""
    _put(connection, study_id, {"is_on": is_on, **({"chosen": None} if is_on else {})})


def choose(connection: sa.Connection, study_id: int, version: int) -> None:
    """Choose the version that sessions begin with (0 for none), and switch learning off to keep it."""
    _put(connection, study_id, {"is_on": False, "chosen": version})


def tried(connection: sa.Connection, study_id: int, finished: int, failure: str | None = None) -> None:
    """Store the number of finished sessions at an attempt, and why the attempt failed."""
    failed = {"failure": failure, "failed_at": None if failure is None else now()}
    _put(connection, study_id, {"tried": finished, **failed})


def restart(connection: sa.Connection, study_id: int) -> None:
    """Forget the last attempt, because the newest version was dropped: the study learns again as soon as possible."""
    connection.execute(learning.update().where(learning.c.study_id == study_id).values(tried=None))


def finished(connection: sa.Connection, study_id: int) -> int:
    """Return the number of people's finished sessions that are not void."""
    mine = (sessions.c.study_id == study_id) & (sessions.c.kind == "person") & sessions.c.finished_at.is_not(None)
    chosen = (
        sa.select(sa.func.count()).select_from(sessions).where(mine & (sa.func.coalesce(_last_mark(), "") != "void"))
    )
    return int(connection.execute(chosen).scalar_one())


def random_answers(connection: sa.Connection, study_id: int) -> list[tuple[int, JSON, str]]:
    """Return the newest answers of people to random pairs: version of the population, details of the query, outcome.

    Undone answers and void sessions are excluded.
    """
    given, back = events.alias(), events.alias()
    joined = queries.join(sessions, sessions.c.id == queries.c.session_id).join(
        given, (given.c.session_id == queries.c.session_id) & (given.c.query == queries.c.name)
    )
    undone = sa.exists().where(
        (back.c.session_id == queries.c.session_id) & (back.c.query == queries.c.name) & (back.c.kind == "undo")
    )
    mine = (sessions.c.study_id == study_id) & (sessions.c.kind == "person") & sessions.c.population.is_not(None)
    asked = (queries.c.kind == "random") & (given.c.kind == "answer") & ~undone
    chosen = sa.select(sessions.c.population, queries.c.details, given.c.outcome).select_from(joined)
    chosen = chosen.where(mine & asked & (sa.func.coalesce(_last_mark(), "") != "void"))
    return [tuple(row) for row in connection.execute(chosen.order_by(given.c.at.desc()).limit(_MAX_RANDOM_ANSWERS))]


def _last_mark() -> sa.ScalarSelect[str]:
    """Return the last void or restore of a session as a whole."""
    whole = (marks.c.session_id == sessions.c.id) & marks.c.query.is_(None) & marks.c.action.in_(["void", "restore"])
    return sa.select(marks.c.action).where(whole).order_by(marks.c.id.desc()).limit(1).scalar_subquery()


def _put(connection: sa.Connection, study_id: int, values: dict[str, object]) -> None:
    same = learning.c.study_id == study_id
    if not connection.execute(learning.update().where(same).values(values)).rowcount:
        connection.execute(learning.insert().values(study_id=study_id, **values))
