"""A participant: from the link to the result, and everything that must not happen on the way."""

import pytest

from serving import GUARD, answer, begin, configuration, served, some_items


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
    assert state["progress"] == {"answered": 0, "total": 6, "left": 6, "share": 0.0}
    for number in range(6):
        assert state["query"]["query"] == f"p{number + 1}"
        assert "kind" not in state["query"]
        state = answer(client, state, "left").json()
        assert state["progress"]["answered"] == number + 1
    assert state["status"] == "finished"
    assert state["query"] is None
    assert state["result"] == "/s/which/result"
    assert client.get("/s/which/run").headers["location"] == "/s/which/result"
    assert client.get("/s/which/result").status_code == 200
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
    sessions = visitors.service.sessions
    study = visitors.service.catalogue.named("which")
    for client in (undone, straight):
        _, token = sessions.open(study, {}, seed=11)
        client.cookies.set("pairseek_which", token)
    for client in (undone, straight):
        assert client.get("/s/which/state").json()["query"]["query"] == "p1"
    first = undone.get("/s/which/state").json()
    left = answer(undone, first, "left").json()
    back = undone.post("/s/which/undo", json={"query": "p1"}, headers=GUARD).json()
    right = answer(undone, back, "right").json()
    expected = answer(straight, straight.get("/s/which/state").json(), "right").json()
    cards = [(state["query"]["left"], state["query"]["right"]) for state in (left, right, expected)]
    assert cards[1] == cards[2]
    assert cards[0] != cards[1]
    # Back once more, and the first answer again: the pair that was asked then, not a new one.
    undone.post("/s/which/undo", json={"query": "p1-2"}, headers=GUARD)
    again = answer(undone, undone.get("/s/which/state").json(), "left").json()
    assert (again["query"]["query"], again["query"]["left"]) == ("p2", left["query"]["left"])


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
