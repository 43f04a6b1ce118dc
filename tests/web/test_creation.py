"""Studies appear with everything in them, or not at all: under readers, with two workers, and under kills."""

import contextlib
import io
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
import sqlalchemy as sa
from PIL import Image

from helpers.refusals import refused, refused_with
from helpers.serving import GUARD, begin, configuration, csrf_of, served
from pairseek.errors import InvalidItems
from pairseek.model.items import Items
from pairseek.store import media, migrate, studies
from pairseek.store.database import Database
from pairseek.store.schema import media as pictures_table
from pairseek.store.schema import studies as studies_table
from pairseek.web.access import auth
from pairseek.web.errors import InvalidMedia, Problem
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import add_items, create_study, from_file
from pairseek.web.studies.items import study_items
from pairseek.web.studies.replacement import replace_items
from pairseek.web.studies.uploads import items_of_files

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import service

PASSWORD = "a long password"
CREATIONS = int(os.environ.get("PAIRSEEK_CREATIONS", "100"))


def jpeg(number, size=(64, 48)):
    """A picture that no other number has."""
    pixels = np.random.default_rng(number).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def files_of(numbers):
    return {f"thing-{number}.jpg": lambda number=number: jpeg(number) for number in numbers}


def missing(study):
    """The names of the pictures that a worker does not show."""
    return set(study.items.data.get("image", ())) - set(study.pictures) - {""}


def left_behind(database):
    """Pictures that no item names, as (study, picture)."""
    stored = database.read(lambda c: c.execute(sa.select(pictures_table.c.study_id, pictures_table.c.name)).all())
    named = {
        (row.id, name)
        for row in database.read(studies.all_studies)
        for name in Catalogue(database).by_slug(row.slug).all_items.data.get("image", ())
    }
    return {tuple(one) for one in stored} - named


@pytest.fixture
def database(database_url):
    made = Database(database_url)
    migrate.prepare(made)
    yield made
    made.close()


def created(database):
    files = files_of(range(6))
    create_study(database, configuration(slug="made"), items_of_files(files), is_open=True, who="t", files=files)


def extended(database):
    # One of them looks like a thing that is there already.
    files = files_of(range(6, 9)) | {"again.jpg": lambda: jpeg(0)}
    study = Catalogue(database).by_slug("made")
    assert add_items(database, study, items_of_files(files), who="t", files=files) == 10


def placed(database):
    points = np.random.default_rng(1).normal(size=(6, 2))
    files = files_of(range(6))
    named = items_of_files(files)
    items = Items(points, named.ids, named.labels, data=dict(named.data))
    made = configuration(slug="placed", answers=4)
    create_study(database, made, items, is_open=True, who="t", files=files)


def replaced(database):
    study, points = Catalogue(database).by_slug("placed"), np.random.default_rng(1).normal(size=(6, 2))
    rows = np.array([0, 1, 2, 3, 4])
    assert replace_items(database, study, Items(points[rows], [study.items.ids[row] for row in rows]), who="t")


class Killed(BaseException):
    """A process that ends here, and writes nothing any more."""


@pytest.mark.parametrize(
    "writing", [[created], [created, extended], [placed, replaced]], ids=["create", "add", "replace"]
)
def test_every_commit_leaves_whole_studies_and_a_kill_before_it_leaves_nothing(database, writing, monkeypatch):
    """After every commit, a worker that has just started sees nothing that lacks a picture, nor one too many."""
    *before, last = writing
    for step in before:
        step(database)
    write, commits, lives = Database.write, [], 0

    def watched(self, function):
        if len(commits) == lives:
            raise Killed
        result = write(self, function)
        commits.append(function)
        for row in self.read(studies.all_studies):
            assert missing(Catalogue(self).by_slug(row.slug)) == set(), f"after commit {len(commits)}"
        assert left_behind(self) == set(), f"after commit {len(commits)}"
        return result

    monkeypatch.setattr(Database, "write", watched)
    while lives < 20:
        with contextlib.suppress(Killed):
            last(database)
            break
        commits.clear()
        lives += 1
    assert 0 < lives < 20


def test_a_study_whose_picture_is_damaged_leaves_nothing(database):
    files = files_of(range(5)) | {"thing-9.jpg": lambda: jpeg(9)[:900]}
    with pytest.raises(InvalidMedia):
        create_study(database, configuration(slug="made"), items_of_files(files), is_open=True, who="t", files=files)
    assert database.read(studies.all_studies) == []
    assert database.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(pictures_table)).scalar()) == 0


def test_a_name_that_is_taken_is_said_before_the_pictures_are_converted(database):
    created(database)
    reads = []
    files = {name: lambda read=read: reads.append(1) or read() for name, read in files_of(range(6)).items()}
    items = items_of_files(files)
    reads.clear()
    with refused_with("slug_taken", Problem):
        create_study(database, configuration(slug="made"), items, is_open=True, who="t", files=files)
    assert len(reads) == len(files)  # each was looked at once, and not read again to be converted


@contextlib.contextmanager
def signed_in(address):
    with httpx.Client(base_url=address, timeout=60, headers={"accept": "text/html"}) as client:
        client.post("/login", data={"csrf": csrf_of(client.get("/login")), "name": "ann", "password": PASSWORD})
        yield client


def send(client, slug, count=20, size=(64, 48), first=0):
    """Create a study by the form."""
    files = [("items", ("", b""))]
    files += [("images", (f"thing-{k}.jpg", jpeg(first + k, size), "image/jpeg")) for k in range(count)]
    data = {"csrf": csrf_of(client.get("/studies/new")), "title": "Things", "slug": slug, "answers": str(count // 2)}
    return client.post("/studies/new", data=data, files=files)


@contextlib.contextmanager
def polled(address, token, slug_of, pollers=4):
    """Participants and programs who ask for a study all the time, while it is created as well."""
    done, counts = threading.Event(), []

    def poll(number):
        replies = 0
        headers = {"authorization": f"Bearer {token}"}
        with httpx.Client(base_url=address, timeout=60) as client:
            while not done.is_set():
                slug = slug_of()
                path = f"/api/v1/studies/{slug}" if number % 2 else f"/s/{slug}"
                with contextlib.suppress(httpx.TransportError):
                    assert client.get(path, headers=headers).status_code in (200, 404, 429, 503)
                    replies += 1
                client.cookies.clear()
        counts.append(replies)

    threads = [threading.Thread(target=poll, args=(number,)) for number in range(pollers)]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        done.set()
        for thread in threads:
            thread.join()


def cards_without_picture(address, slug, answers):
    """Answer a session; how many cards there were, and which of them came without their picture."""
    with httpx.Client(base_url=address, timeout=60, headers=GUARD) as client:
        state, cards, bare = begin(client, slug), 0, set()
        while state["query"] is not None:
            for side in ("left", "right"):
                card, cards = state["query"][side], cards + 1
                if "image" not in card["media"]:
                    bare.add(card["id"])
            body = {"query": state["query"]["query"], "outcome": "left"}
            state = client.post(f"/s/{slug}/answer", json=body).json()
    assert cards >= 2 * answers
    return bare


def test_a_study_that_is_created_under_readers_has_all_its_pictures(tmp_path):
    with served(tmp_path / "s.db", calls_per_minute=100_000) as visitors:
        auth.set_password(visitors.service.database, "ann", PASSWORD)
        token = auth.make_token(visitors.service.database, "poll", ["read"], "ann")
        now = "none"
        with signed_in(visitors.address) as client, polled(visitors.address, token, lambda: now):
            for number in range(2):
                now = f"polled-{number}"
                reply = send(client, now, 20)
                assert reply.status_code == 303, reply.text
                # As this worker has cached it, which no later request would repair.
                assert missing(visitors.service.catalogue.by_slug(now)) == set()
        assert cards_without_picture(visitors.address, now, 10) == set()


def running(url):
    database = Database(url)
    migrate.prepare(database)
    auth.set_password(database, "ann", PASSWORD)
    token = auth.make_token(database, "poll", ["read"], "ann")
    return database, token, service.Server(url, 2)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_hundred_studies_created_under_readers_lack_no_picture(kind, tmp_path, cluster, request):
    """By two workers in processes of their own, each of which is asked for every study while it is created."""
    url = cluster.database() if kind == "postgresql" else f"sqlite:///{tmp_path / 'h.db'}"
    database, token, server = running(url)
    now, lacking, seconds = "none", {}, []
    try:
        server.start()
        address = f"http://127.0.0.1:{server.port}"
        with signed_in(address) as client, polled(address, token, lambda: now) as counts:
            for number in range(CREATIONS):
                now = f"polled-{number}"
                began = time.monotonic()
                reply = send(client, now, 20, first=20 * number)
                seconds.append(time.monotonic() - began)
                assert reply.status_code == 303, reply.text
                # Each on a connection of its own, which either worker takes.
                bare = set().union(*(cards_without_picture(address, now, 10) for _ in range(3)))
                if bare:
                    lacking[now] = len(bare)
    finally:
        server.stop()
    tell = f"{kind}: {CREATIONS} creations of 20 pictures, {sum(counts)} reads; {len(lacking)} with pictures missing"
    sys.stdout.write(f"{tell}, median creation {np.median(seconds):.2f} s\n")
    assert lacking == {}
    assert sum(counts) > 5 * CREATIONS
    assert left_behind(database) == set()
    database.close()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_worker_that_is_killed_while_it_creates_a_study_leaves_nothing(kind, tmp_path, cluster):
    url = cluster.database() if kind == "postgresql" else f"sqlite:///{tmp_path / 'k.db'}"
    database, token, server = running(url)
    rng, made, killed = random.Random(1), [], 0
    try:
        server.start()
        address = f"http://127.0.0.1:{server.port}"
        with polled(address, token, lambda: f"killed-{len(made)}", 2):
            with signed_in(address) as client:
                began = time.monotonic()
                assert send(client, "whole", 20, (900, 700)).status_code == 303
                usual = time.monotonic() - began
            for number in range(20):
                slug = f"killed-{number}"
                pause = rng.uniform(0.2, 1.1) * usual
                with signed_in(address) as client:

                    def strike(pause=pause):
                        time.sleep(pause)
                        for pid in server.children():
                            with contextlib.suppress(ProcessLookupError):
                                os.kill(pid, signal.SIGKILL)

                    striker = threading.Thread(target=strike)
                    striker.start()
                    with contextlib.suppress(httpx.TransportError):
                        send(client, slug, 20, (900, 700), first=20 * (number + 1))
                    striker.join()
                server.ready()
                made.append(database.read(lambda c, slug=slug: studies.by_slug(c, slug)) is not None)
                killed += not made[-1]
                for row in database.read(studies.all_studies):
                    assert missing(Catalogue(database).by_slug(row.slug)) == set()
                assert left_behind(database) == set()
            whole = [f"killed-{number}" for number, there in enumerate(made) if there]
            for slug in ["whole", *whole]:
                assert cards_without_picture(address, slug, 10) == set()
    finally:
        server.stop()
    sys.stdout.write(f"{kind}: 20 kills of both workers, {killed} before the commit; nothing was left behind\n")
    assert killed > 3
    assert database.read(
        lambda c: c.execute(sa.select(sa.func.count()).select_from(studies_table)).scalar()
    ) == 1 + len(whole)
    assert database.read(lambda c: media.sizes(c, 1))
    database.close()


def test_texts_that_a_database_cannot_store_are_refused(tmp_path):
    plain = {"configuration": {"title": "T"}, "items": [{"id": k, "coordinates": [int(k)]} for k in "01"]}
    with served(tmp_path / "t.db") as visitors:
        token = auth.make_token(visitors.service.database, "t", ["write"], "test")
        program = visitors.browser(headers={"authorization": f"Bearer {token}"})

        def reply(**changes):
            return program.post("/api/v1/studies", json={**plain, **changes})

        assert reply().status_code == 201
        for settings in [{"title": "U\0"}, {"title": "U", "instructions": "\0"}]:
            refused = reply(configuration=settings)
            assert refused.status_code == 422
            field = [*settings][-1]
            assert f"'{field}' cannot be used: it contains the character NUL" in refused.json()["error"]["message"]
        changed = program.patch("/api/v1/studies/t", json={"debrief": "\0"})
        assert (changed.status_code, changed.json()["error"]["code"]) == (422, "invalid_parameter")
        for part in ("label", "text"):
            refused = reply(items=[{**item, part: "L\0"} for item in plain["items"]])
            assert refused.status_code == 422
            assert f"the {part} of item '0' cannot be used: it contains the" in refused.json()["error"]["message"]


BAD_IDS = {"a\0b": "it contains the character NUL", "x" * 201: "it has 201 characters"}


def with_id(bad, count=6):
    """Items, one of which has this id, as the rows of a file and as the records of the API."""
    points = np.random.default_rng(0).normal(size=(count, 2))
    names = [bad, *(f"i{k}" for k in range(1, count))]
    rows = [f"{name},{x},{y}" for name, (x, y) in zip(names, points.tolist(), strict=True)]
    records = [{"id": name, "coordinates": point} for name, point in zip(names, points.tolist(), strict=True)]
    return "\n".join(["id,x,y", *rows, ""]).encode(), records


@pytest.mark.parametrize("bad", BAD_IDS, ids=["NUL", "long"])
def test_ids_that_a_database_cannot_store_are_refused_wherever_items_come_in(bad, tmp_path):
    """Otherwise participants would be refused later, or a backup could not be restored into the other database."""
    words, (table, records) = BAD_IDS[bad], with_id(bad)
    fine = with_id("i0")[1]
    plain = configuration(slug="plain", answers=3)
    listed = configuration(slug="listed", answers=3)
    studies_ = [(plain, Items([one["coordinates"] for one in fine], [one["id"] for one in fine]))]
    studies_ += [(listed, Items(ids=["a", "b", "c", "d"]))]
    with served(tmp_path / "i.db", studies=studies_) as visitors:
        database = visitors.service.database
        auth.set_password(database, "ann", PASSWORD)
        ann = visitors.browser()
        ann.post("/login", data={"csrf": csrf_of(ann.get("/login")), "name": "ann", "password": PASSWORD})
        token = auth.make_token(database, "t", ["write"], "ann")
        program = visitors.browser(headers={"authorization": f"Bearer {token}"})
        form = csrf_of(ann.get("/studies/new"))
        names = b"id,label\n" + b"".join(row.split(b",")[0] + b",L\n" for row in table.splitlines()[1:])
        replies = {
            "form": ann.post("/studies/new", data={"csrf": form, "title": "T"}, files={"items": ("i.csv", table)}),
            "add": ann.post("/studies/listed/items", data={"csrf": form}, files={"items": ("i.csv", names)}),
            "create": program.post("/api/v1/studies", json={"configuration": {"title": "T"}, "items": records}),
            "replace": program.put("/api/v1/studies/plain/items", json={"items": records}),
        }
        assert {name: reply.status_code for name, reply in replies.items()} == dict.fromkeys(replies, 422)
        assert len(database.read(studies.all_studies)) == 2
    (tmp_path / "i.csv").write_bytes(table)
    (tmp_path / "i.yaml").write_text("title: T\nitems: i.csv\nanswers: 3\n")
    with pytest.raises(InvalidItems):
        from_file(tmp_path / "i.yaml")
    with pytest.raises(InvalidItems, match=words):
        study_items(Items(ids=[bad, "b"]), scaled=False)


def test_the_library_takes_any_id():
    for bad in BAD_IDS:
        assert Items(ids=[bad, "b"]).index(bad) == 0


def test_a_study_file_names_a_logo(database, tmp_path):
    (tmp_path / "i.csv").write_text("id\na\nb\nc\nd\n")
    (tmp_path / "logo.png").write_bytes(jpeg(1))
    (tmp_path / "i.yaml").write_text("title: T\nitems: i.csv\nanswers: 3\nlogo: logo.png\n")
    read = from_file(tmp_path / "i.yaml")
    create_study(database, read.configuration, read.items, is_open=True, who="t", files=read.files, logo=read.logo)
    study = Catalogue(database).by_slug("t")
    assert study.logo["width"] == 64
    assert not study.has_media
    (tmp_path / "i.yaml").write_text("title: T\nitems: i.csv\nanswers: 3\nlogo: none.png\n")
    with refused("logo"):
        from_file(tmp_path / "i.yaml")
    with pytest.raises(InvalidMedia):
        create_study(database, configuration(slug="pdf"), read.items, is_open=True, who="t", logo=b"%PDF-1.7")
