"""Texts of a study in place of the usual ones: in its file, in the form, and on the pages of participants."""

from __future__ import annotations

import pytest

from helpers.serving import begin, configuration, csrf_of, served, some_items
from pairseek.core.messages import words
from pairseek.errors import InvalidParameter
from pairseek.web.access.auth import set_password
from pairseek.web.studies.checks import check

PASSWORD = "a long password"
ITEMS = "label;douceur\n" + "\n".join(f"Cidre {n};{n},5" for n in range(6))


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("run.undoo", "Back", "(did you mean 'run.undo'"),
        ("nav.studies", "Back", "participants see no text of this name"),
        ("run.undo", "Back {count}", "has the placeholder {count}"),
        ("run.announce", "{left} or {right}", "lacks the placeholder {number}"),
        ("run.answered", "{count} answers", "needs two forms"),
        ("run.answered", {"one": "One", "other": "Many"}, "lacks the placeholder {count}"),
        ("run.undo", "x" * 1001, "more than 1,000 characters"),
        ("run.undo", " ", "is empty"),
        ("run.undo", "{{count}}", "double brace"),
    ],
)
def test_a_text_that_does_not_suit_its_message_is_refused_on_its_field(key, text, said) -> None:
    with pytest.raises(InvalidParameter) as caught:
        check(configuration(texts={key: text}), some_items())
    assert caught.value.field == f"texts.{key}"
    assert said in str(caught.value)


def test_a_stored_text_that_no_longer_suits_is_left_out(tmp_path) -> None:
    with served(tmp_path / "a.db", studies=[(configuration(texts={"start.begin": "Go"}), some_items())]) as visitors:
        catalogue = visitors.service.catalogue
        study = catalogue.by_slug("which")
        study.configuration.texts["start.later"] = "{nothing}"
        assert study.words.say("start.begin") == "Go"
        assert study.words.say("start.later") == words().say("start.later")


def test_participants_see_the_texts_of_the_study_escaped_and_on_error_pages_too(tmp_path) -> None:
    texts = {
        "start.begin": "<b>Go</b>",
        "run.undo": "</script><i>Back</i>",
        "problem.no_session": "No session here",
        "result.saved": {"one": "One is kept.", "other": "{count} are kept."},
    }
    with served(tmp_path / "a.db", studies=[(configuration(texts=texts), some_items())]) as visitors:
        browser = visitors.browser(headers={"accept": "text/html"})
        assert "&lt;b&gt;Go&lt;/b&gt;" in browser.get("/s/which").text
        assert "No session here" in browser.get("/s/which/result").text
        begin(browser)
        page = browser.get("/s/which/run").text
        assert "<i>Back" not in page
        assert "&lt;i&gt;Back" in page
        # Pages of researchers keep the usual texts.
        assert "Go</b>" not in browser.get("/login").text


@pytest.fixture
def researcher(tmp_path):
    with served(tmp_path / "a.db") as visitors:
        set_password(visitors.service.database, "ann", PASSWORD, is_admin=True)
        browser = visitors.browser(headers={"accept": "text/html", "accept-language": "fr"})
        page = browser.get("/login")
        browser.post("/login", data={"csrf": csrf_of(page), "name": "ann", "password": PASSWORD})
        yield browser


def sent(researcher, **fields):
    form = {"csrf": csrf_of(researcher.get("/studies/new")), "title": "Quel cidre ?", "language": "fr", **fields}
    return researcher.post("/studies/new", data=form, files={"items": ("cidres.csv", ITEMS, "text/csv")})


def test_the_form_takes_texts_and_refuses_one_on_its_field(researcher) -> None:
    wrong = sent(researcher, **{"texts.run.announce": "{left} ou {right}"})
    assert wrong.status_code == 422
    assert 'id="e-texts.run.announce"' in wrong.text
    assert "{left} ou {right}" in wrong.text
    plural = sent(researcher, **{"texts.run.answered.one": "un cidre"})
    assert 'id="e-texts.run.answered.one"' in plural.text
    right = sent(researcher, **{"texts.start.begin": "C'est parti"})
    assert right.status_code == 303
    assert "C&#39;est parti" in researcher.get("/s/quel-cidre").text


def test_the_form_shows_the_usual_texts_in_the_language_of_the_study(researcher) -> None:
    # The form proposes the language of the browser, French.
    page = researcher.get("/studies/new").text
    assert '<option value="fr" selected>' in page
    assert ">Commencer</label>" in page
    usual = researcher.get("/studies/new/texts.json?language=es").json()
    assert usual["texts.start.begin"] == "Empezar"
    assert usual["texts.run.answered.other"] == "{count} respuestas"
    assert researcher.get("/studies/new/texts.json?language=xx").json()["texts.start.begin"] == "Begin"
