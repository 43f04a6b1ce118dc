"""A similarity study in a real browser: 20 colours without coordinates, judged, mapped, and searched."""

from __future__ import annotations

import colorsys
import time

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from helpers.browsers import DESKTOP, PHONE
from helpers.serving import cheap_passwords, configuration, served
from pairseek.model.items import Items
from pairseek.web.access import auth
from pairseek.web.errors import Problem
from pairseek.web.learning import similarity

N = 20
PASSWORD = "a long password of ours"
HSV = [(n / N, 0.75, 0.85 if n % 2 else 0.6) for n in range(N)]
COLOURS = ["#{:02x}{:02x}{:02x}".format(*(round(255 * part) for part in colorsys.hsv_to_rgb(*one))) for one in HSV]
# What the simulated judges have in mind: the circle of hues, and lightness.
MIND = np.array([(np.cos(2 * np.pi * h), np.sin(2 * np.pi * h), 1.2 * v) for h, _, v in HSV]) * 1.5
NEXT = """(last) => !document.getElementById("panel").hidden ||
  (document.getElementById("stage").dataset.shown ?? last) !== last"""


@pytest.fixture
def visitors(tmp_path):
    items = Items(None, [f"c{n}" for n in range(N)], data={"colour": COLOURS})
    settings = {"kind": "similarity", "slug": "colours", "title": "Which colours are alike?", "answers": 30}
    study = configuration(**settings, practice=True)
    with cheap_passwords(), served(tmp_path / "c.db", studies=[(study, items)], prefetch=True) as running:
        auth.set_password(running.service.database, "ann", PASSWORD)
        yield running


def point(page, card):
    """Return where the judges see the colour that a card shows."""
    shown = page.evaluate(f"getComputedStyle(document.querySelector('#{card} .swatch')).backgroundColor")
    code = "#{:02x}{:02x}{:02x}".format(*map(int, shown[4:-1].split(",")))
    return MIND[COLOURS.index(code)]


def go_through(page, prefers_left, *, most=1000):
    """Answer every question by keyboard; return False if there are more than `most`."""
    last = "practice" if page.locator("#practice").is_visible() else None
    for _ in range(most):
        page.wait_for_function(NEXT, arg=last)
        if page.locator("#panel").is_visible():
            return True
        last = page.evaluate("document.getElementById('stage').dataset.shown")
        left = prefers_left(page)
        time.sleep(0.27)  # a press sooner than 250 ms after a pair appeared counts for nothing
        page.keyboard.press("f" if left else "j")
    return False


def begin(visit, visitors, slug="colours", **device):
    page = visit(f"{visitors.address}/s/{slug}", **device)
    page.locator("main form button").first.click()
    page.wait_for_url("**/run")
    page.wait_for_selector("[data-shown]")
    return page


def finish(page):
    time.sleep(0.3)
    page.locator("#done").click()
    page.wait_for_url("**/result")


def learn(database, study):
    """Learn from all answers, once the learner of the service has finished."""
    until = time.monotonic() + 300
    while True:
        try:
            return similarity.learn(database, study, "ann")
        except Problem:
            assert time.monotonic() < until
            time.sleep(0.5)


@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_question_can_be_seen_heard_and_touched(visit, visitors, device):
    page = begin(visit, visitors, **device)
    page.wait_for_selector("[data-shown=practice]")
    assert page.locator("#run h1").inner_text() == "Which of these two is more like this one?"
    assert page.locator("#anchor").inner_text().strip() == "A lemon"
    time.sleep(0.3)
    page.locator("#left").click()
    page.wait_for_selector("[data-shown=p1]")
    assert page.locator("#announce").inner_text().startswith("Question 1: what is more like")
    assert page.locator("#anchor .swatch").is_visible()
    for card in ("anchor", "left", "right"):
        box = page.locator(f"#{card}").bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= device["viewport"]["height"]
    assert page.locator("#anchor button").count() == 0
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    time.sleep(0.3)
    page.locator("#right").click()
    page.wait_for_selector("[data-shown=p2]")
    first = page.evaluate("fetch('state').then((reply) => reply.json())")
    assert first["progress"]["answered"] == 1
    time.sleep(0.3)
    page.keyboard.press("u")
    page.wait_for_selector("[data-shown=p1-2]")


@pytest.mark.long
def test_colours_without_coordinates_are_mapped_and_found(visit, visitors):
    rng = np.random.default_rng(0)

    def judged(page):
        anchor, left, right = (point(page, card) for card in ("anchor", "left", "right"))
        logit = np.sum((anchor - right) ** 2) - np.sum((anchor - left) ** 2)
        return rng.random() < 1 / (1 + np.exp(-logit))

    for number in range(10):
        page = begin(visit, visitors, **(PHONE if number % 2 else DESKTOP))
        time.sleep(0.3)
        page.keyboard.press("f")  # the practice question
        assert go_through(page, judged)
        finish(page)
        page.context.close()
    database, study = visitors.service.database, visitors.service.catalogue.by_slug("colours")
    learn(database, study)
    learned = similarity.newest_map(database, study).learned
    # 300 judgements of 20 items; about 30 kept apart, of which judges themselves contradict their map in a sixth.
    assert learned.judgements == 300
    assert learned.error < 0.4
    owner = visit(f"{visitors.address}/login", **DESKTOP)
    owner.fill("[name=name]", "ann")
    owner.fill("[name=password]", PASSWORD)
    owner.locator("main button").first.click()
    owner.wait_for_url("**/studies")
    owner.goto(f"{visitors.address}/studies/colours")
    assert owner.locator(".alike-item").count() == N
    assert Axe().run(owner).violations_count == 0
    owner.get_by_role("button", name="Make a study").click()
    owner.wait_for_url("**/studies/colours-search")
    wanted = 3

    def liked(page):
        left, right = (np.sum((MIND[wanted] - point(page, card)) ** 2) for card in ("left", "right"))
        return left <= right

    page = begin(visit, visitors, "colours-search", **DESKTOP)
    assert go_through(page, liked)
    finish(page)
    found = page.evaluate("[...document.querySelectorAll('.nearest rect')].map((one) => one.getAttribute('fill'))")
    # The map knows the colour circle, not every neighbour on it.
    assert COLOURS[wanted] in found[:3]
