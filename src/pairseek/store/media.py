"""Pictures of items, stored in several sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from pairseek.store.schema import media, recording_pieces, recordings, studies
from pairseek.store.studies import StudyRow


@dataclass(frozen=True, slots=True)
class StoredPicture:
    """Copy of a picture in one size."""

    study_id: int
    name: str
    width: int
    height: int
    kind: str
    content: bytes


def add(connection: sa.Connection, picture: StoredPicture) -> None:
    """Store a copy of a picture."""
    connection.execute(media.insert().values({name: getattr(picture, name) for name in picture.__slots__}))


def sizes(connection: sa.Connection, study_id: int) -> dict[str, list[tuple[int, int]]]:
    """Return the (width, height) of all copies by picture name, smallest first."""
    statement = sa.select(media.c.name, media.c.width, media.c.height).where(media.c.study_id == study_id)
    sizes_by_name: dict[str, list[tuple[int, int]]] = {}
    for name, width, height in connection.execute(statement.order_by(media.c.name, media.c.width)):
        sizes_by_name.setdefault(name, []).append((width, height))
    return sizes_by_name


def picture(connection: sa.Connection, study_id: int, name: str, width: int) -> StoredPicture | None:
    """Return the copy of a picture with this width."""
    condition = (media.c.study_id == study_id) & (media.c.name == name) & (media.c.width == width)
    row = connection.execute(sa.select(media).where(condition)).first()
    return None if row is None else StoredPicture(*row)


def copy(connection: sa.Connection, study_id: int, target: int) -> None:
    """Copy all pictures, sounds and videos of a study to the study with the id ``target``."""
    for table in (media, recordings, recording_pieces):
        others = [column for column in table.c if column.name != "study_id"]
        statement = sa.select(sa.literal(target), *others).where(table.c.study_id == study_id)
        connection.execute(table.insert().from_select(["study_id", *(column.name for column in others)], statement))


def add_all(connection: sa.Connection, study_id: int, copies: Sequence[StoredPicture]) -> None:
    """Store copies of pictures for a study."""
    for picture in copies:
        add(connection, replace(picture, study_id=study_id))


def replace_kind(connection: sa.Connection, row: StudyRow, prefix: str, copies: Sequence[StoredPicture]) -> str | None:
    """Replace all pictures of a study whose names begin with a prefix, and return the name of the first replaced one.

    Workers reload the study, as after a change of its items.
    """
    condition = (media.c.study_id == row.id) & media.c.name.startswith(prefix, autoescape=True)
    before = connection.execute(sa.select(media.c.name).where(condition)).scalars().first()
    connection.execute(media.delete().where(condition))
    add_all(connection, row.id, copies)
    connection.execute(studies.update().where(studies.c.id == row.id).values(additions=row.additions + 1))
    return before
