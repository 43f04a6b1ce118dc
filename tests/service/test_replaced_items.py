"""Items of a running study that are replaced: sessions, answers, exports, learning and errors."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import threading

import numpy as np
import pytest

from helpers.refusals import refused_with
from helpers.serving import begin, csrf_of, served
from pairseek.client import Client, ServiceError
from pairseek.model.items import Items
from pairseek.store import meta
from pairseek.web.access.auth import make_token, set_password
from pairseek.web.learning import populations
from pairseek.web.results import bundle
from pairseek.web.results.findings import ranking_of
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies import replacement
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import items_changed

POINTS = np.random.default_rng(4).standard_normal((40, 2))


def items_of(rows, **changes):
    return [{"id": f"i{k}", "label": f"item {k}", "coordinates": POINTS[k].tolist(), **changes} for k in rows]


TODAY, TOMORROW = range(30), range(10, 40)


@contextlib.contextmanager
def service(database):
    with served(database) as visitors:
        scopes = ["read", "write", "answer", "delete"]
        visitors.client = Client(visitors.address, make_token(visitors.service.database, "test", scopes, "test"))
        visitors.client.create_study({"title": "Which", "answers": 8, "seed": 3}, items_of(TODAY))
        yield visitors


@pytest.fixture
def visitors(tmp_path):
    with service(tmp_path / "s.db") as visitors:
        yield visitors


def answered(session, count=8, prefer=0):
    """Answer some questions by the first coordinate; return the items that were shown."""
    shown, state = [], session.state()
    for _ in range(count):
        if state.pair is None:
            break
        pair = state.pair
        shown += [pair.left, pair.right]
        left, right = (prefer * POINTS[int(name[1:])][0] for name in (pair.left, pair.right))
        state = session.answer(pair, "left" if left >= right else "right")
    return shown


def test_sessions_keep_the_items_that_they_began_with(database_url, tmp_path):
    with service(database_url) as visitors:
        _sessions_keep_their_items(visitors, tmp_path)


def _sessions_keep_their_items(visitors, tmp_path):
    client, database = visitors.client, visitors.service.database
    first = client.study("which").catalogue
    before, finished = (client.open_session("which", participant=name, seed=5) for name in ("ann", "bob"))
    alone = answered(finished, prefer=1)
    answered(before, 3, prefer=1)
    replaced = client.replace_items("which", items_of(TOMORROW), catalogue=first)
    assert (replaced.items, replaced.catalogue == first) == (30, False)
    # The session goes on as the one that was finished before: same seed, same answers, same questions.
    again = answered(before, prefer=1)
    assert alone[6:] == again
    assert [item.id for item in before.recommend(5)] == [item.id for item in finished.recommend(5)]
    # A new session has the new items alone.
    after = client.open_session("which", participant="eve", seed=5)
    assert set(answered(after, prefer=1)) <= {f"i{k}" for k in TOMORROW}
    # Recommended from tomorrow's items; what was said of items that are gone counts.
    found = [item.id for item in before.recommend(30, catalogue=replaced.catalogue)]
    assert set(found) == {f"i{k}" for k in TOMORROW}
    best = np.mean([POINTS[int(name[1:])][0] for name in found[:5]])
    assert best > np.mean(POINTS[list(TOMORROW), 0])
    assert before.recommend(3, catalogue=first) == before.recommend(3)
    # A worker that knows none of it, as after a restart.
    fresh = Sessions(database, Catalogue(database))
    row = fresh.by_id(before.id)
    assert fresh.snapshot(row).state.parts.study_items.hash == first
    listed = client.catalogues("which")
    assert [(one.catalogue, one.items, one.sessions) for one in listed] == [(replaced.catalogue, 30, 1), (first, 30, 2)]
    assert listed[0].replaced_at is None
    assert listed[1].replaced_at is not None
    # Every answer is exported, with its items, and the replay of the bundle is exact.
    rows = list(csv.DictReader(io.StringIO(client.export("which", "answers").decode())))
    named = {row["id"] for row in csv.DictReader(io.StringIO(client.export("which", "items").decode()))}
    assert len(rows) == 24
    assert {row[side] for row in rows for side in ("left", "right")} <= named
    assert named == {f"i{k}" for k in range(40)}
    path = tmp_path / "which.zip"
    path.write_bytes(client.bundle("which"))
    replays = list(bundle.replayed(bundle.read(path)))
    assert [(replay.answers, replay.same) for replay in replays] == [(8, True)] * 3
    # Group findings rest on the answers about all items.
    ranking = ranking_of(database, Catalogue(database).by_slug("which"), everyone=True)
    assert {str(item.id) for item in ranking.items} == {f"i{k}" for k in range(40)}
    # And the study is deleted with all of its versions.
    assert client.delete_study("which")["sessions"] == 3


def test_pages_show_the_items_that_a_session_began_with(visitors):
    client, person = visitors.client, visitors.browser()
    state = begin(person)
    answer = {"outcome": "left", "rt_ms": 500}
    guard = {"X-Pairseek": "1"}
    for step in range(8):
        if step == 4:
            client.replace_items("which", items_of(range(20, 40), label="novelty"))
        body = answer | {"query": state["query"]["query"]}
        state = person.post("/s/which/answer", json=body, headers=guard).json()
    shown = person.get("/s/which/result")
    assert shown.status_code == 200
    assert "item " in shown.text
    assert "novelty" not in shown.text
    assert person.get("/s/which/mine").status_code == 200
    set_password(visitors.service.database, "ann", "a long password")
    browser = visitors.browser(headers={"accept": "text/html"}, follow_redirects=True)
    page = browser.get("/login")
    browser.post("/login", data={"csrf": csrf_of(page), "name": "ann", "password": "a long password"})
    study = browser.get("/studies/which")
    assert "replaced the items" in study.text
    session = re.search(r"/studies/which/people/([0-9a-f]{32})", study.text)[1]
    mine = browser.get(f"/studies/which/people/{session}")
    assert mine.status_code == 200
    assert "item " in mine.text
    assert browser.get("/studies/which/findings").status_code == 200


def test_what_is_learned_serves_the_newest_items(visitors, tmp_path):
    client, database = visitors.client, visitors.service.database
    for seed in range(3):
        answered(client.open_session("which", seed=seed), prefer=1)
    study = Catalogue(database).by_slug("which")
    version, first = populations.fit(database, study, "test")
    began = client.open_session("which", participant="ann", seed=9)
    answered(began, 2, prefer=1)
    client.replace_items("which", items_of(TOMORROW))
    # The population stays until the study learns again: items that remain keep their appeal, and others get one.
    after = client.open_session("which", seed=9)
    sessions = Sessions(database, Catalogue(database))
    row = sessions.by_id(after.id)
    assert row.population == version
    items = sessions.snapshot(row).state.parts.items
    assert items.ids == tuple(f"i{k}" for k in TOMORROW)
    assert items.appeal[:20].tolist() == first.items.appeal[10:].tolist()
    assert np.all(items.appeal[20:] != 0.0)
    answered(after, prefer=1)
    path = tmp_path / "which.zip"
    path.write_bytes(client.bundle("which"))
    assert all(replay.same for replay in bundle.replayed(bundle.read(path)))
    answered(began, prefer=1)
    study = Catalogue(database).by_slug("which")
    newer, learned = populations.fit(database, study, "test")
    assert newer > version
    assert learned.items.ids == study.items.ids
    assert Sessions(database, Catalogue(database)).by_id(client.open_session("which").id).population == newer
    # The learned appeal goes along to items of the other version.
    assert len(began.recommend(30, catalogue=study.items.hash)) == 30
    # Who is forgotten takes the population along; the session under way keeps its items.
    going = client.open_session("which", participant="bob", seed=2)
    answered(going, 2, prefer=1)
    assert client.forget("which", "ann")["populations"] == [newer]
    assert len(answered(going, prefer=1)) == 12


def test_replacing_is_idempotent_and_refused_in_words(visitors):
    client = visitors.client
    first = client.study("which").catalogue
    second = client.replace_items("which", items_of(TOMORROW), catalogue=first)
    # A request whose reply was lost is sent again.
    assert client.replace_items("which", items_of(TOMORROW), catalogue=first).catalogue == second.catalogue
    assert len(client.catalogues("which")) == 2
    moved = [{**item, "coordinates": [2.0 * x for x in item["coordinates"]]} for item in items_of(TOMORROW)]
    for given, catalogue, status, code, words in (
        (items_of(TODAY), first, 409, "other_catalogue", second.catalogue),
        (items_of(TODAY), "0" * 64, 409, "other_catalogue", "does not have the version"),
        (
            [{**item, "coordinates": item["coordinates"][:1]} for item in items_of(TODAY)],
            None,
            422,
            "invalid_items",
            "1 coordinates, but the items of the study",
        ),
        (items_of(TODAY, coordinates=[]), None, 422, "invalid_items", "0 coordinates, but the items of the study"),
        ([*items_of(TODAY), *items_of([3])], None, 422, "invalid_items", "i3"),
        (moved, None, 422, "invalid_items", "place old and new items with the same map"),
        (items_of([1]), None, 422, "invalid_request", "at least 2"),
        ([{**item, "weight": "1"} for item in items_of(TODAY)], None, 422, "invalid_request", "weight"),
        ([*items_of(TODAY), {"id": "bad", "coordinates": [1.0, float("nan")]}], None, 422, None, "bad|finite|JSON"),
        ([*items_of(TODAY), {"id": "bad", "coordinates": [1.0]}], None, 422, "invalid_items", "'bad' has 1 coordinate"),
    ):
        with pytest.raises(ServiceError, match=words) as refused:
            client.replace_items("which", given, catalogue=catalogue)
        assert refused.value.status == status
        assert code is None or refused.value.code == code, refused.value
    assert client.study("which").catalogue == second.catalogue
    with refused_with("not_found", ServiceError):
        client.replace_items("nothing", items_of(TODAY))
    reader = Client(visitors.address, make_token(visitors.service.database, "r", ["read"], "test"))
    large = items_of(TODAY, label="long " * 4000)
    for given in (items_of(TODAY), large):
        with refused_with("scope_missing", ServiceError):
            reader.replace_items("which", given)
    # A token of this study alone; a body of 600 kB, as catalogues are.
    number = Catalogue(visitors.service.database).by_slug("which").row.id
    own = Client(visitors.address, make_token(visitors.service.database, "o", ["write"], "test", study_id=number))
    assert own.replace_items("which", items_of(TODAY, label="long " * 4000)).items == 30


@pytest.mark.parametrize(
    ("settings", "items", "words"),
    [
        ({"kind": "similarity", "answers": 5}, items_of(TODAY, coordinates=[]), "have no coordinates"),
        ({"answers": 5}, items_of(TODAY, coordinates=[]), "have no coordinates"),
        ({"answers": 5, "scaled": True}, items_of(TODAY), "has the setting 'scaled'"),
        ({"answers": 5, "askable": ["i1", "i2"]}, items_of(TODAY), "i1"),
    ],
)
def test_studies_whose_items_cannot_be_replaced_say_why(visitors, settings, items, words):
    slug = visitors.client.create_study({"title": "Other", **settings}, items)
    with pytest.raises(ServiceError, match=words):
        visitors.client.replace_items(slug, items_of(TOMORROW))


def test_items_are_stored_in_the_background_once(visitors, monkeypatch):
    client, database = visitors.client, visitors.service.database
    store, may_store, calls = replacement._store, threading.Event(), []

    def slow(*arguments):
        calls.append(arguments)
        assert may_store.wait(30)
        store(*arguments)

    monkeypatch.setattr(replacement, "_store", slow)
    web = visitors.browser(headers={"Authorization": f"Bearer {client.token}"})
    body = {"items": items_of(TOMORROW)}
    began = web.put("/api/v1/studies/which/items", json=body)
    assert (began.status_code, began.json()["state"]) == (202, "running")
    # The reply was lost, and the client sends the request again.
    again = web.put("/api/v1/studies/which/items", json=body)
    assert again.json() == began.json()
    assert web.get(began.headers["location"]).json() == began.json()
    assert client.study("which").items == 30
    assert client.study("which").catalogue != began.json()["catalogue"]
    may_store.set()
    assert client.replace_items("which", body["items"]).catalogue == began.json()["catalogue"]
    assert web.get(began.headers["location"]).json()["state"] == "done"
    assert len(calls) == 1
    # What happens in the background is reported as if it were in the reply.
    monkeypatch.setattr(replacement, "_store", lambda *_: (_ for _ in ()).throw(items_changed("which")))
    with refused_with("items_changed", ServiceError) as refused:
        client.replace_items("which", items_of(TODAY))
    assert refused.value.status == 409
    # An unexpected error and the death of a worker end a replacement as well.
    monkeypatch.setattr(replacement, "_store", lambda *_: 1 / 0)
    with refused_with("internal_error", ServiceError):
        client.replace_items("which", items_of(TODAY))
    key = replacement._key(Catalogue(database).by_slug("which").row.id, began.json()["replacement"])
    died = began.json() | {"at": "2020-01-01T00:00:00+00:00"}
    database.write(lambda connection: meta.put(connection, key, json.dumps(died)))
    assert web.get(began.headers["location"]).json()["error"]["code"] == "interrupted"
    monkeypatch.setattr(replacement, "_store", store)
    client.replace_items("which", items_of(TODAY))
    assert web.get(began.headers["location"]).status_code == 404


def test_catalogues_without_sessions_are_deleted_after_a_day(visitors, monkeypatch):
    monkeypatch.setattr(replacement, "_UNUSED_AGE", -replacement._UNUSED_AGE)
    client = visitors.client
    client.replace_items("which", items_of(range(5, 35)))
    session = client.open_session("which", seed=1)
    client.replace_items("which", items_of(TOMORROW))
    client.replace_items("which", items_of(TODAY))
    assert [catalogue.sessions for catalogue in client.catalogues("which")] == [0, 1]
    assert session.state().pair is not None


def test_items_of_both_versions_have_their_pictures():
    from pairseek.web.studies.replacement import _with_files_of

    known = Items(
        [[0.0], [1.0], [2.0]], ["a", "b", "c"], data={"image": ["x.png", "", "z.png"], "colour": ["", "", ""]}
    )
    with_files = _with_files_of(known, Items([[2.0], [3.0]], ["c", "d"]))
    assert with_files.data["image"] == ("z.png", "")
    assert "colour" not in with_files.data
