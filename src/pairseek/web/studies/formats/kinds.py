"""Kind of an uploaded file, decided by its content and never by its name."""

from __future__ import annotations

from dataclasses import dataclass

from pairseek.web.studies.formats.containers import RecordingMedium, is_webm, mp4_medium, webm_medium
from pairseek.web.studies.formats.damage import Unplayable
from pairseek.web.studies.formats.sounds import check_mp3, check_ogg, check_wav, is_mp3

_HEIC_DESCRIPTION = "a HEIC photo, which browsers do not show"
_HEIC_ADVICE = "save it as JPEG (an iPhone takes JPEG photos under Settings, Camera, Formats, Most Compatible)"
_USUAL_ADVICE = "send JPEG, PNG, WebP or GIF pictures, MP3, M4A, OGG or WAV sounds, or MP4 or WebM videos"
_VIDEO_ADVICE = "export it as MP4 (H.264) or WebM"
_SOUND_ADVICE = "export it as MP3, M4A, OGG or WAV"
_PICTURE_ADVICE = "save it as JPEG or PNG"
_PICTURE_BEGINNINGS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a")
_HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
# Beginnings of other files, with their name and what to do instead.
_OTHER_BEGINNINGS = (
    (b"%PDF", "a PDF", "save the picture in it as JPEG or PNG"),
    (b"PK\x03\x04", "a zip or an office document", "send a zip by itself, with the ending .zip"),
    (b"II*\0", "a TIFF picture", _PICTURE_ADVICE),
    (b"MM\0*", "a TIFF picture", _PICTURE_ADVICE),
    (b"BM", "a BMP picture", _PICTURE_ADVICE),
    (b"8BPS", "a Photoshop file", _PICTURE_ADVICE),
    (b"fLaC", "a FLAC sound", _SOUND_ADVICE),
    (b"FORM", "an AIFF sound", _SOUND_ADVICE),
    (b"\xff\xf1", "a raw AAC sound", _SOUND_ADVICE),
    (b"\xff\xf9", "a raw AAC sound", _SOUND_ADVICE),
    (b"#!AMR", "an AMR sound", _SOUND_ADVICE),
    (b"\x30\x26\xb2\x75", "a Windows Media file", "export it as MP3 or MP4"),
    (b"\x1a\x45\xdf\xa3", "a Matroska video", _VIDEO_ADVICE),
    (b"RIFF", "an AVI video", _VIDEO_ADVICE),
)
_TEXT_SAMPLE_BYTES = 1000


@dataclass(frozen=True, slots=True)
class Recording:
    """Medium and media type of a sound or video."""

    medium: RecordingMedium
    kind: str


def is_picture(content: bytes) -> bool:
    """Return whether a file begins like a picture of an accepted format."""
    return content.startswith(_PICTURE_BEGINNINGS) or (content[:4] == b"RIFF" and content[8:12] == b"WEBP")


def recording_of(content: bytes) -> Recording | None:
    """Return what a sound or video is, and None for other files; raise `Unplayable` if browsers could not play it."""
    if content[:4] == b"RIFF" and content[8:12] == b"WAVE":
        check_wav(content)
        return Recording("audio", "audio/wav")
    if content[:4] == b"OggS":
        check_ogg(content)
        return Recording("audio", "audio/ogg")
    if content[4:8] == b"ftyp" and content[8:12] not in (*_HEIC_BRANDS, b"avif", b"avis", b"qt  ", b"crx "):
        medium = mp4_medium(content)
        return Recording(medium, f"{medium}/mp4")
    if content[:4] == b"\x1a\x45\xdf\xa3" and is_webm(content):
        medium = webm_medium(content)
        return Recording(medium, f"{medium}/webm")
    if is_mp3(content):
        check_mp3(content)
        return Recording("audio", "audio/mpeg")
    return None


def unusable(content: bytes) -> Unplayable:
    """Return what a file is that is neither a picture nor a sound nor a video, and what to do."""
    if not content:
        return Unplayable("is empty (0 bytes): choose the file again, or export it again")
    brand = content[8:12] if content[4:8] == b"ftyp" else b""
    if brand in _HEIC_BRANDS:
        return Unplayable(f"is {_HEIC_DESCRIPTION}: {_HEIC_ADVICE}")
    if brand:
        described = "a QuickTime video" if brand == b"qt  " else "an AVIF or raw picture"
        return Unplayable(f"is {described}: {_VIDEO_ADVICE if brand == b'qt  ' else _PICTURE_ADVICE}")
    for start, described, advice in _OTHER_BEGINNINGS:
        if content.startswith(start):
            return Unplayable(f"is {described}: {advice}")
    described = "a text file" if _is_text(content) else "not a file of a known kind"
    return Unplayable(f"is {described}: {_USUAL_ADVICE}")


def _is_text(content: bytes) -> bool:
    sample = content[:_TEXT_SAMPLE_BYTES]
    text = sample.decode("utf-8", errors="ignore")
    return len(text.encode()) >= len(sample) - 3 and not any(ch < " " and ch not in "\t\r\n\f" for ch in text)
