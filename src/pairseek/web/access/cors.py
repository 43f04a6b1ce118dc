"""Cross-origin requests to the HTTP API, from pages of the origins in the settings."""

from __future__ import annotations

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from pairseek.web.settings import Settings

_API_PREFIX = "/api/"


class CrossOriginMiddleware:
    """Middleware that lets pages of other origins call the API and nothing else.

    Callers authenticate with a token in a header. Cookies are never sent, so no page can act on behalf of a researcher
    who is signed in.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._with_cors = CORSMiddleware(
            app,
            allow_origins=settings.origins,
            allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=("Authorization", "Content-Type"),
            expose_headers=("Retry-After",),
            max_age=3600,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        is_api = scope["type"] == "http" and scope["path"].startswith(_API_PREFIX)
        await (self._with_cors if is_api else self.app)(scope, receive, send)
