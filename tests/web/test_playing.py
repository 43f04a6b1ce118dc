"""Sounds and videos: a choice counts after both were played, and one that does not load is said, stored and flagged."""

from __future__ import annotations

import base64
import csv
import io
import time
import wave

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from helpers.browsers import DESKTOP, PHONE
from helpers.serving import GUARD, answer, begin, configuration, csrf_of, served
from pairseek.client import Client, ServiceError
from pairseek.core.messages import words
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.store import events
from pairseek.web.access import auth
from pairseek.web.results.tables import rows_of
from pairseek.web.studies.checks import check
from pairseek.web.studies.creation import create_study
from pairseek.web.studies.items import study_items

PASSWORD = "a long password"
HOST = "https://media.example"
KINDS = {"wav": ("audio", "audio/wav"), "webm": ("video", "video/webm"), "mp4": ("video", "video/mp4")}
SECONDS = 1.0


def tone(seconds=SECONDS) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(1)
        written.setframerate(8000)
        written.writeframes((128 + 60 * np.sin(np.arange(round(8000 * seconds)) * 0.3)).astype(np.uint8).tobytes())
    return file.getvalue()


RECORD = """async (type) => {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: 160, height: 120 });
    const brush = canvas.getContext("2d");
    const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: type });
    const pieces = [];
    recorder.ondataavailable = (event) => pieces.push(event.data);
    const stopped = new Promise((done) => (recorder.onstop = done));
    recorder.start();
    for (let step = 0; step < 25; step += 1) {
        brush.fillStyle = `hsl(${14 * step} 60% 50%)`;
        brush.fillRect(0, 0, 160, 120);
        await new Promise((done) => setTimeout(done, 40));
    }
    recorder.stop();
    await stopped;
    return btoa(String.fromCharCode(...new Uint8Array(await new Blob(pieces).arrayBuffer())));
}"""


@pytest.fixture(scope="module")
def clips(browser) -> dict[str, bytes]:
    """A second of sound, and films that the browser itself made."""
    context = browser.new_context()
    page = context.new_page()
    films = {kind: base64.b64decode(page.evaluate(RECORD, KINDS[kind][1])) for kind in ("webm", "mp4")}
    context.close()
    return {"wav": tone(), **films}


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    with served(tmp_path_factory.mktemp("players") / "p.db", trusted_proxies="127.0.0.1") as visitors:
        auth.set_password(visitors.service.database, "ann", PASSWORD)
        yield visitors


def make(visitors, slug, kind="wav", labels=None, **settings):
    """A study of six clips; the name of each is that of its file."""
    medium = KINDS[kind][0]
    names = [f"m{n}" for n in range(6)]
    data = {medium: [f"{HOST}/{name}.{kind}" for name in names]}
    items = study_items(Items([[n % 3, n // 3] for n in range(6)], names, labels, data=data), scaled=False)
    made = configuration(slug=slug, **{"answers": 4, **settings})
    check(made, items)
    create_study(visitors.service.database, made, items, is_open=True, who="test")
    return slug


def opened(visit, browser, visitors, clips, slug, device, broken=(), language=None):
    """The page of the first pair; clips of these names do not load."""
    context = browser.new_context(**device)
    context.set_default_timeout(20_000)
    gone = set(broken)

    def reply(route):
        name, _, ending = route.request.url.rpartition("/")[2].partition(".")
        if name in gone:
            # One is not there, another is no film.
            return (
                route.fulfill(status=404)
                if int(name[1:]) % 2
                else route.fulfill(body=b"x" * 99, content_type=KINDS[ending][1])
            )
        return route.fulfill(body=clips[ending], content_type=KINDS[ending][1])

    context.route(f"{HOST}/**", reply)
    page = visit(f"{visitors.address}/s/{slug}", context=context)
    page.get_by_role("button", name="Begin").click()
    page.locator("#stage[data-shown='p1']").wait_for()
    page.wait_for_timeout(300)  # longer than the guard against double presses
    return page, gone


def state(page) -> dict:
    return page.request.get(page.url.rsplit("/", 1)[0] + "/state").json()


def stored(visitors, page, slug):
    token = next(cooky["value"] for cooky in page.context.cookies() if cooky["name"] == f"pairseek_s_{slug}")
    row = visitors.service.sessions.by_token(token)
    return visitors.service.database.read(lambda connection: events.events_of(connection, [row.id]))


def play(page, side, seconds=None):
    """Play one to its end, or for some seconds; a script may press the button of a player in a driven browser."""
    page.locator(f"#{side} :is(audio, video)").evaluate(
        """async (player, seconds) => {
            player.muted = true;
            await player.play();
            const late = new Promise((_, failed) => setTimeout(() => failed("stuck"), 9000));
            const wanted = seconds === null ? "ended" : "timeupdate";
            await Promise.race([late, new Promise((done) => player.addEventListener(wanted, () => {
                if (seconds === null || player.currentTime >= seconds) done();
            }))]);
            player.pause();
        }""",
        seconds,
    )


def settle(page):
    page.wait_for_timeout(400)


def pick(page, side):
    return page.locator(f"#{side} .card-pick")


@pytest.mark.parametrize("device", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_choice_counts_after_both_were_played_to_the_end(visit, browser, visitors, clips, kind, device) -> None:
    slug = make(
        visitors, f"{kind}-{'phone' if device is PHONE else 'desktop'}", kind, offer={"tie": True, "skip": True}
    )
    page, _ = opened(visit, browser, visitors, clips, slug, device)
    gate, before = page.locator("#gate"), len(stored(visitors, page, slug))
    assert page.get_by_role("button", name="Choose this").count() == 2
    assert "Play 2 more to the end" in gate.inner_text()

    def tries():
        """Everything by which one could choose."""
        for side in ("left", "right"):
            pick(page, side).click(force=True)  # as a finger does, which asks for no permission
        for key in ("ArrowLeft", "ArrowRight", "f", "j", "t"):
            page.keyboard.press(key)
        pick(page, "left").focus()
        page.keyboard.press("Enter")
        page.locator("#tie").click(force=True)
        settle(page)

    tries()
    assert "Play everything first" in page.locator("#notice").inner_text()
    play(page, "left")
    assert "Play 1 more" in gate.inner_text()
    # What is skipped over is not played.
    page.locator("#right :is(audio, video)").evaluate("(player) => { player.currentTime = 0.98; }")
    play(page, "right", 0.1)
    tries()
    assert page.locator("#right .player-state").inner_text() == "Not played yet"
    assert pick(page, "left").get_attribute("aria-disabled") == "true"
    assert Axe().run(page).violations_count == 0
    assert len(stored(visitors, page, slug)) == before
    page.locator("#right :is(audio, video)").evaluate("(player) => { player.currentTime = 0; }")
    play(page, "right")
    assert "Now choose" in gate.inner_text()
    assert pick(page, "left").get_attribute("aria-disabled") == "false"
    assert Axe().run(page).violations_count == 0
    # Neither a press on a player nor one beside it chooses.
    for side in ("left", "right"):
        player, card = (page.locator(f"#{side}{what}").bounding_box() for what in (" :is(audio, video)", ""))
        page.mouse.click(player["x"] + player["width"] / 2, player["y"] + player["height"] / 2)
        page.mouse.click(card["x"] + 4, card["y"] + 4)
        page.locator(f"#{side} .player-state").click()
    settle(page)
    assert len(stored(visitors, page, slug)) == before
    pick(page, "right").click()
    page.locator("#stage[data-shown='p2']").wait_for()
    # The gate is closed again for the next pair.
    assert "Play 2 more" in gate.inner_text()
    event = stored(visitors, page, slug)[-1]
    assert (event.outcome, event.played) == ("right", {"left": "yes", "right": "yes"})
    settle(page)
    play(page, "left")
    play(page, "right")
    page.keyboard.press("ArrowLeft")
    page.locator("#stage[data-shown='p3']").wait_for()
    assert stored(visitors, page, slug)[-1].outcome == "left"
    page.context.close()


def test_one_plays_at_a_time_and_a_set_time_is_enough(visit, browser, visitors, clips) -> None:
    slug = make(visitors, "some-seconds", play=0.4, labels=[f"Song {n}" for n in range(6)])
    page, _ = opened(visit, browser, visitors, clips, slug, DESKTOP)
    assert "Play 2 more for 0.4 s" in page.locator("#gate").inner_text()
    assert page.get_by_role("button", name="Song").count() == 2, "the button names the song"
    paused = page.evaluate(
        """async () => {
            const [left, right] = document.querySelectorAll("audio");
            left.muted = right.muted = true;
            await left.play();
            await right.play();
            return [left.paused, right.paused];
        }"""
    )
    assert paused == [True, False]
    play(page, "left", 0.5)
    play(page, "right", 0.5)
    page.keyboard.press("ArrowRight")
    page.locator("#stage[data-shown='p2']").wait_for()
    assert stored(visitors, page, slug)[-1].played == {"left": "yes", "right": "yes"}
    page.context.close()


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_does_not_load_is_said_stored_and_flagged(visit, browser, visitors, clips, kind) -> None:
    slug = make(visitors, f"broken-{kind}", kind)
    page, gone = opened(visit, browser, visitors, clips, slug, PHONE, broken=[f"m{n}" for n in range(6)])
    page.locator("#left .player-state[data-state=failed]").wait_for()
    assert "cannot be played" in page.locator("#gate").inner_text()
    assert Axe().run(page).violations_count == 0
    pick(page, "left").click(force=True)
    page.keyboard.press("ArrowRight")
    settle(page)
    assert stored(visitors, page, slug) == []
    # It goes on without a choice, although the study offers no skipping; the pair does not count.
    page.get_by_role("button", name="Go on without choosing").click()
    page.locator("#stage[data-shown='p2']").wait_for()
    (event,) = stored(visitors, page, slug)
    assert (event.outcome, event.played) == ("skip", {"left": "failed", "right": "failed"})
    assert state(page)["progress"]["answered"] == 0
    # The connection comes back.
    page.locator("#right .player-state[data-state=failed]").wait_for()
    gone.clear()
    page.get_by_role("button", name="Try again").click()
    page.locator("#gate", has_text="Play 2 more").wait_for()
    assert not page.get_by_role("button", name="Try again").is_visible()
    play(page, "left")
    play(page, "right")
    pick(page, "left").click()
    page.locator("#stage[data-shown='p3']").wait_for()
    page.context.close()
    # The researcher sees it in the exports and on the pages, and nobody is left out of the ranking for it.
    study = visitors.service.catalogue.by_slug(slug)
    rows = list(rows_of(visitors.service.database, study, "answers"))
    assert [(row["left_played"], row["right_played"]) for row in rows] == [("failed", "failed"), ("yes", "yes")]
    (person,) = rows_of(visitors.service.database, study, "participants")
    assert person["flags"] == "unloaded"
    browser_of_ann = visitors.browser(headers={"accept": "text/html"})
    browser_of_ann.post(
        "/login", data={"csrf": csrf_of(browser_of_ann.get("/login")), "name": "ann", "password": PASSWORD}
    )
    flag = words("en").say("flag.unloaded")
    for at in ("", f"/people/{person['session']}"):
        assert flag in browser_of_ann.get(f"/studies/{slug}{at}").text
    until = time.monotonic() + 60
    while flag not in (page := browser_of_ann.get(f"/studies/{slug}/findings").text):
        assert time.monotonic() < until, "the findings do not show the flag"
        time.sleep(0.2)
    assert words("en").say("quality.out") not in page.partition("<tbody")[2]


def test_a_similarity_study_waits_for_the_anchor_too(visit, browser, visitors, clips) -> None:
    data = {"audio": [f"{HOST}/m{n}.wav" for n in range(6)]}
    items = study_items(Items(None, [f"m{n}" for n in range(6)], data=data), scaled=False)
    made = configuration(slug="alike", kind="similarity", answers=4)
    create_study(visitors.service.database, made, items, is_open=True, who="test")
    page, _ = opened(visit, browser, visitors, clips, "alike", PHONE)
    play(page, "left")
    play(page, "right")
    page.keyboard.press("ArrowLeft")
    settle(page)
    assert stored(visitors, page, "alike") == []
    play(page, "anchor")
    page.keyboard.press("ArrowLeft")
    page.locator("#stage[data-shown='p2']").wait_for()
    assert stored(visitors, page, "alike")[-1].played == {"left": "yes", "right": "yes", "anchor": "yes"}
    page.context.close()


def test_the_service_refuses_a_choice_before_playing_and_stores_what_programs_do_not_say(visitors) -> None:
    slug = make(visitors, "enforced", offer={"skip": False})
    client = visitors.browser()
    now = begin(client, slug)
    for played in (None, {}, {"left": "yes"}, {"left": "yes", "right": "no"}, {"left": "yes", "right": "failed"}):
        reply = answer(client, now, "left", slug, played=played)
        assert (reply.status_code, reply.json()["error"]["code"]) == (422, "not_played")
    for played in (None, {"left": "yes", "right": "yes"}):
        reply = answer(client, now, "skip", slug, played=played)
        assert (reply.status_code, reply.json()["error"]["code"]) == (422, "not_offered")
    assert answer(client, now, "left", slug, played={"left": "yes", "right": "maybe"}).status_code == 422
    assert client.get(f"/s/{slug}/state", headers=GUARD).json() == now
    now = answer(client, now, "left", slug, played={"left": "yes", "right": "yes"}).json()
    assert answer(client, now, "skip", slug, played={"left": "yes", "right": "failed"}).status_code == 200
    assert [one["played"]["right"] for one in client.get(f"/s/{slug}/mine").json()["answers"]] == ["yes", "failed"]
    token = auth.make_token(visitors.service.database, "program", ["answer", "read"], "ann")
    session = Client(visitors.address, token).open_session(slug)
    with pytest.raises(ServiceError) as caught:
        session.answer(session.state().pair, "left", played={"left": "yes", "right": "no"})
    assert caught.value.code == "not_played"
    after = session.answer(session.state().pair, "left")
    session.answer(after.pair, "right", played={"left": "yes", "right": "yes"})
    table = csv.DictReader(io.StringIO(Client(visitors.address, token).export(slug, "answers").decode()))
    mine = [(row["left_played"], row["right_played"]) for row in table if row["session"] == session.id]
    assert mine == [("unknown", "unknown"), ("yes", "yes")]
    people = list(rows_of(visitors.service.database, visitors.service.catalogue.by_slug(slug), "participants"))
    assert [person["flags"] for person in people] == ["unloaded", "unheard"]


def test_a_study_that_needs_nothing_played_takes_every_answer(visitors) -> None:
    slug = make(visitors, "anything", play=0)
    client = visitors.browser()
    assert answer(client, begin(client, slug), "left", slug, played={"left": "no", "right": "no"}).status_code == 200
    (person,) = rows_of(visitors.service.database, visitors.service.catalogue.by_slug(slug), "participants")
    assert person["flags"] == ""


def test_an_attention_pair_that_does_not_load_is_no_failed_check(visitors) -> None:
    rule = {"pairs": [{"left": "m0", "right": "m1", "answer": "m0"}], "every": 2}
    slug = make(visitors, "attentive", attention=rule)
    client = visitors.browser()
    now = begin(client, slug)
    while now["query"] is not None and now["query"]["number"] < 4:
        pair = {now["query"][side]["id"] for side in ("left", "right")}
        failed = pair == {"m0", "m1"}
        sent = {"left": "failed" if failed else "yes", "right": "yes"}
        now = answer(client, now, "skip" if failed else "left", slug, played=sent).json()
    study = visitors.service.catalogue.by_slug(slug)
    rows = list(rows_of(visitors.service.database, study, "answers"))
    assert [(row["outcome"], row["passed"]) for row in rows if row["kind"] == "attention"][:1] == [("skip", None)]
    (person,) = rows_of(visitors.service.database, study, "participants")
    assert person["flags"] == "unloaded"


@pytest.mark.parametrize("value", [-1, 3601, float("nan"), "start"])
def test_a_time_that_makes_no_sense_is_refused(visitors, value) -> None:
    with pytest.raises(InvalidParameter) as caught:
        make(visitors, "refused", play=value)
    assert caught.value.field.startswith("play")
