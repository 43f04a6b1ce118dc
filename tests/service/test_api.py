"""The HTTP API by its own client, and what it refuses."""

import csv
import io
import json
import re
import zipfile

import numpy as np
import pytest

from helpers.searches import search_of
from helpers.serving import configuration, served, some_items
from pairseek.client import Client, ServiceError
from pairseek.web.access.auth import make_token

ITEMS = some_items()
RECORDS = [
    {"id": str(name), "coordinates": point.tolist()} for name, point in zip(ITEMS.ids, ITEMS.coordinates, strict=True)
]
SETTINGS = {"title": "Over HTTP", "answers": 4, "seed": 3}


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    with served(tmp_path_factory.mktemp("api") / "a.db", studies=[(configuration(), ITEMS)], prefetch=True) as visitors:
        yield visitors


@pytest.fixture(scope="module")
def client(visitors):
    return client_with(visitors, ["read", "write", "answer"])


def client_with(visitors, scopes, study=None):
    number = None if study is None else visitors.service.catalogue.by_slug(study).row.id
    return Client(visitors.address, make_token(visitors.service.database, "test", scopes, "test", number))


def refusal(function):
    with pytest.raises(ServiceError) as caught:
        function()
    return caught.value.status, caught.value.code


def test_a_study_is_made_answered_and_exported(client):
    slug = client.create_study(SETTINGS, RECORDS)
    assert slug in [study["slug"] for study in client.studies()]
    session = client.open_session(slug, participant="ann", seed=5)
    state, search = session.state(), search_of(configuration(**SETTINGS).resolved(ITEMS), 5)
    while state.pair is not None:
        query = search.ask()
        assert (state.pair.left, state.pair.right) == (query.left, query.right)
        search.tell(query, winner=query.right)
        state = session.answer(state.pair, "right", rt_ms=900)
    assert state.status == "finished"
    assert np.array_equal(session.estimate().point, search.estimate().point)
    assert [item.id for item in session.recommend(3)] == [item.id for item in search.recommend(3)]
    rows = list(csv.DictReader(io.StringIO(client.export(slug, "answers").decode())))
    assert [row["outcome"] for row in rows] == ["right"] * 4
    assert {row["participant"] for row in rows} == {"ann"}
    assert [float(rows[-1][f"x{i}"]) for i in range(2)] == search.estimate().point.tolist()
    with zipfile.ZipFile(io.BytesIO(client.bundle(slug))) as archive:
        assert {"answers.csv", "answers.parquet", "codebook.csv", "study.json", "sessions.jsonl"} <= set(
            archive.namelist()
        )


def test_an_answer_again_is_harmless_another_a_conflict_and_undo_opens_it(client):
    session = client.open_session("which")
    pair = session.state().pair
    after = session.answer(pair, "left")
    assert session.answer(pair, "left") == after
    assert refusal(lambda: session.answer(pair, "right")) == (409, "answer_conflict")
    back = session.undo(pair.query)
    assert (back.pair.left, back.pair.query) == (pair.left, "p1-2")
    assert refusal(lambda: session.answer("p9", "left")) == (404, "unknown_query")


def test_a_session_is_open_to_its_own_token_and_to_those_that_may_answer(visitors, client):
    mine, other = client.open_session("which"), client.open_session("which")
    stranger = client.session(other.id, mine.token)
    assert refusal(stranger.state) == (403, "other_session")
    assert refusal(client.session(other.id, "nonsense").state) == (401, "token_unknown")
    assert client.session(other.id, client.token).state().status == "asking"
    assert refusal(client.session(other.id, client_with(visitors, ["read"]).token).state) == (403, "scope_missing")
    # A session's token is no token for programs.
    assert refusal(Client(visitors.address, mine.token).studies) == (401, "token_unknown")


def test_a_token_reaches_as_far_as_its_scopes_and_its_study(visitors, client):
    slug = client.create_study(SETTINGS | {"slug": "another"}, RECORDS)
    reader = client_with(visitors, ["read"])
    assert refusal(lambda: reader.create_study(SETTINGS, RECORDS)) == (403, "scope_missing")
    assert refusal(lambda: reader.set_open(slug, is_open=False)) == (403, "scope_missing")
    assert refusal(lambda: reader.open_session(slug)) == (403, "scope_missing")
    bound = client_with(visitors, ["read", "write", "answer"], study="which")
    assert [study["slug"] for study in bound.studies()] == ["which"]
    assert refusal(lambda: bound.export(slug, "answers")) == (403, "other_study")
    assert refusal(lambda: bound.open_session(slug)) == (403, "other_study")
    assert refusal(lambda: bound.create_study(SETTINGS | {"slug": "third"}, RECORDS)) == (403, "other_study")
    elsewhere = client.open_session(slug)
    assert refusal(bound.session(elsewhere.id, bound.token).state) == (403, "other_study")


def test_a_closed_study_takes_neither_answers_nor_sessions_until_it_is_reopened(client):
    slug = client.create_study(SETTINGS | {"slug": "shut"}, RECORDS)
    session = client.open_session(slug)
    pair = session.state().pair
    client.set_open(slug, is_open=False)
    assert session.state().status == "closed"
    assert refusal(lambda: session.answer(pair, "left")) == (409, "study_closed")
    assert refusal(lambda: client.open_session(slug)) == (409, "study_closed")
    client.set_open(slug, is_open=True)
    assert session.answer(pair, "left").answered == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"strategy": "infogian"}, "unknown strategy 'infogian'.*did you mean 'infogain'"),
        ({"colour": "red"}, "there is no setting 'colour'"),
        ({"answers": 0}, "the setting 'answers' is 0: input should be greater"),
        ({"title": None}, "the setting 'title' is None"),
        ({"repeated": 0.9}, "the setting 'repeated' is 0.9"),
        ({"answers": None}, "would never end"),
        ({"completion": {"address": "javascript:alert(1)"}}, "begins with https"),
        ({"attention": {"pairs": [{"left": "i0", "right": "zzz", "answer": "i0"}]}}, "names 'zzz'"),
        ({"slug": "Not A Slug"}, "is not valid in a link"),
        ({"posterior": {"name": "particles", "n": 10**9}}, "the maximum is 20,000"),
        ({"posterior": {"name": "ep", "points": 10**9}}, "the maximum is 50,000"),
        ({"posterior": {"name": "particles", "n": "many"}}, "n of Particles is 'many': give a whole number"),
        ({"strategy": "gausscloud"}, "do not fit together"),
        ({"language": "xx"}, "expected one of en, de"),
    ],
)
def test_a_wrong_setting_is_named(client, changes, words):
    with pytest.raises(ServiceError, match=words) as caught:
        client.create_study(SETTINGS | {"slug": "wrong"} | changes, RECORDS)
    assert caught.value.status == 422


def test_items_that_cannot_be_used_are_named(client):
    for records, words in (
        (RECORDS[:1], "at least 2"),
        ([*RECORDS[:2], RECORDS[0]], "the same id 'i0'"),
        ([RECORDS[0], {"id": "x", "coordinates": [1.0]}], "'x' has 1 coordinate and 'i0' has 2"),
        ([RECORDS[0], RECORDS[1] | {"colour": "red"}], "write it as #rrggbb"),
        ([RECORDS[0], RECORDS[1] | {"audio": "javascript:x"}], "give an address"),
    ):
        with pytest.raises(ServiceError, match=words) as caught:
            client.create_study(SETTINGS | {"slug": "wrong"}, records)
        assert caught.value.status == 422


def test_a_name_that_is_taken_and_one_that_is_not_there(client):
    assert refusal(lambda: client.create_study(SETTINGS | {"slug": "which"}, RECORDS)) == (409, "slug_taken")
    assert refusal(lambda: client.open_session("nowhere")) == (404, "not_found")
    assert refusal(lambda: client.export("which", "secrets")) == (422, "invalid_request")


@pytest.mark.parametrize("path", ["/api/v1/studies", "/api/v1/studies/which/sessions"])
def test_a_body_that_is_not_json_is_said_with_the_place(visitors, client, path):
    reply = visitors.browser().post(
        path,
        content=b'{"participant": nobody}',
        headers={"Authorization": f"Bearer {client.token}", "Content-Type": "application/json"},
    )
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid_request")
    assert re.fullmatch(r"the body is not JSON: .+, at character \d+", reply.json()["error"]["message"])


def test_an_error_has_one_shape_everywhere(visitors):
    browser = visitors.browser()
    for method, path in (
        ("GET", "/nowhere"),
        ("GET", "/api/v1/studies"),
        ("GET", "/s/nowhere"),
        ("POST", "/s/which/answer"),
        ("DELETE", "/api/v1/studies"),
        ("GET", "/api/v1/sessions/none/query"),
    ):
        reply = browser.request(method, path)
        assert reply.status_code >= 400, path
        assert set(reply.json()["error"]) == {"code", "message", "received", "hint"}, path
        assert reply.json()["error"]["hint"], path


def test_a_body_that_is_too_large_is_refused_announced_or_not(visitors):
    browser = visitors.browser()
    announced = browser.post("/s/which/answer", content=b"x" * 300_000)
    assert (announced.status_code, announced.json()["error"]["code"]) == (413, "too_large")
    unannounced = browser.post(
        "/api/v1/sessions/none/answers",
        content=(b"x" * 50_000 for _ in range(10)),
        headers={"Authorization": "Bearer x", "Content-Type": "application/json"},
    )
    assert (unannounced.status_code, unannounced.json()["error"]["code"]) == (413, "too_large")


def test_the_client_says_when_nobody_answers():
    assert refusal(Client("http://127.0.0.1:9", "t", seconds=1).studies) == (0, "unreachable")


def test_the_description_names_every_route_and_the_shape_of_errors(visitors):
    described = json.loads(visitors.browser().get("/openapi.json").text)
    assert "/api/v1/sessions/{session_id}/answers" in described["paths"]
    for path, methods in described["paths"].items():
        assert path.startswith("/api/v1/")
        for operation in methods.values():
            assert operation["responses"]["422"]["content"]["application/json"]["schema"]["$ref"].endswith("ErrorReply")
