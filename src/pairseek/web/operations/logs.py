"""Structured logging: one JSON object per line, or plain warnings at a terminal, without personal data.

A request is logged with the pattern of its route (``/s/{slug}/answer``), never with its URL, query string or client
address, which may contain ids and tokens.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import traceback
from datetime import UTC, datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pairseek.web.operations.metrics import REQUESTS, RESPONSE_SECONDS

logger = logging.getLogger("pairseek.web")


class JsonLines(logging.Formatter):
    """Log formatter that writes one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of JSON."""
        facts = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            # Further lines of other packages' messages may quote what was sent.
            "event": record.getMessage().partition("\n")[0],
            "process": record.process,
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            # Only the location is logged, because the message may quote personal data.
            frames = traceback.extract_tb(record.exc_info[2])
            facts["error"] = record.exc_info[0].__name__
            facts["where"] = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames[-6:]]
        return json.dumps(facts, ensure_ascii=False)


class PlainLines(JsonLines):
    """Log formatter for a person at a terminal: time, level and event, followed by the facts."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of text."""
        facts = json.loads(super().format(record))
        moment = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        rest = [f"{name}={value}" for name, value in facts.items() if name not in ("at", "level", "event", "process")]
        return " ".join([moment, facts["level"], facts["event"], *rest])


def set_up() -> None:
    """Send everything that the process logs to standard error: warnings and uncaught exceptions of threads, too.

    A terminal shows only warnings and errors, so that the address and the password of a new server stay in view.
    """
    at_terminal = sys.stderr.isatty()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlainLines() if at_terminal else JsonLines())
    logging.getLogger().handlers = [handler]
    for name in ("pairseek", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING if at_terminal else logging.INFO)
    # uvicorn's access log contains addresses.
    logging.getLogger("uvicorn.access").disabled = True
    logging.captureWarnings(capture=True)
    threading.excepthook = sys.unraisablehook = _log_uncaught


def _log_uncaught(uncaught: threading.ExceptHookArgs | sys.UnraisableHookArgs) -> None:
    facts = (uncaught.exc_type, uncaught.exc_value, uncaught.exc_traceback)
    logger.error("uncaught exception", exc_info=facts)  # type: ignore[arg-type]


class LoggingMiddleware:
    """Middleware that measures and logs every request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_and_note)
        finally:
            seconds = time.perf_counter() - began
            route = (
                "/static" if scope["path"].startswith("/static/") else getattr(scope.get("route"), "path", "unknown")
            )
            REQUESTS.labels(scope["method"][:8], route, status).inc()
            RESPONSE_SECONDS.labels(route).observe(seconds)
            if route not in ("/healthz", "/readyz", "/metrics", "/static"):
                facts = {
                    "method": scope["method"][:8],
                    "route": route,
                    "status": status,
                    "ms": round(1000 * seconds, 1),
                }
                logger.log(logging.WARNING if status >= 500 else logging.INFO, "request", extra={"facts": facts})
