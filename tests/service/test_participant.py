"""A participant: from the link to the result, and everything that must not happen on the way."""

import json
import logging
from datetime import UTC, datetime, timedelta

import pytest

import pairseek as ps
from helpers.serving import GUARD, answer, begin, configuration, csrf_of, served, some_items
from pairseek.errors import InvalidParameter
from pairseek.store.database import stamp
from pairseek.store.schema import sessions
from pairseek.web.access.auth import make_token
from pairseek.web.operations import logs
from pairseek.web.routes.participant import cookie_of
from pairseek.web.sessions import advance, history, service
from pairseek.web.settings import Settings
from pairseek.web.studies.creation import create_study


@pytest.fixture
def visitors(tmp_path):
    made = configuration(offer={"tie": True, "skip": True, "undo": True})
    with served(tmp_path / "p.db", studies=[(made, some_items())]) as visitors:
        yield visitors


@pytest.fixture
def client(visitors):
    return visitors.browser()


def test_a_person_answers_from_the_link_to_the_result(client):
    state = begin(client, PROLIFIC_PID="abc")
    assert state["status"] == "asking"
    assert state["query"]["number"] == 1
    assert state["progress"] == {"answered": 0, "total": 6, "remaining": 6, "share": 0.0}
    for number in range(6):
        assert state["query"]["query"] == f"p{number + 1}"
        assert "kind" not in state["query"]
        state = answer(client, state, "left").json()
        assert state["progress"]["answered"] == number + 1
    assert state["status"] == "finished"
    assert state["query"] is None
    assert state["result"] == "/s/which/result"
    assert client.get("/s/which/result").status_code == 200
    assert client.get("/s/which/run").headers["location"] == "/s/which/result"
    mine = client.get("/s/which/mine").json()
    assert mine["ids"]["PROLIFIC_PID"] == "abc"
    assert [one["outcome"] for one in mine["answers"]] == ["left"] * 6


def test_the_same_answer_again_is_harmless_and_another_is_a_conflict(client):
    state = begin(client)
    first = answer(client, state, "left")
    assert answer(client, state, "left").json() == first.json()
    refused = answer(client, state, "right")
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "answer_conflict"
    assert client.get("/s/which/state").json() == first.json()


def test_undo_gives_the_same_pair_under_a_new_name(client):
    first = begin(client)
    second = answer(client, first, "left").json()
    back = client.post("/s/which/undo", json={"query": "p1"}, headers=GUARD).json()
    assert back["query"]["left"] == first["query"]["left"]
    assert back["query"]["right"] == first["query"]["right"]
    assert back["query"]["query"] == "p1-2"
    assert back["progress"]["answered"] == 0
    # Again is harmless, and the late answer to the old name too.
    assert client.post("/s/which/undo", json={"query": "p1"}, headers=GUARD).json() == back
    assert answer(client, first, "left").json() == back
    assert answer(client, back, "left").json()["query"]["left"] == second["query"]["left"]


def test_after_an_undo_another_answer_leads_elsewhere_as_if_the_first_had_never_been(visitors):
    undone, straight = visitors.browser(), visitors.browser()
    service = visitors.service.sessions
    study = visitors.service.catalogue.by_slug("which")
    for client in (undone, straight):
        _, token = service.open(study, {}, seed=11)
        client.cookies.set("pairseek_s_which", token)
    # Whichever item of the first pair wins, the second pair is the same: the prior favours neither.
    for client in (undone, straight):
        assert answer(client, client.get("/s/which/state").json(), "left").json()["query"]["query"] == "p2"
    first = undone.get("/s/which/state").json()
    left = answer(undone, first, "left").json()
    back = undone.post("/s/which/undo", json={"query": "p2"}, headers=GUARD).json()
    right = answer(undone, back, "right").json()
    expected = answer(straight, straight.get("/s/which/state").json(), "right").json()
    cards = [(state["query"]["left"], state["query"]["right"]) for state in (left, right, expected)]
    assert cards[1] == cards[2]
    assert cards[0] != cards[1]
    # Back once more, and the first answer again: the pair that was asked then, not a new one.
    undone.post("/s/which/undo", json={"query": "p2-2"}, headers=GUARD)
    again = answer(undone, undone.get("/s/which/state").json(), "left").json()
    assert (again["query"]["query"], again["query"]["left"]) == ("p3", left["query"]["left"])


def test_a_post_without_the_guard_header_is_refused(client):
    state = begin(client)
    body = {"query": state["query"]["query"], "outcome": "left"}
    assert client.post("/s/which/answer", json=body).json()["error"]["code"] == "guard_missing"


def test_two_people_get_sessions_of_their_own(visitors, client):
    first, other = begin(client), visitors.browser()
    assert other.get("/s/which/state").json()["error"]["code"] == "no_session"
    begin(other)
    answer(client, first)
    assert other.get("/s/which/state").json()["progress"]["answered"] == 0


def make(visitors, **settings):
    """A further study; its slug is that of its title."""
    made = configuration(**{"slug": None, "answers": 3} | settings)
    return create_study(visitors.service.database, made, some_items(), is_open=True, who="test")


def made_older(visitors, client, slug, hours):
    """As if this browser's session had begun so long ago."""
    session = client.get(f"/s/{slug}/mine").json()["session"]
    before = stamp(datetime.now(UTC) - timedelta(hours=hours))
    change = sessions.update().where(sessions.c.id == session).values(created_at=before)
    visitors.service.database.write(lambda connection: connection.execute(change))


def test_who_comes_back_goes_on_from_any_browser(visitors):
    slug = make(visitors, title="Go on", resume={"policy": "resume", "hours": 1, "by_id": "unfinished"})
    phone, laptop = visitors.browser(), visitors.browser()
    state = answer(phone, begin(phone, slug, PROLIFIC_PID="p1"), slug=slug).json()
    assert begin(laptop, slug, PROLIFIC_PID="p1") == state
    # The first browser has handed its session over.
    assert phone.get(f"/s/{slug}/state").json()["error"]["code"] == "no_session"
    assert begin(visitors.browser(), slug, PROLIFIC_PID="p2")["progress"]["answered"] == 0
    made_older(visitors, laptop, slug, 2)
    expired = laptop.get(f"/s/{slug}/state")
    assert (expired.status_code, expired.json()["error"]["code"]) == (410, "session_expired")
    assert begin(visitors.browser(), slug, PROLIFIC_PID="p1")["progress"]["answered"] == 0


def test_who_comes_back_begins_anew_where_the_study_says_so(visitors):
    slug = make(visitors, title="Anew", resume={"policy": "restart"})
    client = visitors.browser()
    answer(client, begin(client, slug, participant="ann"), slug=slug)
    # A reload in the middle is no coming back.
    assert client.get(f"/s/{slug}/state").json()["progress"]["answered"] == 1
    assert begin(client, slug, participant="ann")["progress"]["answered"] == 0


def test_who_comes_back_is_turned_away_where_the_study_says_so(visitors):
    slug = make(visitors, title="Once", resume={"policy": "block", "hours": 5})
    client, again = visitors.browser(), visitors.browser()
    answer(client, begin(client, slug, puid="ann"), slug=slug)
    assert client.get(f"/s/{slug}/state").json()["progress"]["answered"] == 1
    for browser in (client, again):
        page = browser.get(f"/s/{slug}", params={"puid": "ann"})
        reply = browser.post(f"/s/{slug}/start", data={"csrf": csrf_of(page)})
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "already_taken_part")
    made_older(visitors, client, slug, 6)
    assert begin(again, slug, puid="ann")["progress"]["answered"] == 0


@pytest.mark.parametrize(("outcome", "code"), [("right way", "C-DONE"), ("wrong way", "C-SLEPT")])
def test_the_code_at_the_end_says_how_it_went(visitors, outcome, code):
    attention = {"pairs": [{"left": "i0", "right": "i1", "answer": "i1"}], "every": 2}
    address = "https://panel.example/complete?cc={code}&who={participant}"
    completion = {"address": address, "codes": {"finished": "C-DONE", "failed_attention": "C-SLEPT"}}
    slug = make(visitors, title=f"Codes {outcome}", attention=attention, completion=completion, answers=6)
    client = visitors.browser()
    state = begin(client, slug, PROLIFIC_PID="p&1")
    while state["query"] is not None:
        sides = {state["query"][side]["id"]: side for side in ("left", "right")}
        wanted = "i1" if outcome == "right way" else "i0"
        chosen = sides[wanted] if set(sides) == {"i0", "i1"} else "left"
        state = answer(client, state, chosen, slug=slug).json()
    page = client.get(f"/s/{slug}/result").text
    assert f"https://panel.example/complete?cc={code}&amp;who=p%261" in page


def finish(client, slug):
    state = begin(client, slug, PROLIFIC_PID="ann")
    while state["query"] is not None:
        state = answer(client, state, slug=slug).json()
    return client.get(f"/s/{slug}/result")


@pytest.mark.parametrize(("wait", "counts"), [({}, "20"), ({"wait": 90}, "90"), ({"wait": None}, None)])
def test_the_result_page_goes_back_by_itself_after_a_while(visitors, wait, counts):
    completion = {"address": "https://panel.example/?cc={code}", "codes": {"finished": "C1"}, **wait}
    slug = make(visitors, title=f"Back {counts}", completion=completion)
    page = finish(visitors.browser(), slug)
    assert page.status_code == 200
    assert 'href="https://panel.example/?cc=C1"' in page.text
    assert (f'data-wait="{counts}"' in page.text) == (counts is not None)
    assert ("finish.js" in page.text) == (counts is not None)


def test_the_way_back_is_taken_at_once_where_the_study_says_so_and_only_when_all_is_answered(visitors):
    completion = {
        "address": "https://panel.example/?cc={code}&who={participant}",
        "codes": {"finished": "C1"},
        "wait": 0,
    }
    slug = make(visitors, title="At once", completion=completion)
    client = visitors.browser()
    reply = finish(client, slug)
    assert (reply.status_code, reply.headers["refresh"]) == (200, "0; url=https://panel.example/?cc=C1&who=ann")
    undone = client.post(f"/s/{slug}/undo", json={"query": "p3"}, headers=GUARD)
    assert undone.json()["error"]["code"] == "session_finished"
    preview = visitors.browser()
    _, token = visitors.service.sessions.open(visitors.service.catalogue.by_slug(slug), {}, kind="preview")
    preview.cookies.set(f"pairseek_s_{slug}", token)
    assert finish(preview, slug).status_code == 200


def test_without_consent_nothing_is_stored(visitors):
    completion = {"address": "https://panel.example/?cc={code}", "codes": {"no_consent": "C-NO"}}
    slug = make(visitors, title="Consent", consent="Do you agree?", completion=completion)
    client = visitors.browser()
    page = client.get(f"/s/{slug}", params={"PROLIFIC_PID": "x"})
    reply = client.post(f"/s/{slug}/decline", data={"csrf": csrf_of(page)})
    assert "https://panel.example/?cc=C-NO" in reply.text
    study = visitors.service.catalogue.by_slug(slug)
    assert not list(history.iterate_histories(visitors.service.database, study))


def test_a_form_from_elsewhere_begins_no_session(visitors):
    client = visitors.browser()
    client.get("/s/which")
    assert client.post("/s/which/start", data={"csrf": "0" * 64}).json()["error"]["code"] == "form_expired"
    assert client.post("/s/which/start").json()["error"]["code"] == "form_expired"


def test_losing_sight_of_the_page_is_stored(visitors, client):
    begin(client)
    lost = {"query": "p1", "lost_at": "2026-01-01T00:00:00.000Z", "ms": 1200}
    assert client.post("/s/which/focus", json=lost, headers=GUARD).status_code == 204
    study = visitors.service.catalogue.by_slug("which")
    told = [
        iterate_history
        for iterate_history in history.iterate_histories(visitors.service.database, study)
        if iterate_history.blurs
    ]
    assert [blur["ms"] for blur in told[-1].blurs] == [1200]


def test_only_losses_of_focus_at_pairs_that_were_asked_are_stored_and_not_without_end(visitors, client, monkeypatch):
    monkeypatch.setattr(service, "MAX_BLURS", 2)
    begin(client)
    lost = {"lost_at": "2026-01-01T00:00:00.000Z", "ms": 1200}

    def lose(query):
        return client.post("/s/which/focus", json={"query": query, **lost}, headers=GUARD)

    for name in ("p2", "practice", "=cmd()", ""):
        assert lose(name).json()["error"]["code"] == "unknown_query"
    assert [lose("p1").status_code for _ in range(3)] == [204, 204, 409]


def test_a_session_cannot_grow_without_end(visitors, client, monkeypatch):
    monkeypatch.setattr(advance, "SPARE_EVENTS", 3 - 6 * advance.EVENTS_PER_ANSWER)
    state = answer(client, begin(client), "skip").json()
    back = client.post("/s/which/undo", json={"query": "p1"}, headers=GUARD).json()
    state = answer(client, back, "skip").json()
    for reply in (
        answer(client, state),
        client.post("/s/which/undo", json={"query": state["can"]["undo"]}, headers=GUARD),
    ):
        assert (reply.status_code, reply.json()["error"]["code"]) == (409, "session_full")


def test_what_the_study_keeps_to_itself_is_not_in_the_download(visitors):
    slug, client = make(visitors, title="Secret", result=False), visitors.browser()
    page = finish(client, slug)
    assert "nearest" not in page.text
    mine = client.get(f"/s/{slug}/mine").json()
    assert len(mine["answers"]) == 3
    assert not {"estimate", "radius"} & set(mine)
    # The cookie is the session's token over HTTP, too.
    own = {"Authorization": f"Bearer {client.cookies[cookie_of(slug)]}"}
    reader = {"Authorization": f"Bearer {make_token(visitors.service.database, 'reader', ['read'], 'test')}"}
    for what in ("estimate", "recommendations"):
        address = f"/api/v1/sessions/{mine['session']}/{what}"
        assert client.get(address, headers=own).json()["error"]["code"] == "result_hidden"
        assert client.get(address, headers=reader).status_code == 200


def test_the_ahead_route_gives_the_pairs_that_follow(tmp_path):
    with served(tmp_path / "a.db", studies=[(configuration(), some_items())], prefetch=True) as visitors:
        client = visitors.browser()
        state = begin(client)
        prefetch = client.get("/s/which/prefetch", params={"query": "p1"})
        assert prefetch.status_code == 200
        assert prefetch.json()["tie"] is None
        assert answer(client, state, "right").json()["query"] == prefetch.json()["right"]
        assert client.get("/s/which/prefetch", params={"query": "p1"}).status_code == 204


def test_logs_and_metrics_hold_nothing_about_a_person(visitors, caplog):
    client = visitors.browser()
    with caplog.at_level(logging.INFO, logger="pairseek.web"):
        state = begin(client, PROLIFIC_PID="secret-person")
        answer(client, state)
        client.get("/s/which/nowhere/secret-path")
    token = client.cookies["pairseek_s_which"]
    lines = [logs.JsonLines().format(record) for record in caplog.records]
    routes = [json.loads(line).get("route") for line in lines]
    assert "/s/{slug}/answer" in routes
    text = "\n".join(lines) + client.get("/metrics").text
    for secret in ("secret-person", "secret-path", token, "127.0.0.1"):
        assert secret not in text
    assert 'pairseek_answers_total{outcome="left"}' in text


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("", "application/json", "the body: invalid JSON"),
        ("{", "application/json", "the body: invalid JSON"),
        ("[]", "application/json; charset=utf-8", "the body: input should be an object"),
        ('{"query": 5, "outcome": "left"}', "application/json", "query: input should be a valid string"),
        ('{"query": "p1", "outcome": "up"}', "application/problem+json", "outcome: input should be 'left'"),
        ('{"query": "p1", "outcome": "left", "more": 1}', "application/json", "more: extra inputs are not permitted"),
        ('{"query": "p1", "outcome": "left"}', "text/plain", "the body: the content type is text/plain"),
        ('{"query": "p1", "outcome": "left"}', "", "the body: the content type is missing"),
    ],
)
def test_an_answer_that_is_not_one_is_refused_with_what_is_wrong(client, body, kind, words):
    state = begin(client)
    reply = client.post("/s/which/answer", content=body, headers={"X-Pairseek": "1", "Content-Type": kind})
    assert reply.status_code == 422
    error = reply.json()["error"]
    assert error["code"] == "invalid_request"
    assert error["message"].startswith(words)
    assert client.get("/s/which/state").json() == state
    assert client.get("/s/which/answer").status_code == 405


def test_metrics_are_for_this_machine_or_a_token(visitors):
    client = visitors.browser(headers={"X-Forwarded-For": "203.0.113.9"})
    assert client.get("/metrics").json()["error"]["code"] == "token_missing"
    token = make_token(visitors.service.database, "prometheus", ["read"], "test")
    assert client.get("/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_too_many_sessions_at_once_from_one_address_are_refused(tmp_path):
    made = configuration(resume={"policy": "restart"})
    with served(tmp_path / "m.db", studies=[(made, some_items())], starts_per_minute=3) as visitors:
        codes = []
        for _ in range(5):
            client = visitors.browser()
            reply = client.post("/s/which/start", data={"csrf": csrf_of(client.get("/s/which"))})
            codes.append(reply.status_code)
        assert codes[:3] == [303] * 3
        assert 429 in codes[3:]


def test_somebody_else_at_the_same_browser_gets_a_session_of_their_own(visitors, client):
    first = answer(client, begin(client, PROLIFIC_PID="a"), "left").json()
    assert begin(client, PROLIFIC_PID="a") == first
    assert begin(client, PROLIFIC_PID="b")["progress"]["answered"] == 0
    assert begin(client, PROLIFIC_PID="a") == first
    # Without an id it is the browser that goes on.
    assert begin(client) == first


def test_what_goes_wrong_inside_is_said_without_details(tmp_path, monkeypatch):
    with served(tmp_path / "i.db", studies=[(configuration(), some_items())]) as visitors:
        client = visitors.browser()
        begin(client, PROLIFIC_PID="secret-person")

        def broken(*_):
            raise RuntimeError("secret-person")

        monkeypatch.setattr(visitors.service.sessions, "state", broken)
        reply = client.get("/s/which/state")
        assert reply.status_code == 500
        assert reply.json()["error"]["code"] == "internal_error"
        assert "secret-person" not in reply.text
        page = client.get("/s/which/run", headers={"accept": "text/html"})
        assert "The service has an internal error" in page.text


@pytest.mark.parametrize(("data", "needed"), [({}, False), ({"audio": "https://example.org/a.mp3"}, True)])
def test_pairs_are_prefetched_where_a_page_must_load_something(tmp_path, data, needed):
    plain = some_items()
    items = ps.Items(plain.coordinates, plain.ids, data={name: [value] * plain.n for name, value in data.items()})
    with served(tmp_path / "a.db", studies=[(configuration(), items)], prefetch="media") as visitors:
        client = visitors.browser()
        state = begin(client)
        # On a busy machine the pairs may take longer than a request waits for them.
        replies = (client.get("/s/which/prefetch", params={"query": state["query"]["query"]}) for _ in range(20))
        assert any(reply.status_code == 200 for reply in replies) == needed
        # The page asks for them only then.
        assert f'"prefetches":{str(needed).lower()}' in client.get("/s/which/run").text


def test_another_word_for_prefetching_is_refused():
    with pytest.raises(InvalidParameter, match="media, always, never"):
        Settings.of({"PAIRSEEK_PREFETCH": "true"})


@pytest.mark.parametrize("number", ["\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT THREE}", "-1", ""])
def test_a_setting_that_is_no_number_in_plain_digits_is_refused(number):
    with pytest.raises(InvalidParameter, match=r"PAIRSEEK_MOST_BODY .* give a whole number"):
        Settings.of({"PAIRSEEK_MOST_BODY": number})


@pytest.mark.parametrize("time", ["+1+1", "-1", "T", "=1"])
def test_a_time_that_a_spreadsheet_would_compute_is_refused(visitors, time):
    client = visitors.browser()
    state = begin(client)
    for name in ("shown_at", "sent_at"):
        assert answer(client, state, **{name: time}).status_code == 422
    lost = {"query": state["query"]["query"], "lost_at": time, "ms": 3}
    assert client.post("/s/which/focus", json=lost, headers=GUARD).status_code == 422
    known = dict.fromkeys(("shown_at", "sent_at"), "2026-11-19T07:00:00.000Z")
    assert answer(client, state, **known).status_code == 200
