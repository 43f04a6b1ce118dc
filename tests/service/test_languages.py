"""A further language, added as documented: every page of participants and researchers is shown in it."""

from __future__ import annotations

import re

import pytest
from test_contexts import PASSWORD, judge, participate, research
from test_pages import SHAPES

from helpers.languages import ITALIAN, with_italian
from helpers.pages_data import PAGES
from helpers.serving import configuration, served, some_items
from pairseek.model.items import Items
from pairseek.web import service
from pairseek.web.access.auth import set_password
from pairseek.web.pages import languages, preferred_language, render


@pytest.fixture(scope="module")
def third(tmp_path_factory):
    with with_italian(tmp_path_factory.mktemp("italian")):
        yield


@pytest.fixture(scope="module")
def visited(third, tmp_path_factory):
    """Every reply of a service whose visitors and studies speak Italian, and the pages that it rendered."""
    replies, pages = [], []
    usual = service.render

    def rendered(name, data, **options):
        pages.append((name, options["language"]))
        return usual(name, data, **options)

    made = configuration(
        answers=2,
        consent="May we?",
        practice=True,
        language=ITALIAN,
        questions=[{"name": "age", "text": "Età?", "kind": "number", "when": "before"}],
    )
    alike = configuration(kind="similarity", slug="alike", answers=12, language=ITALIAN)
    studies = [(made, some_items()), (alike, Items(None, [f"i{n}" for n in range(5)]))]
    path = tmp_path_factory.mktemp("languages") / "a.db"
    with pytest.MonkeyPatch.context() as patch, served(path, studies=studies) as visitors:
        patch.setattr(service, "render", rendered)
        set_password(visitors.service.database, "ann", PASSWORD, is_admin=True)

        def browser():
            made = visitors.browser(headers={"accept": "text/html", "accept-language": "it-CH, en;q=0.5"})
            made.event_hooks["response"] = [lambda reply: replies.append((reply.read(), reply)[1])]
            return made

        session = participate(browser())
        judge(browser())
        researcher = browser()
        research(researcher, session)
        researcher.get("/studies/which/report.html?language=it")
        researcher.get("/studies/which/report.html?language=xx")
    return replies, pages


def test_the_new_language_is_offered_and_preferred(third) -> None:
    assert ITALIAN in languages()
    assert preferred_language("it-CH, de;q=0.9") == ITALIAN


@pytest.mark.parametrize("name", PAGES)
def test_every_page_can_be_rendered_in_the_new_language(third, name) -> None:
    template, values = PAGES[name]
    if "languages" in values:
        values = values | {"languages": list(languages())}
    page = render(template, values, language=ITALIAN)
    assert f'<html lang="{ITALIAN}">' in page
    # Also in the other languages, whose catalogues know nothing of the new one. Findings offer reports in the others.
    assert ("Italiano" in page) == (name in ("study-new", "study-new-wrong"))
    offered = ("findings", "findings-alike", "study-new", "study-new-wrong")
    assert ("Italiano" in render(template, values, language="de")) == (name in offered)


def test_the_service_shows_every_page_in_the_new_language(visited) -> None:
    replies, pages = visited
    assert {name for name, _ in pages} >= set(SHAPES)
    assert {language for _, language in pages} == {ITALIAN}
    for reply in replies:
        assert reply.status_code < 500, reply.url
    shown = [reply for reply in replies if "<html" in reply.text]
    assert len(shown) > 20
    for reply in shown:
        assert re.search(r'<html lang="(\w+)"', reply.text)[1] == ITALIAN, reply.url


def test_the_form_of_a_study_names_every_language(visited) -> None:
    page = next(reply.text for reply in visited[0] if reply.url.path == "/studies/new")
    for name in ("English", "Deutsch", "Español", "Français", "Italiano"):
        assert f">{name}</option>" in page


def test_the_report_comes_in_the_new_language_and_a_refusal_names_all(visited) -> None:
    right, wrong = [reply for reply in visited[0] if reply.url.path == "/studies/which/report.html"]
    assert right.status_code == 200
    assert f'<html lang="{ITALIAN}">' in right.text
    assert wrong.status_code == 422
    assert " or ".join(languages()) in wrong.text
