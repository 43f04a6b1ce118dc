"""Uploaded sounds and videos: created by form, folder and zip, served in ranges, copied, saved and deleted."""

import io
import zipfile

import pytest
import sqlalchemy as sa
from PIL import Image

from helpers.recordings import M4A, VIDEO, mp3, mp4, tone
from helpers.serving import answer, begin, configuration, csrf_of, served, some_items
from pairseek.errors import InvalidItems
from pairseek.model.items import Items
from pairseek.store import backups, media, migrate, recordings, studies
from pairseek.store.database import Database
from pairseek.store.deletion import delete_study
from pairseek.store.recordings import PIECE_BYTES
from pairseek.store.schema import metadata
from pairseek.web.access import auth
from pairseek.web.errors import InvalidMedia
from pairseek.web.results import tables
from pairseek.web.studies import uploads
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import add_items, create_study, from_file
from pairseek.web.studies.replacement import replace_items
from pairseek.web.studies.uploads import from_zip, items_of_files

PASSWORD = "a long password"
LONG = tone(3 * PIECE_BYTES / 8000)
SOUNDS = {f"tone-{k}.wav": tone(0.3, 300 + 50 * k) for k in range(4)}


def png(colour="red", size=(90, 60)):
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def readers(files):
    return {name: lambda content=content: content for name, content in files.items()}


def create(database, files, slug="which"):
    files = readers(files)
    create_study(database, configuration(slug=slug), items_of_files(files), is_open=True, who="t", files=files)
    return Catalogue(database).by_slug(slug)


def contents(database):
    """Number of rows of each table with media."""
    names = ("studies", "media", "recordings", "recording_pieces")
    counting = [sa.select(sa.func.count()).select_from(metadata.tables[name]) for name in names]
    return dict(zip(names, database.read(lambda c: [c.execute(one).scalar() for one in counting]), strict=True))


@pytest.fixture
def database(database_url):
    made = Database(database_url)
    migrate.prepare(made)
    yield made
    made.close()


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    with served(tmp_path_factory.mktemp("media") / "m.db") as visitors:
        auth.set_password(visitors.service.database, "ann", PASSWORD)
        yield visitors


@pytest.fixture(scope="module")
def ann(visitors):
    browser = visitors.browser(headers={"accept": "text/html"})
    browser.post("/login", data={"csrf": csrf_of(browser.get("/login")), "name": "ann", "password": PASSWORD})
    return browser


def post(ann, title, files, path="/studies/new"):
    sent = {"csrf": csrf_of(ann.get("/studies/new")), "title": title, "answers": "2"}
    return ann.post(path, data=sent, files=[("images", (name, content, "x/y")) for name, content in files])


def packed(files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize("as_zip", [False, True])
def test_uploaded_sounds_make_a_study_and_are_played_before_an_answer(visitors, ann, as_zip):
    title = f"Tones {as_zip}"
    files = [("tones.zip", packed(SOUNDS.items()))] if as_zip else list(SOUNDS.items())
    reply = post(ann, title, files)
    assert reply.status_code == 303, reply.text
    slug = reply.headers["location"].removeprefix("/studies/")
    items = visitors.service.catalogue.by_slug(slug).items
    assert items.ids == ("tone-0", "tone-1", "tone-2", "tone-3")
    assert items.labels == ("Tone 0", "Tone 1", "Tone 2", "Tone 3")
    assert items.data["audio_file"] == tuple(SOUNDS)
    reply = ann.post(
        f"/studies/{slug}/items",
        data={"csrf": csrf_of(ann.get(f"/studies/{slug}"))},
        files=[("images", ("more.mp3", mp3(), "audio/mpeg"))],
    )
    assert reply.status_code == 303, reply.text
    assert visitors.service.catalogue.by_slug(slug).items.ids[-1] == "more"

    person = visitors.browser()
    state = begin(person, slug)
    card = state["query"]["left"]
    reply = person.get(card["media"]["audio"])
    known = {f"tone-{k}": content for k, content in enumerate(SOUNDS.values())} | {"more": mp3()}
    assert reply.content == known[card["id"]]
    assert answer(person, state, slug=slug, played={"left": "yes", "right": "no"}).status_code == 422
    assert answer(person, state, slug=slug, played={"left": "yes", "right": "yes"}).status_code == 200


def test_a_range_is_served_with_the_headers_of_pictures(visitors, ann):
    slug = (
        post(ann, "Long", [("long.wav", LONG), ("a.png", png()), ("b.mp4", VIDEO), ("c.mp3", mp3())])
        .headers["location"]
        .removeprefix("/studies/")
    )
    study = visitors.service.catalogue.by_slug(slug)
    name = study.items.data["audio"][study.items.index("long")]
    (picture,) = filter(None, study.items.data["image"])
    path, browser = f"/media/{slug}/{name}", visitors.browser()
    whole = browser.get(path)
    assert (whole.status_code, whole.content) == (200, LONG)
    assert whole.headers["content-type"] == "audio/wav"
    assert whole.headers["content-length"] == str(len(LONG))
    shown = browser.get(f"/media/{slug}/{picture}/90")
    for header in ("cache-control", "x-content-type-options", "content-security-policy", "referrer-policy"):
        assert whole.headers[header] == shown.headers[header]
    assert whole.headers["x-content-type-options"] == "nosniff"
    etag = whole.headers["etag"]
    size = len(LONG)
    first = PIECE_BYTES - 3
    for sent, (start, end) in {
        "bytes=0-": (0, size),
        "bytes=0-0": (0, 1),
        f"bytes={first}-{first + 5}": (first, first + 6),
        f"bytes={PIECE_BYTES}-{2 * PIECE_BYTES - 1}": (PIECE_BYTES, 2 * PIECE_BYTES),
        "bytes=-7": (size - 7, size),
    }.items():
        part = browser.get(path, headers={"range": sent, "if-range": etag})
        assert part.status_code == 206
        assert part.content == LONG[start:end]
        assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
    assert browser.get(path, headers={"range": "bytes=0-9", "if-range": '"old"'}).status_code == 200
    assert browser.get(path, headers={"range": "bytes=0-9,20-29"}).content == LONG
    beyond = browser.get(path, headers={"range": f"bytes={size}-"})
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{size}")
    for known, at in ((etag, path), (f"W/{etag}", path), (shown.headers["etag"], f"/media/{slug}/{picture}/90")):
        cached = browser.get(at, headers={"if-none-match": known})
        assert (cached.status_code, cached.content) == (304, b"")
    assert browser.get(f"/media/{slug}/{'0' * 32}").status_code == 404
    assert browser.get(f"/media/other/{name}").status_code == 404


def test_a_range_reads_only_its_pieces(visitors, monkeypatch):
    study = create(visitors.service.database, {"long.wav": LONG, **SOUNDS}, "far")
    name = study.items.data["audio"][study.items.index("long")]
    read, piece = [], recordings.piece

    def noted(connection, study_id, name, number):
        read.append(number)
        return piece(connection, study_id=study_id, name=name, number=number)

    monkeypatch.setattr(recordings, "piece", noted)
    visitors.browser().get(f"/media/far/{name}", headers={"range": f"bytes={PIECE_BYTES}-{PIECE_BYTES + 10}"})
    assert read == [1]


def test_pictures_and_sounds_may_be_mixed(database):
    study = create(database, {"a.png": png(), "b.wav": tone(), "c.mp4": VIDEO, "d.m4a": M4A})
    shown = {item: set(study.card(item)["media"]) for item in study.items.ids}
    assert shown == {"a": {"image"}, "b": {"audio"}, "c": {"video"}, "d": {"audio"}}
    assert [study.has_player(item) for item in study.items.ids] == [False, True, True, True]
    assert contents(database) == {"studies": 1, "media": 1, "recordings": 3, "recording_pieces": 3}


def test_a_list_may_mix_addresses_and_files(tmp_path, database):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "a.wav").write_bytes(tone())
    (tmp_path / "list.csv").write_text("id,x,audio\na,0,s/a.wav\nb,1,https://example.org/b.mp3\nc,2,/static/c.mp3\n")
    (tmp_path / "study.yaml").write_text("title: Mixed\nslug: which\nitems: list.csv\n")
    made, items, _, files, _ = from_file(tmp_path / "study.yaml")
    create_study(database, made, items, is_open=True, who="t", files=files)
    study = Catalogue(database).by_slug("which")
    addresses = [study.card(item)["media"]["audio"] for item in "abc"]
    assert addresses == [
        f"/media/which/{study.items.data['audio'][0]}",
        "https://example.org/b.mp3",
        "/static/c.mp3",
    ]
    assert tables.shown_columns(study) == ["audio_file"]
    assert study.items.data["audio_file"] == ("s/a.wav", "https://example.org/b.mp3", "/static/c.mp3")


def test_a_backup_and_a_copy_have_the_sounds_and_a_deletion_removes_them(database, tmp_path):
    study = create(database, {"long.wav": LONG, "b.png": png(), "c.png": png("blue"), "d.png": png("lime")})
    backups.write(database, tmp_path / "b.gz")
    restored = Database(f"sqlite:///{tmp_path / 'restored.db'}")
    backups.read(restored, tmp_path / "b.gz")
    name = max(study.items.data["audio"])
    stored = restored.read(lambda c: recordings.recording(c, study.row.id, name))
    pieces = [restored.read(lambda c, k=k: recordings.piece(c, study.row.id, name, k)) for k in range(4)]
    assert stored is not None
    assert (stored.size, b"".join(piece or b"" for piece in pieces)) == (len(LONG), LONG)
    restored.close()

    def copied(connection):
        other = studies.add(connection, "copy", {}, b"x", size=(2, 0), is_open=True, who="t")
        media.copy(connection, study.row.id, other)
        return other

    other = database.write(copied)
    doubled = contents(database)
    assert doubled == {"studies": 2, "media": 6, "recordings": 2, "recording_pieces": 2 * -(-len(LONG) // PIECE_BYTES)}
    database.write(lambda c: delete_study(c, study.row.id))
    assert contents(database) == {name: count // 2 for name, count in doubled.items()}
    database.write(lambda c: delete_study(c, other))
    assert set(contents(database).values()) == {0}


BAD = {
    "text as MP4": ([("a.mp4", b"hello, this is text")], "&#39;a.mp4&#39; is a text file"),
    "PDF as JPEG": ([("a.jpg", b"%PDF-1.7 x")], "&#39;a.jpg&#39; is a PDF"),
    "HEIC": ([("a.heic", b"\0\0\0\x18ftypheic\0\0\0\0")], "is a HEIC photo, which browsers do not show: save it as"),
    "cut MP3": ([("a.mp3", mp3()[:-99])], "is an incomplete MP3 file: it was cut off"),
    "cut WAV": ([("a.wav", tone()[:-99])], "is an incomplete WAV file: it was cut off"),
    "cut PNG": ([("a.png", png()[:60])], "&#39;a.png&#39;"),
    "empty": ([("a.wav", b"")], "&#39;a.wav&#39; is empty"),
    "one name": ([("a.wav", tone()), ("a.wav", tone(1))], "Two files are named &#39;a.wav&#39;: rename one of them"),
    "two zips": ([("a.zip", packed([])), ("b.zip", packed([]))], "send either one zip, or single files"),
    "one name in a zip": ([("a.zip", packed([("x/a.wav", tone()), ("y/a.wav", tone(1))]))], "contains 2 files named"),
    "path up": ([("a.zip", packed([("../a.wav", tone())]))], "contains the path &#39;../a.wav&#39;"),
    "root": ([("a.zip", packed([("/a.wav", tone())]))], "contains the path &#39;/a.wav&#39;"),
    "system files only": (
        [("a.zip", packed([("__MACOSX/._a.wav", b"x"), (".git/a.wav", b"x")]))],
        "No items were sent",
    ),
    "no zip": ([("a.zip", b"hello")], "The zip cannot be read"),
    "H.265": ([("a.mp4", mp4((b"vide", b"hvc1")))], "is encoded as H.265, which many browsers do not play"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_explained_at_the_field_and_nothing_is_stored(visitors, ann, name):
    files, words = BAD[name]
    before = contents(visitors.service.database)
    reply = post(ann, f"Bad {name}", [*files, *([] if files[0][0].endswith(".zip") else SOUNDS.items())])
    assert reply.status_code == 422
    assert words in reply.text
    if name != "system files only":
        assert 'href="#f-images"' in reply.text
    assert contents(visitors.service.database) == before


def test_system_files_in_a_zip_are_left_out():
    files = [
        ("a.wav", tone()),
        ("__MACOSX/._a.wav", b"x"),
        (".DS_Store", b"x"),
        ("sub/.hidden", b"x"),
        (".git/b", b"x"),
    ]
    items = items_of_files(from_zip(io.BytesIO(packed(files))))
    assert items.ids == ("a",)


def test_a_list_can_name_files_of_one_name_by_their_paths(database):
    files = from_zip(io.BytesIO(packed([("x/a.wav", tone()), ("y/a.wav", tone(1))])))
    items = Items([[0.0], [1.0]], ["one", "two"], data={"audio": ["x/a.wav", "y/a.wav"]})
    create_study(database, configuration(), items, is_open=True, who="t", files=files)
    assert contents(database)["recordings"] == 2


def test_a_name_twice_in_a_zip_is_refused():
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = packed([("a.wav", tone()), ("a.wav", tone(1))])
    with pytest.raises(InvalidMedia):
        from_zip(io.BytesIO(content))


def test_a_file_over_the_limit_is_refused_with_the_limit(monkeypatch):
    monkeypatch.setattr(uploads, "MAX_FILE_BYTES", 1000)
    with pytest.raises(InvalidMedia):
        items_of_files(readers({"a.wav": tone()}))


@pytest.mark.parametrize(
    ("data", "files", "words"),
    [
        ({"audio": ["a.wav", ""]}, {}, r"names? the audio 'a\.wav', but it was not sent.*or give an address"),
        (
            {"audio": ["v.mp4", ""]},
            {"v.mp4": VIDEO},
            r"'v\.mp4' is a video: name it in the column 'video', not 'audio'",
        ),
        ({"video": ["a.wav", ""]}, {"a.wav": tone()}, "is a sound without a picture: name it in the column 'audio'"),
        ({"image": ["a.wav", ""]}, {"a.wav": tone()}, "'a.wav' is"),
    ],
)
def test_a_list_that_names_the_wrong_file_is_refused(database, data, files, words):
    items = Items([[0.0], [1.0]], ["a", "b"], data=data)
    with pytest.raises(InvalidMedia, match=words):
        create_study(database, configuration(), items, is_open=True, who="t", files=readers(files))
    assert set(contents(database).values()) == {0}


def test_replaced_items_keep_their_sounds_unless_they_get_an_address(database):
    plain = some_items(40)
    names = ["a.wav", "b.wav"] + [""] * 38
    items = Items(plain.coordinates, plain.ids, plain.labels, data={"audio": names})
    create_study(
        database, configuration(), items, is_open=True, who="t", files=readers({"a.wav": tone(), "b.wav": tone(1)})
    )
    study = Catalogue(database).by_slug("which")
    stored = study.items.data["audio"]
    new = Items(plain.coordinates[:30], plain.ids[:30], plain.labels[:30])
    assert replace_items(database, study, new, who="t")
    study = Catalogue(database).by_slug("which")
    assert study.items.data["audio"] == stored[:30]
    changed = ["", "https://example.org/b.mp3"] + [""] * 28
    new = Items(plain.coordinates[:30], plain.ids[:30], plain.labels[:30], data={"audio": changed})
    assert replace_items(database, study, new, who="t")
    items = Catalogue(database).by_slug("which").items
    assert items.data["audio"][:2] == (stored[0], "https://example.org/b.mp3")
    assert items.data["audio_file"][:2] == ("a.wav", "https://example.org/b.mp3")
    new = Items(plain.coordinates[:30], plain.ids[:30], plain.labels[:30], data={"audio": ["c.wav"] + [""] * 29})
    with pytest.raises(InvalidItems):
        replace_items(database, Catalogue(database).by_slug("which"), new, who="t")


def test_added_sounds_are_stored_beside_the_others(database):
    study = create(database, SOUNDS)
    files = readers({"new.wav": tone(2), "again.wav": SOUNDS["tone-0.wav"]})
    assert add_items(database, study, items_of_files(files), who="t", files=files) == 6
    # A file that the study already has is stored once.
    assert contents(database)["recordings"] == 5
    items = Catalogue(database).by_slug("which").items
    assert items.data["audio"][items.index("again")] == items.data["audio"][items.index("tone-0")]
