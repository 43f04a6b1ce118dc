"""Message catalogues: completeness of every language, and the fallback to English."""

from __future__ import annotations

import re
import string

import pytest

from helpers.languages import ITALIAN, with_catalogues, with_italian
from helpers.pages_data import PAGES
from pairseek.core.messages import languages, preferred_language, words
from pairseek.errors import InvalidFile, InvalidParameter
from pairseek.web.pages import render


def named(message) -> set[str]:
    texts = [message] if isinstance(message, str) else list(message.values())
    return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_language_has_the_same_messages_with_the_same_names() -> None:
    english = words("en").messages
    assert languages()[0] == "en"
    assert len(languages()) >= 2
    for language in languages():
        theirs = words(language)
        assert theirs.missing == set(), language
        assert set(theirs.messages) == set(english), language
        for key, message in theirs.messages.items():
            assert type(message) is type(english[key]), key
            assert named(message) == named(english[key]), key
    with pytest.raises(InvalidParameter, match="language 'xx' has no message catalogue: use one of en, "):
        words("xx")


def test_messages_that_a_language_lacks_fall_back_to_english(tmp_path) -> None:
    with with_italian(tmp_path, {"language.name": "Italiano", "run.undo": "Annulla"}):
        said = words(ITALIAN)
        assert said.say("run.undo") == "Annulla"
        assert said.say("run.skip") == words().say("run.skip")
        assert said.missing == set(words().messages) - {"language.name", "run.undo"}
        page = render(*PAGES["run-colour"], language=ITALIAN)
        assert "Annulla" in page
        assert words().say("run.skip") in page


def test_numbers_plurals_and_languages() -> None:
    english, german = words("en"), words("de")
    assert english.number(12624) == "12,624"
    assert german.number(12624) == "12.624"
    assert german.number(1234.5) == "1.234,5"
    assert english.number(3.0) == "3"
    assert english.say("result.saved", count=1).startswith("Your answer")
    assert german.say("result.saved", count=12).startswith("Alle 12 Antworten")
    assert [words(language).say("run.answered", count=0) for language in ("en", "fr", "es")] == [
        "0 answers",
        "0 réponse",
        "0 respuestas",
    ]
    assert words("fr").number(12624) == "12\u202f624"
    assert preferred_language("xx;q=0.9, de-AT;q=0.8, en;q=0.3") == "de"
    assert preferred_language("de;q=0, en") == "en"
    assert preferred_language(None) == preferred_language("*;q=x,,;q=") == "en"


def test_small_numbers_keep_their_digits():
    assert "standard deviation 0.0123" in words().say("finding.directions", widest=0.0123, narrowest=1e-5)
    assert words("de").number(0.0123) == "0,0123"
    assert words().number(0.0123, 1) == "0"


def test_french_has_narrow_spaces_before_double_punctuation_and_inside_guillemets() -> None:
    wrong = re.compile(r"[^\u202f\s][;?!»](?!\w)|[^\u202f]:(?=\s|$)|\d ?%|«(?!\u202f)|'")
    for key, message in words("fr").messages.items():
        for text in [message] if isinstance(message, str) else message.values():
            # The name of a setting keeps the colon of YAML.
            assert not wrong.search(text.replace("standardize:", "")), key


@pytest.mark.parametrize(
    ("language", "content", "said"),
    [
        ("it", "{", "is not JSON in UTF-8"),
        ("it", "[]", "is not an object of messages"),
        ("it", {"run.undo": "Annulla"}, 'lacks "language.name"'),
        ("italian", {"language.name": "Italiano"}, "is not named after a language"),
        ("de", {"run.undo": 3}, "'run.undo' cannot be used: it is int, not a text"),
        ("de", {"run.answered": "{count}"}, "needs two forms"),
        ("de", {"run.answered": {"one": "{count}", "other": "viele"}}, "lacks the placeholder {count}"),
        ("de", {"run.undo": "zurück {count}"}, "has the placeholder {count}, which has no value here: use no braces"),
        ("de", {"run.announce": "{number}: {left}"}, "lacks the placeholder {right}"),
        ("de", {"result.share": "{percent.__class__}"}, "is not a placeholder: write {percent}"),
        ("de", {"result.share": "{percent:>99999999}"}, "is not a placeholder"),
        ("de", {"result.share": "{percent"}, "a brace has no partner"),
    ],
)
def test_an_invalid_file_of_the_further_folder_is_refused_with_its_name(tmp_path, language, content, said) -> None:
    with (
        with_catalogues(tmp_path, {language: content}),
        pytest.raises(InvalidFile, match=rf"{language}\.json.*{re.escape(said)}"),
    ):
        languages()


def test_a_folder_that_does_not_exist_is_refused(tmp_path, monkeypatch) -> None:
    with with_catalogues(tmp_path, {}):
        monkeypatch.setenv("PAIRSEEK_MESSAGES", str(tmp_path / "nowhere"))
        with pytest.raises(InvalidFile):
            languages()


def test_a_file_of_the_further_folder_replaces_messages_of_the_package(tmp_path) -> None:
    with with_catalogues(tmp_path, {"de": {"run.undo": "Rückgängig", "run.undoo": "?"}}):
        assert words("de").say("run.undo") == "Rückgängig"
        assert words("de").say("run.skip") == "Auslassen"
        assert words("de").unknown == {"run.undoo"}


def test_other_texts_take_the_place_of_messages_unless_they_do_not_suit() -> None:
    texts = {
        "run.undo": "Back",
        "run.announce": "{left}",
        "no.such": "?",
        "run.answered": {"one": "one", "other": "{count}!"},
    }
    said = words("fr").with_texts(texts)
    assert said.say("run.undo") == "Back"
    assert said.say("run.answered", count=3) == "3!"
    assert said.say("run.announce", number=1, left="a", right="b") == words("fr").say(
        "run.announce", number=1, left="a", right="b"
    )
    assert not said.has("no.such")
