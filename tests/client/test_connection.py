"""Retries and redirects of the client, for replies that a proxy or another server might send."""

from __future__ import annotations

import contextlib
import http.server
import io
import threading
import time
import urllib.error
import urllib.request
from email.message import Message

import pytest

from pairseek import client


@pytest.mark.parametrize(("retry_after", "pause"), [("3", 3.0), ("60", 10.0), ("²", 0.2), ("soon", 0.2), (None, 0.2)])
def test_the_client_waits_as_long_as_the_service_asks_and_no_longer_than_ten_seconds(retry_after, pause, monkeypatch):
    replies, pauses = [429, 200], []

    def opened(_, request, timeout):
        headers = Message()
        if retry_after is not None:
            headers["Retry-After"] = retry_after
        if replies.pop(0) == 429:
            raise urllib.error.HTTPError(request.full_url, 429, "Too Many Requests", headers, io.BytesIO(b"{}"))
        return io.BytesIO(b"[]")

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", opened)
    monkeypatch.setattr(client.connection, "sleep", pauses.append)
    assert client.Client("http://127.0.0.1:1", "token").studies() == []
    assert pauses == [pause]


class Redirecting(http.server.BaseHTTPRequestHandler):
    """Server that redirects its first path to ``target``, and notes the tokens that it gets elsewhere."""

    target, tokens = "", []

    def do_GET(self):
        if self.path == "/api/v1/studies" and self.target:
            self.send_response(307)
            self.send_header("Location", self.target)
            self.end_headers()
            return
        type(self).tokens = [*self.tokens, self.headers.get("Authorization")]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[]")

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def redirecting(target=""):
    kind = type("Kind", (Redirecting,), {"target": target, "tokens": []})
    with http.server.HTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", kind
        finally:
            server.shutdown()
            thread.join()


def test_a_redirect_to_another_origin_does_not_get_the_token():
    with redirecting() as (other, kind), redirecting(f"{other}/api/v1/studies") as (address, _):
        with pytest.raises(client.ServiceError, match=f"redirects to {other}, which did not get the token") as raised:
            client.Client(address, "psk_secret").studies()
        assert raised.value.code == "redirected"
        assert kind.tokens == []


def test_a_redirect_within_the_service_is_followed():
    with redirecting("/elsewhere") as (address, kind):
        assert client.Client(address, "psk_secret").studies() == []
        assert kind.tokens == ["Bearer psk_secret"]


class Slow(http.server.BaseHTTPRequestHandler):
    """Server that counts requests and replies late."""

    count = 0

    def do_GET(self):
        type(self).count += 1
        time.sleep(0.5)

    def log_message(self, *_):
        pass


def test_the_client_does_not_repeat_what_the_service_is_still_doing(monkeypatch):
    kind = type("Kind", (Slow,), {})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        address = f"http://127.0.0.1:{server.server_port}"
        try:
            with pytest.raises(client.ServiceError, match=r"did not reply within 0\.1 s") as raised:
                client.Client(address, "token", seconds=0.1).studies()
        finally:
            server.shutdown()
    assert (raised.value.code, kind.count) == ("timed_out", 1)

    def opened(_, request, timeout):
        raise urllib.error.HTTPError(request.full_url, 504, "Gateway Timeout", Message(), io.BytesIO(b"{}"))

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", opened)
    monkeypatch.setattr(client.connection, "sleep", pytest.fail)
    with pytest.raises(client.ServiceError) as raised:
        client.Client("http://127.0.0.1:1", "token").studies()
    assert raised.value.status == 504
