"""A study of a list of things in a real browser: made by the form, answered, learned from, and answered again."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from helpers.browsers import DESKTOP, PHONE
from helpers.serving import cheap_passwords, configuration, served
from pairseek.model.items import Items
from pairseek.web.access import auth

PASSWORD = "a long password of ours"
DOGS = """id,label,text
beagle,Beagle,Merry and always hungry.
corgi,Corgi,"Small, clever, loud."
husky,Husky,Runs all day.
poodle,Poodle,Learns anything.
pug,Pug,Snores.
whippet,Whippet,Fast for a minute.
"""
# What everybody likes, best first.
LIKED = ["Corgi", "Beagle", "Poodle", "Whippet", "Husky", "Pug"]
NEXT = """(last) => !document.getElementById("panel").hidden ||
  (document.getElementById("stage").dataset.shown ?? last) !== last"""


@pytest.fixture
def visitors(tmp_path):
    other = (configuration(), Items([[0.0], [1.0], [2.0]], list("abc")))
    with cheap_passwords(), served(tmp_path / "d.db", studies=[other], prefetch=True) as running:
        auth.set_password(running.service.database, "ann", PASSWORD)
        yield running


def kept(page, name: str) -> None:
    """Keep a picture of the page where PAIRSEEK_SHOTS names a folder."""
    folder = os.environ.get("PAIRSEEK_SHOTS")
    if folder:
        width = page.viewport_size["width"]
        page.screenshot(path=str(Path(folder) / f"{name}-{width}.png"), full_page=name != "question")


def take_part(visit, visitors, device, name: str | None = None):
    """Answer everything by keyboard; return the page of the result."""
    page = visit(f"{visitors.address}/s/dogs", **device)
    if name:
        kept(page, f"{name}-start")
    page.locator("main form button").first.click()
    page.wait_for_url("**/run")
    last = None
    while True:
        page.wait_for_function(NEXT, arg=last)
        if page.locator("#panel").is_visible():
            break
        last = page.evaluate("document.getElementById('stage').dataset.shown")
        shown = [page.locator(f"#{side}").inner_text() for side in ("left", "right")]
        places = [next(place for place, dog in enumerate(LIKED) if dog in text) for text in shown]
        if name:
            kept(page, "question" if name == "first" else f"{name}-question")
        time.sleep(0.27)  # a press sooner than 250 ms after a pair appeared counts for nothing
        page.keyboard.press("f" if places[0] < places[1] else "j")
    time.sleep(0.3)
    page.locator("#done").click()
    page.wait_for_url("**/result")
    return page


@pytest.mark.long
def test_a_list_of_things_becomes_a_search_that_knows_people(visit, visitors, tmp_path):
    (tmp_path / "dogs.csv").write_text(DOGS)
    owner = visit(f"{visitors.address}/login", **DESKTOP)
    owner.fill("[name=name]", "ann")
    owner.fill("[name=password]", PASSWORD)
    owner.locator("main button").first.click()
    owner.wait_for_url("**/studies")
    owner.goto(f"{visitors.address}/studies/new")
    owner.fill("[name=title]", "Dogs")
    owner.fill("[name=answers]", "6")
    owner.locator("#f-items").set_input_files(tmp_path / "dogs.csv")
    kept(owner, "new")
    owner.locator("form.long .choices button").first.click()
    owner.wait_for_url("**/studies/dogs")
    if owner.locator("text=first version follows at 10").count() == 0:
        raise AssertionError(owner.inner_text("main"))
    if owner.locator("form[action$='/open'] button").count():
        owner.locator("form[action$='/open'] button").click()
    service = visitors.service
    for number in range(12):
        name = "first" if number < 2 else None
        page = take_part(visit, visitors, PHONE if number % 2 else DESKTOP, name)
        assert "first impression" in page.inner_text("main")
        if name:
            kept(page, "first-result")
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
        page.context.close()
        if number == 8:
            kept(owner, "dashboard-before")
    study = service.catalogue.by_slug("dogs")
    until = time.monotonic() + 300
    while True:
        owner.goto(f"{visitors.address}/studies/dogs")
        if "Version 1 predicts" in owner.inner_text("main"):
            break
        assert time.monotonic() < until, "nothing was learned"
        time.sleep(1.0)
    for device in (DESKTOP, PHONE):
        owner.set_viewport_size(device["viewport"])
        kept(owner, "dashboard")
        found = Axe().run(owner)
        assert found.violations_count == 0, found.generate_report()
    for device in (DESKTOP, PHONE):
        page = take_part(visit, visitors, device, "later")
        assert "first impression" not in page.inner_text("main")
        kept(page, "later-result")
        assert page.locator(".nearest li").first.inner_text().splitlines()[1] == "Corgi"
        page.context.close()
    # The pairs are now chosen by the strategy, under what was learned.
    rows = service.overview.participants(study)
    owner.set_viewport_size(DESKTOP["viewport"])
    owner.goto(f"{visitors.address}/studies/dogs/people/{rows[0][0]['session']}")
    kept(owner, "person")
    table = owner.inner_text("main")
    assert "search" in table
