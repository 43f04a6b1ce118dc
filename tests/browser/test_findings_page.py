"""Findings of a study in a real browser: sorting, zoom, names on the map, its downloads, the switch and the report."""

from __future__ import annotations

import colorsys
import io
import os
import re
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

from helpers.browsers import DESKTOP, PHONE
from helpers.serving import answer_to, cheap_passwords, configuration, served
from pairseek.model.items import Items
from pairseek.web.access import auth
from pairseek.web.studies.creation import create_study

PASSWORD = "a long password of ours"
CHEESES = [f"Cheese {letter}" for letter in "ABCDEFGHIJKLMNOPQRST"]


def picture(row: int) -> bytes:
    out = io.BytesIO()
    shade = tuple(round(255 * part) for part in colorsys.hsv_to_rgb(row / len(CHEESES), 0.7, 0.8))
    Image.new("RGB", (64, 64), shade).save(out, "PNG")
    return out.getvalue()


def cheeses() -> Items:
    """Twenty pictures with two coordinates; the first two are so close together that a name must give way."""
    points = np.random.default_rng(4).uniform(-1, 1, size=(len(CHEESES), 2))
    points[1] = points[0] + 0.03
    names = [f"c{row}" for row in range(len(CHEESES))]
    data = {"image": [f"{row}.png" for row in range(len(CHEESES))]}
    return Items._without_warnings(points, names, CHEESES, None, data, ("salt", "age"))


def take_part(service, person: int, *, fast: bool = False) -> None:
    """Answer as somebody of one of two groups, or press left at once."""
    study = service.catalogue.by_slug("cheese")
    points = np.asarray(study.items.coordinates)
    own = np.array([0.8, 0.8] if person % 2 else [-0.8, -0.6]) + np.random.default_rng(person).normal(0, 0.1, 2)
    session, _ = service.sessions.open(study, {"participant": f"p{person}"}, kind="person", seed=person)
    row = service.sessions.by_id(session)
    state = service.sessions.state(row)
    while state["query"] is not None:
        left, right = (study.items.index(state["query"][side]["id"]) for side in ("left", "right"))
        away = np.sum((points[[left, right]] - own) ** 2, axis=1)
        outcome = "left" if fast or away[0] < away[1] else "right"
        state = service.sessions.answer(row, answer_to(state["query"]["query"], outcome, 90 if fast else 900))
        row = service.sessions.by_id(session)


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    with cheap_passwords(), served(tmp_path_factory.mktemp("findings") / "f.db") as running:
        service = running.service
        files = {f"{row}.png": lambda row=row: picture(row) for row in range(len(CHEESES))}
        made = configuration(title="Cheese", slug="cheese", answers=12)
        create_study(service.database, made, cheeses(), is_open=True, who="test", files=files)
        for person in range(16):
            take_part(service, person, fast=person == 15)
        service.findings.wait_for_current(service.catalogue.by_slug("cheese"))
        auth.set_password(service.database, "ann", PASSWORD)
        yield running


@pytest.fixture
def opened(visit, visitors):
    """Open the findings as a researcher, with options of the device."""

    def sign_in(**device):
        page = visit(f"{visitors.address}/login", **device)
        page.fill("[name=name]", "ann")
        page.fill("[name=password]", PASSWORD)
        page.locator("main button").first.click()
        page.wait_for_url("**/studies")
        page.goto(f"{visitors.address}/studies/cheese/findings")
        page.wait_for_selector("table.ranking")
        return page

    return sign_in


def kept(page, name: str) -> None:
    """Keep a picture of the page where PAIRSEEK_SHOTS names a folder."""
    folder = os.environ.get("PAIRSEEK_SHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}-{page.viewport_size['width']}.png"), full_page=True)


def column(page, key: str) -> list[str]:
    return page.eval_on_selector_all("table.ranking tbody tr", f"rows => rows.map(row => row.dataset.{key})")


def test_the_ranking_is_sorted_by_a_click_on_a_heading(opened) -> None:
    page = opened(**DESKTOP)
    kept(page, "findings")
    assert column(page, "place") == [str(place) for place in range(1, 21)]
    for key, first in (("name", "ascending"), ("share", "descending"), ("answers", "descending")):
        head = page.locator(f"table.ranking th[data-key={key}]")
        for turn in (first, "ascending" if first == "descending" else "descending"):
            head.locator("button").click()
            assert head.get_attribute("aria-sort") == turn
            shown = column(page, key)
            order = sorted(shown, key=(lambda text: text) if key == "name" else float, reverse=turn == "descending")
            assert shown == order
    assert page.locator("table.ranking th[aria-sort]").count() == 1


def test_the_map_zooms_and_shows_names_on_hover_and_on_focus(opened) -> None:
    page = opened(**DESKTOP)
    svg = page.locator("svg.group-map")

    def width() -> float:
        return float(svg.get_attribute("viewBox").split()[2])

    whole = width()
    page.locator("[data-zoom=in]").click()
    assert width() == pytest.approx(0.7 * whole)
    assert svg.evaluate("one => getComputedStyle(one).touchAction") == "none"
    svg.evaluate("one => one.scrollIntoView({block: 'center'})")
    box = svg.bounding_box()
    before = svg.get_attribute("viewBox")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 - 60, box["y"] + box["height"] / 2 - 40)
    page.mouse.up()
    assert svg.get_attribute("viewBox") != before
    page.locator("[data-zoom=out]").click()
    page.locator("[data-zoom=all]").click()
    assert width() == whole
    # A finger swipes the map on a phone, where it is wider than the screen.
    assert svg.evaluate("one => getComputedStyle(one).touchAction") == "auto"
    assert "salt" in svg.text_content()
    assert "age" in svg.text_content()
    hidden = page.locator(".map-item:has(.hidden-name)").first
    name = hidden.locator(".hidden-name")
    opacity = "one => getComputedStyle(one).opacity"
    page.mouse.move(0, 0)
    assert name.evaluate(opacity) == "0"
    # The picture of the other lies over its upper right corner.
    hidden.locator("image").hover(position={"x": 3, "y": 0.9 * hidden.locator("image").bounding_box()["height"]})
    assert name.evaluate(opacity) == "1"
    page.mouse.move(0, 0)
    hidden.focus()
    assert name.evaluate(opacity) == "1"


def test_the_map_is_saved_as_a_picture_and_as_a_drawing(opened, tmp_path) -> None:
    page = opened(**DESKTOP)
    svg = page.locator("svg.group-map")
    size = tuple(2 * int(svg.get_attribute(f"data-{side}")) for side in ("width", "height"))
    for kind in ("png", "svg"):
        with page.expect_download() as sent:
            page.locator(f"[data-save={kind}]").click()
        assert sent.value.suggested_filename == f"cheese-map.{kind}"
        sent.value.save_as(tmp_path / f"map.{kind}")
    drawing = (tmp_path / "map.svg").read_text()
    addresses = re.findall(r'href="([^"]*)"', drawing)
    assert len(addresses) == len(CHEESES)
    assert all(address.startswith("data:image/") for address in addresses)
    with Image.open(tmp_path / "map.png") as shown:
        assert shown.size == size
        # The pictures are in it: many hues.
        colours = np.asarray(shown.convert("HSV").resize((200, 150))).reshape(-1, 3)
        assert len({h // 16 for h, s, v in colours if s > 120 and v > 120}) >= 10
    folder = os.environ.get("PAIRSEEK_SHOTS")
    if folder:
        (Path(folder) / "map.png").write_bytes((tmp_path / "map.png").read_bytes())


def test_a_switch_ranks_with_those_who_are_left_out_and_without(opened) -> None:
    page = opened(**PHONE)
    kept(page, "findings")
    assert "1 person" in page.inner_text("main")
    people = "document.querySelector('p.lead').innerText"
    without = page.evaluate(people)
    page.locator("a[href$='everyone=1']").click()
    page.wait_for_url("**everyone=1")
    assert page.evaluate(people) != without
    page.locator("a.small-button[href$='/findings']").click()
    page.wait_for_url("**/findings")
    assert page.evaluate(people) == without
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_report_opens_without_a_network_and_prints(opened, browser, tmp_path) -> None:
    page = opened(**DESKTOP)
    with page.expect_download() as sent:
        page.locator("a[href*='/report']").first.click()
    sent.value.save_as(tmp_path / "report.html")
    context = browser.new_context(offline=True, **DESKTOP)
    try:
        report = context.new_page()
        asked = []
        report.on("request", lambda request: asked.append(request.url))
        report.goto((tmp_path / "report.html").as_uri())
        kept(report, "report")
        assert {address.partition(":")[0] for address in asked} <= {"file", "data"}
        assert "Cheese A" in report.inner_text("main")
        assert all(report.eval_on_selector_all("img", "all => all.map(one => one.naturalWidth > 0)"))
        found = Axe().run(report)
        assert found.violations_count == 0, found.generate_report()
        printed = report.pdf(format="A4")
        assert printed.startswith(b"%PDF")
        folder = os.environ.get("PAIRSEEK_SHOTS")
        if folder:
            (Path(folder) / "report.pdf").write_bytes(printed)
    finally:
        context.close()
