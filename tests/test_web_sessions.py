"""Sessions: what is stored is the truth, any worker can serve any request, and the next pair is what `ask` gives."""

import contextlib
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import pairseek as ps
from pairseek.errors import AnswerConflict, UnknownQuery
from pairseek.store import cache, events, migrate, sessions
from pairseek.store.database import Database
from pairseek.store.schema import snapshots
from pairseek.web import catalogue
from pairseek.web.ahead import Ahead, Gate
from pairseek.web.beliefs import pack_belief, unpack_belief
from pairseek.web.catalogue import Catalogue
from pairseek.web.keeping import Keeper
from pairseek.web.live import Said, foreseen
from pairseek.web.making import create
from pairseek.web.problems import Problem
from pairseek.web.schedule import Shown, planned
from pairseek.web.sessions import Sessions
from pairseek.web.warming import warm_studies
from serving import configuration, some_items


@pytest.fixture
def database(tmp_path):
    made = Database(str(tmp_path / "s.db"))
    migrate.ready(made)
    yield made
    made.close()


def worker(database):
    return Sessions(database, Catalogue(database))


def a_session(database, seed=11, items=None, **settings):
    """A study and one session of it; its row."""
    create(database, configuration(**settings), items or some_items(), is_open=True, who="test")
    sessions = worker(database)
    session_id, _ = sessions.open(sessions.catalogue.named("which"), {}, seed=seed)
    return session_id


@contextlib.contextmanager
def preparing(sessions, gate=None):
    """Pairs are prepared for these sessions until the block ends."""
    ahead = Ahead(sessions, gate or Gate())
    ahead.start()
    try:
        yield ahead
    finally:
        ahead.stop()


def say(sessions, session_id, state, outcome):
    return sessions.answer(sessions.by_id(session_id), Said(state["query"]["query"], outcome, 500))


def pair(state):
    return state["query"]["left"]["id"], state["query"]["right"]["id"]


def test_the_pairs_are_those_that_ask_gives_whichever_worker_serves(database):
    session_id = a_session(database, answers=9)
    workers = itertools.cycle([worker(database) for _ in range(3)])
    search = configuration().search(some_items(), 11)
    state = next(workers).state(next(workers).by_id(session_id))
    for outcome in ["left", "right", "right", "left", "left", "right", "left", "left", "right"]:
        query = search.ask()
        assert pair(state) == (query.left, query.right)
        search.tell(query, winner=getattr(query, outcome))
        state = say(next(workers), session_id, state, outcome)
    assert state["status"] == "finished"
    live = next(workers).live(next(workers).by_id(session_id))
    row = next(workers).by_id(session_id)
    assert row.reason == "9 answers were given"
    assert np.array_equal(row.final["mean"], search.estimate().point)
    assert live.row.id == session_id


def test_a_tie_and_a_skip_are_told_as_such(database):
    session_id = a_session(database, offer={"tie": True, "skip": True})
    one, search = worker(database), configuration().search(some_items(), 11)
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
    with pytest.raises(Problem, match="there is no outcome 'up'"):
        say(one, session_id, state, "up")
    say(one, session_id, state, "left")
    with pytest.raises(Problem, match="does not offer undo"):
        one.undo(one.by_id(session_id), "p1")
    assert one.state(one.by_id(session_id))["can"] == {"undo": None, "tie": False, "skip": False}


def test_an_answer_to_a_query_that_is_not_open_is_refused(database):
    session_id = a_session(database)
    one = worker(database)
    with pytest.raises(UnknownQuery, match="'p7' is not open in this session, the open one is 'p1'"):
        one.answer(one.by_id(session_id), Said("p7", "left"))
    with pytest.raises(UnknownQuery, match="'p1' is not the last answered one, which is none"):
        one.undo(one.by_id(session_id), "p1")


def test_two_workers_with_the_same_answer_store_it_once_and_with_different_ones_one_is_refused(database):
    session_id = a_session(database)
    one, other = worker(database), worker(database)
    state = one.state(one.by_id(session_id))
    old = other.by_id(session_id)
    other.state(old)
    after = say(one, session_id, state, "left")
    # The other worker has read the session before that answer.
    assert other.answer(old, Said("p1", "left")) == after
    with pytest.raises(AnswerConflict, match="has the answer left, received right"):
        other.answer(old, Said("p1", "right"))
    assert len(database.read(lambda c: events.events_of(c, [session_id]))) == 1


def test_a_kept_belief_is_taken_up_to_the_bit_and_a_wrong_one_is_not(database):
    session_id = a_session(database, answers=20)
    one = worker(database)
    state = one.state(one.by_id(session_id))
    for outcome in ("left", "right", "left", "left", "right", "right"):
        state = say(one, session_id, state, outcome)
    kept = one.snapshot(one.live(one.by_id(session_id)))
    assert kept.count == 6
    database.write(lambda c: cache.keep(c, [kept]))

    def restarted():
        fresh = worker(database)
        row = fresh.by_id(session_id)
        assert fresh.state(row) == state
        return fresh.live(row)

    search = restarted().standing.search
    assert 6 in search._beliefs, "the belief was worked out again"
    assert np.array_equal(search.belief.samples, one.live(one.by_id(session_id)).standing.search.belief.samples)
    # One of other answers or another program is left alone.
    marred = unpack_belief(kept.content)
    marred = replace(marred, mean=marred.mean + 1)
    wrong = replace(kept, digest="0" * 64, content=pack_belief(marred))
    database.write(lambda c: cache.keep(c, [wrong]))
    search = restarted().standing.search
    assert np.array_equal(search.belief.mean, one.live(one.by_id(session_id)).standing.search.belief.mean)


def test_replies_are_the_same_to_the_bit_with_and_without_what_was_kept(database):
    attention = {"pairs": [{"left": "i0", "right": "i1", "answer": "i1"}], "every": 5}
    settings = {
        "answers": 40,
        "repeated": 0.2,
        "random": 0.2,
        "attention": attention,
        "offer": {"tie": True, "skip": True},
    }
    session_id = a_session(database, stop=[{"name": "radius", "radius": 0.01}], **settings)
    said = itertools.cycle(["left", "right", "tie", "right", "skip", "left", "left"])
    one = worker(database)
    state = one.state(one.by_id(session_id))
    for _ in range(23):
        state = say(one, session_id, state, next(said))
    row, live = one.by_id(session_id), one.live(one.by_id(session_id))
    forget = lambda c: c.execute(snapshots.delete())  # noqa: E731
    replies, beliefs = [], []
    for back in (None, 0, 3):
        database.write(forget)
        if back is not None:
            done = live.standing.done[: len(live.standing.done) - back]
            kept = one.snapshot(replace(live, kept=0, standing=live.standing.after(done)))
            database.write(lambda c, kept=kept: cache.keep(c, [kept]))
        fresh = worker(database)
        shown = fresh.state(row)
        recalled = fresh.live(row)
        assert (recalled.kept > 0) == (back is not None)
        following = [foreseen(recalled, outcome).query for outcome in ("left", "right", "tie", "skip")]
        replies.append([shown, [replace(query, asked_at="", details=timeless(query)) for query in following]])
        beliefs.append(fresh.standing(row).search.belief)
    assert replies[0] == replies[1] == replies[2]
    for belief in beliefs[1:]:
        for name in ("samples", "weights", "mean", "covariance"):
            assert np.array_equal(getattr(belief, name), getattr(beliefs[0], name)), name


def test_next_queries_that_were_kept_are_taken_up_and_are_those_that_would_be_found(database):
    settings = {"answers": 30, "repeated": 0.3, "random": 0.2, "offer": {"tie": True, "skip": True}}
    session_id = a_session(database, **settings)
    one = worker(database)
    state = one.state(one.by_id(session_id))
    for outcome in ["left", "right", "tie", "right", "skip", "left", "left", "right"]:
        state = say(one, session_id, state, outcome)
    with preparing(one) as ahead:
        ahead.prepare(one.by_id(session_id), "p9").result(timeout=30)
    live = one.live(one.by_id(session_id))
    kept = one.prepared(live)
    assert one.prepared(live) is None, "it is kept once"
    found = {outcome: foreseen(live, outcome).query for outcome in ("left", "right", "tie", "skip")}
    keep = lambda kept: database.write(lambda c: cache.keep(c, [kept]))  # noqa: E731

    keep(kept)
    fresh = worker(database)
    assert fresh.state(fresh.by_id(session_id)) == state
    taken = fresh.live(fresh.by_id(session_id))
    assert set(taken.prepared) == set(found)
    for outcome, query in found.items():
        again = taken.prepared[outcome].query
        assert (again.name, again.left, again.right, again.kind) == (query.name, query.left, query.right, query.kind)
        assert timeless(again) == timeless(query)
    assert 8 not in taken.standing.search._beliefs, "nothing had to be worked out"
    # What follows another open query, other answers or another program is left alone.
    for wrong in (replace(kept, query="p8"), replace(kept, digest="0" * 64)):
        keep(wrong)
        fresh = worker(database)
        fresh.state(fresh.by_id(session_id))
        assert fresh.live(fresh.by_id(session_id)).prepared == {}
    keep(kept)
    database.write(lambda c: sessions.mark(c, session_id, "p2", "void", "asleep", "ann"))
    fresh = worker(database)
    fresh.state(fresh.by_id(session_id))
    assert fresh.live(fresh.by_id(session_id)).prepared == {}, "a voided answer leads elsewhere"


def test_a_reply_from_a_kept_query_is_the_reply_that_would_be_worked_out(database):
    session_id, twin = a_session(database, answers=30), None
    one = worker(database)
    twin, _ = one.open(one.catalogue.named("which"), {}, seed=11)
    states = [one.state(one.by_id(name)) for name in (session_id, twin)]
    for outcome in ["left", "right", "right", "left"]:
        states = [say(one, name, state, outcome) for name, state in zip((session_id, twin), states, strict=True)]
    with preparing(one) as ahead:
        ahead.prepare(one.by_id(session_id), "p5").result(timeout=30)
    kept = one.prepared(one.live(one.by_id(session_id)))
    database.write(lambda c: cache.keep(c, [kept]))
    fresh = worker(database)
    for outcome in ["right", "left", "left"]:
        states = [say(fresh, name, state, outcome) for name, state in zip((session_id, twin), states, strict=True)]
        assert states[0] == states[1]
    rows = [database.read(lambda c, name=name: events.queries_of(c, [name])) for name in (session_id, twin)]
    for mine, theirs in zip(*rows, strict=True):
        assert timeless(mine) == timeless(theirs)


def timeless(query):
    return {name: value for name, value in query.details.items() if name != "seconds"}


@pytest.mark.parametrize(
    "harm", [lambda b: b[:-9], lambda b: b[:500] + b"x" + b[501:], lambda b: b"", lambda b: b"PK" + b]
)
def test_a_kept_belief_that_is_damaged_is_left_alone(database, harm):
    session_id = a_session(database, answers=20)
    one = worker(database)
    state = one.state(one.by_id(session_id))
    for outcome in ("left", "right", "left"):
        state = say(one, session_id, state, outcome)
    kept = one.snapshot(one.live(one.by_id(session_id)))
    database.write(lambda c: cache.keep(c, [replace(kept, content=harm(kept.content))]))
    fresh = worker(database)
    assert fresh.state(fresh.by_id(session_id)) == state
    assert fresh.live(fresh.by_id(session_id)).kept == 0
    assert say(fresh, session_id, state, "left")["query"]["query"] == "p5"


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
        found = list(crowd.map(lambda _: first.named("which").items, range(8)))
    assert len(unpacked) == 1
    assert all(items is found[0] for items in found)
    assert Catalogue(database, warm_studies(database)).named("which").items.n == 40
    assert len(unpacked) == 2, "by the first process, and by no worker"


def test_the_keeper_keeps_beliefs_now_and_then_and_at_the_end(database):
    session_id = a_session(database, answers=20)
    one = worker(database)
    keeper = Keeper(one, Gate())
    keeper.start()
    state = one.state(one.by_id(session_id))
    for _ in range(5):
        state = say(one, session_id, state, "left")
    until = time.monotonic() + 20
    while database.read(lambda c: cache.snapshot_of(c, session_id)) is None:
        assert time.monotonic() < until
        time.sleep(0.05)
    say(one, session_id, state, "left")
    with preparing(one) as ahead:
        ahead.prepare(one.by_id(session_id), "p7").result(timeout=30)
    keeper.stop()
    assert database.read(lambda c: cache.snapshot_of(c, session_id)).count == 6
    following = database.read(lambda c: cache.foreseen_of(c, session_id))
    assert (following.query, set(following.content)) == ("p7", {"left", "right"})


def test_what_is_prepared_is_what_is_asked(database):
    session_id = a_session(database, offer={"tie": True, "skip": True}, answers=9)
    one, other = worker(database), worker(database)
    with preparing(one) as ahead:
        state = one.state(one.by_id(session_id))
        for outcome in ("left", "right", "tie", "skip", "left"):
            prepared = ahead.prepare(one.by_id(session_id), state["query"]["query"]).result(timeout=30)
            assert set(one.live(one.by_id(session_id)).prepared) == {"left", "right", "tie", "skip"}
            # A worker that has prepared nothing gives the same pair, name and all.
            server = other if outcome in ("right", "skip") else one
            state = say(server, session_id, state, outcome)
            assert state["query"] == prepared[outcome]
            one.state(one.by_id(session_id))
        one.undo(one.by_id(session_id), "p5")
        state = one.state(one.by_id(session_id))
        prepared = ahead.prepare(one.by_id(session_id), state["query"]["query"]).result(timeout=30)
        assert say(other, session_id, state, "right")["query"] == prepared["right"]


def test_of_two_queries_of_a_session_the_newer_is_prepared(database):
    session_id = a_session(database)
    one, gate = worker(database), Gate()
    with preparing(one, gate) as ahead:
        state = one.state(one.by_id(session_id))
        with gate.working():
            first = ahead.prepare(one.by_id(session_id), "p1")
            given_up = ahead.prepare(one.by_id(session_id), "p0")
            given_up.cancel()
            say(one, session_id, state, "left")
            second = ahead.prepare(one.by_id(session_id), "p2")
            assert first.result(timeout=30) is None
        assert second.result(timeout=30)["left"]["query"] == "p3"


def test_preparing_waits_while_someone_is_served(database):
    session_id = a_session(database)
    one, gate = worker(database), Gate()
    with preparing(one, gate) as ahead:
        state = one.state(one.by_id(session_id))
        with gate.working():
            job = ahead.prepare(one.by_id(session_id), state["query"]["query"])
            with pytest.raises(TimeoutError):
                job.result(timeout=0.3)
        assert job.result(timeout=30)["left"]["query"] == "p2"
        # Nobody waits for what was answered meanwhile.
        say(one, session_id, state, "left")
        assert ahead.prepare(one.by_id(session_id), "p1").result(timeout=30) is None


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
    done = one.live(one.by_id(session_id)).standing.done
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
    learned = one.live(one.by_id(session_id)).standing.search.history
    assert len(learned) == 60 - kinds.count("attention") - kinds.count("repeated")
    assert sum(event.query is None for event in learned) == kinds.count("random")


def test_a_repeated_pair_comes_back_either_way_round_however_the_sides_were_before():
    made, items = configuration(answers=50, repeated=0.5), some_items()
    done = [Shown(f"p{k}", "strategy", f"i{2 * k}", f"i{2 * k + 1}", "left") for k in range(12)]
    orders = []
    for seed in range(200):
        again = planned(made, items, seed, done)
        if again is not None:
            assert again.kind == "repeated"
            orders.append(int(again.left[1:]) % 2 == 0)
    # About 100 seeds repeat a pair, each way round in half of them: fewer than 25 of 75 has a chance below 1 in 300.
    assert len(orders) >= 75
    assert min(orders.count(True), orders.count(False)) >= 25


def test_a_pair_that_checks_attention_comes_either_way_round():
    attention = {"pairs": [{"left": "i0", "right": "i1", "answer": "i1"}], "every": 2, "allowed": 0}
    made, items = configuration(answers=50, attention=attention), some_items()
    done = [Shown("p0", "strategy", "i2", "i3", "left")]
    # The second pair is the check, whatever the seed: never the first of all, and one in each block of two.
    shown = [planned(made, items, seed, done) for seed in range(100)]
    assert {(one.kind, one.expected) for one in shown} == {("attention", "i1")}
    # Fewer than 30 of 100 even throws one way: a chance below 1 in 10,000.
    assert 30 <= sum(one.left == "i0" for one in shown) <= 70


def test_a_stop_rule_ends_it_and_forecasts(database):
    session_id = a_session(database, answers=200, stop=[{"name": "radius", "radius": 1.2}])
    one = worker(database)
    state = one.state(one.by_id(session_id))
    assert state["progress"]["total"] is None
    assert 0 < state["progress"]["left"] < 200
    while state["status"] == "asking":
        state = say(one, session_id, state, "left")
    assert "radius" in one.by_id(session_id).reason
    assert state["progress"]["share"] == 1.0


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
    before = one.live(one.by_id(session_id)).standing.search.belief
    database.write(lambda c: sessions.mark(c, session_id, "p2", "void", "asleep", "ann"))
    # The open pair stays; what is believed has changed.
    assert one.state(one.by_id(session_id))["query"] == state["query"]
    standing = one.live(one.by_id(session_id)).standing
    assert [event.outcome for event in standing.search.history] == ["answer", "skip", "answer"]
    assert not np.array_equal(standing.search.belief.mean, before.mean)
    database.write(lambda c: sessions.mark(c, session_id, "p2", "restore", "awake", "ann"))
    one.state(one.by_id(session_id))
    assert np.array_equal(one.live(one.by_id(session_id)).standing.search.belief.mean, before.mean)


def test_a_study_is_gone_through_before_anybody_comes_and_nothing_is_left_of_it(database):
    create(database, configuration(slug="other", strategy="actrank"), some_items(), is_open=True, who="test")
    session_id = a_session(database, candidates={"name": "sampled_pairs", "count": 50}, response="probit")
    warm_studies(database)
    assert database.read(lambda c: events.events_of(c, [session_id])) == []
    assert worker(database).state(worker(database).by_id(session_id))["query"]["query"] == "p1"
