"""Request bodies with items: read outside the event loop, refused early, and described for clients."""

from __future__ import annotations

import io
import json
import threading
import tracemalloc

import httpx
import pytest
from fastapi.exceptions import RequestValidationError

from helpers.serving import served
from pairseek.errors import InvalidItems
from pairseek.web.access.auth import make_token
from pairseek.web.routes import item_bodies
from pairseek.web.routes.item_bodies import read_body
from pairseek.web.studies.configuration import MAX_ITEMS


def body(items: str, rest: str = '"configuration": {"title": "T"}') -> bytes:
    return f'{{{rest}, "items": [{items}]}}'.encode()


def read(content: bytes):
    return read_body(io.BytesIO(content))


def test_items_become_columns():
    sent = '{"id": "a", "coordinates": [0, 1], "text": "x"}, {"id": "b", "coordinates": [1, 2.5], "label": "B"}'
    items = read(body(sent))["items"].items(placed=True)
    assert items.coordinates.tolist() == [[0, 1], [1, 2.5]]
    assert (items.labels, items.data["text"]) == (("a", "B"), ("x", ""))
    assert read(body(sent))["items"].items(placed=False).d == 0


def test_an_item_with_another_number_of_coordinates_is_named():
    sent = read(body('{"id": "a", "coordinates": [0, 1]}, {"id": "b"}, {"id": "c", "coordinates": [0]}'))
    with pytest.raises(InvalidItems, match="'b'"):
        sent["items"].items(placed=True)


@pytest.mark.parametrize("wrong", ["[]", '{"id": 1}', '{"id": "c", "size": "x"}', '{"id": "c", "appeal": "x"}'])
def test_reading_ends_at_the_first_invalid_item(wrong):
    sent = body('{"id": "a"}, {"id": "b"},' + f"{wrong}," * 1_000_000 + wrong)
    tracemalloc.start()
    try:
        with pytest.raises(RequestValidationError) as caught:
            read(sent)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert caught.value.errors()[0]["loc"][:3] == ("body", "items", 2)


def test_too_many_items_are_refused_after_the_last_that_a_study_takes():
    with pytest.raises(InvalidItems, match=f"{MAX_ITEMS:,} items"):
        read(body('{"id": "a"},' * (MAX_ITEMS + 1) + "no JSON"))


HALF = '"a",' * 600_000 + '"a"'


@pytest.mark.parametrize(
    "settings",
    [
        '"configuration": {"askable": [' + '"a",' * 2_000_000 + '"a"]}',
        f'"configuration": [{HALF}], "catalogue": [{HALF}]',
    ],
    ids=["one", "together"],
)
def test_settings_are_limited_in_length(settings):
    with pytest.raises(json.JSONDecodeError):
        read(body('{"id": "a"}', settings))


@pytest.mark.parametrize(
    "settings",
    [
        '"configuration": {"title": "T"}, "configuration": {"title": "U"}',
        ", ".join(f'"m{k}": 1' for k in range(20)),
        '"configuration": {' + ", ".join(f'"k{k}": 1' for k in range(2000)) + "}",
        '"items": [{"id": "a"}]',
    ],
    ids=["twice", "names", "settings", "items"],
)
def test_names_are_limited_in_number(settings):
    with pytest.raises(json.JSONDecodeError):
        read(body('{"id": "a"}', settings))


def test_others_are_served_while_a_body_is_read_and_a_study_is_created(tmp_path, monkeypatch):
    reading, done = threading.Event(), threading.Event()
    read = item_bodies.read_body

    def slowly(content):
        reading.set()
        assert done.wait(30)
        return read(content)

    monkeypatch.setattr(item_bodies, "read_body", slowly)
    with served(tmp_path / "s.db") as visitors:
        token = make_token(visitors.service.database, "t", ["write"], "test")
        replies = []
        content = body('{"id": "a", "coordinates": [0]}, {"id": "b", "coordinates": [1]}')

        def send():
            headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
            address = f"{visitors.address}/api/v1/studies"
            replies.append(httpx.post(address, content=content, headers=headers, timeout=30))

        thread = threading.Thread(target=send)
        thread.start()
        try:
            assert reading.wait(30)
            assert visitors.browser().get("/healthz").status_code == 200
        finally:
            done.set()
            thread.join()
        assert replies[0].status_code == 201, replies[0].text


def test_a_long_body_is_kept_in_a_file_while_it_arrives(tmp_path):
    def sent():
        yield b'{"unknown": ["'
        for _ in range(300):
            yield b"x" * 100_000
        yield b'"]}'

    with served(tmp_path / "s.db") as visitors:
        token = make_token(visitors.service.database, "t", ["write"], "test")
        headers = {"authorization": f"Bearer {token}"}
        browser = visitors.browser(headers=headers)
        for kind in ("application/json", "text/plain"):
            tracemalloc.start()
            try:
                reply = browser.post("/api/v1/studies", content=sent(), headers={"content-type": kind})
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert reply.json()["error"]["code"] == "invalid_request"
            assert peak < 15_000_000


def test_errors_name_their_place_in_the_body(tmp_path):
    with served(tmp_path / "s.db") as visitors:
        token = make_token(visitors.service.database, "t", ["write"], "test")
        browser = visitors.browser(headers={"authorization": f"Bearer {token}", "content-type": "application/json"})

        def error(content):
            reply = browser.post("/api/v1/studies", content=content)
            assert reply.status_code == 422, reply.text
            return reply.json()["error"]["message"]

        assert error(body('{"id": "a"}, {"id": ""}')).startswith("items.1.id: ")
        assert error(body('{"id": "a"}')).startswith("items: ")
        assert error(b'{"configuration": {}, "items": 3}').startswith("items: ")
        assert error(b'{"configuration": {}}').startswith("items: ")
        assert error(b"[]").startswith("the body: ")
        assert (
            browser.post("/api/v1/studies", content=b'{"configuration": ').json()["error"]["code"] == "invalid_request"
        )
        described = browser.get("/openapi.json").json()["components"]["schemas"]
        items = described["NewStudy"]["properties"]["items"]
        assert (items["minItems"], items["maxItems"]) == (2, MAX_ITEMS)
        assert items["items"] == {"$ref": "#/components/schemas/NewItem"}
        assert "text" in described["NewItem"]["properties"]
