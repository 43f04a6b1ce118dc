"""What an API token reaches by its scopes: every route with every scope, and what the replies open in turn."""

from collections.abc import Iterator
from itertools import count

import httpx
import pytest

from helpers import abuse
from helpers.serving import GUARD, answer, answer_to, configuration, csrf_of, served, some_items
from pairseek.web.access.auth import SCOPES, make_token
from pairseek.web.studies.creation import create_study

POINTS = some_items()
ITEMS = [{"id": str(name), "coordinates": POINTS.coordinates[row].tolist()} for row, name in enumerate(POINTS.ids)]
NEW = {"configuration": {"title": "New", "answers": 3}, "items": ITEMS}
SESSION = "/api/v1/sessions/{session_id}"
STUDY = "/api/v1/studies/{slug}"
# Of each route that takes a token: the scopes of which each is enough, for a session that another token or a person
# began, and a body that does something.
ROUTES = {
    ("GET", "/metrics"): ({"read"}, None),
    ("GET", "/api/v1/studies"): ({"read"}, None),
    ("POST", "/api/v1/studies"): ({"write"}, NEW),
    ("GET", STUDY): ({"read"}, None),
    ("DELETE", STUDY): ({"delete"}, None),
    ("PUT", f"{STUDY}/items"): ({"write"}, {"items": ITEMS}),
    ("GET", f"{STUDY}/catalogues"): ({"read"}, None),
    ("POST", f"{STUDY}/open"): ({"write"}, None),
    ("POST", f"{STUDY}/close"): ({"write"}, None),
    ("POST", f"{STUDY}/forget"): ({"delete"}, {"participant": "p1"}),
    ("GET", f"{STUDY}/sessions"): ({"read"}, None),
    ("POST", f"{STUDY}/sessions"): ({"answer"}, {"participant": "p1"}),
    ("POST", f"{STUDY}/links"): ({"write"}, {"participants": ["p1"]}),
    ("GET", f"{STUDY}/export/{{table}}.{{ending}}"): ({"read"}, None),
    ("GET", f"{STUDY}/bundle.zip"): ({"read"}, None),
    ("DELETE", SESSION): ({"delete"}, None),
    ("GET", f"{SESSION}/query"): (set(), None),
    ("POST", f"{SESSION}/answers"): (set(), {"query": "p3", "outcome": "left"}),
    ("POST", f"{SESSION}/undo"): (set(), {"query": "p2"}),
    ("GET", f"{SESSION}/estimate"): ({"read"}, None),
    ("GET", f"{SESSION}/recommendations"): ({"read"}, None),
    ("POST", f"{SESSION}/recommendations"): ({"read"}, {"count": 2}),
}
# Behind a proxy, so that no request counts as one of this machine, to which /metrics is open.
PROXIED = {"x-forwarded-for": "203.0.113.7"}
numbers = count()


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    with served(tmp_path_factory.mktemp("s") / "s.db", trusted_proxies="127.0.0.1") as visitors:
        yield visitors


def routes_of_the_app() -> set[tuple[str, str]]:
    return {(method, path) for path, methods in abuse.routes() for method in methods}


def victim(visitors) -> tuple[str, str]:
    """The slug of a new study, and the session of p1, who has answered twice."""
    slug, service = f"s{next(numbers)}", visitors.service
    create_study(service.database, configuration(slug=slug), POINTS, is_open=True, who="test")
    session, _ = service.sessions.open(service.catalogue.named(slug), {"participant": "p1"})
    for query in ("p1", "p2"):
        service.sessions.answer(service.sessions.by_id(session), answer_to(query, "left"))
    return slug, session


def bearer(token: str) -> dict[str, str]:
    return {**PROXIED, "authorization": f"Bearer {token}"}


def token_of(visitors, scopes, slug=None) -> str:
    number = None if slug is None else visitors.service.catalogue.row(slug).id
    return make_token(visitors.service.database, "test", list(scopes), "test", number)


def call(client, route, slug, session, headers) -> httpx.Response:
    method, path = route
    known = {"slug": slug, "session_id": session, "table": "answers", "ending": "csv", "session": session}
    known |= {"query": "p2", "action": "void", "number": "1", "name": "x", "width": "320", "file": "run.js"}
    body = ROUTES.get(route, (None, None))[1]
    if route == ("POST", "/api/v1/studies"):
        body = NEW | {"configuration": NEW["configuration"] | {"slug": f"new-{next(numbers)}"}}
    return client.request(method, path.format(**known), json=body, headers=headers)


def test_every_route_of_the_api_is_listed_here_with_its_scopes():
    programs = {route for route in routes_of_the_app() if route[1].startswith("/api/")}
    assert programs == {route for route in ROUTES if route[1] != "/metrics"}
    assert (
        {"read", "write", "answer", "delete"} == set(SCOPES) == set().union(*(scopes for scopes, _ in ROUTES.values()))
    )


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_a_route_takes_its_scopes_and_no_other(visitors, route):
    client, enough = visitors.browser(), ROUTES[route][0]
    slug, session = victim(visitors)
    assert call(client, route, slug, session, PROXIED).status_code == 401
    others = set(SCOPES) - enough
    for scopes in [*([scope] for scope in others), others]:
        reply = call(client, route, slug, session, bearer(token_of(visitors, scopes)))
        assert (reply.status_code, reply.json()["error"]["code"]) in {(403, "scope_missing"), (403, "other_session")}
    elsewhere, _ = victim(visitors)
    reply = call(client, route, slug, session, bearer(token_of(visitors, SCOPES, elsewhere)))
    if route == ("GET", "/api/v1/studies"):
        assert [study["slug"] for study in reply.json()] == [elsewhere]
    else:
        assert (reply.status_code, reply.json()["error"]["code"]) in {(403, "other_study"), (403, "other_session")}
    # What was refused has changed nothing.
    stored = visitors.service.sessions.by_id(session)
    assert (stored.version, stored.is_open, visitors.service.catalogue.row(slug).additions) == (2, True, 0)
    for scope in enough:
        slug, session = victim(visitors)
        reply = call(client, route, slug, session, bearer(token_of(visitors, [scope])))
        assert reply.status_code in (200, 201), reply.text


@pytest.mark.parametrize("route", sorted(routes_of_the_app() - set(ROUTES)), ids=" ".join)
def test_a_token_changes_nothing_on_the_pages(visitors, route):
    slug, session = victim(visitors)
    without, with_all = (
        call(visitors.browser(), route, slug, session, headers)
        for headers in (PROXIED, bearer(token_of(visitors, SCOPES)))
    )
    assert (with_all.status_code, with_all.headers.get("location")) == (
        without.status_code,
        without.headers.get("location"),
    )
    assert visitors.service.sessions.by_id(session).version == 2


def texts(value) -> Iterator[str]:
    """Every text in a reply, at any depth."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, str):
        yield value


def opens(visitors, text: str, slug: str, session: str) -> bool:
    """Whether a text from a reply, as a link or a token, leads into the session of somebody else."""
    browser = visitors.browser(headers=PROXIED)
    if f"/s/{slug}" in text:
        page = browser.get(f"/s/{text.partition('/s/')[2]}")
        if 'name="csrf"' not in page.text:
            return False
        browser.post(f"/s/{slug}/start", data={"csrf": csrf_of(page)})
        return browser.get(f"/s/{slug}/mine").json().get("session") == session
    if not text.isascii() or not text.isprintable():
        return False
    if browser.get(f"/api/v1/sessions/{session}/query", headers=bearer(text)).status_code == 200:
        return True
    browser.cookies.set(f"pairseek_s_{slug}", text if text.replace("-", "").replace("_", "").isalnum() else "x")
    return browser.get(f"/s/{slug}/mine").json().get("session") == session


@pytest.mark.parametrize("scope", SCOPES)
def test_only_who_may_write_gets_something_that_opens_a_session_of_somebody_else(visitors, scope):
    client, found = visitors.browser(), set()
    for route, (enough, _) in ROUTES.items():
        if enough and scope not in enough:
            continue
        slug, session = victim(visitors)
        reply = call(client, route, slug, session, bearer(token_of(visitors, [scope])))
        kind = reply.headers["content-type"]
        said = texts(reply.json()) if kind == "application/json" else reply.text.replace(",", "\n").split()
        if any(opens(visitors, text, slug, session) for text in set(said) if 0 < len(text) < 1000):
            found.add(route)
    assert found == ({("POST", f"{STUDY}/links")} if scope == "write" else set())


def test_who_goes_on_by_a_signed_link_is_alone_in_the_session(visitors):
    """A token may begin a session in the name of p1; once p1 goes on in it, it is no longer the token's."""
    slug = f"s{next(numbers)}"
    create_study(visitors.service.database, configuration(slug=slug), POINTS, is_open=True, who="test")
    planted, writes = token_of(visitors, ["answer"]), token_of(visitors, ["write"])
    client = visitors.browser()
    opened = client.post(f"/api/v1/studies/{slug}/sessions", json={"participant": "p1"}, headers=bearer(planted)).json()
    at = f"/api/v1/sessions/{opened['session']}"
    assert client.get(f"{at}/query", headers=bearer(planted)).status_code == 200
    links = client.post(f"/api/v1/studies/{slug}/links", json={"participants": ["p1"]}, headers=bearer(writes)).json()
    person = visitors.browser(headers=GUARD)
    page = person.get(links[0]["link"])
    person.post(f"/s/{slug}/start", data={"csrf": csrf_of(page)})
    state = person.get(f"/s/{slug}/state").json()
    assert answer(person, state, "left", slug).status_code == 200
    assert person.get(f"/s/{slug}/mine").json()["session"] == opened["session"]
    for token in (planted, opened["token"]):
        for path in ("query", "estimate"):
            assert client.get(f"{at}/{path}", headers=bearer(token)).status_code in (401, 403)
        undone = client.post(f"{at}/undo", json={"query": state["query"]["query"]}, headers=bearer(token))
        assert undone.status_code in (401, 403)
