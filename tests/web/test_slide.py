"""The slide about a ranking: sentences that are true of it, and a drawing that holds any label."""

import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from test_findings import PASSWORD, take_part, wines

from helpers.serving import configuration, csrf_of, served
from pairseek.cli.app import run
from pairseek.core.messages import languages, words
from pairseek.people.ranking import Segment, Segmentation
from pairseek.web.access.auth import set_password
from pairseek.web.pages import png_of, render_slide
from pairseek.web.pages.slide import HEIGHT, MAX_ROWS, WIDTH, text_runs, wrap
from pairseek.web.results.findings import findings_of, study_findings
from pairseek.web.views.slide import slide_of, slide_sentences

LABELS = [
    "tea",
    "x" * 400,
    "\N{FAMILY}\N{ZERO WIDTH JOINER}\N{TEACUP WITHOUT HANDLE} cha",
    "شاي بالنعناع",
    "<b>HTML</b> & more",
    "bell\x07",
    "京都府宇治市の玉露",
]


def card(name: str, **media: object) -> dict:
    return {"id": name, "name": name, "label": name, "media": media}


def slide(labels: list[str], further: int = 0, **changes: object) -> dict:
    rows = [
        {"card": card(label), "place": k, "tier": 1 + k // 4, "share": 0.6, "share_low": 0.5, "share_high": 0.7}
        for k, label in enumerate(labels, 1)
    ]
    return {"title": "Teas", "sentences": ["One.", "Two."], "rows": rows, "further": further, "note": "", **changes}


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    database = tmp_path_factory.mktemp("slide") / "slide.db"
    with served(f"sqlite:///{database}", studies=[(configuration(answers=9), wines())]) as found:
        yield found


@pytest.fixture(scope="module")
def sessions(visitors):
    return [take_part(visitors, number) for number in range(4)]


def texts(svg: str) -> list[str]:
    space = "{http://www.w3.org/2000/svg}"
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{space}text")]


@pytest.mark.parametrize("language", languages())
def test_any_label_gives_a_drawing_whose_texts_stay_inside(language: str) -> None:
    svg = render_slide(slide(LABELS, 90, title="T" * 300), language=language)
    said = texts(svg)
    assert "<b>HTML</b> & more" in said
    assert "bell" in said
    assert any("90" in text for text in said)
    assert max(map(len, said)) < 110
    assert next(text for text in said if text.startswith("TTT")).endswith("…")


def test_a_slide_without_rows_says_why(visitors) -> None:
    service = visitors.service
    study = service.catalogue.by_slug("which")
    for language in languages():
        found = slide_of(
            service.database, study, study_findings(service.database, study), everyone=False, language=language
        )
        assert found["rows"] == []
        assert found["sentences"][1] == words(language).say("findings.nothing.nobody", count=0)
        assert found["sentences"][1].split()[0] in "".join(texts(render_slide(found, language=language)))


def test_lines_break_between_words_and_characters_stay_whole() -> None:
    assert wrap("one two three", 5, lines=3) == ("one two", "three")
    assert wrap("one two three four", 5, lines=2) == ("one two", "three f…")
    assert wrap("", 5, lines=2) == ("",)
    flag = "\N{REGIONAL INDICATOR SYMBOL LETTER F}\N{REGIONAL INDICATOR SYMBOL LETTER R}"
    assert wrap(flag * 9, 4, lines=1) == (flag * 3 + "…",)
    assert [run for run, _ in text_runs(f"a {flag}b")] == ["a ", flag, "b"]


def test_the_png_is_the_drawing_in_16_to_9_on_white() -> None:
    drawn = Image.open(io.BytesIO(png_of(render_slide(slide(LABELS)))))
    assert drawn.width * 9 == drawn.height * 16 == 1920 * 9
    assert drawn.convert("RGB").getpixel((2, 2)) == (255, 255, 255)
    empty = Image.open(io.BytesIO(png_of(render_slide(slide([], title="", sentences=[])))))
    # Letters are there, not only bars.
    left = (0, 330, 900, 1000)
    assert np.asarray(drawn.convert("L").crop(left)).min() < 60 < np.asarray(empty.convert("L").crop(left)).min()
    assert WIDTH * 9 == HEIGHT * 16


def test_the_sentences_are_true_of_the_ranking(visitors, sessions) -> None:
    service = visitors.service
    study = service.catalogue.by_slug("which")
    result = findings_of(service.database, study)
    catalogue = words()
    rows = list(result.ranking)
    leader, second = (study.card(str(row.id))["name"] for row in rows[:2])

    def sentences(tiers: list[int], segments: Segmentation = result.segments, top: float = 0.554) -> list[str]:
        changed = [replace(row, tier=tier, top_1=top) for row, tier in zip(rows, tiers, strict=True)]
        ranking = replace(result.ranking, items=tuple(changed))
        return slide_sentences(study, replace(result, ranking=ranking, segments=segments), catalogue)

    first, alike, _ = sentences([1, 1, 1, 2, 2, 2, 3, 3])
    assert first == f"{leader} leads: 55 % likely the best of all."
    assert alike == "2 other items cannot be told apart from it."
    assert sentences([1, 2, 2, 2, 2, 2, 2, 2])[1] == f"It is clearly ahead of {second}, the next."
    assert sentences([1] * 8)[1] == "The answers do not distinguish any item from it yet."
    assert sentences([1] * 8, top=0.999)[0] == f"{leader} leads: > 99 % likely the best of all."
    groups = [Segment(share, (item, "w0"), (), np.zeros(8)) for share, item in ((0.6, "w1"), (0.4, "w2"))]
    two = Segmentation(tuple(groups), (), np.zeros((0, 2)), (), ())
    assert sentences([1] * 8, two)[2] == "2 groups of people: 60 % like Wine <1> best; 40 % like Wine <2> best."
    one = Segmentation(two.segments[:1], (), np.zeros((0, 1)), (), ())
    assert sentences([1] * 8, one)[2] == "No groups of people with different tastes were found."


def test_a_ranking_is_downloaded_as_a_slide(visitors, sessions, tmp_path) -> None:
    service = visitors.service
    set_password(service.database, "ann", PASSWORD, is_admin=False)
    browser = visitors.browser()
    browser.post("/login", data={"name": "ann", "password": PASSWORD, "csrf": csrf_of(browser.get("/login"))})
    for language in languages():
        reply = browser.get(f"/studies/which/slide.svg?language={language}")
        assert reply.headers["content-type"].startswith("image/svg+xml")
        assert words(language).say("slide.bars") in texts(reply.text)
    assert browser.get("/studies/which/slide.png").content.startswith(b"\x89PNG")
    page = browser.get("/studies/which/findings").text
    assert re.search(r'href="/studies/which/slide.png\?language=en"', page)
    study = service.catalogue.by_slug("which")
    found = slide_of(service.database, study, study_findings(service.database, study), everyone=False)
    assert (len(found["rows"]), found["further"]) == (min(8, MAX_ROWS), 0)
    out = tmp_path / "which.svg"
    assert run(["report", "which", "--out", str(out), "--database", service.settings.database]) == 0
    assert texts(out.read_text()) == texts(render_slide(found))
