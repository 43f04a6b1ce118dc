"""Sessions: what is stored is the truth, any worker can serve any request, and the next pair is what `ask` gives."""

import contextlib
import gc
import itertools
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pydantic import ValidationError

import pairseek as ps
from helpers.refusals import refused_with
from helpers.searches import search_of
from helpers.serving import answer_to, configuration, some_items
from pairseek.errors import AnswerConflict, UnknownQuery
from pairseek.store import events, migrate, sessions
from pairseek.store.database import Database
from pairseek.store.events import AnsweredPair
from pairseek.web.errors import Problem
from pairseek.web.sessions import history
from pairseek.web.sessions.prefetch import Gate, Prefetcher
from pairseek.web.sessions.schedule import scheduled_pair
from pairseek.web.sessions.service import Sessions
from pairseek.web.sessions.warmup import warm_studies
from pairseek.web.studies import catalogue
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.configuration import configured
from pairseek.web.studies.creation import create_study


@pytest.fixture
def database(tmp_path):
    made = Database(str(tmp_path / "s.db"))
    migrate.prepare(made)
    yield made
    made.close()


def worker(database):
    return Sessions(database, Catalogue(database))


def a_session(database, seed=11, items=None, **settings):
    """A study and one session of it; its row."""
    create_study(database, configuration(**settings), items or some_items(), is_open=True, who="test")
    sessions = worker(database)
    session_id, _ = sessions.open(sessions.catalogue.by_slug("which"), {}, seed=seed)
    return session_id


@contextlib.contextmanager
def prefetching(sessions, gate=None):
    """Pairs are prefetched for these sessions until the block ends."""
    prefetcher = Prefetcher(sessions, gate or Gate())
    prefetcher.start()
    try:
        yield prefetcher
    finally:
        prefetcher.stop()


def say(sessions, session_id, state, outcome):
    return sessions.answer(sessions.by_id(session_id), answer_to(state["query"]["query"], outcome, 500))


def pair(state):
    return state["query"]["left"]["id"], state["query"]["right"]["id"]


def test_the_pairs_are_those_that_ask_gives_whichever_worker_serves(database):
    session_id = a_session(database, answers=9)
    workers = itertools.cycle([worker(database) for _ in range(3)])
    search = search_of(configuration().resolved(some_items()), 11)
    state = next(workers).state(next(workers).by_id(session_id))
    for outcome in ["left", "right", "right", "left", "left", "right", "left", "left", "right"]:
        query = search.ask()
        assert pair(state) == (query.left, query.right)
        search.tell(query, winner=getattr(query, outcome))
        state = say(next(workers), session_id, state, outcome)
    assert state["status"] == "finished"
    row = next(workers).by_id(session_id)
    assert row.reason == "9 answers were given"
    assert np.array_equal(row.final["mean"], search.estimate().point)


def test_a_tie_and_a_skip_are_told_as_such(database):
    offer = {"tie": True, "skip": True}
    session_id = a_session(database, offer=offer)
    # A study that offers ties has a response that expects them.
    one, search = worker(database), search_of(configuration(offer=offer).resolved(some_items()), 11)
    state = one.state(one.by_id(session_id))
    for outcome in ("tie", "skip", "left"):
        query = search.ask()
        assert pair(state) == (query.left, query.right)
        search.skip(query) if outcome == "skip" else search.tell(
            query, winner=query.left if outcome == "left" else None, tie=outcome == "tie"
        )
        state = say(one, session_id, state, outcome)
    assert state["progress"]["answered"] == 2
    assert pair(state) == (search.ask().left, search.ask().right)


def test_what_is_not_offered_is_refused(database):
    session_id = a_session(database, offer={"undo": False})
    one = worker(database)
    state = one.state(one.by_id(session_id))
    for outcome in ("tie", "skip"):
        with pytest.raises(Problem, match=f"does not offer a {outcome}"):
            say(one, session_id, state, outcome)
    with pytest.raises(ValidationError):
        say(one, session_id, state, "up")
    say(one, session_id, state, "left")
    with refused_with("not_offered", Problem):
        one.undo(one.by_id(session_id), "p1")
    assert one.state(one.by_id(session_id))["can"] == {"undo": None, "tie": False, "skip": False}


def test_an_answer_to_a_query_that_is_not_open_is_refused(database):
    session_id = a_session(database)
    one = worker(database)
    with pytest.raises(UnknownQuery):
        one.answer(one.by_id(session_id), answer_to("p7", "left"))
    with pytest.raises(UnknownQuery):
        one.undo(one.by_id(session_id), "p1")


def test_two_workers_with_the_same_answer_store_it_once_and_with_different_ones_one_is_refused(database):
    session_id = a_session(database)
    one, other = worker(database), worker(database)
    state = one.state(one.by_id(session_id))
    old = other.by_id(session_id)
    other.state(old)
    after = say(one, session_id, state, "left")
    # The other worker has read the session before that answer.
    assert other.answer(old, answer_to("p1", "left")) == after
    with pytest.raises(AnswerConflict):
        other.answer(old, answer_to("p1", "right"))
    assert len(database.read(lambda c: events.events_of(c, [session_id]))) == 1


def test_after_an_undo_the_same_answer_leads_to_the_same_pair_under_a_new_name(database):
    session_id = a_session(database, answers=20, repeated=0.3)
    one, other = worker(database), worker(database)
    state = one.state(one.by_id(session_id))
    states = [state]
    for outcome in ("left", "right", "left"):
        states.append(say(one, session_id, states[-1], outcome))
    for name in ("p3", "p2"):
        back = one.undo(one.by_id(session_id), name)
    assert back["query"]["query"] == "p2-2"
    assert pair(back) == pair(states[1])
    assert one.undo(one.by_id(session_id), "p2") == back, "to undo again is harmless"
    with pytest.raises(AnswerConflict):
        one.answer(one.by_id(session_id), answer_to("p2", "left"))
    # Nobody has answered p3 since, so it is asked again by its own name; the one after it was not answered at all.
    again = say(other, session_id, back, "right")
    assert (again["query"]["query"], pair(again)) == ("p3-2", pair(states[2]))
    assert one.state(one.by_id(session_id)) == again
    again = say(one, session_id, again, "left")
    assert (again["query"]["query"], pair(again)) == ("p4", pair(states[3]))
    assert again == other.state(other.by_id(session_id))
    assert say(worker(database), session_id, again, "left")["query"]["query"] == "p5"


def test_a_finished_session_stays_finished_and_an_undo_opens_it(database):
    session_id = a_session(database, answers=2)
    one, other = worker(database), worker(database)
    state = one.state(one.by_id(session_id))
    for outcome in ("left", "right"):
        state = say(one, session_id, state, outcome)
    row = one.by_id(session_id)
    assert state["status"] == other.state(row)["status"] == "finished"
    search = one.snapshot(row).state.search
    assert row.final["mean"] == search.estimate().point.tolist()
    assert row.final["covariance"] == search.estimate().covariance.tolist()
    assert row.final["nearest"] == [[item.id, item.probability] for item in search.recommend(6)]
    assert one.undo(row, "p2")["query"]["query"] == "p2-2"
    assert other.state(other.by_id(session_id))["status"] == "asking"
    assert other.by_id(session_id).final is None


def deep_size(thing, shared):
    """Bytes of an object and all that it leads to, without what is shared."""
    seen, todo, total = {id(one) for one in shared}, [thing], 0
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | types.ModuleType | types.FunctionType):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        todo.extend(gc.get_referents(one))
    return total


def test_a_session_in_memory_is_small_whatever_the_catalogue(database):
    """At most 20 kB after 30 answers, with default settings over many items, beside what sessions share."""
    items = some_items(12_000, 4)
    made = configured({"title": "Which", "slug": "which", "answers": 100})
    create_study(database, made, items, is_open=True, who="test")
    one = worker(database)
    study = one.catalogue.by_slug("which")
    lives = []
    with prefetching(one) as prefetcher:
        for seed in (1, 2):
            session_id, _ = one.open(study, {"participant": "someone with a name"}, seed=seed)
            state = one.state(one.by_id(session_id))
            for number in range(30):
                state = say(one, session_id, state, "left" if number % 3 else "right")
            # As it is while a person thinks: the open query and what follows each answer to it are there.
            prefetcher.prefetch(one.by_id(session_id), "p31").result(timeout=60)
            # What the dashboard and the result page look at leaves nothing behind.
            one.snapshot(one.by_id(session_id)).state.search.recommend(3)
            lives.append(one.snapshot(one.by_id(session_id)))
    first, second = lives
    assert first.parts is second.parts
    assert first.study is second.study
    assert first.parts.items is first.study.items
    assert set(first.prefetched) == {"left", "right"}
    shared = [first.study, first.parts, first.study.items, *items_texts(first.study.items)]
    assert deep_size(first, shared) < 20_000
    # One that was read from the store is no larger.
    fresh = worker(database)
    fresh.state(fresh.by_id(first.row.id))
    read = fresh.snapshot(fresh.by_id(first.row.id))
    assert deep_size(read, [read.study, read.parts, *items_texts(read.study.items)]) < 20_000


def items_texts(items):
    return [*items.ids, *items.labels]


def test_a_study_is_unpacked_once_however_many_come_at_once_and_not_by_a_worker_that_was_handed_it(
    database, monkeypatch
):
    a_session(database)
    unpacked, unpack = [], catalogue.unpack_items

    def slowly(content):
        unpacked.append(len(content))
        time.sleep(0.2)
        return unpack(content)

    monkeypatch.setattr(catalogue, "unpack_items", slowly)
    first = Catalogue(database)
    with ThreadPoolExecutor(8) as crowd:
        found = list(crowd.map(lambda _: first.by_slug("which").items, range(8)))
    assert len(unpacked) == 1
    assert all(items is found[0] for items in found)
    assert Catalogue(database, warm_studies(database)).by_slug("which").items.n == 40
    assert len(unpacked) == 2, "by the first process, and by no worker"


def test_what_is_prefetched_is_what_is_asked(database):
    session_id = a_session(database, offer={"tie": True, "skip": True}, answers=9)
    one, other = worker(database), worker(database)
    with prefetching(one) as prefetcher:
        state = one.state(one.by_id(session_id))
        for outcome in ("left", "right", "tie", "skip", "left"):
            prefetched = prefetcher.prefetch(one.by_id(session_id), state["query"]["query"]).result(timeout=30)
            assert set(one.snapshot(one.by_id(session_id)).prefetched) == {"left", "right", "tie", "skip"}
            # A worker that has prefetched nothing gives the same pair, name and all.
            server = other if outcome in ("right", "skip") else one
            state = say(server, session_id, state, outcome)
            assert state["query"] == prefetched[outcome]
            one.state(one.by_id(session_id))
        one.undo(one.by_id(session_id), "p5")
        state = one.state(one.by_id(session_id))
        prefetched = prefetcher.prefetch(one.by_id(session_id), state["query"]["query"]).result(timeout=30)
        assert say(other, session_id, state, "right")["query"] == prefetched["right"]


def test_of_two_queries_of_a_session_the_newer_is_prefetched(database):
    session_id = a_session(database)
    one, gate = worker(database), Gate()
    with prefetching(one, gate) as prefetcher:
        state = one.state(one.by_id(session_id))
        with gate.working():
            first = prefetcher.prefetch(one.by_id(session_id), "p1")
            given_up = prefetcher.prefetch(one.by_id(session_id), "p0")
            given_up.cancel()
            say(one, session_id, state, "left")
            second = prefetcher.prefetch(one.by_id(session_id), "p2")
            assert first.result(timeout=30) is None
        assert second.result(timeout=30)["left"]["query"] == "p3"


def test_preparing_waits_while_someone_is_served(database):
    session_id = a_session(database)
    one, gate = worker(database), Gate()
    with prefetching(one, gate) as prefetcher:
        state = one.state(one.by_id(session_id))
        with gate.working():
            job = prefetcher.prefetch(one.by_id(session_id), state["query"]["query"])
            with pytest.raises(TimeoutError):
                job.result(timeout=0.3)
        assert job.result(timeout=30)["left"]["query"] == "p2"
        # Nobody waits for what was answered meanwhile.
        say(one, session_id, state, "left")
        assert prefetcher.prefetch(one.by_id(session_id), "p1").result(timeout=30) is None


def test_repeated_random_and_attention_pairs_come_as_the_study_says(database):
    items = some_items(60)
    attention = {"pairs": [{"left": "i0", "right": "i1", "answer": "i1"}], "every": 10, "allowed": 0}
    settings = {"answers": 60, "repeated": 0.2, "random": 0.2, "attention": attention}
    session_id = a_session(database, items=items, **settings)
    one, person = worker(database), ps.SimulatedUser([0.1, 0.2], None, rng=1)
    state = one.state(one.by_id(session_id))
    while state["status"] == "asking":
        left, right = pair(state)
        winner = "i1" if {left, right} == {"i0", "i1"} else person.answer(items, ps.Query("x", left, right))
        state = say(one, session_id, state, "left" if winner == left else "right")
    (told,) = history.read_histories(database, one.catalogue.by_slug("which"), [one.by_id(session_id)])
    done = told.done
    kinds = [answered.query.kind for answered in done]
    # One attention pair in each block of ten; a fifth of the rest each, in expectation 10.8 with deviation 2.9, and
    # repeated ones only once there is something to repeat.
    assert kinds.count("attention") == 6
    assert all(kinds[10 * block : 10 * block + 10].count("attention") == 1 for block in range(6))
    assert 3 <= kinds.count("random") <= 19
    assert 3 <= kinds.count("repeated") <= 19
    assert all(answered.passed for answered in done if answered.query.kind == "attention")
    asked = {answered.query.name: answered for answered in done}
    swapped = 0
    for position, answered in enumerate(done):
        if answered.query.kind == "repeated":
            first = asked[answered.query.details["repeats"]]
            assert {first.query.left, first.query.right} == {answered.query.left, answered.query.right}
            assert position - first.query.position > 4
            assert answered.winner == first.winner
            swapped += first.query.left != answered.query.left
    assert swapped
    # Repeated and attention pairs teach nothing; random ones do.
    learned = one.snapshot(one.by_id(session_id)).state.search.events
    assert len(learned) == 60 - kinds.count("attention") - kinds.count("repeated")
    assert sum(event.query is None for event in learned) == kinds.count("random")


def test_a_repeated_pair_comes_back_either_way_round_however_the_sides_were_before():
    made, items = configuration(answers=50, repeated=0.5), some_items()
    done = [AnsweredPair(f"p{k}", "strategy", f"i{2 * k}", f"i{2 * k + 1}", "left") for k in range(12)]
    orders = []
    for seed in range(200):
        again = scheduled_pair(made, items, seed, done)
        if again is not None:
            assert again.kind == "repeated"
            orders.append(int(again.left[1:]) % 2 == 0)
    # About 100 seeds repeat a pair, each way round in half of them: fewer than 25 of 75 has a chance below 1 in 300.
    assert len(orders) >= 75
    assert min(orders.count(True), orders.count(False)) >= 25


def test_a_pair_that_checks_attention_comes_either_way_round():
    attention = {"pairs": [{"left": "i0", "right": "i1", "answer": "i1"}], "every": 2, "allowed": 0}
    made, items = configuration(answers=50, attention=attention), some_items()
    done = [AnsweredPair("p0", "strategy", "i2", "i3", "left")]
    # The second pair is the check, whatever the seed: never the first of all, and one in each block of two.
    shown = [scheduled_pair(made, items, seed, done) for seed in range(100)]
    assert {(pair.kind, pair.details["expected"]) for pair in shown} == {("attention", "i1")}
    # Fewer than 30 of 100 even throws one way: a chance below 1 in 10,000.
    assert 30 <= sum(item.left == "i0" for item in shown) <= 70


def test_a_stop_rule_ends_it_and_forecasts(database):
    session_id = a_session(database, answers=200, stop=[{"name": "gain", "gain": 0.3}])
    one = worker(database)
    state = one.state(one.by_id(session_id))
    assert state["progress"]["total"] is None
    assert 0 < state["progress"]["remaining"] < 200
    while state["status"] == "asking":
        state = say(one, session_id, state, "left")
    assert "would improve the pick" in one.by_id(session_id).reason
    assert state["progress"]["share"] == 1.0


def test_nothing_is_said_about_the_answers_left_if_they_cannot_be_predicted(database):
    session_id = a_session(database, answers=20, stop=[{"name": "information", "bits": 0.1}])
    one = worker(database)
    state = say(one, session_id, one.state(one.by_id(session_id)), "left")
    assert state["progress"] == {"answered": 1, "total": None, "remaining": None, "share": 0.05}


def test_when_no_pair_is_left_the_session_ends_with_that_reason(database):
    session_id = a_session(database, items=some_items(3), answers=50, rest={"pair": 1000})
    one = worker(database)
    state = one.state(one.by_id(session_id))
    for _ in range(3):
        state = say(one, session_id, state, "left")
    assert state["status"] == "finished"
    assert one.by_id(session_id).reason.startswith("no pair is left to ask")


def test_a_voided_answer_is_no_longer_believed_and_can_be_restored(database):
    session_id = a_session(database, answers=20)
    one = worker(database)
    state = one.state(one.by_id(session_id))
    for outcome in ("left", "right", "left"):
        state = say(one, session_id, state, outcome)
    before = one.snapshot(one.by_id(session_id)).state.search.belief
    database.write(lambda c: sessions.mark(c, session_id, "p2", "void", "asleep", "ann"))
    # The open pair stays; what is believed has changed.
    assert one.state(one.by_id(session_id))["query"] == state["query"]
    state = one.snapshot(one.by_id(session_id)).state
    assert [event.outcome for event in state.search.events] == ["answer", "skip", "answer"]
    assert not np.array_equal(state.search.belief.mean, before.mean)
    database.write(lambda c: sessions.mark(c, session_id, "p2", "restore", "awake", "ann"))
    one.state(one.by_id(session_id))
    assert np.array_equal(one.snapshot(one.by_id(session_id)).state.search.belief.mean, before.mean)


def test_a_row_that_was_read_before_an_answer_and_a_mark_hides_neither(database):
    session_id = a_session(database, answers=20)
    one = worker(database)
    state = one.state(one.by_id(session_id))
    for outcome in ("left", "right"):
        state = say(one, session_id, state, outcome)
    database.write(lambda c: sessions.mark(c, session_id, "p2", "void", "asleep", "ann"))
    # The version of this row, 3, is the number of answers after the next one, but then the session has version 4.
    old = one.by_id(session_id)
    assert old.version == 3
    say(one, session_id, one.state(old), "left")
    other = worker(database)
    other.state(old)
    live = other.snapshot(old)
    assert [answered.void for answered in live.done] == [False, True, False]
    assert live.row.version == 4
    # A session with a mark and one without are rebuilt alike by a worker that has never seen them.
    assert other.state(other.by_id(session_id)) == one.state(one.by_id(session_id))


def test_a_pair_that_another_worker_stored_first_is_the_one_that_is_shown(database, monkeypatch):
    session_id = a_session(database, answers=20)
    one, other = worker(database), worker(database)
    row, write, seen = one.by_id(session_id), one.database.write, []

    def later(function):
        if not seen:
            seen.append(other.state(row))
        return write(function)

    # The first pair is no event, so the version of the session does not tell that it is there.
    monkeypatch.setattr(one, "database", types.SimpleNamespace(read=database.read, write=later))
    assert [one.state(row)] == seen
    assert [pair.name for pair in database.read(lambda c: events.queries_of(c, [session_id]))] == ["p1"]


def test_an_answer_that_was_undone_by_another_worker_leads_on_under_a_free_name(database):
    session_id = a_session(database, answers=20)
    one, other = worker(database), worker(database)
    state = one.state(one.by_id(session_id))
    for outcome in ("left", "right", "left"):
        state = say(one, session_id, state, outcome)
    assert one.undo(one.by_id(session_id), "p3")["query"]["query"] == "p3-2"
    state = other.undo(other.by_id(session_id), "p2")
    assert state["query"]["query"] == "p2-2"
    # Another outcome than before leads to another pair.
    state = say(other, session_id, state, "left")
    assert state["query"]["query"] == "p3-3"
    assert state["query"] == worker(database).state(one.by_id(session_id))["query"]


def test_of_answers_and_undos_sent_at_once_to_two_workers_one_of_each_is_stored(database):
    session_id = a_session(database, answers=6)
    workers = [worker(database), worker(database)]
    state = workers[0].state(workers[0].by_id(session_id))

    def at_once(send):
        barrier = threading.Barrier(8)

        def sent(number):
            mine = workers[number % 2]
            row = mine.by_id(session_id)
            barrier.wait()
            try:
                return send(mine, row, number)["query"]
            except AnswerConflict:
                return "conflict"

        with ThreadPoolExecutor(8) as crowd:
            return list(crowd.map(sent, range(8)))

    for count in range(1, 4):
        name = state["query"]["query"]
        replies = at_once(
            lambda mine, row, number, name=name: mine.answer(row, answer_to(name, ("left", "right")[number // 4]))
        )
        assert replies.count("conflict") == 4
        (following,) = {reply["query"] for reply in replies if reply != "conflict"}
        state = workers[0].state(workers[0].by_id(session_id))
        assert state["query"]["query"] == following
        assert len(database.read(lambda c: events.events_of(c, [session_id]))) == count
    replies = at_once(lambda mine, row, _: mine.undo(row, "p3"))
    assert [reply["query"] for reply in replies] == ["p3-2"] * 8
    assert [event.kind for event in database.read(lambda c: events.events_of(c, [session_id]))][3:] == ["undo"]


def test_an_undo_and_the_pair_that_it_asks_again_are_stored_together(database, monkeypatch):
    session_id = a_session(database, answers=20)
    one = worker(database)
    state = one.state(one.by_id(session_id))
    state = say(one, session_id, state, "left")

    def fails(*_):
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(events, "add_pair", fails)
        with pytest.raises(OSError, match="disk"):
            one.undo(one.by_id(session_id), "p1")
    assert [event.kind for event in database.read(lambda c: events.events_of(c, [session_id]))] == ["answer"]
    assert one.state(one.by_id(session_id)) == state
    assert one.undo(one.by_id(session_id), "p1")["query"]["query"] == "p1-2"


def test_a_study_is_gone_through_before_anybody_comes_and_nothing_is_left_of_it(database):
    create_study(database, configuration(slug="other", strategy="actrank"), some_items(), is_open=True, who="test")
    session_id = a_session(database, candidates={"name": "sampled_pairs", "count": 50}, response="probit")
    warm_studies(database)
    assert database.read(lambda c: events.events_of(c, [session_id])) == []
    assert worker(database).state(worker(database).by_id(session_id))["query"]["query"] == "p1"
