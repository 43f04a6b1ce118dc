"""What an API token reaches by its scopes: every route with every scope, and what the replies open in turn."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from helpers import abuse, access
from helpers.access import POINTS, PROXIED, call, numbers, scene
from helpers.serving import GUARD, answer, cheap_passwords, configuration, csrf_of, served
from pairseek.web.access.auth import SCOPES, make_token
from pairseek.web.studies.creation import create_study

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "access.md"
SESSION = "/api/v1/sessions/{session_id}"
STUDY = "/api/v1/studies/{slug}"
# Of each route that takes a token: the scopes of which each is enough, for a session that another token or a person
# began.
ROUTES = {
    ("GET", "/metrics"): {"read"},
    ("GET", "/api/v1/studies"): {"read"},
    ("POST", "/api/v1/studies"): {"write"},
    ("GET", STUDY): {"read"},
    ("PATCH", STUDY): {"write"},
    ("DELETE", STUDY): {"delete"},
    ("POST", f"{STUDY}/duplicate"): {"write"},
    ("PUT", f"{STUDY}/items"): {"write"},
    ("GET", f"{STUDY}/replacements/{{replacement_id}}"): {"write"},
    ("GET", f"{STUDY}/populations"): {"read"},
    ("PUT", f"{STUDY}/population"): {"write"},
    ("PUT", f"{STUDY}/populations/{{name}}"): {"write"},
    ("GET", f"{STUDY}/catalogues"): {"read"},
    ("PUT", f"{STUDY}/limits"): {"write"},
    ("GET", f"{STUDY}/attributes"): {"read"},
    ("PATCH", f"{STUDY}/attributes"): {"write"},
    ("POST", f"{STUDY}/open"): {"write"},
    ("POST", f"{STUDY}/close"): {"write"},
    ("POST", f"{STUDY}/forget"): {"delete"},
    ("GET", f"{STUDY}/sessions"): {"read"},
    ("POST", f"{STUDY}/sessions"): {"answer"},
    ("POST", f"{STUDY}/links"): {"write"},
    ("GET", f"{STUDY}/export/{{table}}.{{ending}}"): {"read"},
    ("GET", f"{STUDY}/bundle.zip"): {"read"},
    ("GET", f"{STUDY}/workbook.xlsx"): {"read"},
    ("GET", f"{STUDY}/slide.{{ending}}"): {"read"},
    ("DELETE", SESSION): {"delete"},
    ("GET", f"{SESSION}/query"): set(),
    ("POST", f"{SESSION}/answers"): set(),
    ("POST", f"{SESSION}/undo"): set(),
    ("PUT", f"{SESSION}/replies"): set(),
    ("GET", f"{SESSION}/estimate"): {"read"},
    ("GET", f"{SESSION}/recommendations"): {"read"},
    ("POST", f"{SESSION}/recommendations"): {"read"},
}


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    database = tmp_path_factory.mktemp("s") / "s.db"
    with cheap_passwords(), served(database, trusted_proxies="127.0.0.1") as visitors:
        yield visitors


def routes_of_the_app() -> set[tuple[str, str]]:
    return {(method, path) for path, methods in abuse.routes() for method in methods}


def bearer(token: str) -> dict[str, str]:
    return {**PROXIED, "authorization": f"Bearer {token}"}


def token_of(visitors, scopes, slug=None) -> str:
    number = None if slug is None else visitors.service.catalogue.row(slug).id
    return make_token(visitors.service.database, "test", list(scopes), "test", number)


def test_every_route_of_the_api_is_listed_here_with_its_scopes():
    programs = {route for route in routes_of_the_app() if route[1].startswith("/api/")}
    assert programs == {route for route in ROUTES if route[1] != "/metrics"}
    assert {"read", "write", "answer", "delete"} == set(SCOPES) == set().union(*ROUTES.values())


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_a_route_takes_its_scopes_and_no_other(visitors, route):
    client, enough = visitors.browser(), ROUTES[route]
    on = scene(visitors)
    assert call(client, route, on, PROXIED).status_code == 401
    others = set(SCOPES) - enough
    for scopes in [*([scope] for scope in others), others]:
        reply = call(client, route, on, bearer(token_of(visitors, scopes)))
        assert (reply.status_code, reply.json()["error"]["code"]) in {(403, "scope_missing"), (403, "other_session")}
    elsewhere = scene(visitors).slug
    reply = call(client, route, on, bearer(token_of(visitors, SCOPES, elsewhere)))
    if route == ("GET", "/api/v1/studies"):
        assert [study["slug"] for study in reply.json()] == [elsewhere]
    else:
        assert (reply.status_code, reply.json()["error"]["code"]) in {(403, "other_study"), (403, "other_session")}
    # What was refused has changed nothing.
    stored = visitors.service.sessions.by_id(on.session)
    assert (stored.version, stored.is_open, visitors.service.catalogue.row(on.slug).additions) == (2, True, 0)
    for scope in enough:
        on = scene(visitors)
        reply = call(client, route, on, bearer(token_of(visitors, [scope])))
        # There is no such replacement, and the population is empty.
        allowed = 404 if "replacement_id" in route[1] else 422 if "{name}" in route[1] else (200, 201, 202)
        assert reply.status_code in np.atleast_1d(allowed), reply.text


@pytest.mark.parametrize("route", sorted(routes_of_the_app() - set(ROUTES)), ids=" ".join)
def test_a_token_changes_nothing_on_the_pages(visitors, route):
    on = scene(visitors)
    without, with_all = (
        call(visitors.browser(), route, on, headers) for headers in (PROXIED, bearer(token_of(visitors, SCOPES)))
    )
    assert (with_all.status_code, with_all.headers.get("location")) == (
        without.status_code,
        without.headers.get("location"),
    )
    assert visitors.service.sessions.by_id(on.session).version == 2


def test_the_page_about_access_shows_who_may_call_every_route(visitors):
    """Its tables are what calling every route shows; if they are out of date, copy them from the failure's file."""
    before, _, rest = PAGE.read_text().partition("<!-- routes -->\n\n")
    written, _, after = rest.partition("\n\n<!-- end of routes -->")
    tables = access.tables(visitors)
    if written != tables:
        updated = Path(visitors.service.settings.database).parent / "access.md"
        updated.write_text(f"{before}<!-- routes -->\n\n{tables}\n\n<!-- end of routes -->{after}")
        pytest.fail(f"docs/reference/access.md is out of date: replace it by {updated}")


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
    for route, enough in ROUTES.items():
        if enough and scope not in enough:
            continue
        on = scene(visitors)
        reply = call(client, route, on, bearer(token_of(visitors, [scope])))
        kind = reply.headers["content-type"]
        said = texts(reply.json()) if kind == "application/json" else reply.text.replace(",", "\n").split()
        if any(opens(visitors, text, on.slug, on.session) for text in set(said) if 0 < len(text) < 1000):
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
