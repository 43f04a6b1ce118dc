"""Structure of MP3, WAV and OGG files."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from pairseek.web.studies.formats.damage import cut_off, damaged, unsupported

# Kilobits per second by index in the frame header: MPEG-1 layer III, and MPEG-2 and 2.5 layer III.
_MPEG1_KILOBITS = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MPEG2_KILOBITS = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_SAMPLING_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}
# Tags and padding after the last frame of an MP3.
_TRAILERS = (b"TAG", b"APETAGEX", b"LYRICSBEGIN", b"ID3", b"3DI", b"\0")
# Bytes of padding or junk before the first frame of an MP3.
_MAX_LEAD_BYTES = 65_536
_MIN_FRAMES = 3
# Smallest fraction of the frames announced in the first frame; encoders disagree by one or two.
_MIN_ANNOUNCED_FRACTION = 0.98
# WAV encodings that browsers play: integers, floats, A-law and mu-law; extensible ones name theirs in a further field.
_PLAYABLE_WAV_ENCODINGS = (1, 3, 6, 7)
_EXTENSIBLE_WAV_ENCODING = 0xFFFE
# Far more chunks than any program writes.
_MAX_CHUNKS = 100_000
# Data size of a WAV file that was written to a pipe.
_UNKNOWN_WAV_SIZES = (0, 0xFFFFFFFF)


def frame_length(content: bytes, at: int) -> int:
    """Return the length of the MP3 frame that begins at an offset; 0 if none begins there."""
    head = content[at : at + 4]
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return 0
    version, layer = (head[1] >> 3) & 3, (head[1] >> 1) & 3
    rate, sampling, padding = head[2] >> 4, (head[2] >> 2) & 3, (head[2] >> 1) & 1
    if version == 1 or layer != 1 or rate in (0, 15) or sampling == 3:
        return 0
    kilobits = (_MPEG1_KILOBITS if version == 3 else _MPEG2_KILOBITS)[rate]
    return (144_000 if version == 3 else 72_000) * kilobits // _SAMPLING_RATES[version][sampling] + padding


def _after_tags(content: bytes) -> int:
    """Return the offset after the ID3 tags at the beginning of an MP3."""
    at = 0
    while content[at : at + 3] == b"ID3" and len(content) >= at + 10:
        size = 0
        for byte in content[at + 6 : at + 10]:
            size = size << 7 | byte & 0x7F
        at += 10 + size + (10 if content[at + 5] & 0x10 else 0)
    return at


def is_mp3(content: bytes) -> bool:
    """Return whether a file begins like an MP3: with an ID3 tag, or with two frames."""
    length = frame_length(content, 0)
    return content[:3] == b"ID3" or bool(length and (len(content) <= length + 4 or frame_length(content, length)))


def check_mp3(content: bytes) -> tuple[int, int]:
    """Return the start and end of the frames of an MP3; raise `Unplayable` unless it consists of whole frames."""
    start = _after_tags(content)
    if start > len(content):
        raise cut_off("MP3")
    lead = start + _MAX_LEAD_BYTES
    while start < min(lead, len(content)):
        length = frame_length(content, start)
        if length and (start + length == len(content) or frame_length(content, start + length)):
            break
        start = max(content.find(b"\xff", start + 1), 0) or len(content)
    at, frames, is_cut = start, 0, False
    while length := frame_length(content, at):
        is_cut = at + length > len(content)
        if is_cut:
            break
        at, frames = at + length, frames + 1
    announced = _announced_frames(content, start)
    if frames and (is_cut or frames < _MIN_ANNOUNCED_FRACTION * announced - 2):
        raise cut_off("MP3")
    if frames < _MIN_FRAMES or (at < len(content) and not content[at:].startswith(_TRAILERS)):
        raise damaged("MP3")
    return start, at


def _announced_frames(content: bytes, start: int) -> int:
    """Return the number of frames that the first frame announces; 0 if it does not."""
    head = content[start : start + 64]
    at = max(head.find(b"Xing"), head.find(b"Info"))
    if at < 0 or len(head) < at + 12 or not head[at + 7] & 1:
        return 0
    return int.from_bytes(head[at + 8 : at + 12], "big")


def wav_chunks(content: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield the (name, start, end) of the content of each chunk of a WAV file, which may end too early."""
    at, count = 12, 0
    while at + 8 <= len(content):
        count += 1
        if count > _MAX_CHUNKS:
            raise damaged("WAV")
        name, (size,) = content[at : at + 4], struct.unpack_from("<I", content, at + 4)
        start = at + 8
        end = len(content) if name == b"data" and size in _UNKNOWN_WAV_SIZES else start + size
        yield name, start, end
        at = end + size % 2


def check_wav(content: bytes) -> None:
    """Raise `Unplayable` unless a WAV file has a playable format and all of its data."""
    has_format, data, at = False, None, 12
    for name, start, at in wav_chunks(content):
        if at > len(content):
            raise cut_off("WAV")
        if name == b"fmt ":
            has_format = _check_wav_format(content[start:at])
        if name == b"data":
            data = at - start
            break
    if not has_format or not data:
        raise damaged("WAV")


def _check_wav_format(chunk: bytes) -> bool:
    if len(chunk) < 16:
        raise damaged("WAV")
    (encoding,) = struct.unpack_from("<H", chunk)
    if encoding == _EXTENSIBLE_WAV_ENCODING and len(chunk) >= 26:
        (encoding,) = struct.unpack_from("<H", chunk, 24)
    if encoding not in _PLAYABLE_WAV_ENCODINGS:
        raise unsupported("WAV", f"compressed WAV (method {encoding})", "16-bit PCM")
    return True


def check_ogg(content: bytes) -> None:
    """Raise `Unplayable` unless an OGG file consists of whole pages and has a playable sound."""
    at, codec = 0, b""
    while at < len(content):
        if content[at : at + 4] != b"OggS"[: len(content) - at]:
            raise damaged("OGG")
        if at + 27 > len(content) or at + 27 + content[at + 26] > len(content):
            raise cut_off("OGG")
        table = content[at + 27 : at + 27 + content[at + 26]]
        begin = at + 27 + len(table)
        codec = codec or content[begin : begin + 8]
        at = begin + sum(table)
    if at > len(content):
        raise cut_off("OGG")
    if b"theora" in codec:
        raise unsupported("WebM", "Theora video", "VP9")
    if not codec.startswith((b"\x01vorbis", b"OpusHead", b"\x7fFLAC")):
        raise unsupported("OGG", "an unknown kind of OGG", "Vorbis or Opus")
