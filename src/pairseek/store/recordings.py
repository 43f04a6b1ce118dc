"""Uploaded sounds and videos, stored in pieces, so that any part can be read without the rest."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from pairseek.store.schema import recording_pieces, recordings

PIECE_BYTES = 262_144
"""Bytes of each piece but the last."""


@dataclass(frozen=True, slots=True)
class StoredRecording:
    """Name, media type and size in bytes of a sound or video."""

    name: str
    kind: str
    size: int


def add(connection: sa.Connection, study_id: int, recording: StoredRecording, content: bytes) -> None:
    """Store a sound or video."""
    values = {"study_id": study_id, "name": recording.name}
    connection.execute(recordings.insert().values(values | {"kind": recording.kind, "size": recording.size}))
    for number, start in enumerate(range(0, len(content), PIECE_BYTES)):
        piece = values | {"number": number, "content": content[start : start + PIECE_BYTES]}
        connection.execute(recording_pieces.insert().values(piece))


def names(connection: sa.Connection, study_id: int) -> set[str]:
    """Return the names of all sounds and videos of a study."""
    return set(connection.execute(sa.select(recordings.c.name).where(recordings.c.study_id == study_id)).scalars())


def recording(connection: sa.Connection, study_id: int, name: str) -> StoredRecording | None:
    """Return a sound or video without its content."""
    condition = (recordings.c.study_id == study_id) & (recordings.c.name == name)
    columns = recordings.c.name, recordings.c.kind, recordings.c.size
    row = connection.execute(sa.select(*columns).where(condition)).first()
    return None if row is None else StoredRecording(*row)


def piece(connection: sa.Connection, study_id: int, name: str, number: int) -> bytes | None:
    """Return a piece of a sound or video."""
    pieces = recording_pieces.c
    condition = (pieces.study_id == study_id) & (pieces.name == name) & (pieces.number == number)
    return connection.execute(sa.select(pieces.content).where(condition)).scalar()
