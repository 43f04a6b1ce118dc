"""Fake service behind the pages: the same addresses and shapes, with a rule instead of a search.

The next pair is a function of the outcomes so far, as with a real search, so a page that shows a wrong pair is detected
out.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from helpers.pages_data import LIVE, PAGES, card, near_colours, picture, sound
from pairseek.web.pages import plotly_script, render
from pairseek.web.pages.files import PageFiles

POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; media-src 'self' https:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
SLUG = "colours"
STUDY = {"slug": SLUG, "title": "A colour for the hallway", "style": None, "logo": None}


@dataclass
class Study:
    """State that a test can set and inspect."""

    total: int = 5
    kind: str = "colour"
    practice: bool = False
    prefetch: bool = True
    offers_prefetch: bool = True
    """Whether the page of the pairs is told that the service prefetches."""
    down: bool = False
    closed: bool = False
    undo: bool = True
    confirmed: bool = False
    """Whether the result was opened, after which nothing is taken back."""
    redirect: str | None = None
    wait: int | None = None
    deaf: bool = False
    """Take what is sent, and lose the reply."""
    events: list[tuple[str, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Every query that was ever answered: one that was taken back is asked again under a new name."""
    received: list[dict] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    focus: list[dict] = field(default_factory=list)
    prefetches: int = 0
    picture_seconds: float = 0.0

    def outcomes(self) -> tuple[str, ...]:
        return tuple(outcome for _, outcome in self.events)

    def answer(self, query: str, outcome: str) -> None:
        self.events.append((query, outcome))
        self.names.append(query)

    def answered(self) -> int:
        return sum(outcome != "skip" for _, outcome in self.events)

    def pair(self, outcomes: tuple[str, ...]) -> dict | None:
        if sum(outcome != "skip" for outcome in outcomes) >= self.total:
            return None
        mark = hashlib.sha256("/".join(outcomes).encode()).digest()
        left, right = mark[0], (mark[0] + 1 + mark[1] % 200) % 256
        number = len(outcomes) + 1
        name = f"q{number}x{mark.hex()[:6]}"
        times = sum(answered.split("-")[0] == name for answered in self.names)
        return {
            "query": f"{name}-{times + 1}" if times else name,
            "number": number,
            "left": card(left, self.kind),
            "right": card(right, self.kind),
        }

    def state(self) -> dict:
        answered = self.answered()
        query = self.pair(self.outcomes())
        status = "closed" if self.closed else "asking" if query else "finished"
        return {
            "status": status,
            "query": query if status == "asking" else None,
            "progress": {
                "answered": answered,
                "total": self.total,
                "left": self.total - answered,
                "share": answered / self.total,
            },
            "can": {
                "undo": self.events[-1][0] if self.events and self.undo and not self.confirmed else None,
                "tie": True,
                "skip": True,
            },
            "result": f"/s/{SLUG}/result" if status == "finished" else None,
        }


def problem(status: int, code: str, message: str) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message, "received": None, "hint": None}}, status)


def service(study: Study) -> Starlette:  # noqa: C901 - one small function a route
    def html(page: str, data: dict, status: int = 200) -> HTMLResponse:
        return HTMLResponse(render(page, data), status, headers={"Cache-Control": "no-store"})

    async def start(request: Request) -> Response:
        data = {"study": STUDY, "consent_html": "<p>Your answers are kept without your name.</p>", "csrf": "c"}
        return html(
            "start",
            {**data, "instructions_html": None, "answers": study.total, "preview": False, "begun": False}
            | {"texts": "0" * 32, "changed": False},
        )

    async def begin(request: Request) -> Response:
        return RedirectResponse(f"/s/{SLUG}/run", 303)

    async def run(request: Request) -> Response:
        if study.state()["status"] == "finished" and study.state()["can"]["undo"] is None:
            return RedirectResponse(f"/s/{SLUG}/result", 303)
        data = {"study": STUDY, "session": "s1", "question": None, "state": study.state(), "preview": False}
        data |= {"similarity": False, "practice": study.practice or None, "prefetch": study.offers_prefetch}
        data["play"] = "end" if study.kind == "audio" else None
        return html("run", {**data, "offers": {"undo": study.undo, "tie": True, "skip": True}})

    async def result(request: Request) -> Response:
        study.confirmed = study.state()["status"] == "finished"
        data = {
            "study": STUDY,
            "goal": "taste",
            "map": None,
            "nearest": near_colours(),
            "first": False,
            "learned": [],
            "debrief_html": None,
            "answers": study.answered(),
        }
        ends = {"mine": f"/s/{SLUG}/mine", "redirect": study.redirect, "wait": study.wait, "code": "C123"}
        return html("result", {**data, **ends, "preview": False})

    async def state(request: Request) -> Response:
        return JSONResponse(study.state())

    async def answer(request: Request) -> Response:
        assert request.headers["X-Pairseek"] == "1"
        body = await request.json()
        study.received.append(body)
        if study.closed:
            return problem(409, "study_closed", "this study is closed")
        told = dict(study.events)
        if body["query"] in study.names:
            if told.get(body["query"]) != body["outcome"]:
                return problem(409, "answer_conflict", "this pair has another answer")
            return reply()
        asked = study.pair(study.outcomes())
        if asked is None or asked["query"] != body["query"]:
            return problem(404, "unknown_query", "this pair was not asked")
        study.answer(body["query"], body["outcome"])
        return reply()

    async def undo(request: Request) -> Response:
        query = (await request.json())["query"]
        study.undone.append(query)
        if study.confirmed:
            return problem(409, "session_finished", "this session is finished")
        if query in study.names and query not in dict(study.events):
            return reply()
        if not study.events or study.events[-1][0] != query:
            return problem(404, "unknown_query", "this is not the last answered pair")
        study.events.pop()
        return reply()

    def reply() -> Response:
        return Response(status_code=503) if study.deaf else JSONResponse(study.state())

    async def focus(request: Request) -> Response:
        study.focus.append(await request.json())
        return Response(status_code=204)

    async def prefetch(request: Request) -> Response:
        study.prefetches += 1
        asked = study.pair(study.outcomes())
        if not study.prefetch or asked is None or asked["query"] != request.query_params["query"]:
            return Response(status_code=204)
        after = {each: study.pair((*study.outcomes(), each)) for each in ("left", "right", "tie", "skip")}
        return JSONResponse({"query": asked["query"], **after})

    async def image(request: Request) -> Response:
        await asyncio.sleep(study.picture_seconds)
        return Response(picture(int(request.path_params["number"])), media_type="image/svg+xml")

    async def tone(request: Request) -> Response:
        return Response(sound(int(request.path_params["number"])), media_type="audio/wav")

    at = f"/s/{SLUG}"
    return Starlette(
        routes=[
            Route(at, start),
            Route(f"{at}/start", begin, methods=["POST"]),
            Route(f"{at}/run", run),
            Route(f"{at}/result", result),
            Route(f"{at}/state", state),
            Route(f"{at}/answer", answer, methods=["POST"]),
            Route(f"{at}/undo", undo, methods=["POST"]),
            Route(f"{at}/focus", focus, methods=["POST"]),
            Route(f"{at}/prefetch", prefetch),
            Route("/picture/{number}.svg", image),
            Route("/sound/{number}.wav", tone),
            Mount("/static", PageFiles()),
        ],
        middleware=[Middleware(Gate, study=study)],
    )


def gallery(language: str = "en") -> Starlette:
    """Return every page by name, rendered with its canned data."""

    async def shown(request: Request) -> Response:
        page, data = PAGES[request.path_params["name"]]
        return HTMLResponse(render(page, data, language=language))

    async def live(request: Request) -> Response:
        return JSONResponse(LIVE | {"answers": 2551})

    async def pending(request: Request) -> Response:
        return JSONResponse({"current": False})

    async def image(request: Request) -> Response:
        return Response(picture(int(request.path_params["number"])), media_type="image/svg+xml")

    async def tone(request: Request) -> Response:
        return Response(sound(int(request.path_params["number"])), media_type="audio/wav")

    async def plotly(request: Request) -> Response:
        return FileResponse(plotly_script())

    async def nothing(request: Request) -> Response:
        return Response(status_code=204)

    return Starlette(
        routes=[
            Route("/gallery/{name}", shown),
            Route("/studies/colours/live.json", live),
            Route("/studies/colours/findings.json", pending),
            Route("/picture/{number}.svg", image),
            Route("/sound/{number}.wav", tone),
            Route("/static/plotly.min.js", plotly),
            Route("/s/colours/prefetch", nothing),
            Mount("/static", PageFiles()),
        ],
        middleware=[Middleware(Gate, study=Study())],
    )


class Gate:
    """Add the content security policy to every reply, and fail while the test says that the service is down."""

    def __init__(self, app, study: Study) -> None:
        self.app, self.study = app, study

    async def __call__(self, scope, receive, send) -> None:
        async def with_policy(message) -> None:
            if message["type"] == "http.response.start":
                message["headers"].append((b"content-security-policy", POLICY.encode()))
            await send(message)

        if scope["type"] == "http" and self.study.down:
            await Response(status_code=503)(scope, receive, with_policy)
        else:
            await self.app(scope, receive, with_policy)


@contextlib.contextmanager
def served(app: Starlette) -> Iterator[str]:
    """Serve the application on a free local port until the block ends."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listening.close()
