"""Contexts of the pages: the service sends exactly the keys that `pairseek.web.pages.contexts` declares."""

from __future__ import annotations

import re
import time
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from test_pages import SHAPES
from typing_extensions import is_typeddict

from helpers.serving import answer, begin, configuration, csrf_of, served, some_items
from pairseek.model.items import Items
from pairseek.web import service
from pairseek.web.access.auth import set_password
from pairseek.web.pages.rendering import FOLDER

PASSWORD = "a long password"


def differences(value: Any, hint: Any, place: str) -> list[str]:
    """Return where a value has other keys than its declared type, nested values included."""
    if is_typeddict(hint):
        hints = get_type_hints(hint)
        found = [f"{place}: {sorted(set(value) ^ set(hints))}"] if set(value) != set(hints) else []
        return found + [
            line
            for name in set(value) & set(hints)
            for line in differences(value[name], hints[name], f"{place}.{name}")
        ]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        kinds = [kind for kind in arguments if fits(value, kind)]
        if not kinds:
            return [f"{place}: {type(value).__name__} is none of {arguments}"]
        return min((differences(value, kind, place) for kind in kinds), key=len)
    if origin is list:
        return [line for one in value for line in differences(one, arguments[0], f"{place}[]")]
    if origin is dict:
        return [line for key, one in value.items() for line in differences(one, arguments[1], f"{place}[{key}]")]
    return [] if fits(value, hint) else [f"{place}: {type(value).__name__} is not {hint}"]


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of the outer type of a hint."""
    if hint is None or hint is type(None):
        return value is None
    if is_typeddict(hint):
        return isinstance(value, dict)
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint is Any:
        return True
    kind = get_origin(hint) or hint
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, (tuple, list) if kind is tuple else kind)


@pytest.fixture(scope="module")
def sent(tmp_path_factory) -> dict[str, list[dict[str, Any]]]:
    """Return the contexts that the service renders while every page is visited."""
    found: dict[str, list[dict[str, Any]]] = {}
    render = service.render

    def recorded(name, data, **options):
        found.setdefault(name, []).append(dict(data))
        return render(name, data, **options)

    asked = [{"name": "age", "text": "Your age?", "kind": "number", "when": "before"}]
    made = configuration(
        answers=2, consent="May we?", practice=True, questions=asked, offer={"tie": True, "skip": True, "undo": True}
    )
    path = tmp_path_factory.mktemp("contexts") / "a.db"
    things = Items(None, [f"i{n}" for n in range(5)])
    studies = [(made, some_items()), (configuration(kind="similarity", slug="alike", answers=12), things)]
    with pytest.MonkeyPatch.context() as patch, served(path, studies=studies) as visitors:
        patch.setattr(service, "render", recorded)
        set_password(visitors.service.database, "ann", PASSWORD, is_admin=True)
        session = participate(visitors.browser(headers={"accept": "text/html"}))
        judge(visitors.browser(headers={"accept": "text/html"}))
        research(visitors.browser(headers={"accept": "text/html"}), session)
    return found


def participate(browser) -> str:
    """Visit every page of a participant and return the session."""
    page = browser.get("/s/which")
    browser.post("/s/which/decline", data={"csrf": csrf_of(page)})
    browser.get("/s/nothing")
    state = begin(browser, participant="p1")
    page = browser.get("/s/which/questions")
    browser.post("/s/which/questions", data={"csrf": csrf_of(page), "stage": "before", "q-age": "31"})
    browser.get("/s/which/run")
    while state["query"] is not None:
        state = answer(browser, state).json()
    browser.get("/s/which/result")
    return browser.get("/s/which/mine").json()["session"]


def judge(browser) -> None:
    """Visit the pages of a participant of a similarity study."""
    state = begin(browser, "alike")
    browser.get("/s/alike/run")
    while state["query"] is not None:
        state = answer(browser, state, slug="alike").json()
    browser.get("/s/alike/result")


def deletion_pages(browser, session: str) -> list[int]:
    """Visit the pages that delete something and return their status."""
    page = browser.get("/administration")
    number = re.findall(r"/administration/users/(\d+)/remove", page.text)[0]
    paths = ["/studies/which/delete", f"/studies/which/people/{session}/forget"]
    paths += [f"/administration/users/{number}/remove"]
    return [page.status_code, *(browser.get(path).status_code for path in paths)]


def research(browser, session: str) -> None:
    """Visit every page of a researcher."""
    page = browser.get("/login")
    browser.post("/login", data={"name": "ann", "password": "wrong password", "csrf": csrf_of(page)})
    browser.post("/login", data={"name": "ann", "password": PASSWORD, "csrf": csrf_of(page)})
    form = {"csrf": csrf_of(browser.get("/studies"))}
    for path in (
        "/studies/new",
        "/studies/which",
        "/studies/which/items",
        "/studies/which/edit",
        f"/studies/which/people/{session}",
        "/tokens",
        "/docs",
    ):
        assert browser.get(path).status_code == 200, path
    assert browser.get("/studies/alike").status_code == 200
    browser.post("/studies/alike/population", data=form)
    assert browser.get("/studies/alike").status_code == 200
    assert browser.get("/studies/which/findings").status_code == 200
    for _ in range(200):
        if browser.get("/studies/which/findings.json").json()["current"]:
            break
        time.sleep(0.1)
    assert browser.get("/studies/which/findings?everyone=1").status_code == 200
    browser.post("/studies/new", data={**form, "title": ""})
    browser.post("/tokens", data={**form, "name": "notebook", "scopes": ["read"]})
    browser.post("/tokens", data={**form, "name": "", "scopes": ["read"]})
    browser.post(f"/studies/which/people/{session}/void", data={**form, "reason": "a test"})
    browser.get(f"/studies/which/people/{session}")
    administered = deletion_pages(browser, session)
    assert administered == [200] * len(administered)
    for path in ("/studies/which/delete", f"/studies/which/people/{session}/forget"):
        assert browser.post(path, data={**form, "name": "another"}).status_code == 422
    browser.post("/studies/which/close", data=form)
    browser.get("/studies/which")
    browser.get("/s/which")


@pytest.mark.parametrize("template", SHAPES)
def test_the_service_sends_the_declared_keys(sent, template) -> None:
    assert sent.get(template), "the page was not visited"
    for context in sent[template]:
        plain = {name: value for name, value in context.items() if name != "csrf"}
        assert differences(plain, SHAPES[template], template) == []


def test_every_template_is_declared() -> None:
    assert set(SHAPES) == {path.stem for path in (FOLDER / "templates").glob("[!_]*.html")}
