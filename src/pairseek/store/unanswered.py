"""Changes of a study's items before anybody has answered."""

from __future__ import annotations

import sqlalchemy as sa

from pairseek.store import deletion
from pairseek.store.schema import (
    catalogues,
    events,
    learned_from,
    learning,
    media,
    populations,
    recording_pieces,
    recordings,
    sessions,
    studies,
)
from pairseek.store.studies import StudyRow


def count_answers(connection: sa.Connection, study_id: int) -> int:
    """Return the number of events that people have stored in a study: answers and undos."""
    joined = events.join(sessions, sessions.c.id == events.c.session_id)
    condition = (sessions.c.study_id == study_id) & (sessions.c.kind == "person")
    return int(connection.execute(sa.select(sa.func.count()).select_from(joined).where(condition)).scalar_one())


def count_begun(connection: sa.Connection, study_id: int) -> int:
    """Return the number of people who have begun."""
    condition = (sessions.c.study_id == study_id) & (sessions.c.kind == "person")
    return int(connection.execute(sa.select(sa.func.count()).where(condition)).scalar_one())


def put_items(connection: sa.Connection, row: StudyRow, content: bytes, size: tuple[int, int]) -> bool:
    """Replace the items of a study that nobody has answered by ``size`` others, and delete all of its sessions.

    Return False if anybody has answered, or if the items have changed since the row was read. Afterwards no session
    can begin with the items that are gone: see `holds_catalogue`.
    """
    condition = (studies.c.id == row.id) & (studies.c.additions == row.additions)
    # The lock makes sessions that begin now wait, and answers need a lock of their session.
    if connection.execute(sa.select(studies.c.id).where(condition).with_for_update()).first() is None:
        return False
    of_study = sa.select(sessions.c.id).where(sessions.c.study_id == row.id)
    session_ids = deletion.lock_sessions(connection, connection.execute(of_study).scalars().all())
    if count_answers(connection, row.id):
        return False
    connection.execute(learned_from.delete().where(learned_from.c.study_id == row.id))
    deletion.delete_sessions(connection, session_ids)
    for table in (populations, catalogues):
        connection.execute(table.delete().where(table.c.study_id == row.id))
    nothing = {"chosen": None, "tried": None, "failure": None, "failed_at": None, "requested_by": None}
    connection.execute(learning.update().where(learning.c.study_id == row.id).values(nothing))
    values = {"items": content, "item_count": size[0], "dimensions": size[1]}
    values |= {"additions": row.additions + 1, "catalogue": row.catalogue + 1}
    connection.execute(studies.update().where(studies.c.id == row.id).values(values))
    return True


def holds_catalogue(connection: sa.Connection, study_id: int, number: int) -> bool:
    """Return whether a study still has the catalogue with this number, and keep it until the transaction ends."""
    current = sa.select(studies.c.catalogue).where(studies.c.id == study_id)
    current = current.with_for_update(read=True, key_share=True)
    if connection.execute(current).scalar() == number:
        return True
    condition = (catalogues.c.study_id == study_id) & (catalogues.c.number == number)
    return connection.execute(sa.select(catalogues.c.number).where(condition)).first() is not None


def drop_files(connection: sa.Connection, study_id: int, *, kept: set[str]) -> None:
    """Delete the pictures, sounds and videos of a study whose names are not among those to keep."""
    for tables in ((media,), (recording_pieces, recordings)):
        of_study = sa.select(tables[-1].c.name).where(tables[-1].c.study_id == study_id).distinct()
        for name in sorted(set(connection.execute(of_study).scalars()) - kept):
            for table in tables:
                connection.execute(table.delete().where((table.c.study_id == study_id) & (table.c.name == name)))
