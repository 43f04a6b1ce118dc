"""All that the routes of one worker share."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from fastapi import Request
from jinja2 import TemplateNotFound
from starlette.responses import HTMLResponse

from pairseek.errors import InvalidParameter
from pairseek.store import migrate, people
from pairseek.store.database import Database
from pairseek.web.ahead import Ahead, Gate
from pairseek.web.catalogue import Catalogue
from pairseek.web.keeping import Keeper
from pairseek.web.pages import languages, preferred_language, render
from pairseek.web.security import CSRF_COOKIE, Rate, csrf_token, form_nonce, set_cookie
from pairseek.web.sessions import Sessions
from pairseek.web.settings import Settings


@dataclass(eq=False)
class Service:
    """Database, sessions and templates."""

    settings: Settings
    database: Database
    catalogue: Catalogue
    sessions: Sessions
    secret: str
    gate: Gate
    ahead: Ahead | None
    keeper: Keeper
    starts: Rate = field(default_factory=lambda: Rate(60, 60))

    @classmethod
    def opened(cls, settings: Settings) -> Service:
        """Open the database and check its tables."""
        database = Database(settings.database)
        migrate.ready(database)
        catalogue = Catalogue(database)
        fresh = secrets.token_urlsafe(32)
        secret = settings.secret or database.write(lambda connection: people.secret(connection, fresh))
        sessions, gate = Sessions(database, catalogue, settings.kept_sessions), Gate()
        ahead = Ahead(sessions, gate) if settings.ahead else None
        if ahead is not None:
            ahead.start()
        keeper = Keeper(sessions, gate)
        keeper.start()
        return cls(settings, database, catalogue, sessions, secret, gate, ahead, keeper)

    def close(self) -> None:
        """Stop preparing and let go of the database."""
        if self.ahead is not None:
            self.ahead.stop()
        self.keeper.stop()
        self.database.close()

    def prepare(self, session_id: str, state: Mapping[str, Any]) -> None:
        """Have the pairs prepared that may follow, if there is something to answer."""
        if self.ahead is not None and state["query"] is not None:
            self.ahead.prepare(session_id, state["query"]["query"])

    def page(
        self, request: Request, name: str, data: Mapping[str, Any], *, status: int = 200, language: str | None = None
    ) -> HTMLResponse:
        """A page, with the token that its forms send back."""
        nonce = form_nonce(request)
        chosen = language if language in languages() else preferred_language(request.headers.get("accept-language"))
        text = rendered(name, {**data, "csrf": csrf_token(self.secret, nonce)}, chosen)
        response = HTMLResponse(text, status)
        if request.cookies.get(CSRF_COOKIE) != nonce:
            set_cookie(response, CSRF_COOKIE, nonce, self.settings)
        return response


def rendered(name: str, data: Mapping[str, Any], language: str) -> str:
    """The page, or its bare data while there is no template for it."""
    try:
        return render(name, data, language=language)
    except (TemplateNotFound, InvalidParameter):
        return f"<!doctype html><title>{name}</title><pre>{escape(json.dumps(data, indent=1, default=str))}</pre>"


def service_of(request: Request) -> Service:
    """The service that this request came to."""
    service = request.app.state.service
    assert isinstance(service, Service)
    return service
