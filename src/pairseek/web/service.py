"""All that the routes of one worker share."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fastapi import Request
from jinja2 import Environment, PackageLoader, select_autoescape
from starlette.responses import HTMLResponse

from pairseek.store import migrate, people
from pairseek.store.database import Database
from pairseek.web.catalogue import Catalogue
from pairseek.web.messages import Messages
from pairseek.web.security import CSRF_COOKIE, Rate, csrf_token, form_nonce, set_cookie
from pairseek.web.sessions import Sessions
from pairseek.web.settings import Settings

PAGES = Path(__file__).parent / "pages"


@dataclass(eq=False)
class Service:
    """Database, sessions and templates."""

    settings: Settings
    database: Database
    catalogue: Catalogue
    sessions: Sessions
    secret: str
    starts: Rate = field(default_factory=lambda: Rate(60, 60))

    @classmethod
    def opened(cls, settings: Settings) -> Service:
        """Open the database and check its tables."""
        database = Database(settings.database)
        migrate.ready(database)
        catalogue = Catalogue(database)
        fresh = secrets.token_urlsafe(32)
        secret = settings.secret or database.write(lambda connection: people.secret(connection, fresh))
        return cls(settings, database, catalogue, Sessions(database, catalogue, settings.kept_sessions), secret)

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    @cached_property
    def templates(self) -> Environment:
        """The pages; everything that is put into them is made safe."""
        environment = Environment(
            loader=PackageLoader("pairseek.web", "pages/templates"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals["asset"] = asset
        return environment

    def page(self, request: Request, name: str, *, status: int = 200, language: str = "en", **values: Any) -> HTMLResponse:
        """A page from a template, with a nonce for its forms and the texts of its language."""
        nonce = form_nonce(request)
        text = self.templates.get_template(name).render(
            **values,
            t=Messages.of(language),
            language=language,
            csrf=csrf_token(self.secret, nonce),
            path=request.url.path,
        )
        response = HTMLResponse(text, status)
        if request.cookies.get(CSRF_COOKIE) != nonce:
            set_cookie(response, CSRF_COOKIE, nonce, self.settings)
        return response


def asset(name: str) -> str:
    """The address of a static file."""
    return f"/static/{name}"


def service_of(request: Request) -> Service:
    """The service that this request came to."""
    service = request.app.state.service
    assert isinstance(service, Service)
    return service
