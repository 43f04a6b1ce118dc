"""Who may call each route of the application, found by calling it; the tables of docs/reference/access.md."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import httpx

from helpers import abuse
from helpers.serving import GUARD, answer_to, configuration, csrf_of, some_items
from pairseek.store import people
from pairseek.web.access import auth
from pairseek.web.access.tokens import hash_token
from pairseek.web.studies.creation import create_study

# Behind a proxy, so that no request counts as one of this machine, to which /metrics is open.
PASSWORD = "a long password"
PROXIED = {"x-forwarded-for": "203.0.113.7"}
POINTS = some_items()
ITEMS = [{"id": str(name), "coordinates": POINTS.coordinates[row].tolist()} for row, name in enumerate(POINTS.ids)]
# Bodies with which a request does something; other routes get an empty form.
BODIES = {
    ("PUT", "/api/v1/studies/{slug}/items"): {"items": ITEMS},
    ("PATCH", "/api/v1/studies/{slug}"): {"title": "Another"},
    ("POST", "/api/v1/studies/{slug}/duplicate"): {"slug": None},
    ("PATCH", "/api/v1/studies/{slug}/attributes"): {"attributes": {"in_stock": {str(POINTS.ids[0]): True}}},
    ("POST", "/api/v1/studies/{slug}/forget"): {"participant": "p1"},
    ("POST", "/api/v1/studies/{slug}/sessions"): {"participant": "p2"},
    ("POST", "/api/v1/studies/{slug}/links"): {"participants": ["p1"]},
    ("POST", "/api/v1/sessions/{session_id}/answers"): {"query": "p3", "outcome": "left"},
    ("POST", "/api/v1/sessions/{session_id}/undo"): {"query": "p2"},
    ("POST", "/api/v1/sessions/{session_id}/recommendations"): {"count": 2},
    ("PUT", "/api/v1/studies/{slug}/population"): {"version": 0},
    ("PUT", "/api/v1/studies/{slug}/populations/{name}"): {"population": {}},
    ("PUT", "/api/v1/studies/{slug}/limits"): {"quota": 5, "closes": None},
    ("PUT", "/api/v1/sessions/{session_id}/replies"): {"stage": "before", "replies": {}},
    ("POST", "/s/{slug}/answer"): {"query": "p3", "outcome": "left"},
    ("POST", "/s/{slug}/undo"): {"query": "p2"},
    ("POST", "/s/{slug}/focus"): {"query": "p2", "lost_at": "2026-01-01T00:00:00Z", "ms": 5},
}
numbers = count()


@dataclass(frozen=True)
class Scene:
    """New study, a session in it with two answers and the session's token, and an API token."""

    slug: str
    session: str
    token: str
    api_token: int


def scene(visitors, *, owner: str = "test", opened_by: str | None = None) -> Scene:
    """Create a study with a session of p1, which an API token may have begun, and an API token of ``owner``."""
    slug, service = f"s{next(numbers)}", visitors.service
    create_study(service.database, configuration(slug=slug), POINTS, is_open=True, who="test")
    session, token = service.sessions.open(service.catalogue.by_slug(slug), {"participant": "p1"}, opened_by=opened_by)
    for query in ("p1", "p2"):
        service.sessions.answer(service.sessions.by_id(session), answer_to(query, "left"))
    auth.make_token(service.database, "t", ["read"], owner)
    newest = max(row["id"] for row in service.database.read(people.list_tokens))
    return Scene(slug, session, token, newest)


def call(client: httpx.Client, route: tuple[str, str], on: Scene, headers=None, *, csrf: str = "") -> httpx.Response:
    """Call a route for a scene."""
    method, path = route
    known = {"slug": on.slug, "session_id": on.session, "session": on.session, "number": str(on.api_token)}
    known |= {"table": "answers", "ending": "svg" if "/slide." in path else "csv", "query": "p2", "action": "void"}
    known |= {"name": "x", "replacement_id": "x", "width": "320", "file": "run.js"}
    body = BODIES.get(route)
    if route == ("POST", "/api/v1/studies"):
        body = {"configuration": {"title": "New", "answers": 3, "slug": f"new-{next(numbers)}"}, "items": ITEMS}
    form = {"csrf": csrf, "count": "1"}
    if path == "/login":
        form |= {"name": "root", "password": PASSWORD}
    content = {"json": body} if body or path.startswith("/api/") else {"data": form}
    if method == "GET":
        content = {"params": {"query": "p3"}}
    return client.request(method, path.format(**known), headers=headers, **content)


def is_taken(client: httpx.Client, route: tuple[str, str], on: Scene, csrf: str = "") -> bool:
    """Return whether the caller may call a route: whether the reply is about what was sent, not about who sent it."""
    reply = call(client, route, on, csrf=csrf)
    if reply.status_code in (401, 403):
        return False
    # Without a session, the page of pairs leads back to the start page; a token of somebody else is not found.
    led_away = route[0] == "GET" and reply.headers.get("location") == f"/s/{on.slug}"
    return not led_away and not (route[1].startswith("/tokens/") and reply.status_code == 404)


def tables(visitors) -> str:
    """Return the tables of all routes, in Markdown."""
    programs, pages = [], []
    for path, methods in abuse.routes():
        for method in sorted(methods - {"HEAD"}):
            (programs if path.startswith("/api/") or path == "/metrics" else pages).append((method, path))
    for name, is_admin in (("ann", False), ("root", True)):
        auth.set_password(visitors.service.database, name, PASSWORD, is_admin=is_admin)
    scopes = {f"`{scope}`": Program(visitors, scope) for scope in auth.SCOPES}
    by_program = {"token of a session": Program(visitors)} | scopes
    by_person = {"visitor": Person(visitors), "participant": Participant(visitors)}
    by_person |= {"researcher": SignedIn(visitors, "ann"), "administrator": SignedIn(visitors, "root")}
    return f"{_table(programs, by_program)}\n\n{_table(pages, by_person)}"


def _table(routes, callers: dict[str, Caller]) -> str:
    lines = [f"| route | {' | '.join(callers)} |", f"|---|{'---|' * len(callers)}"]
    lines += [f"| `{' '.join(route)}` | {' | '.join(who.may(route) for who in callers.values())} |" for route in routes]
    return "\n".join(lines)


class Caller:
    """Somebody who calls routes: for the session or token of somebody else, and for their own."""

    def __init__(self, visitors) -> None:
        self.visitors = visitors
        self._usual = None

    def may(self, route: tuple[str, str]) -> str:
        """Return the cell of a route."""
        # Requests that change nothing share their scenes.
        others, own = self._scenes() if route[0] != "GET" or self._usual is None else self._usual
        self._usual = (others, own) if route[0] == "GET" else self._usual
        if self._may(route, others, own):
            return "yes"
        return "own" if self._may(route, own, own) else "–"

    def _scenes(self) -> tuple[Scene, Scene]:
        return scene(self.visitors), scene(self.visitors)

    def _may(self, route, on: Scene, own: Scene) -> bool:
        with httpx.Client(
            base_url=self.visitors.address, timeout=60, headers={**PROXIED, **GUARD}, verify=False
        ) as client:
            return is_taken(client, route, on, self.introduce(client, own))

    def introduce(self, client: httpx.Client, own: Scene) -> str:
        """Give the client its credentials; return the token of its forms."""
        raise NotImplementedError


class Program(Caller):
    """Program with an API token of one scope; without a scope, with the token of a session."""

    def __init__(self, visitors, scope: str | None = None) -> None:
        super().__init__(visitors)
        self.token = scope and auth.make_token(visitors.service.database, "test", [scope], "test")

    def _scenes(self) -> tuple[Scene, Scene]:
        opened_by = None if self.token is None else hash_token(self.token)
        return scene(self.visitors), scene(self.visitors, opened_by=opened_by)

    def introduce(self, client, own) -> str:
        client.headers["authorization"] = f"Bearer {self.token or own.token}"
        return ""


class Person(Caller):
    """Visitor with nothing but a browser."""

    def introduce(self, client, own) -> str:
        return csrf_of(client.get(f"/s/{own.slug}"))


class Participant(Person):
    """Participant with the cookie of a session."""

    def introduce(self, client, own) -> str:
        client.cookies.set(f"pairseek_s_{own.slug}", own.token)
        return super().introduce(client, own)


class SignedIn(Caller):
    """Researcher who is signed in."""

    def __init__(self, visitors, name: str) -> None:
        super().__init__(visitors)
        self.name = name

    def _scenes(self) -> tuple[Scene, Scene]:
        return scene(self.visitors), scene(self.visitors, owner=self.name)

    def introduce(self, client, own) -> str:
        client.cookies.set(
            auth.LOGIN_COOKIE, auth.sign_in(self.visitors.service.database, self.name, PASSWORD, "203.0.113.7")
        )
        return csrf_of(client.get("/tokens"))
