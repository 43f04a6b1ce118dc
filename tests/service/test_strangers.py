"""What a stranger, or a participant who is not content with their own session, tries, and does not get."""

import base64
import json
import socket
import time

import pytest

from helpers.serving import GUARD, begin, configuration, csrf_of, served, some_items
from pairseek.errors import InvalidItems
from pairseek.model.items import Items
from pairseek.store import sessions
from pairseek.web.access.auth import make_token, set_password
from pairseek.web.studies.creation import set_open
from pairseek.web.studies.items import study_items

PASSWORD = "a long password"


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    studies = [(configuration(), some_items()), (configuration(slug="shut"), some_items())]
    with served(tmp_path_factory.mktemp("s") / "s.db", studies=studies, trusted_proxies="127.0.0.1") as visitors:
        set_password(visitors.service.database, "ann", PASSWORD)
        yield visitors


def exchange(address, head, body=b""):
    """What a server says to raw bytes, and after how long."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as wire:
        wire.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        began = time.monotonic()
        reply = b""
        while b"\r\n\r\n" not in reply or b"}" not in reply:
            piece = wire.recv(65536)
            if not piece:
                break
            reply += piece
    return reply.decode(), time.monotonic() - began


@pytest.mark.parametrize("content", [{"participant": "eve", "x": 1}, [1, 2, 3, 4, 5, 6, 7], "a text of some length"])
def test_a_forms_token_does_not_sign_an_identity(visitors, content):
    # The page signs whatever the browser says its nonce is; that signature must be good for forms alone.
    forged = base64.urlsafe_b64encode(json.dumps(content).encode()).decode()
    assert 20 <= len(forged) <= 64
    browser = visitors.browser()
    browser.cookies.set("pairseek_form", forged)
    mark = csrf_of(browser.get("/s/which"))
    browser.cookies.set("pairseek_who_which", f"{forged}.{mark}", path="/s/which")
    reply = browser.post("/s/which/start", data={"csrf": mark})
    assert reply.status_code == 303
    assert browser.get("/s/which/mine").json()["ids"]["participant"] is None


def test_a_closed_study_takes_nothing_not_even_a_loss_of_focus(visitors):
    browser = visitors.browser()
    begin(browser, "shut")
    database = visitors.service.database
    set_open(database, visitors.service.catalogue.row("shut"), is_open=False, who="test")
    session = browser.get("/s/shut/mine").json()["session"]
    lost = {"query": "p1", "lost_at": "2026-01-01T00:00:00.000Z", "ms": 5}
    for path, body in (("answer", {"query": "p1", "outcome": "left"}), ("undo", {"query": "p1"}), ("focus", lost)):
        reply = browser.post(f"/s/shut/{path}", json=body, headers=GUARD)
        assert (reply.status_code, reply.json()["error"]["code"]) == (409, "study_closed"), path
    assert database.read(lambda connection: sessions.blurs_of(connection, [session])) == []


def test_a_large_body_is_not_read_from_someone_who_may_not_send_it(visitors):
    reader = make_token(visitors.service.database, "reader", ["read"], "test")
    for token, code in (
        ("", "token_missing"),
        ("Authorization: Bearer x\n", "token_unknown"),
        (f"Authorization: Bearer {reader}\n", "scope_missing"),
    ):
        head = (
            f"POST /api/v1/studies HTTP/1.1\nHost: x\n{token}Content-Type: application/json\nContent-Length: 100000000"
        )
        reply, seconds = exchange(visitors.address, head, b'{"configuration":')
        assert code in reply
        assert seconds < 5, "it waited for the rest of the body"


def test_more_than_any_upload_may_have_is_refused_before_it_is_sent(visitors):
    writer = make_token(visitors.service.database, "writer", ["write"], "test")
    head = f"POST /api/v1/studies HTTP/1.1\nHost: x\nAuthorization: Bearer {writer}\nContent-Length: 1000000000"
    reply, seconds = exchange(visitors.address, head)
    assert "413" in reply.splitlines()[0]
    assert "larger than 200,000,000 bytes" in reply
    assert seconds < 5
    reply, _ = exchange(visitors.address, "POST /s/which/answer HTTP/1.1\nHost: x\nContent-Length: 100000000")
    assert "larger than 256,000 bytes" in reply


def test_a_form_of_too_many_parts_and_a_body_that_is_no_json_are_said(visitors):
    browser = visitors.browser(headers={"accept": "text/html"})
    page = browser.get("/login")
    browser.post("/login", data={"csrf": csrf_of(page), "name": "ann", "password": PASSWORD})
    many = [("images", (f"{k}.png", b"x")) for k in range(10_060)]
    reply = browser.post("/studies/new", data={"csrf": csrf_of(browser.get("/studies/new"))}, files=many)
    assert reply.status_code == 422
    assert "at most 10,000 files" in reply.text
    writer = make_token(visitors.service.database, "writer", ["write"], "test")
    headers = {"Authorization": f"Bearer {writer}", "Content-Type": "application/json"}
    deep = visitors.browser().post("/api/v1/studies", content=b"[" * 200_000, headers=headers)
    assert (deep.status_code, deep.json()["error"]["code"]) == (422, "invalid_request")


def sign_in(visitors, address, password):
    browser = visitors.browser(headers={"accept": "text/html", "x-forwarded-for": address})
    page = browser.get("/login")
    return browser.post("/login", data={"csrf": csrf_of(page), "name": "ann", "password": password})


def test_a_stranger_who_fails_in_somebodys_name_does_not_keep_them_out(visitors):
    replies = [sign_in(visitors, "203.0.113.9", "wrong") for _ in range(11)]
    assert [reply.status_code for reply in replies] == [401] * 10 + [429]
    assert int(replies[-1].headers["retry-after"]) == 900
    assert sign_in(visitors, "203.0.113.9", PASSWORD).status_code == 429
    assert sign_in(visitors, "198.51.100.4", PASSWORD).status_code == 303


@pytest.mark.parametrize(
    ("came", "back"),
    [
        ("{}/s/which?PROLIFIC_PID=a&x=%22%3E", 'href="/s/which?PROLIFIC_PID=a&amp;x=%22%3E"'),
        ("https://evil.example/s/which", None),
        ("{}//evil.example", None),
        ("", None),
    ],
)
def test_a_page_that_says_no_leads_back_to_where_one_was_and_nowhere_else(visitors, came, back):
    browser = visitors.browser(headers={"accept": "text/html", "referer": came.format(visitors.address)})
    page = browser.post("/s/which/start", data={"csrf": "0" * 64})
    assert page.status_code == 403
    assert ("Go back" in page.text) == (back is not None)
    assert back is None or back in page.text
    assert "evil" not in page.text


def test_who_has_to_sign_in_is_not_led_away_by_a_false_host(visitors):
    browser = visitors.browser(headers={"accept": "text/html", "host": "evil.example"})
    assert browser.get("/studies/which").headers["location"] == "/login?next=%2Fstudies%2Fwhich"


@pytest.mark.parametrize("address", ["http://media.example/a.wav", "//media.example/a.wav", "javascript:alert(1)"])
def test_a_sound_that_the_content_policy_would_stop_is_refused_when_the_study_is_made(address):
    items = Items([[0.0], [1.0]], ["a", "b"], data={"audio": ["https://media.example/a.wav", address]})
    with pytest.raises(InvalidItems):
        study_items(items, scaled=False)
