"""The service under load: many people at once with a large catalogue, on SQLite or PostgreSQL, with optional faults.

    python benchmarks/service.py                                 # 50, 100, 200 people, an answer every 2 s, SQLite
    python benchmarks/service.py --database postgresql           # on a PostgreSQL server started for the run
    python benchmarks/service.py --people 400                    # more people
    python benchmarks/service.py --people 100 --faults worker    # or server, or database: killed ten times;
                                                                 # restart: the database is shut down and restarted
    python benchmarks/service.py --people 200 --restart 30       # everyone returns to a server that has just started
    python benchmarks/service.py --people 100 --database postgresql --servers 2 --faults one
                                                                 # two servers behind a round-robin proxy, one killed
    python benchmarks/service.py --people 50 --items 100000 --dimensions 8
    python benchmarks/service.py --soak 20000 --items 1000       # memory of the workers over many short sessions
    python benchmarks/service.py --people 100 --learn auto       # 200 items without coordinates, sessions of 12 answers
                                                                 # in a study that learns, or (off) does not;
                                                                 # people have tastes and arrive one after the other

The study has 12,624 items in four dimensions and default settings except for the number of answers. Two workers serve
it. People are small asyncio clients on the same machine, and use some of its processor time. Each opens the study like
a browser, fetches prefetched pairs if the page says that there are any, and answers at a fixed pace. "reply" is the
time from sending an answer until the next pair arrives. "wait" is what a person sees of that: nothing if the page
already has the next pair. Processor time is given for the workers, including prefetching, and for the people; once they
use all cores together, the queue grows. The reference, measured first in the same run on the idle machine, is the bare
search with the same settings: one answer and the next question. A study without pictures, sounds or videos prefetches
nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import pairseek as ps
from pairseek.model.items import Items
from pairseek.search.state import SearchState
from pairseek.store import learning, migrate, populations, sessions
from pairseek.store.database import Database
from pairseek.web.studies.configuration import configured
from pairseek.web.studies.creation import create_study

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

ITEMS, DIMENSIONS = 12_624, 4
PEOPLE = [50, 100, 200]
FAULTS = 10
SHORT = 3
"""Answers per session in a soak test."""
LEARN_ANSWERS = 12
"""Answers per session in a study that learns."""
TASTES = np.random.default_rng(18).normal(size=(200, 3))
"""Two coordinates and the appeal of each item in such a study, known only to the people."""
_LIMITS = ("STARTS_PER_MINUTE", "STARTS_PER_DAY", "REQUESTS_PER_MINUTE", "MOST_SESSIONS")


def catalogue(n: int = ITEMS, d: int = DIMENSIONS) -> Items:
    points = np.random.default_rng(2019).normal(size=(n, d))
    return Items(points, [str(k) for k in range(n)]).scaled()


def settings(answers: int) -> dict:
    """Return the default settings of the search."""
    return {"title": "Load", "slug": "load", "answers": answers}


class Browser:
    """A minimal HTTP client with cookies and one connection at a time."""

    def __init__(self, port: int) -> None:
        self.port, self.cookies = port, {}
        self._streams = None

    async def send(self, method: str, path: str, body: bytes = b"", kind: str = "application/json"):
        """Send a request and return status and body; reconnect after an error."""
        try:
            async with asyncio.timeout(30):
                if self._streams is None:
                    self._streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
                return await self._exchange(method, path, body, kind)
        except BaseException:
            self.close()
            raise

    async def _exchange(self, method, path, body, kind):
        reader, writer = self._streams
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "X-Pairseek: 1", f"Cookie: {cookies}"]
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}", "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status, length = int(head[0].split()[1]), 0
        for line in head[1:]:
            name, _, value = line.partition(":")
            if name.lower() == "content-length":
                length = int(value)
            elif name.lower() == "set-cookie":
                cookie, _, content = value.strip().partition(";")[0].partition("=")
                self.cookies[cookie] = content
            elif name.lower() == "connection" and value.strip() == "close":
                self._streams = None
        content = await reader.readexactly(length) if length else b""
        if self._streams is None:
            writer.close()
        return status, content

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@dataclass
class Measured:
    replies: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    held: int = 0
    errors: list[str] = field(default_factory=list)
    retries: int = 0
    wrong: list[str] = field(default_factory=list)
    acknowledged: dict[str, dict[str, str]] = field(default_factory=dict)


class Person:
    """A participant, who starts, thinks and answers until the end."""

    def __init__(self, port: int, number: int, measured: Measured, pace: float, *, tastes: bool = False) -> None:
        self.browser = Browser(port)
        self.number, self.measured, self.pace, self.tastes = number, measured, pace, tastes
        self.rng = random.Random(number)
        self.said: dict[str, str] = {}

    async def live(self, until: float) -> None:
        try:
            await self._live(until)
        finally:
            self.browser.close()

    async def _live(self, until: float) -> None:
        # In a study that learns, arrivals are spread over the length of a session.
        await asyncio.sleep(self.rng.random() * self.pace * (LEARN_ANSWERS if self.tastes else 1))
        while time.perf_counter() < until:
            await self._answer_all(until)
            # After the end of a session, another person starts.
            self.browser.close()
            self.browser, self.number, self.said = Browser(self.browser.port), self.number + 1_000_000, {}

    async def _answer_all(self, until: float) -> None:
        state, told = await self._begin()
        session = told["session"]
        self.measured.acknowledged[session] = self.said
        while state["query"] is not None and time.perf_counter() < until:
            query = state["query"]["query"]
            looking = asyncio.create_task(self._look_ahead(query)) if told["prefetches"] else None
            await asyncio.sleep(self.pace * (0.75 + 0.5 * self.rng.random()))
            held = looking.result() if looking and looking.done() and not looking.exception() else None
            if looking and not looking.done():
                # Like a page that gives up waiting, drop the connection.
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)
            outcome = self._preferred(state["query"]) if self.tastes else self.rng.choice(["left", "right"])
            began = time.perf_counter()
            state = await self._answer(query, outcome)
            spent = time.perf_counter() - began
            self.said[query] = outcome
            self.measured.replies.append(spent)
            pair = held and held[outcome]
            if pair and state["query"] is not None:
                self.measured.held += 1
                if pair != state["query"]:
                    self.measured.wrong.append(f"{session} {query}")
            self.measured.waits.append(0.0 if pair else spent)

    def _preferred(self, query) -> str:
        """Choose by a personal ideal point and shared appeal, with logistic noise."""
        point = np.random.default_rng([2019, self.number]).normal(size=2)
        left, right = (TASTES[int(query[side]["id"])] for side in ("left", "right"))
        gap = sum((right[:2] - point) ** 2) - sum((left[:2] - point) ** 2) + left[2] - right[2]
        return "left" if self.rng.random() < 1 / (1 + np.exp(-gap)) else "right"

    async def _begin(self):
        """Return the state of a new session, and the other data of the page of pairs."""
        while True:
            with contextlib.suppress(OSError, EOFError, TimeoutError, asyncio.IncompleteReadError):
                status, page = await self.browser.send("GET", f"/s/load?participant=person-{self.number}")
                if status == 200:
                    csrf = re.search(rb'name="csrf" value="([0-9a-f]+)"', page)[1]
                    form = "application/x-www-form-urlencoded"
                    status, _ = await self.browser.send("POST", "/s/load/start", b"csrf=" + csrf, form)
                    if status == 303:
                        status, page = await self.browser.send("GET", "/s/load/run")
                        if status == 200:
                            return _block(page, "state"), _block(page, "run-data")
            self.measured.retries += 1
            await asyncio.sleep(0.3)

    async def _answer(self, query: str, outcome: str):
        body = json.dumps({"query": query, "outcome": outcome, "rt_ms": 900, "attempt": 1}).encode()
        while True:
            with contextlib.suppress(OSError, EOFError, TimeoutError, asyncio.IncompleteReadError):
                status, reply = await self.browser.send("POST", "/s/load/answer", body)
                if status == 200:
                    return json.loads(reply)
                self.measured.errors.append(f"{status} {reply[:200]!r}")
                if status < 500:
                    raise AssertionError(f"an answer was refused: {status} {reply[:300]!r}")
            self.measured.retries += 1
            await asyncio.sleep(0.2)

    async def _look_ahead(self, query: str):
        status, body = await self.browser.send("GET", f"/s/load/prefetch?query={query}")
        return json.loads(body) if status == 200 else None


def _block(page: bytes, name: str):
    """Read a data block of a page."""
    return json.loads(re.search(rb'<script type="application/json" id="%s">(.*?)</script>' % name.encode(), page)[1])


class Server:
    """`pairseek serve` in separate processes."""

    def __init__(self, database: str, workers: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.database, self.workers = database, workers
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        self.process = None

    def start(self) -> None:
        arguments = ["serve", "--database", self.database, "--port", str(self.port), "--workers", str(self.workers)]
        script = f"from pairseek.cli import main; main({arguments!r})"
        # All people have the same address here.
        limits = {f"PAIRSEEK_{what}": "10000000" for what in _LIMITS}
        environment = {**os.environ, "PAIRSEEK_PASSWORD": "a long password", **limits}
        self.process = subprocess.Popen(
            [sys.executable, "-c", script], stdout=self.log, stderr=self.log, env=environment
        )
        self.ready()

    def ready(self) -> None:
        until = time.monotonic() + 120
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as probe:
                probe.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                if b" 200 " in probe.recv(100):
                    return
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < until, self.said()
            time.sleep(0.1)

    def children(self) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def spent(self) -> float:
        """Return the processor seconds that the workers have used."""
        ticks = 0
        for pid in self.children() or [self.process.pid]:
            ticks += sum(int(x) for x in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Return the resident memory of the workers in bytes."""
        return sum(map(resident, self.children()))

    def kill(self, *, hard: bool = False) -> None:
        """Kill the main process and, with ``hard``, its workers, which would otherwise finish their requests."""
        workers = self.children()
        self.process.send_signal(signal.SIGKILL)
        if hard:
            for pid in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.wait()
        # Workers exit soon afterwards; until then they would answer in place of the next server.
        until = time.monotonic() + 60
        while any(_lives(pid) for pid in workers):
            assert time.monotonic() < until, "workers outlive their server by a minute"
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=40)
        self.log.close()

    def said(self) -> str:
        self.log.seek(0)
        return self.log.read()[-5000:].decode(errors="replace")


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _lives(pid: int) -> bool:
    """Return whether a process is running, and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def drive(port: int, people: int, seconds: float, pace: float, disturb=None, *, tastes=False) -> Measured:
    """Let people answer for some seconds, while ``disturb`` runs."""
    measured = Measured()
    until = time.perf_counter() + seconds
    tasks = [asyncio.create_task(Person(port, k, measured, pace, tastes=tastes).live(until)) for k in range(people)]
    beside = asyncio.create_task(asyncio.to_thread(disturb, until)) if disturb else None
    done = await asyncio.gather(*tasks, return_exceptions=True)
    measured.errors += [repr(one) for one in done if isinstance(one, BaseException)]
    if beside is not None:
        await beside
    return measured


def check(database: str, measured: Measured) -> str:
    """Check that every acknowledged answer is stored once, and every session continues with the right pair."""
    from pairseek.web.sessions.history import read_histories
    from pairseek.web.studies.catalogue import Catalogue

    opened = Database(database)
    try:
        study = Catalogue(opened).by_slug("load")
        acknowledged = stored = rebuilt = 0
        for session, said in measured.acknowledged.items():
            row = opened.read(lambda c, s=session: sessions.by_id(c, s))
            one = read_histories(opened, study, [row])[0]
            asked, happened = one.queries, one.events
            found = {event.query: event.outcome for event in happened}
            assert len(found) == len(happened), f"an answer of {session} is there twice"
            for query, outcome in said.items():
                assert found.get(query) == outcome, f"the answer to {query} of {session} is lost"
            acknowledged, stored = acknowledged + len(said), stored + len(happened)
            # Without the population that it began with, a session cannot be recomputed.
            if rebuilt < 20 and one.parts.is_usable:
                # Rebuilt from stored answers only, the open pair must be the one stored as asked.
                open_now = [query for query in asked if query.name not in found]
                pair, _ = one.state(study, one.done).next_pair
                assert not open_now or (open_now[0].left, open_now[0].right) == (pair.left, pair.right), session
                rebuilt += 1
    finally:
        opened.close()
    return f"{acknowledged} acknowledged answers, all stored once ({stored} stored); {rebuilt} sessions rebuilt alike"


def disturber(kind: str, server: Server, cluster, faults: int, log: list[str]):
    """Return a function that kills its target at even intervals."""

    def disturb(until: float) -> None:
        began = time.perf_counter()
        for number in range(faults):
            time.sleep(max(0.0, began + (number + 0.5) * (until - began) / faults - time.perf_counter()))
            if kind == "worker":
                victims = server.children()
                os.kill(random.Random(number).choice(victims), signal.SIGKILL)
            elif kind in ("server", "one"):
                server.kill(hard=kind == "one")
                server.start()
            elif kind == "restart":
                cluster.restart()
            else:
                cluster.kill()
                cluster.start()
            log.append(f"{time.perf_counter() - began:.1f}")

    return disturb


def restarted(options, url: str, server: Server, base: float) -> None:
    """Print the time to each first reply when everyone returns at once to a restarted server."""
    from pairseek.web.sessions.advance import Answer
    from pairseek.web.sessions.service import Sessions
    from pairseek.web.studies.catalogue import Catalogue

    opened = Database(url)
    people = Sessions(opened, Catalogue(opened))
    study, tokens = people.catalogue.by_slug("load"), []
    for number in range(options.people[0]):
        session, token = people.open(study, {}, seed=number)
        state = people.state(people.by_id(session))
        for step in range(options.restart):
            said = Answer(query=state["query"]["query"], outcome="left" if (number + step) % 3 else "right")
            state = people.answer(people.by_id(session), said)
        tokens.append((token, state["query"]["query"]))
    opened.close()

    async def person(token: str, query: str, *, answers: bool) -> tuple[float, str]:
        browser = Browser(server.port)
        browser.cookies["pairseek_s_load"] = token
        body = json.dumps({"query": query, "outcome": "left"}).encode()
        began = time.perf_counter()
        status, reply = await browser.send(*(("POST", "/s/load/answer", body) if answers else ("GET", "/s/load/state")))
        spent = time.perf_counter() - began
        browser.close()
        assert status == 200
        following = json.loads(reply)["query"]["query"]
        assert answers == (following != query)
        return spent, following

    async def everyone(*, answers: bool) -> list[tuple[float, str]]:
        return await asyncio.gather(*(person(*one, answers=answers) for one in tokens))

    for answers, words in ((False, "who ask where they are"), (True, "who answer")):
        server.start()
        came = asyncio.run(everyone(answers=answers))
        tokens = [(token, following) for (token, _), (_, following) in zip(tokens, came, strict=True)]
        times = np.array([spent for spent, _ in came])
        print(
            f"{len(tokens)} sessions of {options.restart} answers after a kill and a start, everyone at once, {words}: "
            f"first reply at most {times.max():.2f} s (median {np.median(times):.2f} s; the longest is "
            f"{times.max() / base:.0f} times the reference)"
        )
        server.kill(hard=True)


def soak(port: int, sessions: int, memory, at_once: int = 20) -> list[tuple[int, float]]:
    """Let many people give a few answers each; return (sessions, megabytes) at ten points."""
    measured, along = Measured(), []
    numbers = iter(range(sessions))

    async def one_after_the_other() -> None:
        for number in numbers:
            person = Person(port, number, measured, 0.0)
            state, _ = await person._begin()
            for _ in range(SHORT):
                state = await person._answer(state["query"]["query"], person.rng.choice(["left", "right"]))
            person.browser.close()
            if (number + 1) % max(1, sessions // 10) == 0:
                along.append((number + 1, memory() / 1e6))
                print(f"  {number + 1} sessions: {along[-1][1]:.0f} MB", flush=True)

    async def everyone() -> None:
        await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))

    asyncio.run(everyone())
    assert not measured.errors, measured.errors[:3]
    return along


def reference(items: Items) -> float:
    """Return the seconds for an answer and the next question, without a service."""
    state = SearchState(configured(settings(60)).resolved(items), 1)
    spent = []
    for number in range(40):
        query = state.query()
        began = time.perf_counter()
        state = state.after_answer(query, query.left)
        state.query()
        if number >= 5:
            spent.append(time.perf_counter() - began)
    return float(np.median(spent))


def study(options) -> tuple[Items, dict]:
    """Return the items and settings of the study."""
    if options.learn:
        return Items(ids=[str(k) for k in range(len(TASTES))]), {**settings(LEARN_ANSWERS), "learn": options.learn}
    return catalogue(options.items, options.dimensions), settings(1000)


def run(options) -> int:
    items, made = study(options)
    options.items = items.n
    ps.set_thread_count(1)
    base = reference(items)
    print(f"reference: {1000 * base:.1f} ms for an answer and the next question (one thread, no service)", flush=True)
    worst = 0
    for people in options.people:
        with contextlib.ExitStack() as stack:
            cluster = None
            if options.database == "postgresql":
                from helpers import postgres

                cluster = stack.enter_context(postgres.cluster(durable=True))
                url = cluster.database()
            else:
                url = f"sqlite:///{stack.enter_context(tempfile.TemporaryDirectory())}/load.db"
            opened = Database(url)
            migrate.prepare(opened)
            create_study(opened, configured(made), items, is_open=True, who="benchmark")
            opened.close()
            servers = [Server(url, options.workers) for _ in range(options.servers)]
            for server in servers:
                stack.callback(server.stop)
            if options.restart:
                restarted(options, url, servers[0], base)
                continue
            for server in servers:
                server.start()
            port = servers[0].port
            if len(servers) > 1:
                from helpers.proxy import Proxy

                port = stack.enter_context(Proxy([server.port for server in servers])).port
            if options.soak:
                print(f"{options.soak} sessions of {SHORT} answers, {options.items:,} items, memory of all workers:")
                along = soak(port, options.soak, lambda: sum(server.memory() for server in servers))  # noqa: B023
                print(f"  in the second half: {along[-1][1] - along[len(along) // 2 - 1][1]:+.0f} MB")
                break
            log: list[str] = []
            disturb = disturber(options.faults, servers[0], cluster, FAULTS, log) if options.faults else None
            before = 0.0 if options.faults else sum(server.spent() for server in servers)
            own, began = time.process_time(), time.perf_counter()
            measured = asyncio.run(
                drive(port, people, options.seconds, options.pace, disturb, tastes=bool(options.learn))
            )
            own, passed = time.process_time() - own, time.perf_counter() - began
            worst = max(worst, report(options, people, measured, base, log))
            if not options.faults:
                used = sum(server.spent() for server in servers) - before
                spent = 1000 * used / max(1, len(measured.replies))
                print(
                    f"  processor: {spent:.1f} ms per answer in the workers ({spent / 1000 / base:.1f} times the "
                    f"reference); cores in use: {used / passed:.2f} by the workers, {own / passed:.2f} by the people"
                )
            print("  " + check(url, measured) + (learned(url) if options.learn else ""))
    return worst


def learned(url: str) -> str:
    """Return a text about the versions that a study has learned, and about a failure to learn more."""
    opened = Database(url)
    found, finished, state = opened.read(
        lambda connection: (
            populations.summaries(connection, 1),
            learning.count_finished(connection, 1),
            learning.state(connection, 1),
        )
    )
    opened.close()
    # A version that was dropped, because somebody was forgotten, has no facts.
    kept = [one["facts"] for one in reversed(found) if one["facts"]]
    versions = ", ".join(f"{facts['sessions']} in {facts['seconds']:.0f} s" for facts in kept)
    words = f"\n  {finished} sessions finished; {len(found)} versions learned during the run"
    return (
        words
        + (f" (sessions and seconds: {versions})" if kept else "")
        + (f"; {state.failure}" if state.failure else "")
    )


def report(options, people: int, measured: Measured, base: float, log: list[str]) -> int:
    replies, waits = 1000 * np.array(measured.replies), 1000 * np.array(measured.waits)
    print(
        f"{people} people, an answer every {options.pace:g} s for {options.seconds:g} s, {options.items:,} items, "
        f"{options.database}, {options.servers} x {options.workers} workers: {len(replies)} answers"
    )
    for name, times in (("reply", replies), ("wait", waits)):
        quantiles = np.quantile(times, [0.5, 0.95, 0.99])
        print(
            f"  {name}: median {quantiles[0]:.0f} ms, 95 % {quantiles[1]:.0f} ms, 99 % {quantiles[2]:.0f} ms "
            f"(95 % is {quantiles[1] / 1000 / base:.1f} times the reference)"
        )
    print(
        f"  prefetched before the answer: {measured.held / max(1, len(replies)):.0%}; wrong among them: "
        f"{len(measured.wrong)}; errors: {len(measured.errors)}; resent: {measured.retries}"
    )
    for error in sorted(set(measured.errors))[:5]:
        print(f"    {error[:300]}")
    if log:
        print(f"  killed the {options.faults} at {', '.join(log)} s")
    slow = not options.faults and np.quantile(replies, 0.95) > 200
    return int(bool(measured.wrong) or slow or (bool(measured.errors) and not options.faults))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=lambda text: [int(part) for part in text.split(",")], default=PEOPLE)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pace", type=float, default=2.0)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--dimensions", type=int, default=DIMENSIONS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--soak", type=int, metavar="SESSIONS", help="short sessions, and the memory of the workers")
    parser.add_argument(
        "--learn", choices=["auto", "off"], help="use items without coordinates; learn from sessions or not"
    )
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--faults", choices=["worker", "server", "one", "database", "restart"])
    parser.add_argument("--restart", type=int, metavar="ANSWERS", help="number of answers per session before a restart")
    options = parser.parse_args()
    if options.servers > 1 and options.database != "postgresql":
        parser.error("--servers needs --database postgresql")
    if options.faults in ("database", "restart") and options.database != "postgresql":
        parser.error(f"--faults {options.faults} needs --database postgresql")
    sys.exit(run(options))


if __name__ == "__main__":
    main()
