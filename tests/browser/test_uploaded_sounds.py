"""Twelve uploaded sounds in a real browser: made into a study by the form, played, sought in, and answered."""

from __future__ import annotations

import io

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

from helpers.browsers import DESKTOP, PHONE
from helpers.recordings import tone
from helpers.serving import served
from pairseek.web.access import auth
from pairseek.web.results.tables import rows_of

PASSWORD = "a long password"
GUARD_MS = 300  # the page ignores presses meant for what it showed before
ANSWERS = 2
# Runs without sound, and resolves once the player has come to its end.
PLAY = """side => {
    const player = document.querySelector(`#${side} :is(audio, video)`);
    player.muted = true;
    const ended = new Promise((done) => player.addEventListener("ended", done, { once: true }));
    return player.play().then(() => ended).then(() => true);
}"""
SEEK = """async () => {
    const player = document.querySelector("#left audio");
    player.currentTime = 0.4;
    await new Promise((done) => player.addEventListener("seeked", done, { once: true }));
    const { currentTime, seekable } = player;
    player.currentTime = 0;
    return [currentTime, seekable.end(0)];
}"""
LOADED = """count => {
    const players = [...document.querySelectorAll(".stage :is(audio, video)")];
    return players.length === count && players.every(({ readyState }) => readyState >= 1);
}"""
SOURCES = "() => [...document.querySelectorAll('.stage :is(audio, img)')].map(({ src }) => src).join()"


def file(name, content):
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def picture(colour):
    content = io.BytesIO()
    Image.new("RGB", (600, 400), colour).save(content, "PNG")
    return content.getvalue()


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    with served(tmp_path_factory.mktemp("sounds") / "sounds.db", prefetch="media") as running:
        auth.set_password(running.service.database, "ann", PASSWORD)
        yield running


def create(visit, visitors, title, files, *, device):
    page = visit(f"{visitors.address}/login", **device)
    page.locator("[name=name]").fill("ann")
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("main form button").click()
    page.wait_for_url("**/studies")
    page.goto(f"{visitors.address}/studies/new")
    page.locator("#f-title").fill(title)
    page.locator("#f-answers").fill(str(ANSWERS))
    page.locator("#f-images").set_input_files([*files, file("notes.mp4", b"these are notes")])
    create_button = page.locator("form.long").first.locator("button:not([type=button])").last
    create_button.click()
    page.locator("[role=alert]").wait_for()
    assert "'notes.mp4' is a text file" in page.locator(".field", has=page.locator("#f-images")).inner_text()
    assert page.evaluate("() => document.getElementById('f-images').files.length") == len(files) + 1
    page.locator("#f-images").set_input_files(files)
    page.locator("form.long").first.locator("button:not([type=button])").last.click()
    page.wait_for_url(f"**/studies/{title.lower().replace(' ', '-')}")


def finish(page):
    button = page.get_by_role("button", name="Finish")
    button.wait_for()
    page.wait_for_timeout(GUARD_MS)
    button.click()
    page.wait_for_url("**/result")


@pytest.mark.parametrize("device", [PHONE, DESKTOP], ids=["390", "1280"])
def test_twelve_sounds_are_uploaded_played_and_answered(visit, visitors, device):
    width = device["viewport"]["width"]
    sounds = [file(f"bell-{k}.wav", tone(0.6, 300 + 40 * k)) for k in range(12)]
    create(visit, visitors, f"Bells {width}", sounds, device=device)
    page = visit(f"{visitors.address}/s/bells-{width}", **device)
    page.locator("form button").first.click()
    for number in range(ANSWERS):
        page.wait_for_function(LOADED, arg=2)
        choose = page.locator("#left .card-pick")
        assert choose.get_attribute("aria-disabled") == "true"
        if number == 0:
            assert Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]}).response["violations"] == []
            sought, end = page.evaluate(SEEK)
            assert sought == pytest.approx(0.4, abs=0.1)
            assert end == pytest.approx(0.6, abs=0.1)
            assert choose.get_attribute("aria-disabled") == "true"
        for side in ("left", "right"):
            assert page.evaluate(PLAY, side)
        page.wait_for_function("() => document.querySelector('#left .card-pick').ariaDisabled === 'false'")
        before = page.evaluate(SOURCES)
        choose.click()
        if number < ANSWERS - 1:
            page.wait_for_function(f"before => ({SOURCES})() !== before", arg=before)
    finish(page)
    study = visitors.service.catalogue.by_slug(f"bells-{width}")
    answers = [row for row in rows_of(visitors.service.database, study, "answers") if row["outcome"] == "left"]
    assert [(row["left_played"], row["right_played"]) for row in answers] == [("yes", "yes")] * ANSWERS


def test_pictures_and_sounds_in_one_study_can_be_answered(visit, visitors):
    files = [file("a.png", picture("red")), file("b.png", picture("blue"))]
    files += [file(f"{name}.wav", tone(0.3)) for name in "cd"]
    create(visit, visitors, "Mixed", files, device=PHONE)
    page = visit(f"{visitors.address}/s/mixed", **PHONE)
    page.locator("form button").first.click()
    page.wait_for_url("**/run")
    for number in range(ANSWERS):
        page.wait_for_function("() => document.querySelectorAll('.stage .card-show > *').length >= 2")
        for side in ("left", "right"):
            if page.locator(f"#{side} audio").count():
                assert page.evaluate(PLAY, side)
        page.wait_for_function("() => document.querySelector('#left .card-pick').ariaDisabled !== 'true'")
        before = page.evaluate(SOURCES)
        # A press in the first quarter of a second counts as part of a double press.
        page.wait_for_timeout(300)
        page.keyboard.press("ArrowLeft")
        if number < ANSWERS - 1:
            page.wait_for_function(f"before => ({SOURCES})() !== before", arg=before)
    page.get_by_role("button", name="Finish").wait_for()
