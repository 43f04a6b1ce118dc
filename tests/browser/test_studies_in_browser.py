"""A real browser at the real service: what people do, and what the store holds afterwards."""

from __future__ import annotations

import base64
import time

import pytest
from axe_playwright_python.sync_playwright import Axe

from helpers.browsers import DESKTOP, PHONE
from helpers.pages_data import sound
from helpers.serving import configuration, served, some_items
from pairseek.datasets import colours
from pairseek.model.items import Items
from pairseek.search.warmup import warm_up
from pairseek.store import events
from pairseek.web.access import auth
from pairseek.web.sessions import forgetting
from pairseek.web.studies.creation import create_study
from pairseek.web.studies.items import study_items

ANSWERS = 6


def hallway() -> Items:
    named = colours()
    shown = {"colour": [str(value) for value in named.data["hex"]]}
    return study_items(
        Items(named.coordinates, [str(one) for one in named.ids], named.labels, data=shown), scaled=False
    )


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    made = configuration(
        title="A colour for the hallway",
        slug="colours",
        consent="Your answers are kept **without** your name.",
        instructions="Choose the one you would rather have on the wall.",
        answers=ANSWERS,
        offer={"tie": True, "skip": True, "undo": True},
        completion={"codes": {"finished": "C1", "no_consent": "NO"}},
    )
    warm_up()
    database = tmp_path_factory.mktemp("browser") / "studies.db"
    with served(database, studies=[(made, hallway())], prefetch=True) as running:
        yield running


def begun(visit, visitors, **device):
    page = visit(f"{visitors.address}/s/colours", **device)
    page.get_by_role("button", name="I agree, begin").click()
    page.wait_for_url("**/run")
    return page


def state(page) -> dict:
    return page.request.get(page.url.rsplit("/", 1)[0] + "/state").json()


def settled(page, query: str | None = None) -> dict:
    """Wait until the page shows the pair that the service asks (another than `query`), and takes an answer."""
    end = time.monotonic() + 20
    while True:
        now = state(page)
        asked = now["query"]
        if asked is None or asked["query"] == query:
            assert time.monotonic() < end, "the service asks nothing new"
            time.sleep(0.05)
            continue
        if page.locator("#stage").get_attribute("data-shown") == asked["query"]:
            names = [page.locator(f"#{side}-label").inner_text() for side in ("left", "right")]
            assert names == [asked["left"]["label"], asked["right"]["label"]]
            page.wait_for_timeout(300)  # longer than the guard against double presses
            return now
        assert time.monotonic() < end, f"the page does not show what the service asks: {asked}"
        time.sleep(0.05)


def finish(page) -> None:
    """From the last pair to the result."""
    page.get_by_role("heading", name="That was the last pair").wait_for()
    page.wait_for_timeout(300)  # longer than the guard against double presses
    page.get_by_role("button", name="Finish").click()
    page.wait_for_url("**/result")


def stored(visitors, page) -> list[tuple[str, str, str | None]]:
    """What the database holds of this page's session."""
    token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "pairseek_s_colours")
    row = visitors.service.sessions.by_token(token)
    happened = visitors.service.database.read(lambda connection: events.events_of(connection, [row.id]))
    return [(event.kind, event.query, event.outcome) for event in happened]


@pytest.mark.parametrize("device", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_a_whole_study_and_every_page_of_it_is_accessible(visit, visitors, device) -> None:
    page = visit(f"{visitors.address}/s/colours?PROLIFIC_PID=p-{'phone' if device is PHONE else 'desk'}", **device)
    assert Axe().run(page).violations_count == 0
    page.get_by_role("button", name="I agree, begin").click()
    query = None
    for number in range(ANSWERS):
        now = settled(page, query)
        query = now["query"]["query"]
        assert page.locator("#count").inner_text() == f"{number} of {ANSWERS}"
        if number == 1:
            assert Axe().run(page).violations_count == 0
        card = page.locator("#left button" if number % 2 else "#right button")
        (card.tap if device is PHONE else card.click)()
    page.get_by_role("heading", name="That was the last pair").wait_for()
    assert Axe().run(page).violations_count == 0
    finish(page)
    assert Axe().run(page).violations_count == 0
    page.get_by_text("All 6 answers are saved").wait_for()
    assert page.locator(".code").inner_text() == "C1"
    assert page.locator(".nearest li").count() > 0
    assert [outcome for _, _, outcome in stored(visitors, page)] == ["right", "left"] * 3
    with page.expect_download() as download:
        page.get_by_role("link", name="Download my answers").click()
    assert download.value.suggested_filename.endswith(".json")


def test_a_phone_loads_less_than_60_kilobytes_for_a_whole_study(visit, visitors) -> None:
    """What crosses the network: pages, style sheets and scripts with their headers, for six pairs of colours."""
    page = visit("about:blank", **PHONE)
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    kinds, sizes = {}, {}
    network.on("Network.requestWillBeSent", lambda event: kinds.update({event["requestId"]: event["type"]}))
    network.on("Network.loadingFinished", lambda event: sizes.update({event["requestId"]: event["encodedDataLength"]}))
    page.goto(f"{visitors.address}/s/colours")
    page.get_by_role("button", name="I agree, begin").click()
    query = None
    for _ in range(ANSWERS):
        query = settled(page, query)["query"]["query"]
        page.locator("#left button").tap()
    finish(page)
    page.wait_for_load_state("networkidle")
    of = {kind: sum(sizes.get(name, 0) for name in kinds if kinds[name] == kind) for kind in set(kinds.values())}
    said = of.pop("Fetch", 0)
    assert sum(of.values()) < 60_000, of
    assert said < 4000 * ANSWERS, "the pairs themselves, prefetched for each answer that can be given"


def test_by_keyboard_alone_with_undo_tie_and_skip(visit, visitors) -> None:
    page = visit(f"{visitors.address}/s/colours", **DESKTOP)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/run")
    query, first = None, None
    for key in ["ArrowLeft", "u", "j", "t", "s", "f", "f", "ArrowRight", "j"]:
        now = settled(page, query)
        query = now["query"]["query"]
        if key == "j" and first:
            again = [now["query"][side]["id"] for side in ("left", "right")]
            assert again == first, "what was taken back is asked again"
            first = None
        elif key == "ArrowLeft":
            first = [now["query"][side]["id"] for side in ("left", "right")]
        page.keyboard.press(key)
    page.get_by_role("heading", name="That was the last pair").wait_for()
    page.wait_for_timeout(300)
    page.keyboard.press("u")
    assert settled(page, query)["query"]["number"] == 7
    page.keyboard.press("f")
    page.get_by_role("heading", name="That was the last pair").wait_for()
    page.wait_for_timeout(300)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/result")
    outcomes = [outcome or kind for kind, _, outcome in stored(visitors, page)]
    assert outcomes == ["left", "undo", "right", "tie", "skip", "left", "left", "right", "right", "undo", "left"]


def test_offline_reload_and_two_tabs_lose_nothing_and_count_nothing_twice(visit, visitors) -> None:
    page = begun(visit, visitors, **PHONE)
    now = settled(page)
    page.locator(f"#stage[data-prefetched='{now['query']['query']}']").wait_for()
    page.context.set_offline(True)
    page.locator("#left button").tap()
    page.locator(f"#stage[data-shown]:not([data-shown='{now['query']['query']}'])").wait_for()
    page.wait_for_timeout(300)
    page.locator("#right button").tap()
    page.locator("#notice", has_text="no connection").wait_for()
    assert stored(visitors, page) == []
    page.context.set_offline(False)
    now = settled(page, now["query"]["query"])
    assert [outcome for _, _, outcome in stored(visitors, page)] == ["left", "right"]
    page.reload()
    assert settled(page)["query"] == now["query"]
    other = visit(page.url, context=page.context)
    settled(other)
    other.locator("#left button").tap()
    now = settled(other, now["query"]["query"])
    assert settled(page)["query"] == now["query"]
    page.locator("#right button").tap()
    settled(other, now["query"]["query"])
    assert [outcome for _, _, outcome in stored(visitors, page)] == ["left", "right", "left", "right"]


@pytest.fixture(scope="module")
def film(browser) -> bytes:
    """A short film, made by the browser itself."""
    context = browser.new_context()
    page = context.new_page()
    text = page.evaluate(
        """async () => {
            const canvas = document.createElement("canvas");
            Object.assign(canvas, { width: 160, height: 120 });
            const brush = canvas.getContext("2d");
            const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: "video/webm" });
            const pieces = [];
            recorder.ondataavailable = (event) => pieces.push(event.data);
            const stopped = new Promise((done) => (recorder.onstop = done));
            recorder.start();
            for (let step = 0; step < 20; step += 1) {
                brush.fillStyle = `hsl(${18 * step} 60% 50%)`;
                brush.fillRect(0, 0, 160, 120);
                await new Promise((done) => setTimeout(done, 40));
            }
            recorder.stop();
            await stopped;
            const bytes = new Uint8Array(await new Blob(pieces).arrayBuffer());
            return btoa(String.fromCharCode(...bytes));
        }"""
    )
    context.close()
    return base64.b64decode(text)


@pytest.mark.parametrize("kind", ["audio", "video"])
@pytest.mark.parametrize("device", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_sounds_and_films_by_address_are_played_and_then_chosen(visit, browser, visitors, film, kind, device) -> None:
    slug = f"{kind}-{'phone' if device is PHONE else 'desktop'}"
    ending, content = ("wav", sound(5)) if kind == "audio" else ("webm", film)
    data = {kind: [f"https://media.example/{n}.{ending}" for n in range(12)]}
    items = study_items(
        Items([[n % 4, n // 4] for n in range(12)], [f"m{n}" for n in range(12)], data=data), scaled=False
    )
    create_study(visitors.service.database, configuration(slug=slug, answers=2), items, is_open=True, who="test")
    context = browser.new_context(**device)
    kinds = {"wav": "audio/wav", "webm": "video/webm"}
    context.route("https://media.example/**", lambda route: route.fulfill(body=content, content_type=kinds[ending]))
    page = visit(f"{visitors.address}/s/{slug}", context=context)
    page.get_by_role("button", name="Begin").click()
    page.locator("#stage[data-shown='p1']").wait_for()
    players = page.locator(f".card-show {kind}")
    assert players.count() == 2
    for side in (0, 1):
        # A person presses the player's own button; a script is let to do so as well in a browser that is driven.
        played = players.nth(side).evaluate(
            """async (player) => {
                player.muted = true;
                await player.play();
                const late = new Promise((_, failed) => setTimeout(() => failed("stuck"), 8000));
                await Promise.race([new Promise((done) => (player.onended = done)), late]);
                return [player.error, player.currentTime > 0, player.videoWidth ?? 0];
            }"""
        )
        assert played == [None, True, 160 if kind == "video" else 0]
    assert Axe().run(page).violations_count == 0
    # The player takes the presses on it; the button below it answers.
    players.first.click()
    page.wait_for_timeout(300)
    assert state(page)["progress"]["answered"] == 0
    page.locator("#right button").click()
    page.locator("#stage[data-shown='p2']").wait_for()
    context.close()


def test_someone_who_is_forgotten_is_told_so_in_the_language_of_the_study(visit, visitors) -> None:
    made = configuration(title="Deutsch", slug="deutsch", language="de")
    create_study(visitors.service.database, made, some_items(), is_open=True, who="test")
    page = visit(f"{visitors.address}/s/deutsch?participant=ann", **DESKTOP)
    page.get_by_role("button", name="Beginnen").click()
    page.wait_for_url("**/run")
    settled(page)
    forgetting.forget(visitors.service.database, visitors.service.catalogue.by_slug("deutsch"), "ann", "test")
    page.keyboard.press("ArrowLeft")
    page.get_by_text("Dieser Browser hat keine Sitzung in dieser Studie.").wait_for()


def test_declining_gives_the_code_for_it_and_keeps_nothing(visit, visitors) -> None:
    page = visit(f"{visitors.address}/s/colours", **PHONE)
    page.get_by_role("button", name="I do not agree").click()
    assert page.locator(".code").inner_text() == "NO"
    assert Axe().run(page).violations_count == 0
    assert not [cookie for cookie in page.context.cookies() if cookie["name"] == "pairseek_s_colours"]


def test_pages_that_are_not_there_say_so(visit, visitors) -> None:
    page = visit(f"{visitors.address}/s/nothing", **DESKTOP)
    page.get_by_role("heading", name="Page not found").wait_for()
    assert Axe().run(page).violations_count == 0


WALKS = "id,label,x,y\n" + "".join(f"w{n},Walk {n},{n % 7},{n // 7}\n" for n in range(42))


def test_a_researcher_makes_a_study_and_looks_at_who_came(visit, visitors) -> None:
    auth.set_password(visitors.service.database, "admin", "a long password")
    page = visit(f"{visitors.address}/studies", **DESKTOP)
    page.wait_for_url("**/login*")
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill("a wrong one")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    page.get_by_label("Password").fill("a long password")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/studies")
    assert Axe().run(page).violations_count == 0

    page.get_by_role("link", name="New study").click()
    assert page.evaluate("document.documentElement.scrollHeight") < 2800
    assert not page.get_by_label("Name in the link").is_visible()
    for fold in page.locator("details.fold > summary").all():
        fold.click()
    page.get_by_label("Title").fill("Walks <b>")
    page.get_by_label("Name in the link").fill("walks")
    page.get_by_label("Answers per person").fill("5")
    page.get_by_label("Practice pair, left id").fill("w1")
    page.get_by_label("Practice pair, right id").fill("w2")
    page.get_by_label("Further settings").fill("prior: somewhere")
    page.get_by_role("button", name="Create the study", exact=True).click()
    page.get_by_role("alert").filter(has_text="no items were sent").wait_for()
    assert page.get_by_label("Title").input_value() == "Walks <b>"
    items = {"name": "walks.csv", "mimeType": "text/csv", "buffer": WALKS.encode()}
    page.locator("#f-items").set_input_files(items)
    page.get_by_role("button", name="Create the study", exact=True).click()
    page.get_by_role("alert").filter(has_text="somewhere").wait_for()
    # The chosen file stays chosen, and the fold with the error is open.
    assert page.evaluate("document.getElementById('f-items').files[0].name") == "walks.csv"
    page.get_by_label("Further settings").fill("rest: {pair: 3}")
    page.get_by_role("button", name="Create the study", exact=True).click()
    page.wait_for_url("**/studies/walks")
    assert "pair: 3" in page.locator(".configuration pre").text_content()
    assert "left: w1" in page.locator(".configuration pre").text_content()
    assert page.get_by_role("heading", level=1).inner_text().startswith("Walks <b>")
    if page.get_by_role("button", name="Open").count():
        page.get_by_role("button", name="Open").click()
    page.get_by_role("button", name="Close").wait_for()

    page.get_by_label("Number of participants").fill("3")
    page.get_by_role("button", name="Simulate").click()
    end = time.monotonic() + 30
    while page.locator("tbody tr", has_text="finished").count() < 3:
        assert time.monotonic() < end, "the simulated people do not finish"
        time.sleep(0.5)
        page.reload()
    page.wait_for_selector("#study-map .scatterlayer .point")
    assert page.locator("[data-number='started']").inner_text() == "0", "they are no participants"
    assert Axe().run(page).violations_count == 0

    page.locator("tbody a").first.click()
    page.wait_for_selector("#person-map .scatterlayer .point")
    assert page.locator("tbody tr").count() == 5
    page.locator(".headline summary").click()
    page.locator(".headline").get_by_label("Reason").fill("Only a simulation")
    page.locator(".headline").get_by_role("button", name="Void").click()
    page.get_by_text("Only a simulation").wait_for()
    assert page.locator("h1 .pill", has_text="voided").count() == 1
    assert Axe().run(page).violations_count == 0

    page.get_by_role("link", name="API tokens").click()
    page.get_by_label("Name").fill("notebook")
    page.get_by_label("read").check()
    page.get_by_role("button", name="Create a token").click()
    assert len(page.locator("#fresh").inner_text()) > 30
    page.get_by_role("button", name="Revoke notebook").click()
    page.get_by_text("revoked", exact=True).wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login")


def test_a_preview_is_a_whole_study_that_leaves_nothing(visit, visitors) -> None:
    auth.set_password(visitors.service.database, "admin", "a long password")
    page = visit(f"{visitors.address}/login?next=/studies/colours", **DESKTOP)
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill("a long password")
    page.get_by_role("button", name="Sign in").click()
    before = page.locator("[data-number='started']").inner_text()
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("Nothing is kept").wait_for()
    page.locator("form[action$='/start'] button").click()
    page.wait_for_url("**/run")
    query = None
    for _ in range(ANSWERS):
        query = settled(page, query)["query"]["query"]
        page.keyboard.press("f")
    finish(page)
    page.goto(f"{visitors.address}/studies/colours")
    assert page.locator("[data-number='started']").inner_text() == before
