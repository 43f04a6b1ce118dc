"""The application: routes, errors in one shape, and what happens when it starts and stops."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from pairseek._version import __version__
from pairseek.errors import PairseekError, StoreUnavailable
from pairseek.web.logs import Watch
from pairseek.web.metrics import UNAVAILABLE
from pairseek.web.pages.files import PageFiles
from pairseek.web.problems import Problem, problem_of
from pairseek.web.routes import api, media, operation, participant, researcher
from pairseek.web.security import Guard
from pairseek.web.service import Service
from pairseek.web.settings import Settings

logger = logging.getLogger("pairseek.web")


def create_app(settings: Settings) -> FastAPI:
    """The application; it opens its database when it starts."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = app.state.service = Service.opened(settings)
        try:
            yield
        finally:
            service.close()

    app = FastAPI(title="pairseek", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(Watch)
    app.include_router(participant.router)
    app.include_router(researcher.router)
    app.include_router(media.router)
    app.include_router(operation.router)
    app.include_router(api.router)
    app.mount("/static", PageFiles(), name="static")
    app.add_exception_handler(PairseekError, _refused)
    app.add_exception_handler(researcher.SignInFirst, researcher.sign_in_first)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    return app


def reply_to(request: Request, problem: Problem) -> Response:
    """A problem as a page for people and as data for programs: the same words."""
    if _wants_page(request):
        service = request.app.state.service
        data = {"status": problem.status, "error": problem.record()["error"], "back": None}
        response: Response = service.page(request, "error", data, status=problem.status)
        return response
    return JSONResponse(problem.record(), problem.status)


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, PairseekError)
    if isinstance(error, StoreUnavailable):
        UNAVAILABLE.inc()
        logger.error("the database cannot be used", extra={"facts": {"why": str(error)[:300]}})
    return reply_to(request, problem_of(error))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first: Any = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    message = f"{place or 'the body'}: {first['msg'][0].lower()}{first['msg'][1:]}"
    hint = "Send it as the description at /docs says."
    return reply_to(request, Problem(422, "invalid_request", message, received=_short(first.get("input")), hint=hint))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, PairseekError):
        # The framework wraps what goes wrong while a body is read.
        return reply_to(request, problem_of(error.__cause__))
    known = {
        404: ("not_found", "there is nothing at this address", "Check the address."),
        405: ("method_not_allowed", "this address does not take that method", "See /docs for what it takes."),
    }
    code, message, hint = known.get(error.status_code, ("http_error", str(error.detail), "Check the request."))
    problem = Problem(
        error.status_code, code, message, received=f"{request.method} {request.url.path}"[:200], hint=hint
    )
    response = reply_to(request, problem)
    response.headers.update(error.headers or {})
    return response


def _short(value: Any) -> Any:
    text = repr(value)
    return value if len(text) <= 200 and isinstance(value, str | int | float | bool | None) else f"{text[:197]}..."
