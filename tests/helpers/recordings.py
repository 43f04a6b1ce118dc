"""Small sounds and videos: a WAV that plays, and the structure of the other formats."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np

# MPEG-1 layer III, 128 kbit/s, 44.1 kHz, mono.
MP3_HEAD = b"\xff\xfb\x90\xc0"
MP3_FRAME = 417


def tone(seconds=0.5, hertz=400.0, rate=8000) -> bytes:
    """A sine in WAV."""
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(1)
        written.setframerate(rate)
        phase = np.arange(round(rate * seconds)) * (2 * np.pi * hertz / rate)
        written.writeframes((128 + 60 * np.sin(phase)).astype(np.uint8).tobytes())
    return file.getvalue()


def mp3(frames=20, announced=None, tag=b"") -> bytes:
    """Silence in MP3; the first frame may announce the number of frames."""
    silence = MP3_HEAD + bytes(MP3_FRAME - len(MP3_HEAD))
    first = silence
    if announced is not None:
        told = MP3_HEAD + bytes(17) + b"Xing" + struct.pack(">II", 1, announced)
        first = told + bytes(MP3_FRAME - len(told))
    return tag + first + silence * (frames - 1)


def id3(size=300) -> bytes:
    """An ID3 tag without content."""
    return b"ID3\x04\0\0" + bytes([size >> 21 & 127, size >> 14 & 127, size >> 7 & 127, size & 127]) + bytes(size)


def ogg(codec=b"\x01vorbis", pages=3) -> bytes:
    """Pages of OGG."""
    body = codec + bytes(90)
    page = b"OggS" + bytes(22) + b"\x01" + bytes([len(body)]) + body
    return page * pages


def box(kind: bytes, content: bytes = b"") -> bytes:
    return struct.pack(">I", 8 + len(content)) + kind + content


def mp4(*tracks, brand=b"isom", fast=True) -> bytes:
    """An MP4 with tracks given as (handler, codec)."""
    movie = box(b"moov", b"".join(_mp4_track(*track) for track in tracks))
    data = box(b"mdat", bytes(5000))
    return box(b"ftyp", brand + bytes(4) + brand) + (movie + data if fast else data + movie)


def _mp4_track(handler: bytes, codec: bytes) -> bytes:
    described = box(b"stsd", struct.pack(">II", 0, 1) + box(codec, bytes(70)))
    media = box(b"hdlr", bytes(8) + handler + bytes(12)) + box(b"minf", box(b"stbl", described))
    return box(b"trak", box(b"mdia", media))


def element(name: int, content: bytes, *, size: bytes | None = None) -> bytes:
    head = name.to_bytes((name.bit_length() + 7) // 8, "big")
    return head + (struct.pack(">Q", 1 << 56 | len(content)) if size is None else size) + content


def webm(*tracks, doc_type=b"webm", live=False) -> bytes:
    """A WebM with tracks given as (type, codec); a live one does not know its size."""
    entries = b"".join(element(0xAE, element(0x83, bytes([kind])) + element(0x86, codec)) for kind, codec in tracks)
    parts = element(0x1654AE6B, entries) + element(0x1F43B675, bytes(4000))
    header = element(0x1A45DFA3, b"\x42\x82" + bytes([0x80 | len(doc_type)]) + doc_type)
    return header + element(0x18538067, parts, size=b"\x01" + b"\xff" * 7 if live else None)


VIDEO = mp4((b"vide", b"avc1"), (b"soun", b"mp4a"))
M4A = mp4((b"soun", b"mp4a"), brand=b"M4A ")
WEBM = webm((1, b"V_VP9"), (2, b"A_OPUS"))
