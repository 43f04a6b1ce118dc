"""Every page in a real browser: axe-core finds nothing, nothing overflows, nothing else is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe

from helpers.browsers import DESKTOP, EXPECTED
from helpers.pages_data import PAGES
from helpers.pages_service import gallery, served

NARROW = {"viewport": {"width": 320, "height": 568}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    with served(gallery()) as address:
        yield address


@pytest.fixture(scope="module")
def narrow(browser):
    context = browser.new_context(reduced_motion="reduce", **NARROW)
    yield context
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_used_by_everyone(narrow, root, name) -> None:
    page = narrow.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{root}/gallery/{name}")
    if name.startswith("run"):
        page.wait_for_function("() => !document.getElementById('stage').ariaBusy")
    elif name in ("study", "study-empty", "person"):
        page.wait_for_selector(".plot .modebar-btn", state="attached")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.emulate_media(color_scheme="dark")
    found = Axe().run(page, options={"runOnly": ["color-contrast"]})
    assert found.violations_count == 0, found.generate_report()
    for width in (320, 390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert [text for text in said if EXPECTED[1] not in text] == []
    assert [url for url in asked if not url.startswith((root, "data:", "blob:"))] == []
    page.close()


def test_forced_colours_keep_the_items_and_show_the_cards(browser, root) -> None:
    context = browser.new_context(forced_colors="active", **DESKTOP)
    page = context.new_page()
    page.goto(f"{root}/gallery/run-colour")
    page.wait_for_selector("#left .swatch")
    colour = page.evaluate("getComputedStyle(document.querySelector('#left .swatch')).backgroundColor")
    shown = tuple(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))
    wanted = PAGES["run-colour"][1]["state"]["query"]["left"]["media"]["colour"]
    assert "#" + "".join(f"{part:02x}" for part in shown) == wanted
    assert page.evaluate("getComputedStyle(document.getElementById('left')).borderTopWidth") == "1px"
    context.close()


def test_reduced_motion_moves_nothing(browser, root) -> None:
    for wish, moves in (("reduce", "none"), ("no-preference", "arrive")):
        context = browser.new_context(reduced_motion=wish, **DESKTOP)
        page = context.new_page()
        page.goto(f"{root}/gallery/result")
        assert page.evaluate("getComputedStyle(document.querySelector('.map-you')).animationName") == moves
        context.close()


def test_plots_are_drawn_and_can_be_saved(browser, root) -> None:
    context = browser.new_context(accept_downloads=True, **DESKTOP)
    page = context.new_page()
    page.goto(f"{root}/gallery/study")
    page.wait_for_selector("#study-map .scatterlayer .point")
    assert page.locator("#study-map .scatterlayer .trace").count() == 3
    page.hover("#study-map")
    with page.expect_download() as download:
        page.locator("#study-map .modebar-btn[data-title*='Download']").click()
    assert download.value.suggested_filename == "pairseek.svg"
    assert b"<svg" in download.value.path().read_bytes()
    context.close()


def test_the_numbers_of_a_study_follow_what_happens(browser, root) -> None:
    context = browser.new_context(**DESKTOP)
    page = context.new_page()
    page.goto(f"{root}/gallery/study")
    cell = page.locator("[data-number='answers']")
    assert cell.inner_text() == "2,544"
    page.wait_for_function("() => document.querySelector('[data-number=answers]').textContent === '2,551'")
    assert page.locator("[data-number='completion']").inner_text() == "87 %"
    context.close()
