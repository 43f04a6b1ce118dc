"""Abuse and faults: no request makes the service fail, no kill loses an answer, and other people are still served.

What takes minutes is marked long (`make test-long`); each of its tests has a small deterministic part in `make test`.
"""

import asyncio
import contextlib
import fcntl
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest

from helpers import abuse
from helpers.serving import begin, configuration, csrf_of, served, some_items
from pairseek.store import migrate
from pairseek.store.database import Database
from pairseek.web.access import auth
from pairseek.web.app import create_app
from pairseek.web.sessions.service import Sessions
from pairseek.web.settings import Settings
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.configuration import configured
from pairseek.web.studies.creation import create_study

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import service
import soak

PASSWORD = "a long password"
SECONDS = float(os.environ.get("PAIRSEEK_ABUSE_SECONDS", "120"))
SOAK_SECONDS = float(os.environ.get("PAIRSEEK_SOAK_SECONDS", "600"))
KILLS = 10
# Bytes by which two workers may grow under two minutes of abuse.
GROWTH = 300_000_000


def tell(text):
    """Report what was measured: shown by ``pytest -rP``, and in a file if PAIRSEEK_MEASURED names one."""
    sys.stdout.write(f"{text}\n")
    if os.environ.get("PAIRSEEK_MEASURED"):
        with Path(os.environ["PAIRSEEK_MEASURED"]).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


@pytest.fixture
def alone():
    """Let one of these tests run at a time, whichever process runs it: each loads the machine."""
    with (Path(tempfile.gettempdir()) / "pairseek-long-tests.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def cookies(client):
    return b"Cookie: " + "; ".join(f"{name}={value}" for name, value in client.cookies.items()).encode()


def abuser(address, database, *, seed):
    """An abuser with the credentials of a participant, of a researcher and of programs, for the study ``which``."""
    auth.set_password(database, "ann", PASSWORD)
    sessions = Sessions(database, Catalogue(database))
    opened, token = sessions.open(sessions.catalogue.by_slug("which"), {})
    program = auth.make_token(database, "fuzz", ["read", "write", "answer"], "ann")
    with httpx.Client(base_url=address, timeout=30) as person, httpx.Client(base_url=address, timeout=30) as ann:
        begin(person, participant="fuzz")
        ann.post("/login", data={"csrf": csrf_of(ann.get("/login")), "name": "ann", "password": PASSWORD})
        form = csrf_of(ann.get("/studies"))
        known = {
            "slug": ("which",),
            "session": (opened,),
            "session_id": (opened,),
            "query": ("p1", "p2"),
            "action": ("void", "restore"),
            "table": ("answers", "participants", "items"),
            "ending": ("csv", "parquet"),
            "number": ("1", "7"),
            "file": ("run.js", "base.css"),
        }
        credentials = (b"", cookies(person), cookies(ann), f"Authorization: Bearer {program}".encode())
        credentials += (f"Authorization: Bearer {token}".encode(),)
        return abuse.Abuser(known, credentials, (cookies(ann), form), seed=seed)


def test_the_routes_are_those_of_the_application():
    described = create_app(Settings(database="unused.db")).openapi()["paths"]
    expected = {(path, method.upper()) for path, methods in described.items() for method in methods}
    found = {(path, method) for path, methods in abuse.routes() for method in methods}
    assert expected <= found
    assert {("/s/{slug}/answer", "POST"), ("/studies/{slug}/simulate", "POST"), ("/static/{file}", "GET")} <= found


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_no_request_of_a_few_at_every_route_makes_the_service_fail(kind, tmp_path, cluster):
    """The same requests in every run: three at each route, and a person who is served in between."""
    url = cluster.database() if kind == "postgresql" else f"sqlite:///{tmp_path / 'a.db'}"
    with served(url, studies=[(configuration(), some_items())]) as visitors:
        port = int(visitors.address.rpartition(":")[2])
        drawn = abuser(visitors.address, visitors.service.database, seed=1)
        requests = [drawn.request(*route) for _ in range(3) for route in abuse.routes()]

        async def everything():
            outcome, gate = abuse.Outcome(), asyncio.Semaphore(8)

            async def one(request):
                async with gate:
                    outcome.note(request, *await abuse.send(port, request, patience=8.0))

            await asyncio.gather(*map(one, requests))
            return outcome

        # In a thread of its own: a browser that another test has open keeps this one's event loop.
        with ThreadPoolExecutor(1) as apart:
            outcome = apart.submit(lambda: asyncio.run(everything())).result()
        assert outcome.failures == []
        assert set(outcome.routes) == {route for route, _ in abuse.routes()}
        assert outcome.statuses[200] > 10
        assert sum(count for status, count in outcome.statuses.items() if 400 <= status < 500) > 50
        with contextlib.closing(visitors.browser()) as client:
            assert client.get("/healthz").status_code == 200


def test_values_that_no_reply_can_hold_are_refused_in_words(tmp_path):
    with served(tmp_path / "u.db", studies=[(configuration(), some_items())]) as visitors:
        client = visitors.browser()
        begin(client)
        for body in (
            '{"query": "\\ud800", "outcome": "left"}',
            '{"\\udfff": 1}',
            '"\\ud800"',
            '{"query": NaN}',
            "-Infinity",
        ):
            for path in ("answer", "undo", "focus"):
                for accept in ("application/json", "text/html"):
                    headers = {"X-Pairseek": "1", "Content-Type": "application/json", "Accept": accept}
                    assert client.post(f"/s/which/{path}", content=body, headers=headers).status_code == 422


def loaded(url, *, answers=1000):
    """A database with the study of the load benchmark and one to abuse."""
    database = Database(url)
    migrate.prepare(database)
    create_study(database, configured(service.settings(answers)), service.catalogue(200), is_open=True, who="test")
    create_study(database, configuration(answers=200), some_items(), is_open=True, who="test")
    return database


@pytest.mark.long
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_two_minutes_of_abuse_leave_other_people_served(kind, tmp_path, cluster):
    url = cluster.database() if kind == "postgresql" else f"sqlite:///{tmp_path / 'a.db'}"
    server = service.Server(url, 2)
    with contextlib.closing(loaded(url)) as database:
        server.start()
        drawn = abuser(f"http://127.0.0.1:{server.port}", database, seed=2)
    try:

        async def probe(until):
            times = []
            healthy = abuse.Request("/healthz", (b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",))
            while time.monotonic() < until:
                began = time.monotonic()
                status, _ = await abuse.send(server.port, healthy)
                assert status == 200
                times.append(time.monotonic() - began)
                await asyncio.sleep(0.25)
            return np.array(times)

        async def everything():
            until = time.monotonic() + SECONDS
            return await asyncio.gather(
                abuse.attack(server.port, drawn, SECONDS),
                service.drive(server.port, 3, SECONDS, 1.0),
                probe(until),
                grown(server, 15.0, until),
            )

        with ThreadPoolExecutor(1) as apart:
            outcome, measured, healthy, growth = apart.submit(lambda: asyncio.run(everything())).result()
        workers = len(server.children())
    finally:
        server.stop()
    replies = np.array(measured.replies)
    tell(
        f"{kind}: {sum(outcome.statuses.values())} requests in {SECONDS:g} s, statuses {dict(outcome.statuses)}; "
        f"/healthz median {np.median(healthy):.3f} s, longest {healthy.max():.2f} s; {len(replies)} answers of others, "
        f"median {np.median(replies):.3f} s, longest {replies.max():.2f} s; memory grew by {growth / 1e6:.0f} MB"
    )
    assert outcome.failures == []
    assert set(outcome.routes) == {route for route, _ in abuse.routes()}
    assert measured.errors == []
    assert "all stored once" in service.check(url, measured)
    assert workers == 2
    assert growth < GROWTH
    assert np.median(replies) < 1.0
    assert healthy.max() < 10.0


async def grown(server, after, until):
    """Bytes by which the workers are larger at the end than after so many seconds."""
    await asyncio.sleep(after)
    before = server.memory()
    await asyncio.sleep(max(0.0, until - time.monotonic()))
    return server.memory() - before


@pytest.mark.long
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    # A server takes long to start on a busy machine, so it gets more time. Workers that outlive a killed parent for a
    # moment can answer for the next one, so that some of its ten kills may meet a server that has not started.
    ("kind", "seconds"),
    [("worker", 60.0), ("server", 150.0), ("database", 60.0), ("restart", 60.0)],
)
def test_ten_kills_lose_no_acknowledged_answer(kind, seconds, tmp_path, cluster):
    url = cluster.database() if kind in ("database", "restart") else f"sqlite:///{tmp_path / 'k.db'}"
    loaded(url).close()
    server, log = service.Server(url, 2), []
    try:
        server.start()
        disturb = service.disturber(kind, server, cluster, KILLS, log)
        with ThreadPoolExecutor(1) as apart:
            run = apart.submit(lambda: asyncio.run(service.drive(server.port, 20, seconds, 0.5, disturb)))
            measured = run.result()
    finally:
        server.stop()
    said = service.check(url, measured)
    tell(f"{kind}: {KILLS} kills at {', '.join(log)} s, {measured.retries} requests sent again; {said}")
    assert len(log) == KILLS
    assert len(measured.replies) > 200
    assert measured.wrong == []
    assert all(error.startswith("503") for error in measured.errors), measured.errors
    assert "all stored once" in said


@pytest.mark.long
@pytest.mark.usefixtures("alone")
def test_a_soak_of_mixed_work_on_two_servers_leaves_them_as_they_were():
    assert soak.run(SOAK_SECONDS, tell=tell) == []


def watched(**last):
    """Return the outcome of a soak of nine samples, the last three of which differ as given."""
    usual = {"memory": {1: 400_000_000}, "threads": {1: 8}, "files": {1: 40}, "is_ready": True, "failures": 0.0}
    outcome = soak.Outcome([soak.Sample(float(k), **(usual | (last if k > 5 else {}))) for k in range(9)])
    outcome.replies["export", "200"] = outcome.replies["export", "503 findings_not_ready"] = 5
    return outcome


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ({}, []),
        ({"memory": {1: 500_000_000}}, ["memory grew by 100 MB from the middle third to the last"]),
        ({"memory": {1: 390_000_000}, "threads": {1: 40}}, []),
        ({"threads": {1: 7}}, ["a worker had 8 threads and has 7"]),
        ({"memory": {2: 400_000_000}, "threads": {2: 8}}, ["workers were replaced: [1] became [2]"]),
        ({"is_ready": False}, ["a server was not ready in 3 of 9 samples"]),
        ({"failures": 2.0}, ["background work failed 2 times"]),
    ],
)
def test_a_soak_notices_what_must_not_happen(last, words):
    assert watched(**last).problems() == words


def test_a_soak_takes_only_successes_and_refusals_under_load():
    outcome = watched()
    outcome.replies["upload", "500 internal"] = outcome.replies["API", "ReadError()"] = 1
    outcome.warnings = ["{}"]
    assert outcome.problems() == ["1 replies to upload: 500 internal", "1 replies to API: ReadError()", "logged: {}"]
