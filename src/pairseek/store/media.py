"""Pictures of items, stored in several sizes."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from pairseek.store.schema import media


@dataclass(frozen=True, slots=True)
class StoredPicture:
    """One size of a picture."""

    study_id: int
    name: str
    width: int
    height: int
    kind: str
    content: bytes


def add(connection: sa.Connection, picture: StoredPicture) -> None:
    """Store a picture."""
    connection.execute(media.insert().values({name: getattr(picture, name) for name in picture.__slots__}))


def sizes(connection: sa.Connection, study_id: int) -> dict[str, list[tuple[int, int]]]:
    """Return the (width, height) of all copies by picture name, smallest first."""
    chosen = sa.select(media.c.name, media.c.width, media.c.height).where(media.c.study_id == study_id)
    out: dict[str, list[tuple[int, int]]] = {}
    for name, width, height in connection.execute(chosen.order_by(media.c.name, media.c.width)):
        out.setdefault(name, []).append((width, height))
    return out


def picture(connection: sa.Connection, study_id: int, name: str, width: int) -> StoredPicture | None:
    """Return the copy of a picture with this width."""
    same = (media.c.study_id == study_id) & (media.c.name == name) & (media.c.width == width)
    row = connection.execute(sa.select(media).where(same)).first()
    return None if row is None else StoredPicture(*row)


def copy(connection: sa.Connection, study_id: int, target: int) -> None:
    """Copy all pictures of a study to another study."""
    others = [column for column in media.c if column.name != "study_id"]
    chosen = sa.select(sa.literal(target), *others).where(media.c.study_id == study_id)
    connection.execute(media.insert().from_select(["study_id", *(column.name for column in others)], chosen))
