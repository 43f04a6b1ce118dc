"""Removal of tags from uploaded recordings: titles, names, comments, cover pictures and the place of a video.

Players need none of them. The tags of MP3 files are cut off; those of MP4, M4A and WAV files are overwritten in place,
because these files refer to their parts by position. Tags of OGG and WebM files stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pairseek.web.studies.formats.containers import boxes
from pairseek.web.studies.formats.kinds import Recording
from pairseek.web.studies.formats.sounds import check_mp3, wav_chunks

_MP4_TAGS = (b"udta", b"meta", b"uuid")
_WAV_TAGS = (b"LIST", b"id3 ", b"ID3 ", b"bext", b"iXML", b"_PMX")


def without_tags(content: bytes, recording: Recording) -> bytes:
    """Return a recording without its tags; raise `Unplayable` if it has an implausible number of parts."""
    if recording.kind == "audio/mpeg":
        start, end = check_mp3(content)
        return content[start:end]
    if recording.kind.endswith("/mp4"):
        return _blanked(
            content, ((start, end, start - 4) for start, end in _mp4_tags(content, 0, len(content))), b"free"
        )
    if recording.kind == "audio/wav":
        tags = ((start, end, start - 8) for name, start, end in wav_chunks(content) if name in _WAV_TAGS)
        return _blanked(content, tags, b"JUNK")
    return content


def _blanked(content: bytes, tags: Iterable[tuple[int, int, int]], padding: bytes) -> bytes:
    """Return a file whose tags, given by (start, end, place of the name), are padding."""
    cleaned = bytearray(content)
    for start, end, name in tags:
        cleaned[name : name + 4] = padding
        cleaned[start:end] = bytes(min(end, len(content)) - start)
    return bytes(cleaned)


def _mp4_tags(content: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of the content of each box of tags in a part of an MP4."""
    for kind, begin, stop in boxes(content, start, end):
        if kind in _MP4_TAGS:
            yield begin, stop
        elif kind in (b"moov", b"trak"):
            yield from _mp4_tags(content, begin, stop)
