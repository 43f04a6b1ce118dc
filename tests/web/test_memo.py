"""People who answered alike are asked alike, from memory, and to the bit as without it."""

import dataclasses

import pytest

from helpers.serving import configuration, some_items
from pairseek.core.types import Event
from pairseek.search import engine
from pairseek.store.events import AnsweredPair
from pairseek.web.sessions import memo
from pairseek.web.sessions.memo import Memo
from pairseek.web.sessions.parts import SessionParts
from pairseek.web.sessions.state import SessionState, search_events

ITEMS = some_items(400, 3)


def row_after(made, parts, seed, outcomes):
    """The queries of a session in which the first item of each pair, by the items' order, wins where 1 is said."""
    done, asked = [], []
    for outcome in [*outcomes, None]:
        state = SessionState(made, parts, seed, tuple(done))
        query = state.with_details(state.next_pair[0])
        asked.append(query)
        if outcome is None:
            break
        first = query.left if ITEMS.index(query.left) < ITEMS.index(query.right) else query.right
        said = {1: "left" if first == query.left else "right", 0: "right" if first == query.left else "left"}
        said = said.get(outcome, outcome)
        done.append(AnsweredPair(query.name, query.kind, query.left, query.right, said))
    return asked


def plain(query):
    return dataclasses.replace(query, asked_at="", details={k: v for k, v in query.details.items() if k != "seconds"})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"offer": {"tie": True, "skip": True}},
        {"strategy": "eubo"},
        {"strategy": "random"},
        {"candidates": {"name": "sampled_pairs", "count": 500}},
        {"repeated": 0.2, "random": 0.2},
        {"response": {"name": "logistic", "k": "unknown"}},
    ],
    ids=lambda changes: next(iter(changes), "defaults"),
)
def test_a_memo_changes_nothing(changes):
    made = configuration(**changes)
    shared = SessionParts.resolved(made, ITEMS)
    said = [1, 0, 1, "tie", "skip", 1] if "offer" in changes else [1, 0, 1, 1]
    for seed in range(4):
        with_memo = row_after(made, shared, seed, said)
        # Parts of its own have an empty memo.
        without = row_after(made, SessionParts.resolved(made, ITEMS), seed, said)
        assert [plain(query) for query in with_memo] == [plain(query) for query in without]


def test_the_pairs_of_those_who_answer_alike_are_found_once(monkeypatch):
    made = configuration()
    parts = SessionParts.resolved(made, ITEMS)
    chosen, inferred = [], []
    choose_pair, infer = engine.choose_pair, engine.infer

    def counted(items, context, *further):
        chosen.append(len(context.history))
        return choose_pair(items, context, *further)

    def counted_beliefs(configuration, events):
        inferred.append(len(events))
        return infer(configuration, events)

    monkeypatch.setattr(engine, "choose_pair", counted)
    monkeypatch.setattr(engine, "infer", counted_beliefs)
    for seed in range(10):
        row_after(made, parts, seed, [1, 1, 0])
    assert chosen == [0, 1, 2, 3]
    assert inferred == [0, 1, 2, 3], "a pair that is known needs no belief"
    monkeypatch.setattr(memo, "MAX_EVENTS", 1)
    for seed in range(2):
        row_after(made, parts, seed, [1, 1, 0])
    assert chosen[4:] == [2, 3, 2, 3]


def test_it_is_bounded(monkeypatch):
    monkeypatch.setattr(memo, "_MAX_ENTRIES", 10)
    kept = Memo()

    def path(number):
        return [Event("a", str(number), "answer", "a")]

    for number in range(50):
        kept.keep(path(number), number)
        assert kept.recall(path(max(0, number - 1))) is not None
    assert len(kept) == 10
    assert kept.recall(path(49)) == 49
    assert kept.recall(path(0)) is None


def test_the_order_of_answers_and_ties_tells_paths_apart():
    def pair(left, right, outcome):
        return AnsweredPair("p", "strategy", left, right, outcome)

    def key(*pairs):
        return memo.outcomes_key(search_events(pairs))

    assert key(pair("a", "b", "left")) == key(pair("b", "a", "right"))
    one = [
        key(pair("a", "b", "left")),
        key(pair("a", "b", "right")),
        key(pair("a", "b", "tie")),
        key(pair("b", "a", "tie")),
        key(pair("a", "b", "skip")),
        key(pair("a", "b", "left"), pair("c", "d", "left")),
        key(pair("c", "d", "left"), pair("a", "b", "left")),
    ]
    assert len(set(one)) == len(one)


@pytest.mark.parametrize(
    "changes",
    [
        {"strategy": "random"},
        {"candidates": {"name": "sampled_pairs", "count": 500}},
        {
            "strategy": "actrank",
            "response": {"name": "logistic"},
            "prior": {"name": "uniform_box", "low": -9, "high": 9},
        },
    ],
    ids=["strategy", "candidates", "procedure"],
)
def test_what_a_session_draws_is_not_kept(changes):
    made = configuration(**changes)
    parts = SessionParts.resolved(made, ITEMS)
    pairs = [row_after(made, parts, seed, [])[0] for seed in range(5)]
    assert len({frozenset((one.left, one.right)) for one in pairs}) > 1
    assert len(parts._pairs) == 0
