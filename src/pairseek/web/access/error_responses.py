"""Error responses and exception handlers: an HTML page for browsers, JSON for programs."""

from __future__ import annotations

import logging
import reprlib
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from pairseek.errors import PairseekError, StoreUnavailable
from pairseek.web.errors import Problem, problem_of
from pairseek.web.operations.metrics import STORE_UNAVAILABLE

logger = logging.getLogger("pairseek.web")


def reply_to(request: Request, problem: Problem) -> Response:
    """Return a problem as an HTML page or as JSON, depending on what the client accepts."""
    if _wants_page(request):
        service = request.app.state.service
        data = {"status": problem.status, "error": problem.record()["error"], "back": _back(request)}
        # The study's language, on pages that belong to a study.
        language = getattr(request.state, "language", None)
        response: Response = service.page(request, "error", data, status=problem.status, language=language)
    else:
        response = JSONResponse(problem.record(), problem.status)
    response.headers.update(problem.headers)
    return response


def local_path(address: str) -> str | None:
    """Return the address if it is a path on this server, else None."""
    plain = address.startswith("/") and not address.startswith("//") and "\\" not in address and address.isprintable()
    return address if plain else None


def _back(request: Request) -> str | None:
    """Return path and query string of the referring page, if it is on this server."""
    try:
        referer = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return None
    if not referer.netloc or referer.netloc != request.headers.get("host"):
        return None
    return local_path(referer._replace(scheme="", netloc="", fragment="").geturl())


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")


async def pairseek_error(request: Request, error: Exception) -> Response:
    """Handle a `PairseekError`."""
    assert isinstance(error, PairseekError)
    if isinstance(error, StoreUnavailable):
        STORE_UNAVAILABLE.inc()
        logger.error("the database cannot be used", extra={"facts": {"why": str(error)[:300]}})
    return reply_to(request, problem_of(error))


async def invalid_request(request: Request, error: Exception) -> Response:
    """Handle a request that does not match the schema of its route."""
    assert isinstance(error, RequestValidationError)
    first: dict[str, Any] = error.errors()[0]
    problem = first.get("ctx", {}).get("error")
    if first["msg"] == "JSON decode error" and problem is not None:
        # The location is the number of the character.
        message = f"the body is not JSON: {problem}, at character {first['loc'][-1]}"
    else:
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        message = f"{place or 'the body'}: {first['msg'][0].lower()}{first['msg'][1:]}"
    hint = "Send the request as described at /docs."
    return reply_to(
        request, Problem(422, "invalid_request", message, received=_shortened(first.get("input")), hint=hint)
    )


async def http_error(request: Request, error: Exception) -> Response:
    """Handle an HTTP error of the framework, such as an unknown path or method."""
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, PairseekError):
        # The framework wraps errors raised while it reads a body.
        return reply_to(request, problem_of(error.__cause__))
    if isinstance(error.__cause__, RequestValidationError):
        return await invalid_request(request, error.__cause__)
    errors = {
        400: ("invalid_body", "the body cannot be read", "Send the request as described at /docs."),
        404: ("not_found", "there is no resource at this address", "Check the address."),
        405: ("method_not_allowed", "the method is not allowed at this address", "See /docs for the allowed methods."),
    }
    code, message, hint = errors.get(error.status_code, ("http_error", str(error.detail), "Check the request."))
    problem = Problem(
        error.status_code, code, message, received=f"{request.method} {request.url.path}"[:200], hint=hint
    )
    response = reply_to(request, problem)
    response.headers.update(error.headers or {})
    return response


def _shortened(value: object) -> object:
    """Return a value that was received if it is plain and short, else an excerpt, without writing all of it."""
    if isinstance(value, str | bytes):
        is_short, text = isinstance(value, str) and len(value) <= 198, repr(value[:200])
    else:
        is_short, text = isinstance(value, int | float | bool | None), reprlib.repr(value)
    return value if is_short and len(text) <= 200 else f"{text[:197]}..."
