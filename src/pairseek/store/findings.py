"""Newest findings of studies, and which of them are wanted: one computation at a time for all workers and servers."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pairseek.store.database import now
from pairseek.store.schema import findings, studies


@dataclass(frozen=True, slots=True)
class FindingsRow:
    """Findings of a study without their content.

    Attributes
    ----------
    wanted, begun, done
        Numbers of the last computation that is wanted, has begun, and is done.
    sessions
        State of the sessions that the findings include; None if there are no findings.
    computed_at
        Time when they were stored.
    """

    wanted: int = 0
    begun: int = 0
    done: int = 0
    sessions: str | None = None
    computed_at: str | None = None


def row_of(connection: sa.Connection, study_id: int) -> FindingsRow:
    """Return the findings of a study without their content."""
    columns = [findings.c[name] for name in FindingsRow.__slots__]
    row = connection.execute(sa.select(*columns).where(findings.c.study_id == study_id)).first()
    return FindingsRow() if row is None else FindingsRow(*row)


def content(connection: sa.Connection, study_id: int) -> tuple[int, bytes] | None:
    """Return the number of the last computation that is done, and the packed findings."""
    columns = (findings.c.done, findings.c.content)
    row = connection.execute(sa.select(*columns).where(findings.c.study_id == study_id)).first()
    return None if row is None or row[1] is None else (int(row[0]), bytes(row[1]))


def wanted(connection: sa.Connection) -> list[int]:
    """Return the ids of the studies whose findings are wanted."""
    statement = sa.select(findings.c.study_id).where(findings.c.wanted > findings.c.done)
    return list(connection.execute(statement.order_by(findings.c.study_id)).scalars())


def request(connection: sa.Connection, study_id: int) -> int:
    """Request findings that include all present answers, and return the number of their computation.

    It is the next computation to begin, so however many requests there are, at most one waits. Return 0 if the study
    has been deleted.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    first = sa.select(studies.c.id, sa.literal(1)).where(studies.c.id == study_id)
    following = {"wanted": findings.c.begun + 1}
    statement = (
        insert(findings)
        .from_select(["study_id", "wanted"], first)
        .on_conflict_do_update(index_elements=["study_id"], set_=following)
        .returning(findings.c.wanted)
    )
    return int(connection.execute(statement).scalar() or 0)


def begin(connection: sa.Connection, study_id: int) -> int:
    """Begin a computation and return its number."""
    condition = findings.c.study_id == study_id
    statement = findings.update().where(condition).values(begun=findings.c.begun + 1).returning(findings.c.begun)
    return int(connection.execute(statement).scalar_one())


def keep(connection: sa.Connection, study_id: int, number: int, sessions: str, packed: bytes) -> bool:
    """Store the findings of a computation; return False if a deletion, or a later computation, made them invalid."""
    condition = (findings.c.study_id == study_id) & (findings.c.begun == number)
    values = {"done": number, "sessions": sessions, "content": packed, "computed_at": now()}
    return connection.execute(findings.update().where(condition).values(values)).rowcount == 1


def discard(connection: sa.Connection, study_ids: sa.Select[tuple[int]]) -> None:
    """Delete the content of findings, and make sure that what computations under way return will not be kept."""
    nothing = {"begun": findings.c.begun + 1, "sessions": None, "computed_at": None, "content": None}
    connection.execute(findings.update().where(findings.c.study_id.in_(study_ids)).values(nothing))
