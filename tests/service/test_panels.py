"""Participants from panels: links, the researcher's own questions, quota, closing date, and the way back."""

from __future__ import annotations

import csv
import io
import json
import threading
import zipfile
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from helpers.serving import answer, begin, configuration, csrf_of, served, some_items
from pairseek.client import Client, ServiceError
from pairseek.store import sessions
from pairseek.web.access.auth import make_token, set_password
from pairseek.web.studies.recruitment import CLOSING_ACTOR, close_due, set_limits

PASSWORD = "a long password"
WHERE = {"name": "where", "text": "Where do you live?", "options": ["City", "Country"], "required": True}
QUESTIONS = [
    {"name": "age", "text": "Age?", "kind": "number", "low": 18, "high": 99, "required": True, "when": "before"},
    {"name": "first", "text": "Anything to say?", "kind": "text", "when": "before"},
    {**WHERE, "when": "after"},
    {"name": "why", "text": "Why?", "kind": "text", "when": "after"},
]
COMPLETION = {
    "address": "https://app.prolific.com/submissions/complete?cc={code}",
    "wait": 0,
    "codes": {"finished": "DONE", "quota_full": "FULL"},
}
PROLIFIC = {"PROLIFIC_PID": "p-1", "STUDY_ID": "s-1", "SESSION_ID": "n-1"}


@pytest.fixture
def visitors(database_url):
    """A service on each of the two databases, with a study of two pairs."""
    made = configuration(answers=2, questions=QUESTIONS, completion=COMPLETION)
    with served(database_url, studies=[(made, some_items())]) as visitors:
        yield visitors


def ask(browser, stage, slug="which", **replies):
    """Send the replies of a stage."""
    page = browser.get(f"/s/{slug}/questions")
    fields = {f"q-{name}": value for name, value in replies.items()}
    return browser.post(f"/s/{slug}/questions", data={"csrf": csrf_of(page), "stage": stage, **fields})


def finish(browser, slug="which"):
    """Answer all pairs of a session."""
    state = browser.get(f"/s/{slug}/state").json()
    while state["query"] is not None:
        state = answer(browser, state, slug=slug).json()


def participants(visitors, slug="which"):
    """Return the rows of the table of participants, as exported."""
    token = make_token(visitors.service.database, "all", ("read", "write", "answer", "delete"), "test")
    text = Client(visitors.address, token).export(slug, "participants").decode()
    return list(csv.DictReader(io.StringIO(text)))


def test_a_round_trip_from_prolific_and_back(visitors) -> None:
    browser = visitors.browser()
    begin(browser, **PROLIFIC, source="mail", **{"9bad": "x", "utm_long": "y" * 300})
    assert browser.get("/s/which/run").headers["location"] == "/s/which/questions"
    assert ask(browser, "before", age="31,5").headers["location"] == "/s/which/run"
    assert browser.get("/s/which/run").status_code == 200
    finish(browser)
    assert browser.get("/s/which/result").headers["location"] == "/s/which/questions"
    assert ask(browser, "after", where="City", why="=1+1").headers["location"] == "/s/which/result"
    back = browser.get("/s/which/result").headers["refresh"].removeprefix("0; url=")
    assert back == "https://app.prolific.com/submissions/complete?cc=DONE"
    (row,) = participants(visitors)
    assert (row["PROLIFIC_PID"], row["STUDY_ID"], row["SESSION_ID"]) == ("p-1", "s-1", "n-1")
    assert row["url_source"] == "mail"
    assert [name for name in row if name.startswith("url_")] == ["url_source"]
    assert (row["question_age"], row["question_where"], row["question_first"]) == ("31.5", "City", "")
    assert row["question_why"] == "'=1+1"
    mine = browser.get("/s/which/mine").json()
    assert mine["variables"] == {"source": "mail"}
    assert mine["replies"] == {"age": 31.5, "where": "City", "why": "=1+1"}


def test_wrong_replies_are_shown_with_what_was_typed(visitors) -> None:
    browser = visitors.browser()
    begin(browser)
    for typed, said in [("", "Please answer"), ("old", "write a number"), ("17", "from 18 to 99")]:
        reply = ask(browser, "before", age=typed, first="<b>hello</b>")
        assert reply.status_code == 422
        assert said in reply.text
        assert "&lt;b&gt;hello" in reply.text
    assert browser.get("/s/which/run").headers["location"] == "/s/which/questions"
    finish(browser)
    assert ask(browser, "after", where="Moon").status_code == 422


def test_going_back_keeps_replies_and_sending_twice_is_harmless(visitors) -> None:
    browser = visitors.browser()
    begin(browser)
    ask(browser, "before", age="31")
    ask(browser, "before", age="31")
    assert 'value="31"' in browser.get("/s/which/questions").text
    ask(browser, "before", age="32", first="x")
    finish(browser)
    ask(browser, "after", where="City")
    # The last answer can still be undone before the result is opened; the replies stay.
    browser.get("/s/which/questions?stage=before")
    assert "City" in browser.get("/s/which/questions").text
    assert "refresh" in browser.get("/s/which/result").headers
    assert browser.get("/s/which/questions").headers["location"] == "/s/which/result"
    page = browser.get("/s/which")
    late = {"csrf": csrf_of(page), "stage": "after", "q-where": "Country"}
    assert browser.post("/s/which/questions", data=late).status_code == 303
    assert browser.get("/s/which/mine").json()["replies"]["where"] == "City"
    assert browser.get("/s/which/mine").json()["replies"]["age"] == 32


def test_questions_need_a_session_and_a_token_of_the_form(visitors) -> None:
    browser = visitors.browser()
    assert browser.get("/s/which/questions").status_code == 401
    begin(browser)
    assert browser.post("/s/which/questions", data={"stage": "before", "q-age": "31"}).status_code == 403
    # The questions after the pairs come after the pairs.
    assert ask(browser, "after", where="City").headers["location"] == "/s/which/run"
    assert browser.get("/s/which/mine").json()["replies"] == {}


def test_replies_and_variables_are_deleted_with_the_person_and_are_in_the_bundle(visitors) -> None:
    browser = visitors.browser()
    begin(browser, participant="ann", source="mail")
    ask(browser, "before", age="31", first="a secret")
    token = make_token(visitors.service.database, "all", ("read", "write", "answer", "delete"), "test")
    client = Client(visitors.address, token)
    with zipfile.ZipFile(io.BytesIO(client.bundle("which"))) as bundle:
        record = json.loads(bundle.read("sessions.jsonl"))
        codebook = bundle.read("codebook.csv").decode()
    assert record["replies"] == {"before": {"age": 31.0, "first": "a secret"}}
    assert record["variables"] == {"source": "mail"}
    assert "participants,question_age,Reply to the question: Age?" in codebook
    assert "participants,url_source,Value of source in the link" in codebook
    assert client.forget("which", "ann")["sessions"] == 1
    assert b"a secret" not in client.bundle("which")
    assert participants(visitors) == []


def test_the_client_keeps_variables_and_replies(visitors) -> None:
    token = make_token(visitors.service.database, "all", ("read", "write", "answer", "delete"), "test")
    client = Client(visitors.address, token)
    session = client.open_session("which", participant="ann", variables={"source": "app"})
    session.reply({"age": 40, "first": "hi"}, stage="before")
    session.reply({"where": "City"})
    session.reply({"where": "City"})
    (row,) = participants(visitors)
    assert (row["url_source"], row["question_age"], row["question_where"]) == ("app", "40.0", "City")
    for replies, stage, field in [
        ({"age": 3}, "before", "age"),
        ({"where": "Moon"}, "after", "where"),
        ({"nothing": "x"}, "after", "nothing"),
        ({}, "after", "where"),
    ]:
        with pytest.raises(ServiceError) as caught:
            session.reply(replies, stage=stage)
        assert (caught.value.status, caught.value.code) == (422, "invalid_parameter")
        assert repr(field) in str(caught.value)


def test_concurrent_arrivals_do_not_exceed_the_quota(database_url) -> None:
    made = configuration(answers=1, quota=3, completion=COMPLETION)
    with served(database_url, studies=[(made, some_items())]) as visitors:
        browsers = [visitors.browser() for _ in range(8)]
        pages = [browser.get(f"/s/which?participant=p{n}") for n, browser in enumerate(browsers)]
        replies = [None] * 8
        start = threading.Barrier(8)

        def arrive(n: int) -> None:
            start.wait()
            replies[n] = browsers[n].post("/s/which/start", data={"csrf": csrf_of(pages[n])})

        threads = [threading.Thread(target=arrive, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(reply.status_code for reply in replies) == [200] * 5 + [303] * 3
        refused = next(reply for reply in replies if reply.status_code == 200)
        assert "This study is full" in refused.text
        assert "complete?cc=FULL" in refused.text
        assert "This study is full" in visitors.browser().get("/s/which").text
        # Those under way finish.
        for browser, reply in zip(browsers, replies, strict=True):
            if reply.status_code == 303:
                finish(browser)
                assert browser.get("/s/which/result").headers["refresh"].endswith("cc=DONE")
        finished, under_way = visitors.service.database.read(lambda c: sessions.count_places(c, 1, ""))
        assert (finished, under_way) == (3, 0)


def test_a_session_that_was_left_gives_its_place_back_and_may_still_finish(database_url) -> None:
    with served(database_url, studies=[(configuration(answers=1, quota=1), some_items())]) as visitors:
        slow, other = visitors.browser(), visitors.browser()
        begin(slow)
        assert "This study is full" in other.get("/s/which").text
        long_ago = (datetime.now(UTC) - timedelta(minutes=61)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        visitors.service.database.write(lambda c: c.execute(sessions.sessions.update().values(created_at=long_ago)))
        begin(other)
        finish(other)
        finish(slow)
        assert visitors.service.database.read(lambda c: sessions.count_places(c, 1, "")) == (2, 0)


def test_a_study_closes_at_its_date_and_opening_it_removes_a_date_that_has_passed(database_url) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    with served(database_url, studies=[(configuration(closes=later), some_items())]) as visitors:
        browser, database = visitors.browser(headers={"accept": "text/html"}), visitors.service.database
        state = begin(browser)
        passed = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
        set_limits(database, visitors.service.catalogue.row("which"), {"quota": None, "closes": passed}, "ann")
        assert "This study is closed" in visitors.browser().get("/s/which").text
        assert answer(browser, state).status_code == 409
        assert "This study is closed" in browser.get("/s/which/run").text
        assert visitors.service.catalogue.row("which").closed_at is None
        close_due(database)
        row = visitors.service.catalogue.row("which")
        assert not row.is_open
        assert row.closed_at is not None
        token = make_token(database, "all", ("read", "write", "answer"), "test")
        client = Client(visitors.address, token)
        client.set_open("which", is_open=True)
        assert client.study("which").open
        assert client.study("which").configuration["closes"] is None
        facts = client.set_limits("which", quota=5, closes="2099-01-31T18:00+01:00")
        assert facts.configuration["closes"] == "2099-01-31T17:00:00+00:00"
        with pytest.raises(ServiceError):
            client.set_limits("which", quota=0, closes=None)
        with pytest.raises(ServiceError):
            client.set_limits("which", quota=None, closes="2099-01-31T18:00")
    assert CLOSING_ACTOR.startswith("pairseek")


@pytest.fixture
def researcher(visitors):
    set_password(visitors.service.database, "ann", PASSWORD, is_admin=True)
    browser = visitors.browser(headers={"accept": "text/html"})
    browser.post("/login", data={"csrf": csrf_of(browser.get("/login")), "name": "ann", "password": PASSWORD})
    return browser


def test_the_page_of_a_study_has_links_for_panels_and_takes_limits(researcher) -> None:
    page = researcher.get("/studies/which").text
    assert "PROLIFIC_PID={{%PROLIFIC_PID%}}&amp;STUDY_ID={{%STUDY_ID%}}&amp;SESSION_ID={{%SESSION_ID%}}" in page
    assert "workerId=${workerId}" in page
    assert "survey_code=%SURVEY_CODE%" in page
    form = {"csrf": csrf_of(researcher.get("/studies/which")), "quota": "40", "closes": "2099-01-31T18:00"}
    assert researcher.post("/studies/which/limits", data=form).status_code == 303
    page = researcher.get("/studies/which").text
    assert 'value="40"' in page
    assert 'value="2099-01-31T18:00"' in page
    assert researcher.post("/studies/which/limits", data={**form, "quota": "many"}).status_code == 422
    assert researcher.post("/studies/which/limits", data={**form, "closes": "soon"}).status_code == 422


def test_a_worker_of_mturk_and_a_participant_of_sona_have_an_id(visitors) -> None:
    for name in ("workerId", "survey_code"):
        begin(visitors.browser(), **{name: f"my {name}"}, hitId="h")
    rows = participants(visitors)
    assert [row["participant"] for row in rows] == ["my workerId", "my survey_code"]
    assert [row["url_hitId"] for row in rows] == ["h", "h"]


def test_attention_pairs_by_label_come_from_items_that_nothing_ranks(researcher, visitors) -> None:
    table = "label\n" + "\n".join([f"Cider {n}" for n in range(6)] + ['"Choose this, please"', "Not this"])
    form = {
        "csrf": csrf_of(researcher.get("/studies/new")),
        "title": "Apart",
        "answers": "10",
        "attention": "Choose this, please; Not this; Choose this, please",
        "attention.apart": "true",
        "questions.0.text": "Where do you live?",
        "questions.0.kind": "choice",
        "questions.0.options": "City\nCountry",
        "questions.0.when": "after",
        "quota": "10",
        "closes": "2099-01-31T18:00",
    }
    reply = researcher.post("/studies/new", data=form, files={"items": ("ciders.csv", table, "text/csv")})
    assert reply.status_code == 303, reply.text
    study = visitors.service.catalogue.by_slug("apart")
    assert study.items.n == 6
    assert study.configuration.quota == 10
    assert study.configuration.questions[0].name == "q1_where_do_you_live"
    browser = visitors.browser()
    state, shown = begin(browser, "apart"), []
    while state["query"] is not None:
        names = {side: state["query"][side]["name"] for side in ("left", "right")}
        shown.append(set(names.values()))
        right = next((side for side, name in names.items() if name == "Choose this, please"), "left")
        reply = answer(browser, state, right, slug="apart")
        assert reply.status_code == 200, reply.text
        state = reply.json()
    assert shown.count({"Choose this, please", "Not this"}) == 1
    assert not any(names & {"Choose this, please", "Not this"} for names in shown if len(names & {"Not this"}) == 0)
    (row,) = participants(visitors, "apart")
    assert row["attention"] == "1.0"
    wrong = researcher.post(
        "/studies/new",
        data={**form, "title": "Other", "attention": "Moon; Not this; Moon"},
        files={"items": ("ciders.csv", table, "text/csv")},
    )
    assert wrong.status_code == 422
    assert 'id="e-attention"' in wrong.text
    assert parse_qs(urlsplit(str(wrong.url)).query) == {}
