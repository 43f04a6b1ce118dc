"""Structure of MP4 and WebM files, and whether they hold a sound or a video."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from pairseek.web.studies.formats.damage import cut_off, damaged, unsupported

RecordingMedium: TypeAlias = Literal["audio", "video"]

_MP4_VIDEO = (b"avc1", b"avc3", b"av01", b"vp08", b"vp09")
_MP4_SOUND = (b"mp4a", b"Opus", b"fLaC", b".mp3")
_MP4_NAMES = {b"hvc1": "H.265", b"hev1": "H.265", b"dvh1": "Dolby Vision", b"alac": "Apple Lossless", b"ac-3": "AC-3"}
_WEBM_CODECS = (b"V_VP8", b"V_VP9", b"V_AV1", b"A_VORBIS", b"A_OPUS")
# Ids of the elements of WebM.
_SEGMENT_ID = 0x18538067
_TRACKS_ID = 0x1654AE6B
_TRACK_ID = 0xAE
_TRACK_TYPE_ID = 0x83
_CODEC_ID = 0x86
_CLUSTER_ID = 0x1F43B675
# Types of tracks.
_VIDEO_TRACK = 1
_SOUND_TRACK = 2
# Largest number of parts in one part of a file: some thousands in an hour of video, and more only in an attack.
_MAX_PARTS = 100_000
# Longest file header, which names the type of the document.
_MAX_HEADER_BYTES = 1000


def boxes(content: bytes, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the (type, start, end) of the content of each box in a part of an MP4."""
    at, count = start, 0
    while at < end:
        count += 1
        if count > _MAX_PARTS:
            raise damaged("MP4")
        if at + 8 > end:
            raise cut_off("MP4")
        size, kind, begin = int.from_bytes(content[at : at + 4], "big"), content[at + 4 : at + 8], at + 8
        if size == 1:
            size, begin = int.from_bytes(content[begin : begin + 8], "big"), begin + 8
        stop = end if size == 0 else at + size
        if stop > end:
            raise cut_off("MP4")
        if stop < begin:
            raise damaged("MP4")
        yield kind, begin, stop
        at = stop


def _box(content: bytes, span: tuple[int, int] | None, *path: bytes) -> tuple[int, int] | None:
    """Return the place of the box with this path inside another box; None without it."""
    for kind in path:
        if span is None:
            return None
        span = next(((begin, stop) for name, begin, stop in boxes(content, *span) if name == kind), None)
    return span


def mp4_medium(content: bytes) -> RecordingMedium:
    """Return whether an MP4 is a sound or a video; raise `Unplayable` if it is damaged or does not play."""
    top = list(boxes(content, 0, len(content)))
    kinds = [kind for kind, _, _ in top]
    movie = next(((begin, stop) for kind, begin, stop in top if kind == b"moov"), None)
    if movie is None or not {b"mdat", b"moof"} & set(kinds):
        # Recorders write the index at the end.
        raise cut_off("MP4")
    media = []
    for kind, begin, stop in boxes(content, *movie):
        handler = _box(content, (begin, stop), b"mdia", b"hdlr") if kind == b"trak" else None
        described = _box(content, (begin, stop), b"mdia", b"minf", b"stbl", b"stsd") if handler else None
        if handler is None or described is None:
            continue
        medium = {b"vide": "video", b"soun": "audio"}.get(content[handler[0] + 8 : handler[0] + 12])
        if medium is not None:
            _check_mp4_codec(medium, content[described[0] + 12 : described[0] + 16])
            media.append(medium)
    if not media:
        raise damaged("MP4")
    return "video" if "video" in media else "audio"


def _check_mp4_codec(medium: str, codec: bytes) -> None:
    if codec not in (_MP4_VIDEO if medium == "video" else _MP4_SOUND):
        name = _MP4_NAMES.get(codec, codec.decode("latin-1", "replace"))
        raise unsupported("MP4", name, "H.264") if medium == "video" else unsupported("M4A", name, "AAC")


def _number(content: bytes, at: int, *, marked: bool) -> tuple[int, int]:
    """Return an EBML number and its length; ``marked`` keeps the length marker, as ids do."""
    if at >= len(content) or not content[at]:
        raise damaged("WebM")
    length = 9 - content[at].bit_length()
    if at + length > len(content):
        raise cut_off("WebM")
    value = int.from_bytes(content[at : at + length], "big")
    return (value if marked else value & (1 << 7 * length) - 1), length


def _elements(content: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the (id, start, end) of the content of each element in a part of a WebM."""
    at, count = start, 0
    while at < end:
        count += 1
        if count > _MAX_PARTS:
            raise damaged("WebM")
        name, id_length = _number(content, at, marked=True)
        size, size_length = _number(content, at + id_length, marked=False)
        begin = at + id_length + size_length
        # A live recording does not know the sizes of its longest elements.
        is_unknown = size == (1 << 7 * size_length) - 1
        stop = end if is_unknown else begin + size
        if stop > end:
            raise cut_off("WebM")
        yield name, begin, stop
        at = stop


def is_webm(content: bytes) -> bool:
    """Return whether a Matroska file is a WebM."""
    return b"\x42\x82\x84webm" in content[:_MAX_HEADER_BYTES]


def webm_medium(content: bytes) -> RecordingMedium:
    """Return whether a WebM is a sound or a video; raise `Unplayable` if it is damaged or does not play."""
    types: list[int] = []
    has_cluster = False
    for name, begin, stop in _elements(content, 0, len(content)):
        if name != _SEGMENT_ID:
            continue
        for part, first, last in _elements(content, begin, stop):
            has_cluster = has_cluster or part == _CLUSTER_ID
            if part == _TRACKS_ID:
                types += [_webm_track(content, *place) for track, *place in _elements(content, first, last)
                          if track == _TRACK_ID]  # fmt: skip
    if not has_cluster:
        raise cut_off("WebM")
    if _VIDEO_TRACK not in types and _SOUND_TRACK not in types:
        raise damaged("WebM")
    return "video" if _VIDEO_TRACK in types else "audio"


def _webm_track(content: bytes, start: int, end: int) -> int:
    values = {name: content[begin:stop] for name, begin, stop in _elements(content, start, end)}
    kind, codec = int.from_bytes(values.get(_TRACK_TYPE_ID, b""), "big"), values.get(_CODEC_ID, b"").rstrip(b"\0")
    if kind in (_VIDEO_TRACK, _SOUND_TRACK) and codec not in _WEBM_CODECS:
        raise unsupported("WebM", codec.decode("latin-1", "replace")[:40], "VP9 with Opus")
    return kind
