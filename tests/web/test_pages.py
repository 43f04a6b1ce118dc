"""Every page from canned data: its words, what it may not contain, and what it weighs."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import get_type_hints

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from helpers.pages_data import PAGES, dots, result
from helpers.pages_service import served
from pairseek.core.messages import words
from pairseek.web.pages import STATIC, languages, plotly_script, render
from pairseek.web.pages.contexts import (
    account,
    design,
    findings,
    own_questions,
    participant,
    similarity,
    study,
)
from pairseek.web.pages.files import PageFiles
from pairseek.web.pages.map import MAX_DOTS, draw_map
from pairseek.web.pages.rendering import FOLDER, in_script, static_address

TEMPLATES = FOLDER / "templates"
SHAPES = {
    "start": participant.StartPage,
    "run": participant.RunPage,
    "result": participant.ResultPage,
    "declined": participant.DeclinedPage,
    "closed": participant.ClosedPage,
    "questions": own_questions.QuestionsPage,
    "error": participant.ErrorPage,
    "login": account.LoginPage,
    "studies": study.StudiesPage,
    "study_new": study.NewStudyPage,
    "study": study.StudyPage,
    "similarity": similarity.SimilarityPage,
    "findings": findings.FindingsPage,
    "person": study.PersonPage,
    "gallery": design.GalleryPage,
    "edit": design.EditPage,
    "tokens": account.TokensPage,
    "confirm": account.ConfirmPage,
    "administration": account.AdministrationPage,
    "docs": account.DocsPage,
}
MOST_BYTES = 62_000
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.parent.rglob("*.py"))


class Elements(HTMLParser):
    """All start tags of a page, and whether each is closed again."""

    VOID = frozenset(["meta", "link", "input", "img", "br", "hr"])

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(params=PAGES)
def page(request) -> str:
    template, values = PAGES[request.param]
    return render(template, values)


def test_canned_data_cover_every_template_and_have_its_shape() -> None:
    templates = {path.stem for path in TEMPLATES.glob("[!_]*.html")}
    assert templates == set(SHAPES) == {template for template, _ in PAGES.values()}
    for template, values in PAGES.values():
        shape = SHAPES[template]
        assert set(values) - {"csrf"} == set(get_type_hints(shape)), template


def test_a_page_is_well_formed_and_ids_are_unique(page) -> None:
    elements = Elements(page)
    assert elements.open == []
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert sum(tag == "h1" for tag, _ in elements.found) >= 1


def test_no_inline_script_or_style_and_no_other_host(page) -> None:
    for tag, attributes in Elements(page).found:
        assert tag != "style"
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        if tag == "script":
            assert attributes.get("type") == "application/json" or attributes["src"].startswith("/static/")
        if tag in ("link", "img", "script", "audio", "video", "form"):
            for name in ("src", "href", "action"):
                assert attributes.get(name, "/").startswith("/")


def test_the_scripts_and_style_sheets_ask_no_other_host() -> None:
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|@import|url\(|\beval\(|new Function", text), path.name


def test_text_of_people_is_never_markup() -> None:
    nasty = "<script>alert(1)</script>"
    for template, values in PAGES.values():
        shown = render(template, json.loads(json.dumps(values).replace("A colour for the hallway", nasty)))
        assert nasty not in shown
    assert "</script" not in in_script({"label": "</script><!--"})
    assert json.loads(in_script({"label": "</script>&"})) == {"label": "</script>&"}


def test_no_message_is_missing_or_left_over() -> None:
    sources = [*TEMPLATES.glob("*.html"), *STATIC.glob("*.js"), *FOLDER.glob("*.py")]
    # Compiled quizzes use the same catalogues.
    sources += [path for path in (FOLDER.parents[1] / "quiz").rglob("*") if path.suffix in (".py", ".js")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    used = set(re.findall(r"""\b(?:t|say)\(\s*["'`]([\w.]+)["'`]""", text))
    used |= set(re.findall(r"""["']((?:run|play|plot|number)\.[\w.]+)["']""", text))
    built = {
        "questions.",
        "panel.",
        "new.question.",
        "learned.",
        "status.",
        "audit.",
        "person.",
        "flag.",
        "outcome.",
        "kind.",
        "export.",
    }
    built |= {
        "anchor.",
        "manner.",
        "run.side.",
        "run.practice.",
        "number.",
        "new.stop.",
        "new.prior.",
        "problem.",
        "confirm.",
        "new.goal.",
        "finding.",
        "findings.nothing.",
        "gallery.medium.",
        "gallery.named.",
        "gallery.replace",
        "items.add",
        "column.",
        "codebook.",
        "sheet.",
        "slide.",
        "plan.",
        "refusal.",
    }
    messages = set(words("en").messages)
    assert {key for key in used if not key.endswith((".", ".js"))} <= messages
    assert {key for key in messages - used if not key.startswith(tuple(built))} == set()


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("name", PAGES)
def test_every_page_in_every_language(name, language) -> None:
    template, values = PAGES[name]
    assert f'<html lang="{language}">' in render(template, values, language=language)


def test_what_a_participant_can_meet_is_said_in_their_language() -> None:
    codes = [key.removeprefix("problem.") for key in words("en").with_prefix("problem.") if not key.endswith(".hint")]
    assert {"study_closed", "session_expired", "store_unavailable"} <= set(codes)
    for code in codes:
        error = {"code": code, "message": "in English", "received": None, "hint": "Do this."}
        data = {"status": 409, "error": error, "back": None}
        page = render("error", data, language="de")
        assert words("de").say(f"problem.{code}") in page
        assert words("de").say(f"problem.{code}.hint") in page
        assert "Do this." not in page
        # What exactly is wrong with the database is for those who can mend it.
        assert ("In English" in page) == (code == "store_unavailable")
        assert code in SOURCES, "no error has this code any more"


def test_a_participant_loads_less_than_62_kilobytes() -> None:
    """Uncompressed, from consent to result, with a map of 949 coloured items; each file once."""
    pages = [render(*PAGES["start"]), render(*PAGES["run-colour"]), render(*PAGES["result"])]
    names = {name for page in pages for name in re.findall(r"/static/([\w.]+)", page)}
    modules = {name for name in names if name.endswith(".js")}
    imported = set(re.findall(r'from "\./([\w.]+)"', "".join((STATIC / name).read_text() for name in modules)))
    assert imported <= modules, "what a module imports is named in the page, so that it is loaded at once"
    weight = sum(len(page.encode()) for page in pages) + sum((STATIC / name).stat().st_size for name in names)
    assert weight < MOST_BYTES


def test_a_map_of_many_items_is_thinned_and_keeps_its_shape() -> None:
    many = {"items": [(x, 2 * y, None, None) for x, y, *_ in dots(12_624)], "point": (0.5, 0.0), "ellipse": []}
    drawing = draw_map(many)
    assert drawing.plain_dots.count("M") == MAX_DOTS
    assert drawing.height > drawing.width, "twice as high as wide, on the same scale"
    assert len(render(*result(map=many)).encode()) < 15_000
    alone = draw_map({"items": [(1.0, 1.0, "#000000", None)], "point": (1.0, 1.0), "ellipse": []})
    assert alone.point == (72, 72)


def test_few_items_are_named_on_the_map_and_no_name_lies_on_another() -> None:
    crowd = [(0.01 * n, 0.0, None, f"Crowded {n}") for n in range(5)]
    far = [
        (1.0, 1.0, None, "In a corner of the map with a long name"),
        (0.0, 1.0, None, "Left <b>"),
        (1.0, 0.0, None, None),
    ]
    data = {"items": crowd + far, "point": (0.02, 0.0), "ellipse": []}
    drawing = draw_map(data)
    texts = [text for _, _, text in drawing.names]
    assert "In a corner of the map …" in texts
    assert "Left <b>" in texts
    assert 1 <= sum(text.startswith("Crowded") for text in texts) <= 2, "below and above"
    assert all(0 <= x <= drawing.width and y <= drawing.height for x, y, _ in drawing.names)
    page = render(*result(map=data))
    assert "Left &lt;b&gt;</text>" in page
    assert draw_map({**data, "items": dots(41)}).names == ()


def test_plotly_comes_from_its_python_package() -> None:
    assert plotly_script().stat().st_size > 1_000_000


def test_files_are_packed_and_kept_by_the_browser() -> None:
    app = Starlette(routes=[Mount("/static", PageFiles())])
    with served(app) as root, httpx.Client(base_url=root) as client:
        marked = client.get(static_address("run.js"))
        assert marked.headers["content-encoding"] == "gzip"
        assert marked.headers["content-type"].startswith("text/javascript")
        assert "immutable" in marked.headers["cache-control"]
        assert marked.text == (STATIC / "run.js").read_text()
        plain = client.get("/static/api.js", headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.headers["cache-control"] == "no-cache"
        again = client.get("/static/api.js", headers={"if-none-match": plain.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert client.get("/static/%2e%2e/words.py").status_code == 404
