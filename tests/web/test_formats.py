"""What an uploaded file is, by its content; and files that browsers could not play."""

import struct

import numpy as np
import pytest

from helpers.recordings import M4A, MP3_FRAME, VIDEO, WEBM, box, element, id3, mp3, mp4, ogg, tone, webm
from pairseek.web.studies.formats.damage import Unplayable
from pairseek.web.studies.formats.kinds import Recording, is_picture, recording_of, unusable
from pairseek.web.studies.formats.tags import without_tags

WHOLE = {
    "mp3": (mp3(), "audio", "audio/mpeg"),
    "tagged mp3": (mp3(tag=id3()) + b"TAG" + bytes(125), "audio", "audio/mpeg"),
    "announced mp3": (mp3(20, announced=19), "audio", "audio/mpeg"),
    "wav": (tone(), "audio", "audio/wav"),
    "piped wav": (tone().replace(b"data\xa0\x0f\0\0", b"data\xff\xff\xff\xff"), "audio", "audio/wav"),
    "vorbis": (ogg(), "audio", "audio/ogg"),
    "opus": (ogg(b"OpusHead"), "audio", "audio/ogg"),
    "m4a": (M4A, "audio", "audio/mp4"),
    "mp4": (VIDEO, "video", "video/mp4"),
    "mp4 with its index at the end": (mp4((b"vide", b"avc1"), fast=False), "video", "video/mp4"),
    "webm": (WEBM, "video", "video/webm"),
    "webm sound": (webm((2, b"A_OPUS")), "audio", "audio/webm"),
    "live webm": (webm((1, b"V_VP8"), live=True), "video", "video/webm"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_sounds_and_videos_are_known_by_their_content(name):
    content, medium, kind = WHOLE[name]
    assert recording_of(content) == Recording(medium, kind)
    assert not is_picture(content)


CUT = {
    "mp3": mp3()[:-100],
    "mp3 that announces more": mp3(10, announced=20),
    "mp3 tag": id3()[:100],
    "wav": tone()[:-100],
    "wav header": tone()[:20],
    "ogg": ogg()[:-10],
    "ogg header": ogg()[:10],
    "mp4": VIDEO[:-100],
    "mp4 without its index": mp4((b"vide", b"avc1"), fast=False)[: 24 + 5008],
    "webm": WEBM[:-10],
}


@pytest.mark.parametrize("name", CUT)
def test_a_file_that_was_cut_off_is_refused(name):
    with pytest.raises(Unplayable):
        recording_of(CUT[name])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (mp4((b"vide", b"hvc1")), "is encoded as H.265, which many browsers do not play: export it as H.264"),
        (mp4((b"soun", b"alac")), "Apple Lossless, .* export it as AAC"),
        (webm((1, b"V_MPEG4/ISO/AVC")), "V_MPEG4/ISO/AVC, .* VP9 with Opus"),
        (ogg(b"\x80theora"), "Theora"),
        (ogg(b"Speex   "), "an unknown kind of OGG"),
        (tone().replace(b"\x10\0\0\0\x01\0", b"\x10\0\0\0\x02\0"), "compressed WAV .method 2.* 16-bit PCM"),
        (mp3(2) + b"no frame", "damaged MP3"),
        (mp3(20) + b"no frame", "damaged MP3"),
        (ogg() + b"OggX" + bytes(40), "damaged OGG"),
        (mp4(), "damaged MP4"),
        (webm(), "damaged WebM"),
        (tone().replace(b"fmt ", b"fmx "), "damaged WAV"),
    ],
)
def test_a_file_that_browsers_do_not_play_is_refused_with_what_to_do(content, words):
    with pytest.raises(Unplayable, match=words):
        recording_of(content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"%PDF-1.7", "is a PDF: save the picture in it"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "is a HEIC photo, which browsers do not show: save it as JPEG"),
        (b"\0\0\0\x18ftypqt  \0\0\0\0", "is a QuickTime video: export it as MP4"),
        (b"\0\0\0\x18ftypavif\0\0\0\0", "is an AVIF or raw picture"),
        (b"PK\x03\x04", "a zip or an office document"),
        (webm((1, b"V_VP9"), doc_type=b"matroska"), "is a Matroska video"),
        (b"RIFF\0\0\0\0AVI ", "is an AVI video"),
        ("Dies ist kein Vidéo\n".encode() * 99, "is a text file: send JPEG"),
        ("\ufeffa\n".encode("utf-16"), "not a file of a known kind"),
        (b"<html><script>alert(1)</script>", "is a text file"),
        (bytes(range(256)), "not a file of a known kind"),
    ],
)
def test_other_files_are_named(content, words):
    assert recording_of(content) is None
    assert not is_picture(content)
    assert words in str(unusable(content))


@pytest.mark.parametrize("name", WHOLE)
def test_no_damage_raises_another_error(name):
    """Every byte of the structure is changed in turn, and files are cut at every length of their beginning."""
    content = WHOLE[name][0]
    rng = np.random.default_rng(7)
    changed = []
    for at in range(min(len(content), 700)):
        changed.append(content[:at] + bytes([int(rng.integers(256))]) + content[at + 1 :])
        changed.append(content[:at])
    for tried in changed:
        try:
            if recording := recording_of(tried):
                without_tags(tried, recording)
        except Unplayable:
            continue


@pytest.mark.parametrize(
    "bomb",
    [
        mp4() + b"\0\0\0\x08free" * 200_000,
        WEBM + element(0xEC, b"", size=b"\x80") * 200_000,
        tone()[:12] + b"LIST\0\0\0\0" * 200_000,
    ],
)
def test_a_file_of_very_many_parts_is_refused_early(bomb):
    with pytest.raises(Unplayable):
        recording_of(bomb)


def test_a_frame_of_an_mp3_has_the_length_that_players_expect():
    # 144 * 128,000 / 44,100 = 417.96 bytes, without padding.
    assert MP3_FRAME == 144 * 128_000 // 44_100


def test_tags_are_removed_and_the_rest_stays_where_it_was():
    secret = b"\xa9xyz+48.8577+002.295/ by Ann"
    info = b"LIST" + struct.pack("<I", len(secret) + 4) + b"INFO" + secret
    title = b"ID3\x04\0\0" + bytes([0, 0, 0, len(secret)]) + secret
    tagged = {
        "MP3": title + mp3() + b"TAG" + secret.ljust(125, b"\0"),
        "WAV": tone() + info,
        "MP4": VIDEO.replace(*_with_tags(VIDEO, secret)),
        "M4A": M4A + box(b"uuid", secret),
    }
    for name, content in tagged.items():
        assert secret in content
        recording = recording_of(content)
        cleaned = without_tags(content, recording)
        assert secret not in cleaned, name
        assert recording_of(cleaned) == recording
        assert without_tags(cleaned, recording) == cleaned
        if name != "MP3":
            assert len(cleaned) == len(content)
    assert without_tags(tagged["MP3"], recording_of(tagged["MP3"])) == mp3()
    assert without_tags(tone() + info[:9], recording_of(tone())).startswith(tone())
    for content in (ogg(), WEBM):
        assert without_tags(content, recording_of(content)) == content


def _with_tags(video, secret):
    """Return the index of a video, and the index with the place where it was taken."""
    at = video.index(b"moov") - 4
    movie = video[at : at + int.from_bytes(video[at : at + 4], "big")]
    return movie, box(b"moov", movie[8:] + box(b"udta", secret))
