"""How items look, which files are taken, and what is said of how a person answered."""

import csv
import io
import itertools
import struct
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

from helpers.serving import configuration, some_items
from pairseek.errors import InvalidItems
from pairseek.model.items import Items
from pairseek.store.events import AskedPair, EventRow
from pairseek.web.errors import InvalidMedia
from pairseek.web.results.quality import quality_indicators
from pairseek.web.results.tables import as_csv
from pairseek.web.sessions.state import EffectiveAnswer
from pairseek.web.studies import media, uploads
from pairseek.web.studies.cards import card, safe_html
from pairseek.web.studies.configuration import slug_of
from pairseek.web.studies.items import pack_items, read_items, unpack_items
from pairseek.web.views.result import plane_of, project


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a **bold** word", "<p>a <strong>bold</strong> word</p>\n"),
        ("<script>alert(1)</script>", "&lt;script&gt;"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>\n"),
        ("[x](https://example.org)", 'href="https://example.org"'),
        ("![x](https://tracker.example/p.png)", "!<a"),
        ("<img src=x onerror=alert(1)>", "&lt;img"),
    ],
)
def test_markdown_becomes_html_that_cannot_do_anything(text, html):
    made = safe_html(text)
    assert html in made
    assert "<script" not in made
    assert "<img" not in made


def test_a_card_shows_what_an_item_has():
    data = {"colour": ["#aabbcc", ""], "markdown": ["", "*hi*"], "text": ["", "plain <b>"]}
    items = Items([[0.0], [1.0]], ["a", "b"], ["a", "Bee"], None, data)
    first, second = (card(items, row, {}, "/media/x") for row in (0, 1))
    # An id that nobody wrote for people is no label where there is something else to see; it is still its name.
    assert (first["label"], first["name"], first["media"]) == (None, "a", {"colour": "#aabbcc"})
    assert (second["label"], second["media"]) == ("Bee", {"text": "plain <b>", "markdown": "<p><em>hi</em></p>\n"})


def test_items_come_back_from_the_store_to_the_bit():
    items = some_items(50, 3)
    again = unpack_items(pack_items(items))
    assert again.hash == items.hash
    assert np.array_equal(again.coordinates, items.coordinates)


def test_a_csv_may_say_color_or_hex_and_ids_become_text(tmp_path):
    (tmp_path / "i.csv").write_text("id,Color,x\n1,#ffffff,0.5\n2,#000000,1\n")
    items = read_items(tmp_path / "i.csv")
    assert items.ids == ("1", "2")
    assert items.data["colour"] == ("#ffffff", "#000000")


@pytest.mark.parametrize(("title", "slug"), [("Äpfel & Öl!", "apfel-ol"), ("日本", "study"), ("a" * 99, "a" * 60)])
def test_a_title_becomes_part_of_a_link(title, slug):
    assert slug_of(title) == slug


def packed(names, size=10):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, b"\0" * size)
    return file


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (packed(["../../etc/passwd"]), "with plain names"),
        (packed(["/etc/passwd"]), "with plain names"),
        (packed(["a\\..\\b.png"]), "with plain names"),
        (packed([f"{k}.png" for k in range(10_001)]), "contains 10,001 files: send at most 10,000"),
        (packed(["bomb.png"], 51_000_000), "has 51,000,000 bytes: send a file of at most 50,000,000"),
        (io.BytesIO(b"PK\x03\x04 cut"), "the zip cannot be read"),
    ],
    ids=["up", "root", "backslash", "many", "bomb", "cut"],
)
def test_a_zip_with_tricks_is_refused(file, words):
    with pytest.raises(InvalidItems, match=words):
        uploads.from_zip(file)


def with_bytes(archive, changes):
    """Return a zip with these bytes, by signature of a record and offset in it, in every record of this kind."""
    content = bytearray(archive.getvalue())
    for (signature, offset), value in changes.items():
        at = content.find(signature)
        while at >= 0:
            content[at + offset : at + offset + len(value)] = value
            at = content.find(signature, at + 4)
    return io.BytesIO(content)


LOCAL, CENTRAL = b"PK\x03\x04", b"PK\x01\x02"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({(LOCAL, 6): b"\x01", (CENTRAL, 8): b"\x01"}, "'a.png' in the zip is encrypted: pack it again without"),
        ({(LOCAL, 8): b"\x61", (CENTRAL, 10): b"\x61"}, "'a.png' in the zip is compressed by method 97"),
        ({(LOCAL, 8): b"\x0e", (CENTRAL, 10): b"\x0e"}, "'a.png' in the zip is compressed by method 14"),
        ({(CENTRAL, 6): b"\x63"}, "the zip cannot be read .*version"),
        ({(LOCAL, 14): b"abcd", (CENTRAL, 16): b"abcd"}, "'a.png' cannot be unpacked from the zip .*CRC"),
        ({(LOCAL, 35): b"\xff\xff\xff"}, "'a.png' cannot be unpacked from the zip"),
        ({(CENTRAL, 42): b"\xff\xff\xff\x7e"}, "'a.png' cannot be unpacked from the zip"),
        ({(CENTRAL, 24): b"\x05\0\0\0"}, "'a.png' cannot be unpacked from the zip"),
    ],
    ids=["encrypted", "method", "lzma", "version", "crc", "stream", "offset", "size"],
)
def test_an_encrypted_corrupt_or_odd_zip_is_refused_by_the_name_of_the_picture(changes, words):
    items = Items(ids=["a", "b"], data={"image": ["a.png", ""]})
    with pytest.raises(InvalidMedia, match=words) as caught:
        media.with_pictures(items, uploads.from_zip(with_bytes(packed(["a.png"], 100), changes)))
    assert caught.value.field == "images"


def test_a_zip_of_very_many_entries_is_refused_before_they_become_objects(monkeypatch):
    monkeypatch.setattr(uploads.zipfile, "ZipFile", None)
    with pytest.raises(InvalidMedia):
        uploads.from_zip(io.BytesIO((CENTRAL + bytes(42)) * 40_000))


def png_header(width, height):
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return content + struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))


@pytest.mark.parametrize(("width", "height"), [(1, 50_000_000), (50_000_000, 1), (16_384, 2)])
def test_a_picture_with_a_long_side_is_refused_by_its_header(width, height):
    items = Items(ids=["a", "b"], data={"image": ["a.png", ""]})
    words = f"'a.png' has {width} x {height} pixels: send one with sides of at most 16,383"
    with pytest.raises(InvalidMedia, match=words):
        media.with_pictures(items, {"a.png": lambda: png_header(width, height)})


def test_pictures_have_a_limit_of_pixels_in_total(monkeypatch):
    monkeypatch.setattr(media, "MAX_PIXELS", 150)
    items = Items(ids=["a", "b"], data={"image": ["a.png", "b.png"]})
    with pytest.raises(InvalidMedia):
        media.with_pictures(items, dict.fromkeys(["a.png", "b.png"], lambda: png_header(10, 10)))


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "CMYK", "I;16"])
def test_pictures_of_every_mode_are_converted_as_a_whole_would_be(mode):
    rng = np.random.default_rng(1)
    plain = Image.fromarray(rng.integers(0, 255, (600, 30, 3), dtype=np.uint8))
    picture = plain.convert("L").convert("I").convert(mode) if mode == "I;16" else plain.convert(mode)
    wanted = "RGBA" if mode == "RGBA" else "RGB"
    assert np.array_equal(media._converted(picture, wanted), picture.convert(wanted))


def test_a_zip_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(uploads, "MAX_UNPACKED_BYTES", 1000)
    with pytest.raises(InvalidItems, match="unpacks to more than 1,000 bytes"):
        uploads.from_zip(packed(["a.png", "b.png"], 600))


def test_items_that_name_too_many_pictures_are_refused():
    names = [f"{k}.png" for k in range(10_001)]
    items = Items(np.arange(10_001.0)[:, None], data={"image": names})
    with pytest.raises(InvalidItems, match="name 10,001 images: use at most 10,000"):
        media.with_pictures(items, {})


def test_a_path_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "secret.png").write_bytes(b"x")
    (tmp_path / "study").mkdir()
    items = Items([[0.0], [1.0]], data={"image": ["../secret.png", ""]})
    with pytest.raises(InvalidItems, match="is outside the folder"):
        uploads.from_folder(items, tmp_path / "study")


def picture(size, **options):
    file = io.BytesIO()
    Image.new("RGB", size, "red").save(file, **options)
    return file.getvalue()


def test_a_picture_with_too_many_pixels_is_refused():
    content = picture((8000, 7000), format="PNG")
    assert len(content) < 1_000_000
    with pytest.raises(InvalidItems, match="8000 x 7000 pixels"):
        media.with_pictures(Items([[0.0], [1.0]], data={"image": ["a.png", ""]}), {"a.png": lambda: content})


def test_pictures_are_turned_upright_and_stripped():
    exif = Image.Exif()
    exif[274], exif[271] = 6, "camera of ann"  # turned by a quarter; who made it
    content = picture((400, 200), format="JPEG", exif=exif)
    assert b"camera of ann" in content
    made = list(media.copies(1, "x", content))
    assert [(one.width, one.height) for one in made] == [(200, 400)]
    assert b"camera of ann" not in made[0].content


def test_a_map_of_many_dimensions_keeps_the_widest_two():
    points = np.random.default_rng(1).normal(size=(200, 5)) * [1, 9, 1, 4, 1]
    items = Items(points)
    axes = plane_of(items).axes
    assert np.argmax(np.abs(axes), axis=0).tolist() == [1, 3]
    assert np.allclose(axes.T @ axes, np.eye(2))
    assert project(Items([[0.0], [2.0]]), np.array([1.5])) == [(1.5, 0.0)]


def answered(name, kind="strategy", outcome="left", ms=900, **details):
    query = AskedPair("s", name, 0, kind, "a", "b", "", details)
    return EffectiveAnswer(query, EventRow("s", 0, name, "answer", outcome, ms, None, None, None, "", None))


def test_quality_indicators_are_counted_and_flagged():
    done = [answered(f"p{k}", outcome="left" if k % 2 else "right") for k in range(10)]
    plain = quality_indicators(configuration(), done)
    assert (plain["left_share"], plain["fast_share"], plain["flags"]) == (0.5, 0.0, [])
    assert (plain["consistency"], plain["attention"], plain["median_ms"]) == (None, None, 900.0)
    # p0, p2, p4 were right: two of three are answered otherwise the second time.
    twice = [answered(f"r{k}", "repeated", o, repeats=f"p{k}") for k, o in ((0, "right"), (2, "left"), (4, "left"))]
    missed = [answered("a", "attention", "left", expected="b"), answered("b", "attention", "right", expected="b")]
    indicators = quality_indicators(
        configuration(attention={"pairs": [{"left": "a", "right": "b", "answer": "b"}]}), done + twice + missed, missed
    )
    assert indicators["consistency"] == pytest.approx(1 / 3)
    assert indicators["attention"] == 0.5
    assert set(indicators["flags"]) == {"inconsistent", "attention"}
    hasty = quality_indicators(configuration(), [answered(f"p{k}", ms=100) for k in range(12)])
    assert (hasty["left_share"], hasty["fast_share"], hasty["flags"]) == (1.0, 1.0, ["one_sided", "fast"])


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "\nx",
        " =1",
        "\u00a0=1",
        "\u200b=1",
        "\ufeff=1",
        "\uff1d1+1",
        "\uff0b1",
        "\uff0d1",
        "\uff20x",
        " \uff1d1",
        "\u22121",
        "\ufe66x",
    ],
)
def test_a_text_of_a_visitor_that_a_spreadsheet_might_run_is_quoted(text):
    names = ("participant", "PROLIFIC_PID", "STUDY_ID", "SESSION_ID", "shown_at", "sent_at")
    cells = b"".join(as_csv(iter([dict.fromkeys(names, text)]), names)).decode()
    assert next(itertools.islice(csv.reader(io.StringIO(cells, newline="")), 1, None)) == [f"'{text}"] * 6


@pytest.mark.parametrize("text", ["ann", "5f3a-9", "a=1", "a b", "ünal", "日本"])
def test_other_ids_are_exported_as_they_are(text):
    assert b"".join(as_csv(iter([{"participant": text}]), ["participant"])).decode().split("\r\n")[1] == text
