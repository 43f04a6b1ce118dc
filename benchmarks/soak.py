"""Soak of the service: mixed work on two servers and one PostgreSQL database, and what it leaves behind.

    python benchmarks/soak.py                    # an hour, a few requests a second
    python benchmarks/soak.py --seconds 600      # as in `make test-long`

People answer in a study that learns from them, behind a round-robin proxy. Meanwhile a researcher looks at findings and
reports, downloads exports, uploads pictures and deletes studies, and programs answer over the HTTP API, replace
catalogues and forget participants, so that the database stays about as large as it was. Every quarter of a minute the
program reads the memory, threads and open files of the workers, asks both servers whether they are ready, and adds up
their failed background work. It fails if memory grows, a thread or a worker is gone, background work has failed, a
reply was neither a success nor one of the documented refusals under load (429 and 503), or an acknowledged answer is
not stored exactly once.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
from PIL import Image

import service
from pairseek.model.items import Items
from pairseek.store import migrate
from pairseek.store.database import Database
from pairseek.web.access import auth
from pairseek.web.studies.configuration import configured
from pairseek.web.studies.creation import create_study

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from helpers import postgres
from helpers.proxy import Proxy
from helpers.serving import csrf_of

SAMPLE_SECONDS = 15.0
KEPT_SESSIONS = 100
"""Sessions that forgetting leaves in the study of the people."""
MAX_GROWTH = 60_000_000
"""Bytes by which all workers together may grow from the middle third to the last."""
REFUSED_UNDER_LOAD = (429, 503)


@dataclass(frozen=True)
class Sample:
    """State of the workers at one moment, by process id."""

    seconds: float
    memory: dict[int, int]
    threads: dict[int, int]
    files: dict[int, int]
    is_ready: bool
    failures: float


@dataclass
class Outcome:
    """Samples, and replies by kind of work and status."""

    samples: list[Sample] = field(default_factory=list)
    replies: Counter[tuple[str, str]] = field(default_factory=Counter)
    longest: dict[str, float] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)

    def problems(self) -> list[str]:
        """Return what must not happen in a soak, in words."""
        found = [
            f"{count} replies to {work}: {status}"
            for (work, status), count in self.replies.items()
            if not (status.startswith("2") or status[:3] in ("303", *map(str, REFUSED_UNDER_LOAD)))
        ]
        first, last = self.samples[0], self.samples[-1]
        if set(first.memory) != set(last.memory):
            found.append(f"workers were replaced: {sorted(first.memory)} became {sorted(last.memory)}")
        third = max(1, len(self.samples) // 3)
        for pid in first.threads.keys() & last.threads.keys():
            # The server's pool of request threads grows and shrinks, so only the minimum means anything.
            before, after = (
                min(sample.threads.get(pid, 0) for sample in part)
                for part in (self.samples[:third], self.samples[-third:])
            )
            if after < before:
                found.append(f"a worker had {before} threads and has {after}")
        not_ready = sum(not sample.is_ready for sample in self.samples)
        if not_ready:
            found.append(f"a server was not ready in {not_ready} of {len(self.samples)} samples")
        failures = max(sample.failures for sample in self.samples)
        if failures:
            found.append(f"background work failed {failures:g} times")
        found += [f"logged: {line}" for line in self.warnings]
        if self.growth() > MAX_GROWTH:
            found.append(f"memory grew by {self.growth() / 1e6:.0f} MB from the middle third to the last")
        return found

    def growth(self) -> float:
        """Return the median memory of the last third less that of the middle third, in bytes."""
        totals = [sum(sample.memory.values()) for sample in self.samples]
        third = len(totals) // 3
        return float(np.median(totals[-third:]) - np.median(totals[third:-third])) if third else 0.0

    def report(self) -> str:
        """Return a table of the samples at the start, the quarters and the end, and the replies by kind of work."""
        lines = ["    s   memory MB   threads   open files   background failures"]
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            sample = self.samples[round(share * (len(self.samples) - 1))]
            lines.append(
                f"{sample.seconds:5.0f}   {sum(sample.memory.values()) / 1e6:9.0f}   {sum(sample.threads.values()):7d}"
                f"   {sum(sample.files.values()):10d}   {sample.failures:g}"
            )
        lines.append(f"memory of the last third less the middle third: {self.growth() / 1e6:+.0f} MB")
        for work in sorted({work for work, _ in self.replies}):
            counts = ", ".join(f"{status}: {n}" for (name, status), n in sorted(self.replies.items()) if name == work)
            lines.append(f"{work}: {counts}; longest {self.longest[work]:.2f} s")
        return "\n".join(lines)


class Workload:
    """Requests of a researcher and of programs, sent to the servers in turn."""

    def __init__(self, ports: list[int], token: str, until: float, outcome: Outcome) -> None:
        self._servers = itertools.cycle(f"http://127.0.0.1:{port}" for port in ports)
        self._until, self._outcome = until, outcome
        self._browser = httpx.AsyncClient(timeout=120)
        self._program = httpx.AsyncClient(timeout=120, headers={"authorization": f"Bearer {token}"})
        self._names = itertools.count()

    async def run(self) -> None:
        """Do all kinds of work, each at a fixed pace, until the time is over."""
        async with self._browser, self._program:
            page = await self._browser.get(f"{next(self._servers)}/login")
            form = {"csrf": csrf_of(page), "name": "admin", "password": "a long password"}
            reply = await self._browser.post(f"{next(self._servers)}/login", data=form)
            assert reply.status_code == 303, reply.text
            await asyncio.gather(
                self._repeat(3.0, self._poll_findings),
                self._repeat(20.0, self._read_findings),
                self._repeat(15.0, self._export),
                self._repeat(10.0, self._play),
                self._repeat(60.0, self._upload),
                self._repeat(45.0, self._replace),
                self._repeat(180.0, self._forget),
            )

    async def _repeat(self, pause: float, step: Callable[[], Awaitable[None]]) -> None:
        while time.perf_counter() < self._until:
            began = time.perf_counter()
            with contextlib.suppress(_Refused):
                await step()
            rest = min(began + pause, self._until) - time.perf_counter()
            await asyncio.sleep(max(0.0, rest))

    async def _send(self, work: str, client: httpx.AsyncClient, method: str, path: str, **content) -> httpx.Response:
        """Send a request, note its status and time; raise `_Refused` if it was not a success."""
        began = time.perf_counter()
        try:
            reply = await client.request(method, f"{next(self._servers)}{path}", **content)
        except httpx.HTTPError as error:
            self._outcome.replies[work, repr(error)] += 1
            raise _Refused from None
        finally:
            spent = time.perf_counter() - began
            self._outcome.longest[work] = max(spent, self._outcome.longest.get(work, 0.0))
        is_refused = reply.status_code >= 400
        code = f" {_code(reply)}" if is_refused else ""
        self._outcome.replies[work, f"{reply.status_code}{code}"] += 1
        if is_refused:
            raise _Refused
        return reply

    async def _poll_findings(self) -> None:
        await self._send("poll of findings", self._browser, "GET", "/studies/load/findings.json")

    async def _read_findings(self) -> None:
        for path in ("", "/findings", "/report.html", "/live.json"):
            await self._send("page of the researcher", self._browser, "GET", f"/studies/load{path}")
        await self._send("page of the researcher", self._browser, "GET", "/studies")

    async def _export(self) -> None:
        for name in ("answers.csv", "participants.parquet", "ranking.csv", "estimates.csv"):
            await self._send("export", self._program, "GET", f"/api/v1/studies/load/export/{name}")
        bundle = await self._send("export", self._program, "GET", "/api/v1/studies/load/bundle.zip")
        assert bundle.content[:2] == b"PK"

    async def _play(self) -> None:
        """Answer over the API, take one answer back, read recommendations, and delete the session."""
        opened = await self._send("API", self._program, "POST", "/api/v1/studies/placed/sessions", json={})
        name, state = opened.json()["session"], opened.json()["state"]
        for step in range(6):
            body = {"query": state["query"]["query"], "outcome": ("left", "right")[step % 2]}
            state = (
                await self._send("API", self._program, "POST", f"/api/v1/sessions/{name}/answers", json=body)
            ).json()
        await self._send("API", self._program, "POST", f"/api/v1/sessions/{name}/undo", json={"query": body["query"]})
        for what in ("recommendations", "estimate"):
            await self._send("API", self._program, "GET", f"/api/v1/sessions/{name}/{what}")
        await self._send("API", self._program, "DELETE", f"/api/v1/sessions/{name}")

    async def _upload(self) -> None:
        """Create a study from pictures, add a picture, look at it, and delete it."""
        page = await self._send("upload", self._browser, "GET", "/studies/new")
        form = {"csrf": csrf_of(page), "title": f"Pictures {next(self._names)}"}
        pictures = [("images", (f"{name}.png", _picture(), "image/png")) for name in ("owl", "jay", "coot", "crow")]
        made = await self._send("upload", self._browser, "POST", "/studies/new", data=form, files=pictures)
        path = made.headers["location"]
        more = [("images", ("wren.png", _picture(), "image/png"))]
        await self._send("upload", self._browser, "POST", f"{path}/items", data=form, files=more)
        await self._send("upload", self._browser, "GET", path)
        await self._send("deletion of a study", self._program, "DELETE", f"/api/v1{path}")

    async def _replace(self) -> None:
        """Replace the catalogue of a study by one with another last item."""
        points = _points()
        names = [*map(str, range(len(points) - 1)), f"new-{next(self._names)}"]
        items = [{"id": name, "coordinates": row} for name, row in zip(names, points.tolist(), strict=True)]
        await self._send("replacement", self._program, "PUT", "/api/v1/studies/replaced/items", json={"items": items})

    async def _forget(self) -> None:
        """Forget the participants who finished first, and with them what was learned."""
        listed = await self._send("forgetting", self._program, "GET", "/api/v1/studies/load/sessions")
        finished = sorted((row for row in listed.json() if row["finished_at"]), key=lambda row: row["finished_at"])
        for row in finished[:-KEPT_SESSIONS]:
            body = {"participant": row["participant"]}
            self._outcome.forgotten.add(row["session"])
            await self._send("forgetting", self._program, "POST", "/api/v1/studies/load/forget", json=body)


class _Refused(Exception):
    """A reply that was not a success."""


def _code(reply: httpx.Response) -> str:
    try:
        return str(reply.json()["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return reply.text[:200]


def _picture() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng().integers(0, 255, (320, 320, 3), dtype=np.uint8)).save(file, "PNG")
    return file.getvalue()


def _points() -> np.ndarray:
    return np.random.default_rng(39).normal(size=(2000, 4))


async def watch(servers: list[service.Server], until: float, outcome: Outcome) -> None:
    """Take samples until the time is over."""
    began = time.perf_counter()
    async with httpx.AsyncClient(timeout=30) as client:
        while True:
            outcome.samples.append(await _sample(client, servers, time.perf_counter() - began))
            if time.perf_counter() >= until:
                return
            await asyncio.sleep(max(0.0, min(SAMPLE_SECONDS, until - time.perf_counter())))


async def _sample(client: httpx.AsyncClient, servers: list[service.Server], seconds: float) -> Sample:
    is_ready, failures = True, 0.0
    for server in servers:
        address = f"http://127.0.0.1:{server.port}"
        try:
            reply = await client.get(f"{address}/readyz")
            metrics = (await client.get(f"{address}/metrics")).text.splitlines()
        except httpx.HTTPError:
            is_ready = False
            continue
        is_ready = is_ready and reply.json() == {"status": "ready"}
        failures += sum(
            float(line.rpartition(" ")[2]) for line in metrics if line.startswith("pairseek_background_failures_total{")
        )
    processes = [Path(f"/proc/{pid}") for server in servers for pid in server.children()]
    return Sample(
        seconds,
        {int(process.name): service.resident(int(process.name)) for process in processes},
        {int(process.name): len(list((process / "task").iterdir())) for process in processes},
        {int(process.name): len(list((process / "fd").iterdir())) for process in processes},
        is_ready,
        failures,
    )


def _warnings(server: service.Server) -> list[str]:
    """Return the lines of a server's log that are not plain information, without refusals under load.

    That the first few people are too few for a study to learn from is not a failure either.
    """
    server.log.seek(0)
    lines = [line for line in server.log.read().decode().splitlines() if line.startswith("{")]
    records = [(line, json.loads(line)) for line in lines]
    return [
        line
        for line, record in records
        if record["level"] != "info"
        and record.get("status") != 503
        and "has learned nothing" not in record.get("why", "")
    ]


def run(seconds: float, *, people: int = 8, pace: float = 4.0, tell: Callable[[str], object] = print) -> list[str]:
    """Do the work for some seconds; return the problems that came up."""
    outcome = Outcome()
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(postgres.cluster(durable=True)).database()
        database = stack.enter_context(contextlib.closing(Database(url)))
        migrate.prepare(database)
        names = Items(ids=[str(k) for k in range(len(service.TASTES))])
        people_study = {**service.settings(service.LEARN_ANSWERS), "learn": "auto"}
        create_study(database, configured(people_study), names, is_open=True, who="soak")
        for slug in ("placed", "replaced"):
            settings = configured({"title": slug, "slug": slug, "answers": 20})
            create_study(database, settings, Items(_points(), [*map(str, range(2000))]), is_open=True, who="soak")
        servers = [service.Server(url, 2) for _ in range(2)]
        for server in servers:
            stack.callback(server.stop)
            server.start()
        token = auth.make_token(database, "soak", ["read", "write", "answer", "delete"], "admin")
        ports = [server.port for server in servers]
        proxy = stack.enter_context(Proxy(ports))

        async def everything() -> service.Measured:
            until = time.perf_counter() + seconds
            measured, *_ = await asyncio.gather(
                service.drive(proxy.port, people, seconds, pace, tastes=True),
                Workload(ports, token, until, outcome).run(),
                watch(servers, until, outcome),
            )
            return measured

        measured = asyncio.run(everything())
        outcome.replies.update(("answers of people", error) for error in measured.errors)
        outcome.replies["answers of people", "200"] = len(measured.replies)
        outcome.longest["answers of people"] = max(measured.replies)
        outcome.warnings = [line for server in servers for line in _warnings(server)]
        tell(f"{outcome.report()}\n{measured.retries} requests of people sent again")
        for session in outcome.forgotten:
            measured.acknowledged.pop(session, None)
        stored = service.check(url, measured)
        tell(f"{len(outcome.forgotten)} sessions forgotten; of the others: {stored}{service.learned(url)}")
    return outcome.problems()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    problems = run(parser.parse_args().seconds)
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
