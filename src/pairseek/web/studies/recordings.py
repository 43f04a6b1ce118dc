"""Uploaded sounds and videos of items: validation, and storage without tags but otherwise unchanged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import sqlalchemy as sa

from pairseek.core.media import FILE_COLUMNS, is_address, played_media
from pairseek.core.text import quoted
from pairseek.model.items import Items
from pairseek.store import recordings
from pairseek.store.recordings import StoredRecording
from pairseek.web.errors import InvalidMedia
from pairseek.web.studies.formats.damage import Unplayable
from pairseek.web.studies.formats.kinds import Recording, recording_of, unusable
from pairseek.web.studies.formats.tags import without_tags
from pairseek.web.studies.uploads import MAX_UNPACKED_BYTES, Files, check_size

MAX_RECORDINGS = 1000
"""Largest number of uploaded sounds and videos of a study."""


@dataclass(frozen=True)
class UploadedRecordings:
    """Sounds and videos that were checked: readers and records by their stored name."""

    readers: dict[str, Callable[[], bytes]] = field(default_factory=dict)
    records: dict[str, StoredRecording] = field(default_factory=dict)

    def store(self, connection: sa.Connection, study_id: int) -> None:
        """Store the files that the study does not have yet; a retried transaction may call this again."""
        present = recordings.names(connection, study_id)
        for name, record in self.records.items():
            if name not in present:
                recordings.add(connection, study_id, record, self.readers[name]())


def with_recordings(items: Items, files: Files) -> tuple[Items, UploadedRecordings]:
    """Return the items with the stored names of their sounds and videos, and the files to store."""
    uploaded = UploadedRecordings()
    data, names = dict(items.data), set[str]()
    for medium in played_media():
        values = [str(value) for value in items.data.get(medium, ())]
        named = {value for value in values if value and not is_address(value)}
        if not named:
            continue
        names |= named
        if len(names) > MAX_RECORDINGS:
            raise InvalidMedia(f"the items have {len(names):,} sounds and videos: send at most {MAX_RECORDINGS:,}")
        stored = {name: _add(uploaded, medium, name, files) for name in sorted(named)}
        data |= {medium: tuple(stored.get(value, value) for value in values), FILE_COLUMNS[medium]: tuple(values)}
    if not names:
        return items, uploaded
    coordinates = items.coordinates if items.d else None
    return Items._without_warnings(
        coordinates, items.ids, items.labels, items.appeal, data, items.columns, least=1
    ), uploaded


def _add(uploaded: UploadedRecordings, medium: str, name: str, files: Files) -> str:
    """Check a file, add it to the uploaded ones, and return its stored name."""
    if name not in files:
        raise InvalidMedia(
            f"the items name the {medium} {quoted([name], 1)}, but it was not sent: send it with them, or give an "
            f"address with https://"
        )
    content = files[name]()
    recording, content = _checked(medium, name, content)
    stored = hashlib.sha256(content).hexdigest()[:32]
    uploaded.readers[stored] = lambda: without_tags(files[name](), recording)
    uploaded.records[stored] = StoredRecording(stored, recording.kind, len(content))
    total = sum(record.size for record in uploaded.records.values())
    if total > MAX_UNPACKED_BYTES:
        raise InvalidMedia(f"the sounds and videos have more than {MAX_UNPACKED_BYTES:,} bytes: send smaller files")
    return stored


def _checked(medium: str, name: str, content: bytes) -> tuple[Recording, bytes]:
    """Return what a file is, and its content without tags."""
    check_size(name, len(content))
    try:
        recording = recording_of(content)
        if recording is None:
            raise unusable(content)
        cleaned = without_tags(content, recording)
    except Unplayable as error:
        raise InvalidMedia(f"{name!r} {error}") from None
    if recording.medium != medium:
        shown = "a video" if recording.medium == "video" else "a sound without a picture"
        raise InvalidMedia(f"{name!r} is {shown}: name it in the column {recording.medium!r}, not {medium!r}")
    return recording, cleaned
