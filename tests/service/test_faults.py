"""What breaks around the service, and what must not: killed processes, a full disk, a read-only database."""

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from helpers.proxy import Proxy
from helpers.serving import answer, answer_to, begin, configuration, served, some_items
from pairseek.store import migrate
from pairseek.store.database import Database
from pairseek.web.operations import readiness
from pairseek.web.studies.configuration import configured
from pairseek.web.studies.creation import create_study

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import service


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        pytest.param("worker", 2, marks=pytest.mark.long),
        ("server", 1),
        pytest.param("database", 2, marks=pytest.mark.long),
    ],
)
def test_every_acknowledged_answer_survives_a_kill_under_load(kind, kills, tmp_path, cluster):
    url = cluster.database() if kind == "database" else f"sqlite:///{tmp_path / 'load.db'}"
    database = Database(url)
    migrate.prepare(database)
    create_study(database, configured(service.settings(1000)), service.catalogue(200), is_open=True, who="test")
    database.close()
    server, log = service.Server(url, 2), []
    try:
        began = time.monotonic()
        server.start()
        # Long enough for the restarts, also on a machine that is busy with other work.
        seconds = max(5.0, (kills + 2) * (time.monotonic() - began))
        disturb = service.disturber(kind, server, cluster, kills, log)
        # In a thread of its own: a browser that another test has open keeps this one's event loop.
        with ThreadPoolExecutor(1) as apart:
            measured = apart.submit(lambda: asyncio.run(service.drive(server.port, 6, seconds, 0.3, disturb))).result()
    finally:
        server.stop()
    assert len(log) == kills
    assert len(measured.replies) > 5  # of about a hundred on a machine that does nothing else
    assert measured.wrong == []
    # What was refused was refused with a reason that says to try again; nothing else went wrong.
    assert all(error.startswith("503") for error in measured.errors), measured.errors
    assert "all stored once" in service.check(url, measured)


def two_servers_and_kills(url, kills, people, seconds, pace):
    """Two servers behind a round-robin proxy, of which one is killed; what people measured."""
    database = Database(url)
    migrate.prepare(database)
    create_study(database, configured(service.settings(1000)), service.catalogue(200), is_open=True, who="test")
    database.close()
    servers, log = [service.Server(url, 1) for _ in range(2)], []
    try:
        began = time.monotonic()
        for server in servers:
            server.start()
        seconds = max(seconds, (kills + 2) * (time.monotonic() - began) / 2)
        with Proxy([server.port for server in servers]) as proxy, ThreadPoolExecutor(1) as apart:
            disturb = service.disturber("one", servers[0], None, kills, log)
            driven = service.drive(proxy.port, people, seconds, pace, disturb)
            measured = apart.submit(lambda: asyncio.run(driven)).result()
            assert min(proxy.sent.values()) > 5
    finally:
        for server in servers:
            server.stop()
    assert len(log) == kills
    assert measured.wrong == []
    # What the dead server was asked is refused by the proxy, and sent again.
    assert all(error.startswith(("502", "503")) for error in measured.errors), measured.errors
    assert "all stored once" in service.check(url, measured)
    return measured


@pytest.mark.long
def test_one_of_two_servers_behind_a_proxy_is_killed_and_nothing_is_lost(cluster):
    assert len(two_servers_and_kills(cluster.database(), 1, 6, 5.0, 0.3).replies) > 5


@pytest.mark.long
def test_one_of_two_servers_behind_a_proxy_is_killed_ten_times_under_load(cluster):
    assert len(two_servers_and_kills(cluster.database(), 10, 20, 60.0, 1.0).replies) > 100


@pytest.mark.parametrize(
    ("kind", "statement", "words"),
    [
        ("sqlite", "PRAGMA max_page_count=1", "full"),
        ("sqlite", "PRAGMA query_only=ON", "read-only"),
        ("postgresql", "SET default_transaction_read_only = on", "read-only"),
    ],
    ids=["full", "read-only", "read-only on PostgreSQL"],
)
def test_a_full_disk_and_a_read_only_database_are_said_and_lose_nothing(tmp_path, cluster, kind, statement, words):
    url = tmp_path / "f.db" if kind == "sqlite" else cluster.database()
    with served(url, studies=[(configuration(answers=200), some_items())]) as visitors:
        browser = visitors.browser()
        state = begin(browser)
        state = answer(browser, state, "left").json()
        engine = visitors.service.database.engine

        def broken(connection, _):
            connection.execute(statement)
            if kind == "postgresql":
                connection.commit()

        sa.event.listen(engine, "connect", broken)
        engine.dispose()
        # A file has a little room inside; after some answers it has to grow.
        refused = None
        for _ in range(200):
            reply = answer(browser, state, "right")
            if reply.status_code != 200:
                refused = reply
                break
            state = reply.json()
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "store_unavailable"
        assert words in refused.json()["error"]["message"]
        assert "acknowledged answers are stored" in refused.json()["error"]["hint"]
        # What was acknowledged is still shown, and a page says the same in words.
        assert browser.get("/s/which/state").json() == state
        browser.headers["accept"] = "text/html"
        page = answer(browser, state, "right")
        assert page.status_code == 503
        assert "<!doctype html>" in page.text
        assert words in page.text
        sa.event.remove(engine, "connect", broken)
        engine.dispose()
        assert answer(browser, state, "right").json()["progress"]["answered"] == state["progress"]["answered"] + 1


def test_texts_that_a_database_cannot_hold_are_refused(database_url):
    with served(database_url, studies=[(configuration(), some_items())]) as visitors:
        browser = visitors.browser()
        begin(browser, participant="a\x00bé")
        assert browser.get("/s/which/mine").json()["ids"]["participant"] == "abé"
        for path in ("/s/%00", "/media/%00/x/1", "/media/which/%00/320"):
            assert browser.get(path).status_code in (404, 422), path


def test_when_the_database_is_gone_it_is_not_ready_but_alive(tmp_path, monkeypatch):
    monkeypatch.setattr(readiness, "_MIN_SECONDS_BETWEEN_WRITES", 0.0)
    monkeypatch.setattr(readiness, "_MAX_WRITE_SECONDS", 60.0)
    with served(tmp_path / "g.db", studies=[(configuration(), some_items())]) as visitors:
        browser = visitors.browser()
        assert browser.get("/readyz").json() == {"status": "ready"}
        visitors.service.database.engine.dispose()
        for path in tmp_path.glob("g.db*"):
            path.unlink()
        assert browser.get("/readyz").status_code == 503
        assert browser.get("/healthz").json() == {"status": "ok"}


def test_a_restart_goes_on_with_the_same_pairs(tmp_path):
    made = configuration(answers=60)
    with served(tmp_path / "r.db", studies=[(made, some_items())], prefetch=True) as visitors:
        tokens, states, following = [], [], []
        sessions, prefetcher = visitors.service.sessions, visitors.service.prefetcher
        for seed in range(8):
            _, token = sessions.open(visitors.service.catalogue.by_slug("which"), {}, seed=seed)
            state = sessions.state(sessions.by_token(token))
            for _ in range(7):
                state = sessions.answer(sessions.by_token(token), answer_to(state["query"]["query"], "left"))
            following.append(prefetcher.prefetch(sessions.by_token(token), state["query"]["query"]).result(timeout=30))
            tokens.append(token)
            states.append(state)
    with served(tmp_path / "r.db") as visitors:
        for token, state, pairs in zip(tokens, states, following, strict=True):
            browser = visitors.browser()
            browser.cookies.set("pairseek_s_which", token)
            assert browser.get("/s/which/state").json() == state
            assert answer(browser, state, "right").json()["query"] == pairs["right"]
