"""The participant's pages in a real browser, against a stand-in for the service."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest

from helpers.browsers import DESKTOP, PHONE
from helpers.pages_service import SLUG, Study, served, service

HOW_LONG = 20.0


@pytest.fixture
def study() -> Study:
    return Study()


@pytest.fixture
def address(study) -> Iterator[str]:
    with served(service(study)) as root:
        yield f"{root}/s/{SLUG}"


def until(true: Callable[[], bool], what: str) -> None:
    """Wait until it holds."""
    end = time.monotonic() + HOW_LONG
    while not true():
        assert time.monotonic() < end, f"did not happen: {what}"
        time.sleep(0.02)


def labels(page) -> tuple[str, str]:
    return page.locator("#left-label").inner_text(), page.locator("#right-label").inner_text()


def shows(page, pair: dict) -> None:
    """The page shows this pair, and takes an answer to it."""
    page.locator(f"#stage[data-shown='{pair['query']}']").wait_for()
    assert labels(page) == (pair["left"]["label"] or "", pair["right"]["label"] or "")
    page.wait_for_timeout(300)  # longer than the guard against double presses


def prefetched(page, pair: dict) -> None:
    """The page holds what may follow this pair, pictures and all."""
    page.locator(f"#stage[data-prefetched='{pair['query']}']").wait_for()
    page.wait_for_load_state("networkidle")


def press(page, study: Study, key: str, outcome: str) -> None:
    """Answer the pair that is asked by a key, and see the right next one."""
    before = study.outcomes()
    shows(page, study.pair(before))
    page.keyboard.press(key)
    until(lambda: study.outcomes() == (*before, outcome), f"{key} arrives as {outcome}")


def finish(page) -> None:
    """From the last pair to the result."""
    page.get_by_role("heading", name="That was the last pair").wait_for()
    page.wait_for_timeout(300)  # longer than the guard against double presses
    page.get_by_role("button", name="Finish").click()
    page.wait_for_url("**/result")


@pytest.mark.parametrize("device", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_a_whole_study_from_consent_to_result(visit, address, study, device) -> None:
    page = visit(address, **device)
    page.get_by_role("button", name="I agree, begin").click()
    chosen = ("left", "right", "right", "left", "right")
    for number, side in enumerate(chosen):
        shows(page, study.pair(chosen[:number]))
        assert page.locator("#count").inner_text() == f"{number} of 5"
        card = page.locator(f"#{side} button")
        (card.tap if device is PHONE else card.click)()
    finish(page)
    assert study.outcomes() == chosen
    assert page.get_by_role("heading", name="What we found").is_visible()
    assert len(study.received) == 5
    for body in study.received:
        assert body["attempt"] == 1
        assert body["rt_ms"] >= 250
        assert body["shown_at"] < body["sent_at"]


def test_by_keyboard_alone(visit, address, study) -> None:
    page = visit(address, **DESKTOP)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "I agree, begin"
    page.keyboard.press("Enter")
    press(page, study, "ArrowLeft", "left")
    press(page, study, "j", "right")
    press(page, study, "F", "left")
    shows(page, study.pair(study.outcomes()))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.parentElement.id") == "left"
    page.keyboard.press("Tab")
    press(page, study, "Space", "right")
    assert page.evaluate("document.activeElement.parentElement.id") == "right"
    press(page, study, "Enter", "right")
    page.get_by_role("heading", name="That was the last pair").wait_for()
    page.wait_for_timeout(300)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/result")


def test_tie_skip_and_undo(visit, address, study) -> None:
    page = visit(f"{address}/run", **DESKTOP)
    press(page, study, "t", "tie")
    press(page, study, "s", "skip")
    assert page.locator("#count").inner_text() == "1 of 5"
    shows(page, study.pair(("tie", "skip")))
    page.get_by_role("button", name="Undo").click()
    shows(page, study.pair(("tie",)))
    press(page, study, "ArrowRight", "right")
    assert study.outcomes() == ("tie", "right")
    shows(page, study.pair(study.outcomes()))
    page.keyboard.press("u")
    shows(page, study.pair(("tie",)))
    page.wait_for_timeout(300)
    page.keyboard.press("u")
    shows(page, study.pair(()))
    until(lambda: study.events == [], "all taken back")


def test_the_next_pair_is_there_before_the_service_has_replied(visit, address, study) -> None:
    study.kind = "image"
    page = visit(f"{address}/run", **DESKTOP)
    shows(page, study.pair(()))
    prefetched(page, study.pair(()))
    page.route("**/answer", lambda route: None)  # the answer is on its way for ever
    page.route("**/picture/**", lambda route: route.abort())  # and no picture can be fetched any more
    page.keyboard.press("ArrowLeft")
    shows(page, study.pair(("left",)))
    assert page.evaluate("[...document.querySelectorAll('.card img')].map(image => image.naturalWidth)") == [600, 600]
    assert study.events == []
    page.unroute("**/answer")
    page.unroute("**/picture/**")


def test_offline_at_an_answer_and_back(visit, address, study) -> None:
    page = visit(f"{address}/run", **PHONE)
    shows(page, study.pair(()))
    prefetched(page, study.pair(()))
    page.context.set_offline(True)
    page.locator("#left button").tap()
    shows(page, study.pair(("left",)))  # held since before
    assert "no connection" in page.locator("#notice").inner_text()
    page.locator("#right button").tap()
    page.wait_for_selector("#stage[aria-busy]")  # what comes next only the service knows
    assert "kept here" in page.locator("#notice").inner_text()
    assert page.locator("#count").inner_text() == "2 of 5"
    assert study.events == []
    page.context.set_offline(False)
    page.locator("#notice", has_text="Everything is saved").wait_for()
    shows(page, study.pair(("left", "right")))
    assert study.outcomes() == ("left", "right")
    assert [body["query"] for body in study.received] == [query for query, _ in study.events]


def test_a_lost_reply_counts_once(visit, address, study) -> None:
    page = visit(f"{address}/run", **DESKTOP)
    shows(page, study.pair(()))
    study.deaf = True
    page.keyboard.press("f")
    until(lambda: len(study.received) >= 2, "sent again")
    study.deaf = False
    page.locator("#notice", has_text="The connection is back").wait_for()
    shows(page, study.pair(("left",)))
    assert study.outcomes() == ("left",)
    assert [body["attempt"] for body in study.received] == list(range(1, len(study.received) + 1))
    assert len({(body["query"], body["rt_ms"], body["sent_at"]) for body in study.received}) == 1


def test_a_lost_reply_to_undo_takes_back_one_answer_only(visit, address, study) -> None:
    page = visit(f"{address}/run", **DESKTOP)
    press(page, study, "f", "left")
    press(page, study, "j", "right")
    shows(page, study.pair(("left", "right")))
    study.deaf = True
    page.keyboard.press("u")
    until(lambda: len(study.undone) >= 2, "undo is sent again")
    study.deaf = False
    shows(page, study.pair(("left",)))
    assert study.outcomes() == ("left",)
    press(page, study, "f", "left")
    shows(page, study.pair(("left", "left")))


def test_reload_in_the_middle_and_with_an_answer_unsent(visit, address, study) -> None:
    page = visit(f"{address}/run", **DESKTOP)
    press(page, study, "f", "left")
    shows(page, study.pair(("left",)))
    page.reload()
    shows(page, study.pair(("left",)))
    page.route("**/answer", lambda route: route.abort())
    page.keyboard.press("j")
    page.locator("#notice", has_text="no connection").wait_for()
    page.unroute("**/answer")
    page.reload()
    until(lambda: study.outcomes() == ("left", "right"), "the answer was kept over the reload")
    shows(page, study.pair(("left", "right")))


def test_back_from_the_result_and_from_elsewhere(visit, address, study) -> None:
    study.total = 2
    page = visit(address, **DESKTOP)
    page.goto(f"{address}/run")
    press(page, study, "f", "left")
    page.goto(address)
    study.answer(study.pair(study.outcomes())["query"], "right")  # answered on another device meanwhile
    page.go_back()
    finish(page)
    page.go_back()
    page.wait_for_timeout(300)
    page.goto(f"{address}/run")
    page.wait_for_url("**/result")


def test_two_tabs_show_the_same_pair(visit, address, study) -> None:
    one = visit(f"{address}/run", **DESKTOP)
    shows(one, study.pair(()))
    two = visit(f"{address}/run", context=one.context)
    press(two, study, "f", "left")
    shows(two, study.pair(("left",)))
    shows(one, study.pair(("left",)))
    press(one, study, "j", "right")
    shows(two, study.pair(("left", "right")))
    assert len(study.received) == 2


def test_when_one_tab_has_finished_the_other_shows_the_result_too(visit, address, study) -> None:
    study.total = 1
    one = visit(f"{address}/run", **DESKTOP)
    shows(one, study.pair(()))
    two = visit(f"{address}/run", context=one.context)
    press(two, study, "f", "left")
    one.get_by_role("heading", name="That was the last pair").wait_for()
    finish(two)
    one.wait_for_url("**/result")


def test_the_last_answer_can_be_taken_back_like_any_other(visit, address, study) -> None:
    study.total = 2
    page = visit(f"{address}/run", **PHONE)
    press(page, study, "f", "left")
    shows(page, study.pair(("left",)))
    page.locator("#right button").dblclick()  # the second press is not meant for what comes then
    page.get_by_role("heading", name="That was the last pair").wait_for()
    assert "All 2 answers are saved" in page.locator("#panel").inner_text()
    assert page.evaluate("document.activeElement.id") == "panel-title"
    page.wait_for_timeout(300)
    page.get_by_role("button", name="Change my last answer").tap()
    shows(page, study.pair(("left",)))
    assert not page.locator("#panel").is_visible()
    page.locator("#left button").tap()
    finish(page)
    assert study.outcomes() == ("left", "left")


def test_a_second_press_leaves_the_focus_on_the_title_of_the_panel(visit, address, study) -> None:
    """A press in the moment in which the panel appears moves no focus; later presses do."""
    study.total = 1
    page = visit(f"{address}/run", **DESKTOP)
    shows(page, study.pair(()))
    page.evaluate(
        """() => {
        const options = {bubbles: true, cancelable: true};
        const press = () => !document.body.dispatchEvent(new MouseEvent("mousedown", options));
        new MutationObserver((_, observer) => {
          observer.disconnect();
          window.early = press();
          window.late = new Promise((done) => setTimeout(() => done(press()), 400));
        }).observe(document.getElementById("panel"), {attributes: true, attributeFilter: ["hidden"]});
        window.before = press();
        }"""
    )
    page.keyboard.press("f")
    page.get_by_role("heading", name="That was the last pair").wait_for()
    assert page.evaluate("Promise.all([window.before, window.early, window.late])") == [False, True, False]


def test_without_undo_the_result_comes_at_once(visit, address, study) -> None:
    study.total, study.undo = 1, False
    page = visit(f"{address}/run", **DESKTOP)
    shows(page, study.pair(()))
    page.keyboard.press("f")
    page.wait_for_url("**/result")


def test_the_result_page_counts_down_to_the_way_back_and_one_can_stay(visit, address, study) -> None:
    study.redirect, study.wait = f"{address}?cc=C1", 2
    page = visit(f"{address}/result", **DESKTOP)
    assert page.get_by_role("timer").inner_text() == "You will be redirected in 2 s."
    page.wait_for_url("**?cc=C1", timeout=6000)
    page.goto(f"{address}/result")
    page.get_by_role("button", name="Stay here").click()
    assert page.evaluate("document.activeElement.id") == "return"
    page.wait_for_timeout(3000)
    assert page.url.endswith("/result")
    assert not page.get_by_role("timer").is_visible()
    page.get_by_role("link", name="Finish and return").click()
    page.wait_for_url("**?cc=C1")


def test_time_out_of_sight_does_not_count_towards_the_way_back(visit, address, study) -> None:
    study.redirect, study.wait = f"{address}?cc=C1", 2
    page = visit("about:blank", **DESKTOP)
    page.add_init_script("Object.defineProperty(document, 'hidden', {get: () => !window.seen})")
    page.goto(f"{address}/result")
    page.wait_for_timeout(3500)
    assert page.get_by_role("timer").inner_text() == "You will be redirected in 2 s."
    page.evaluate("window.seen = true")
    page.wait_for_url("**?cc=C1", timeout=6000)


def test_a_tab_that_was_closed_with_an_answer_on_its_way_is_helped_out_by_the_other(visit, address, study) -> None:
    study.prefetch = False
    one = visit(f"{address}/run", **DESKTOP)
    shows(one, study.pair(()))
    two = visit(f"{address}/run", context=one.context)
    shows(two, study.pair(()))
    two.route("**/answer", lambda route: None)
    two.keyboard.press("f")
    two.wait_for_selector("#stage[aria-busy]")
    two.close()
    until(lambda: study.outcomes() == ("left",), "the other tab sends it")
    shows(one, study.pair(("left",)))


def test_without_storage_it_still_works(visit, address, study, browser) -> None:
    context = browser.new_context(**DESKTOP)
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError'); }})"
    )
    page = visit(f"{address}/run", context=context)
    for key, outcome in [("f", "left"), ("j", "right"), ("u", None), ("f", "left")]:
        if outcome:
            press(page, study, key, outcome)
        else:
            shows(page, study.pair(study.outcomes()))
            page.keyboard.press(key)
            until(lambda: study.outcomes() == ("left",), "taken back")
    shows(page, study.pair(("left", "left")))
    context.close()


def test_without_web_locks_two_tabs_take_turns(visit, address, study, browser) -> None:
    """On a plain address of the local network there are no Web Locks."""
    context = browser.new_context(**DESKTOP)
    context.add_init_script("Object.defineProperty(Navigator.prototype, 'locks', {value: undefined})")
    one, two = visit(f"{address}/run", context=context), visit(f"{address}/run", context=context)
    press(one, study, "f", "left")
    press(two, study, "j", "right")
    shows(one, study.pair(("left", "right")))
    assert len(study.received) == 2
    context.close()


def test_answered_elsewhere_is_said_and_leads_to_the_right_pair(visit, address, study) -> None:
    page = visit(f"{address}/run", **DESKTOP)
    shows(page, study.pair(()))
    study.answer(study.pair(())["query"], "right")
    page.keyboard.press("f")
    page.locator("#notice", has_text="another window").wait_for()
    shows(page, study.pair(("right",)))
    assert study.outcomes() == ("right",)


def test_a_held_key_and_a_double_press_answer_once(visit, address, study) -> None:
    page = visit(f"{address}/run", **DESKTOP)
    shows(page, study.pair(()))
    page.keyboard.down("ArrowLeft")
    for _ in range(5):
        page.keyboard.down("ArrowLeft")
        page.wait_for_timeout(120)
    page.keyboard.up("ArrowLeft")
    shows(page, study.pair(("left",)))
    page.locator("#right button").dblclick()
    shows(page, study.pair(("left", "right")))
    assert study.outcomes() == ("left", "right")
    page.locator("#left button").focus()
    page.keyboard.down("Enter")
    for _ in range(5):
        page.keyboard.down("Enter")
        page.wait_for_timeout(120)
    page.keyboard.up("Enter")
    shows(page, study.pair(("left", "right", "left")))
    assert study.outcomes() == ("left", "right", "left")


def test_keys_can_be_switched_off(visit, address, study) -> None:
    page = visit(f"{address}/run", **DESKTOP)
    shows(page, study.pair(()))
    page.get_by_role("button", name="Keyboard").click()
    page.keyboard.press("f")
    page.wait_for_timeout(200)
    assert study.received == []
    page.reload()
    shows(page, study.pair(()))
    page.get_by_role("button", name="Keyboard", pressed=False).click()
    press(page, study, "f", "left")


def test_reaction_time_counts_from_the_frame_in_which_both_are_visible(visit, address, study) -> None:
    study.kind, study.picture_seconds = "image", 2.0
    page = visit("about:blank", **DESKTOP)
    began = time.monotonic()
    page.goto(f"{address}/run", wait_until="commit")
    shows(page, study.pair(()))
    page.wait_for_timeout(400)
    page.keyboard.press("f")
    until(lambda: len(study.received) == 1, "arrives")
    passed = 1000 * (time.monotonic() - began)
    # At least what was waited after both were there, and nothing of the two seconds before.
    assert 650 < study.received[0]["rt_ms"] < passed - 2000


def test_loss_of_focus_is_reported(visit, address, study) -> None:
    page = visit(f"{address}/run", **DESKTOP)
    shows(page, study.pair(()))
    page.evaluate(
        "document.hasFocus = () => false; dispatchEvent(new Event('blur'));"
        "setTimeout(() => { delete document.hasFocus; dispatchEvent(new Event('focus')); }, 500)"
    )
    until(lambda: len(study.focus) == 1, "reported")
    loss = study.focus[0]
    assert loss["query"] == study.pair(())["query"]
    assert loss["ms"] >= 450
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", loss["lost_at"])


def test_practice_does_not_count(visit, address, study) -> None:
    study.practice = True
    page = visit(f"{address}/run", **DESKTOP)
    page.locator("#stage[data-shown='practice']").wait_for()
    assert labels(page) == ("The sea", "The mountains")
    assert page.locator("#practice").is_visible()
    page.wait_for_timeout(350)
    page.keyboard.press("f")
    shows(page, study.pair(()))
    assert not page.locator("#practice").is_visible()
    assert study.received == []
    page.reload()
    shows(page, study.pair(()))


def test_a_study_that_closes_says_so(visit, address, study) -> None:
    page = visit(f"{address}/run", **DESKTOP)
    press(page, study, "f", "left")
    shows(page, study.pair(("left",)))
    study.closed = True
    page.keyboard.press("f")
    page.get_by_role("heading", name="This study has closed").wait_for()
    assert "saved" in page.locator("#panel").inner_text()


def test_pairs_go_on_while_the_service_prepares_nothing(visit, address, study) -> None:
    study.prefetch = False
    page = visit(f"{address}/run", **DESKTOP)
    for key, outcome in [("f", "left"), ("j", "right"), ("f", "left")]:
        press(page, study, key, outcome)
    shows(page, study.pair(("left", "right", "left")))


def test_a_page_without_media_asks_for_no_prefetched_pairs(visit, address, study) -> None:
    for study.offers_prefetch, asked in ((False, 0), (True, 2)):
        study.events.clear()
        page = visit(f"{address}/run", **DESKTOP)
        press(page, study, "f", "left")
        shows(page, study.pair(("left",)))
        prefetched(page, study.pair(("left",)))
        assert study.prefetches == asked


def test_a_screen_reader_is_told_of_each_pair(visit, address, study) -> None:
    page = visit(f"{address}/run", **DESKTOP)
    for outcomes in [(), ("left",)]:
        pair = study.pair(outcomes)
        shows(page, pair)
        left, right = pair["left"]["label"], pair["right"]["label"]
        assert page.locator("#announce").inner_text() == f"Pair {len(outcomes) + 1}: {left}, or {right}"
        assert page.get_by_role("button", name=f"Left: {left}", exact=True).count() == 1
        page.get_by_role("button", name=f"Left: {left}").click()


def test_a_label_with_a_script_is_shown_as_text(visit, address, study, monkeypatch) -> None:
    nasty = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"
    monkeypatch.setattr("helpers.pages_data.label", lambda number: f"{nasty}{number}")
    page = visit(f"{address}/run", **DESKTOP)
    shows(page, study.pair(()))
    assert labels(page)[0].startswith(nasty)
    assert page.title() != "owned"
    assert page.locator("main img").count() == 0


def test_a_card_with_a_player_answers_by_its_button_alone_once_both_were_played(visit, address, study) -> None:
    study.kind = "audio"
    page = visit(f"{address}/run", **PHONE)
    page.locator(f"#stage[data-shown='{study.pair(())['query']}']").wait_for()
    page.wait_for_timeout(300)
    page.locator("#left audio").tap()
    page.wait_for_timeout(200)
    assert study.received == []
    page.get_by_role("button", name="Choose this").first.tap(force=True)
    page.wait_for_timeout(200)
    assert study.received == []
    for side in ("left", "right"):
        page.evaluate(
            """async (side) => {
                const player = document.querySelector(`#${side} audio`);
                const ended = new Promise((done) => player.addEventListener("ended", done));
                player.muted = true;
                await player.play();
                await ended;
            }""",
            side,
        )
    page.get_by_role("button", name="Choose this").first.tap()
    until(lambda: study.outcomes() == ("left",), "the button answers")
    assert study.received[-1]["played"] == {"left": "yes", "right": "yes"}
