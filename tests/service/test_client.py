"""Retries of `pairseek.client`, against replies that a proxy might send."""

from __future__ import annotations

import io
import urllib.error
import urllib.request
from email.message import Message

import pytest

from pairseek import client


@pytest.mark.parametrize(("retry_after", "pause"), [("3", 3.0), ("60", 10.0), ("²", 0.2), ("soon", 0.2), (None, 0.2)])
def test_the_client_waits_as_long_as_the_service_asks_and_no_longer_than_ten_seconds(retry_after, pause, monkeypatch):
    replies, pauses = [429, 200], []

    def urlopen(request, timeout):
        headers = Message()
        if retry_after is not None:
            headers["Retry-After"] = retry_after
        if replies.pop(0) == 429:
            raise urllib.error.HTTPError(request.full_url, 429, "Too Many Requests", headers, io.BytesIO(b"{}"))
        return io.BytesIO(b"[]")

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    monkeypatch.setattr(client, "sleep", pauses.append)
    assert client.Client("http://127.0.0.1:1", "token").studies() == []
    assert pauses == [pause]
