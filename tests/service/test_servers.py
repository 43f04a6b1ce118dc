"""Several servers and one database, behind a proxy that sends each request to the next of them."""

import contextlib
import signal
import socket
import threading
import time
from datetime import datetime, timedelta

import httpx
import pytest
import sqlalchemy as sa
from alembic import command

from helpers.proxy import Proxy
from helpers.refusals import refused_with
from helpers.serving import GUARD, answer, begin, cheap_passwords, configuration, csrf_of, served, some_items
from pairseek.errors import StoreOutdated
from pairseek.store import database as store_database
from pairseek.store import meta, migrate, rates
from pairseek.store.database import Database
from pairseek.web import server as web_server
from pairseek.web.access import auth
from pairseek.web.app import create_app
from pairseek.web.errors import Problem
from pairseek.web.sessions import access, housekeeping
from pairseek.web.sessions.history import iterate_histories
from pairseek.web.settings import Settings

STUDY = (configuration(answers=30, offer={"undo": True, "skip": True}), some_items())


@pytest.fixture
def pair_of_servers(database_url):
    """Two services of one database, each with a memory of its own."""
    with served(database_url, studies=[STUDY], prefetch=True) as first, served(database_url, prefetch=True) as second:
        for one in (first, second):
            # Routes are built at the first request, which two threads of one process must not do at a time.
            assert one.browser().get("/s/which").status_code == 200
        yield first, second


def ports_of(servers):
    return [int(server.address.rpartition(":")[2]) for server in servers]


def events_of(service):
    study = service.catalogue.by_slug("which")
    return [
        [(e.query, e.kind, e.outcome) for e in iterate_history.events]
        for iterate_history in iterate_histories(service.database, study)
    ]


def test_any_server_answers_any_request(pair_of_servers):
    with Proxy(ports_of(pair_of_servers)) as proxy, httpx.Client(base_url=proxy.address, timeout=30) as browser:
        state = begin(browser, participant="ann")
        said = []
        for number in range(12):
            outcome = ["left", "right", "skip"][number % 3]
            query = state["query"]["query"]
            ahead = browser.get("/s/which/prefetch", params={"query": query})
            state = answer(browser, state, outcome).json()
            said.append((query, "answer", outcome))
            # The other server has prefetched, if it had the time, and both come to the same pair.
            assert ahead.status_code in (200, 204)
            assert ahead.status_code == 204 or ahead.json()[outcome] == state["query"]
            if number == 6:
                undone = browser.post("/s/which/undo", json={"query": query}, headers=GUARD).json()
                assert undone["query"]["number"] == number + 1
                said.append((query, "undo", None))
                state = answer(browser, undone, outcome).json()
                said.append((undone["query"]["query"], "answer", outcome))
        assert browser.get("/s/which/state").json() == state
        # None of them has done all.
        assert min(proxy.sent.values()) > 10
    assert events_of(pair_of_servers[0].service) == [said]


def test_a_proxy_that_sends_every_request_twice_stores_every_answer_once(pair_of_servers):
    with (
        Proxy(ports_of(pair_of_servers), twice=True) as proxy,
        httpx.Client(base_url=proxy.address, timeout=30) as browser,
    ):
        state = begin(browser, participant="ann")
        for number in range(8):
            state = answer(browser, state, "left").json()
            assert state["progress"]["answered"] == number + 1
        undone = browser.post("/s/which/undo", json={"query": state["can"]["undo"]}, headers=GUARD)
        assert undone.json()["progress"]["answered"] == 7
    (said,) = events_of(pair_of_servers[0].service)
    assert [kind for _, kind, _ in said] == ["answer"] * 8 + ["undo"]


def test_starts_and_sign_ins_are_limited_over_all_servers(database_url):
    made = configuration(resume={"policy": "restart"})
    with (
        cheap_passwords(),
        served(database_url, studies=[(made, some_items())], starts_per_minute=3) as first,
        served(database_url, starts_per_minute=3) as second,
    ):
        codes = []
        for number in range(6):
            client = (first, second)[number % 2].browser()
            codes.append(client.post("/s/which/start", data={"csrf": csrf_of(client.get("/s/which"))}).status_code)
        assert codes == [303] * 3 + [429] * 3
        auth.set_password(first.service.database, "ann", "a long password")
        for number in range(10):
            with refused_with("wrong_password", Problem):
                auth.sign_in((first, second)[number % 2].service.database, "ann", "wrong", "192.0.2.1")
        for one in (first, second):
            with refused_with("too_many_attempts", Problem):
                auth.sign_in(one.service.database, "ann", "a long password", "192.0.2.1")


def test_a_bucket_refills_with_time_and_holds_no_address(database_url, monkeypatch):
    database = Database(database_url)
    migrate.prepare(database)
    moment = [1000.0]
    monkeypatch.setattr(rates, "_clock", lambda _: moment[0])
    buckets = [rates.Bucket("a", 2, 60.0), rates.Bucket("b", 3, 86_400.0)]

    def take():
        return min(database.write(lambda connection: rates.take(connection, buckets))) >= 1

    assert [take(), take(), take()] == [True, True, False]
    moment[0] += 30.0
    assert [take(), take()] == [True, False]
    # The second bucket has had its three.
    moment[0] += 3600.0
    assert not take()
    # A clock that began anew blocks nobody.
    moment[0] = 5.0
    assert take()
    moment[0] += 86_401.0
    database.write(lambda connection: rates.delete_unused(connection, 86_400.0))
    assert database.read(lambda connection: connection.execute(sa.text("SELECT count(*) FROM rates")).scalar()) == 0
    database.close()


def test_housekeeping_is_done_once_an_hour_over_all_servers(pair_of_servers, monkeypatch):
    first, second = (pair_of_server.service for pair_of_server in pair_of_servers)
    done = []
    monkeypatch.setattr(housekeeping.forgetting, "expire", lambda *_: done.append(1))
    until = time.monotonic() + 30
    while first.database.read(lambda c: meta.value(c, "housekeeping_at")) is None and time.monotonic() < until:
        time.sleep(0.02)
    for one in (first, second, first):
        one.housekeeper._expire()
    assert done == []
    for wrong in ("2020-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"):
        first.database.write(lambda c, wrong=wrong: meta.put(c, "housekeeping_at", wrong))
        for one in (second, first):
            one.housekeeper._expire()
    assert done == [1, 1]


@contextlib.contextmanager
def draining(tmp_path, monkeypatch, seconds):
    """A server of its own, and its address."""
    monkeypatch.setattr(web_server, "_force_exit", lambda *_: None)
    settings = Settings(database=str(tmp_path / "d.db"), prefetch="never", drain_seconds=seconds)
    server = web_server.Server(settings, create_app(settings))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            until = time.monotonic() + 30
            while not server.started:
                assert thread.is_alive()
                assert time.monotonic() < until
                time.sleep(0.01)
            yield server, f"http://127.0.0.1:{listening.getsockname()[1]}", thread
        finally:
            server.should_exit = True
            thread.join(timeout=20)


def test_a_server_that_drains_is_not_ready_and_still_serves(tmp_path, monkeypatch):
    with draining(tmp_path, monkeypatch, 60) as (server, address, thread):
        assert httpx.get(f"{address}/readyz").json() == {"status": "ready"}
        server.handle_exit(signal.SIGTERM, None)
        reply = httpx.get(f"{address}/readyz")
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "draining")
        assert httpx.get(f"{address}/healthz").status_code == 200
        assert httpx.get(f"{address}/login").status_code == 200
        # A second signal means now.
        server.handle_exit(signal.SIGTERM, None)
        thread.join(timeout=20)
        assert not thread.is_alive()


def test_a_server_that_has_drained_ends(tmp_path, monkeypatch):
    with draining(tmp_path, monkeypatch, 1) as (server, address, thread):
        server.handle_exit(signal.SIGTERM, None)
        assert httpx.get(f"{address}/healthz").status_code == 200
        thread.join(timeout=20)
        assert not thread.is_alive()


def test_a_server_refuses_writes_once_its_database_was_upgraded(database_url):
    with served(database_url, studies=[STUDY]) as visitors:
        browser = visitors.browser()
        state = answer(browser, begin(browser), "left").json()

        def become(version):
            # Past the server's own connection, which would refuse.
            other = Database(database_url)
            other.write(lambda c: c.execute(sa.text("UPDATE alembic_version SET version_num = :v"), {"v": version}))
            other.close()

        become("9999")
        reply = answer(browser, state, "right")
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "store_outdated")
        words = reply.json()["error"]["message"]
        assert f"tables of version 9999, but this server works with version {migrate.newest_version()}" in words
        assert "nothing was stored; restart it with the pairseek that changed the tables" in words
        assert browser.get("/readyz").status_code == 503
        assert browser.get("/s/which/state").json() == state
        become(migrate.newest_version())
        assert answer(browser, state, "right").json()["progress"]["answered"] == 2


def test_an_upgrade_waits_for_writers_and_they_for_it(cluster):
    url = cluster.database()
    before = (
        migrate.newest_version(),
        next(v for v in sorted(migrate.upgradable_versions(), reverse=True) if v != migrate.newest_version()),
    )
    old, new = Database(url), Database(url)
    with new.transaction() as connection:
        config = migrate._config()
        config.attributes["connection"] = connection
        command.upgrade(config, before[1])
    old.schema = before[1]
    began, order = threading.Event(), []

    def slow(connection):
        began.set()
        time.sleep(0.5)
        meta.put(connection, "slow", "written")
        order.append("written")

    writer = threading.Thread(target=lambda: old.write(slow))
    writer.start()
    assert began.wait(20)
    migrate.upgrade(new)
    order.append("upgraded")
    writer.join()
    assert order == ["written", "upgraded"]
    with pytest.raises(StoreOutdated, match=f"works with version {before[1]}"):
        old.write(lambda connection: meta.put(connection, "slow", "again"))
    assert new.read(lambda connection: meta.value(connection, "slow")) == "written"
    old.close()
    new.close()


def test_a_server_whose_clock_is_a_minute_off_changes_nothing(pair_of_servers, monkeypatch):
    offset = [0]

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(seconds=offset[0])

    for module in (access, store_database, auth):
        monkeypatch.setattr(module, "datetime", Clock)
    jar, state = httpx.Cookies(), None
    for number in range(12):
        server = pair_of_servers[number % 2]
        offset[0] = (-60, 60)[number % 2]
        with httpx.Client(base_url=server.address, cookies=jar, timeout=30) as browser:
            state = begin(browser, participant="ann") if state is None else state
            assert browser.get("/s/which/state").json() == state
            state = answer(browser, state, "left").json()
            if number % 4 == 3:
                back = browser.post("/s/which/undo", json={"query": state["can"]["undo"]}, headers=GUARD).json()
                state = answer(browser, back, "right").json()
            jar = httpx.Cookies(browser.cookies)
    assert state["progress"]["answered"] == 12
    (said,) = events_of(pair_of_servers[0].service)
    assert len(said) == 12 + 2 * 3
    with cheap_passwords():
        auth.set_password(pair_of_servers[0].service.database, "bob", "a long password")
        for number, server in enumerate(pair_of_servers):
            offset[0] = (-60, 60)[number]
            token = auth.sign_in(server.service.database, "bob", "a long password", "192.0.2.1")
            offset[0] = -offset[0]
            assert auth.account_of_login(pair_of_servers[1 - number].service.database, token).name == "bob"
