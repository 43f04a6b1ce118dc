"""Test service: a small study in its own database, and browsers that visit it."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time

import argon2
import httpx
import numpy as np
import pytest
import uvicorn

from pairseek.model.items import Items
from pairseek.store import people
from pairseek.web.access import auth
from pairseek.web.app import create_app
from pairseek.web.results import findings_keeper
from pairseek.web.results.findings_process import packed_findings
from pairseek.web.server import configuration_of
from pairseek.web.sessions.advance import Answer
from pairseek.web.settings import Settings
from pairseek.web.studies.configuration import configured
from pairseek.web.studies.creation import create_study

GUARD = {"X-Pairseek": "1"}
# Computed in the thread that would wait for a process, because a process takes seconds to start.
findings_keeper.findings_in_process = packed_findings


def some_items(n=40, d=2, seed=1):
    points = np.random.default_rng(seed).normal(size=(n, d))
    return Items(points, [f"i{k}" for k in range(n)], [f"Item {k}" for k in range(n)])


def configuration(**changes):
    settings = {
        "title": "Which one?",
        "slug": "which",
        "answers": 6,
        "seed": 7,
    }
    return configured(settings | changes)


def answer_to(query, outcome, rt_ms=None):
    return Answer(query=query, outcome=outcome, rt_ms=rt_ms)


@contextlib.contextmanager
def running(app, settings=None):
    """Serve the application on a free local port, in a thread, until the block ends; yield its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = configuration_of(settings or Settings(), app)
        config.timeout_graceful_shutdown = 2
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            until = time.monotonic() + 30
            while not server.started:
                assert thread.is_alive(), "the service did not start"
                assert time.monotonic() < until, "the service takes too long to start"
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=20)
            assert not thread.is_alive(), "the service did not stop"


@contextlib.contextmanager
def cheap_passwords():
    """Use cheap password hashes, for tests that create many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth, "_hasher", lambda: argon2.PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))
        auth._dummy_hash.cache_clear()
        yield
    auth._dummy_hash.cache_clear()


class Visitors:
    """Browsers at a service; ``service`` is the service object."""

    def __init__(self, address: str, app) -> None:
        self.address, self.service = address, app.state.service
        self._stack = contextlib.ExitStack()

    def browser(self, **options) -> httpx.Client:
        """Return a browser without cookies."""
        return self._stack.enter_context(httpx.Client(base_url=self.address, timeout=30, **options))


@contextlib.contextmanager
def served(database, *, studies=(), **settings):
    """Yield visitors of a running service with studies given as (configuration, items)."""
    prefetch = settings.get("prefetch", False)
    settings["prefetch"] = {True: "always", False: "never"}.get(prefetch, prefetch)
    chosen = Settings(database=str(database), **settings)
    app = create_app(chosen)
    with running(app, chosen) as address:
        visitors = Visitors(address, app)
        with visitors._stack:
            # The user who owns the tokens of tests.
            if "test" not in visitors.service.database.read(people.user_names):
                visitors.service.database.write(lambda c: people.set_password(c, "test", "no password", is_admin=True))
            for made, items in studies:
                create_study(visitors.service.database, made, items, is_open=True, who="test")
            yield visitors


def csrf_of(reply: httpx.Response) -> str:
    token = re.search(r"csrf(?:&#34;|&quot;|\")?(?:: (?:&quot;|&#34;|\")|\" value=\")([0-9a-f]{64})", reply.text)
    assert token, reply.text[:2000]
    return token[1]


def begin(client, slug="which", **ids):
    """Go through the start page; return the state of the new session."""
    page = client.get(f"/s/{slug}", params=ids)
    assert page.status_code == 200, page.text
    reply = client.post(f"/s/{slug}/start", data={"csrf": csrf_of(page)})
    assert reply.status_code == 303, reply.text
    return client.get(f"/s/{slug}/state").json()


def answer(client, state, outcome="left", slug="which", **more):
    body = {"query": state["query"]["query"], "outcome": outcome, "rt_ms": 800, **more}
    return client.post(f"/s/{slug}/answer", json=body, headers=GUARD)


def listening(path, seconds=120):
    """Return the address printed by a server, once it responds there."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(IndexError, httpx.TransportError):
            address = path.read_text().split("pairseek at ")[1].split()[0]
            if httpx.get(f"{address}/healthz", timeout=2).status_code == 200:
                return address
        time.sleep(0.2)
    raise AssertionError("the server did not open its port")
