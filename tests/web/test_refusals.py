"""Errors on pages in other languages: every error that a form can cause is translated."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from pairseek.core import workbooks
from pairseek.core.messages import languages, refusals, words
from pairseek.core.validation import obstacle_to_storing
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.web import studies
from pairseek.web.errors import Problem, problem_of
from pairseek.web.pages import render
from pairseek.web.studies.checks import check
from pairseek.web.studies.configuration import configured
from pairseek.web.studies.formats import kinds
from pairseek.web.studies.yaml_reader import read_yaml

PACKAGE = Path(studies.__file__).parents[2]
# Modules whose errors only users of the HTTP API meet.
API_MODULES = ("attributes.py", "replacement.py")
# Modules whose errors researchers meet on pages.
MODULES = (
    *(path for path in (PACKAGE / "web" / "studies").rglob("*.py") if path.name not in API_MODULES),
    *(PACKAGE / "core" / name for name in ("csv.py", "columns.py", "workbooks.py", "frames.py", "limits.py")),
    *(PACKAGE / "web" / "routes" / name for name in ("researcher.py", "study_design.py", "recruitment.py")),
    PACKAGE / "web" / "access" / "auth.py",
    PACKAGE / "web" / "learning" / "populations.py",
)
# Parts of errors that only commands, the library or the HTTP API raise.
ELSEWHERE = (
    "there is no file",
    "data frame",
    " token ",
    "the token is not valid",
    "HTTP API",
    "the request has no token",
    "this token",
    "Authorization",
    "Create a ",
    "create a new one",
    "and is not a study file",
    "names no items",
    "the study file Xx cannot be read",
    "the new items have",
    "most items that",
    "outside the folder",
    "not valid in a link: use at most Xx",
    "has no coordinates: its columns",
    "coordinates is Xx",
    "in both coordinates and keep",
    "pip install",
    "backend is",
    "declares no Limit",
    "the reply to",
    "has no question",
)
# Errors that are composed of parts; `test_composed_errors` has an example of each.
COMPOSED = ("the study file Xx, line", "cannot be readXx", "Xx of Xx Xx: Xx", "is empty: give Xx", "the Xx is blank")
OTHERS = [language for language in languages() if language != "en"]


def raised(path: Path):
    """Yield an example of every error that a module makes, with Xx for each value."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        name = node.func.id
        if not (name in ("error", "invalid", "ValueError", "Problem", "Unplayable") or name.startswith("Invalid")):
            continue
        hints = [keyword.value for keyword in node.keywords if keyword.arg == "hint"]
        for text in [*node.args, *hints]:
            values = text.values if isinstance(text, ast.JoinedStr) else [text]
            if isinstance(text, ast.JoinedStr | ast.Constant):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "Xx" for part in values)


def test_every_error_of_a_form_has_a_template() -> None:
    # The shortest templates fit nearly any text.
    templates = [template for template in refusals.templates(words().messages) if template.literal_length > 4]

    def is_known(text: str) -> bool:
        return any(template.values(said) is not None for template in templates for said in (text, f"Xx {text}"))

    texts = {text for path in MODULES for text in raised(path) if " " in text.replace("Xx", "").strip()}
    assert len(texts) > 100
    missing = [text for text in texts if not is_known(text) and not any(part in text for part in ELSEWHERE + COMPOSED)]
    assert missing == []


@pytest.mark.parametrize("language", OTHERS)
def test_composed_errors_are_translated_completely(language) -> None:
    said = words(language).translated
    files = [start for start, _, _ in kinds._OTHER_BEGINNINGS] + [
        b"",
        b"text",
        b"\0\1\2",
        b"    ftypheic",
        b"    ftypqt  ",
    ]
    errors = [f"'a is b.jpg' {kinds.unusable(content)}" for content in files]
    errors += [
        f"a.{kind} is {kind}, which cannot be read: save it as an Excel workbook (.xlsx) or as CSV"
        for kind in workbooks.REFUSED_KINDS.values()
    ]
    errors += [f"the id 'a' cannot be used: {obstacle_to_storing(text)}; change it" for text in ("\0", "a" * 300)]
    for settings in (
        {},
        {"title": ""},
        {"title": "a" * 500},
        {"title": "a", "answers": 0},
        {"title": "a", "answers": "x"},
        {"title": "a", "answers": 3.5},
        {"title": "a", "answers": 100_000},
        {"title": "a", "repeated": 2},
        {"title": "a", "slug": "A B"},
        {"title": "a", "goal": "fame"},
        {"title": "a", "titel": "b"},
        {"title": "a", "accent": "red"},
        {"title": "a", "kind": "similarity", "offer": {"tie": True}},
        {"title": "a", "completion": {"address": "ftp://a"}},
        {"title": "a", "questions": [{"name": "a", "text": "b"}]},
        {"title": "a", "dimensions": 3, "learn": "never"},
    ):
        with pytest.raises(InvalidParameter) as caught:
            configured(settings)
        errors.append(str(caught.value))
    items = Items(np.eye(5))
    for settings in (
        {"response": {"name": "logistic", "k": -1}},
        {"response": {"name": "logistic", "noise": "loud"}},
        {"prior": {"name": "uniform_box", "low": 1, "high": 0}},
        {"prior": {"name": "gaussian", "mean": 0, "covariance": -1}},
        {"rest": {"pair": -1}},
        {"rest": {"pairs": 1}},
        {"stop": [{"name": "radius", "radius": -1}]},
        {"stop": [{"name": "information", "bits": 5}]},
        {"stop": [{"name": "best_item", "probability": 5}]},
        {"strategy": "oracle"},
        {"attention": {"pairs": [{"left": "0", "right": "x", "answer": "0"}]}},
    ):
        with pytest.raises(InvalidParameter) as caught:
            check(configured({"title": "a", "answers": 5, **settings}), items)
        errors.append(str(caught.value))
    for text in ("a: *b", "[" * 30, "a: " + "1" * 500):
        with pytest.raises(InvalidParameter) as caught:
            read_yaml(text)
        errors.append(str(caught.value))
    errors += [
        "the pair 'a', 'b' of practice needs an anchor: add anchor: ID",
        "a.csv is empty: give a header row, then one row per item",
        "a.csv, line 3, column 'id': the id is blank; fill it in, or remove the row",
        str(Problem(409, "taken", "the slug 'a' is taken by another study", hint="Give another slug.")),
    ]
    for error in errors:
        assert said(error) != error
        assert not any(word in said(error) for word in (" the ", "cannot", "give ", "should", " or ", "save it")), said(
            error
        )


def test_an_error_in_another_language_keeps_names_and_formats_numbers() -> None:
    french = words("fr").translated
    assert french("the zip contains 12,000 files: send at most 10,000") == (
        "le zip contient 12\u202f000 fichiers\u202f: envoyez-en au plus 10\u202f000"
    )
    assert french("'a: is b.pdf' is a PDF: save the picture in it as JPEG or PNG").startswith("'a: is b.pdf' est un")
    assert french("something else is wrong: do it") == "something else is wrong: do it"
    assert words().translated("the zip is a PDF: leave it") == "the zip is a PDF: leave it"


def test_pages_show_errors_in_their_language_and_programs_get_english() -> None:
    problem = problem_of(InvalidParameter("the setting 'quota' is 'x': give a whole number", field="quota"))
    data = {"status": 422, "error": problem.record()["error"], "back": None}
    page = render("error", data, language="es")
    assert "El ajuste &#39;quota&#39; es &#39;x&#39;: dé un número entero" in page
    assert "Corrija el ajuste" in page
    assert data["error"]["message"].endswith("give a whole number")


def test_hostile_texts_are_translated_in_bounded_time() -> None:
    said = words("de").translated
    for text in (": " * 5000, "the setting 'x' is " + "a and 1 more: " * 100, "'" * 1999, "; : " * 499):
        said(text)
