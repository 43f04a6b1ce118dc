"""Similarity studies: sessions with anchors, maps that learn, exports that replay, and searches among the items."""

from __future__ import annotations

import io
import threading
import time

import numpy as np
import pytest

from helpers.refusals import refused, refused_with
from helpers.serving import answer, answer_to, begin, cheap_passwords, configuration, csrf_of, served
from pairseek import cli
from pairseek.embed import Triplets
from pairseek.embed.similarity_map import SimilarityMap
from pairseek.errors import InvalidItems, InvalidParameter, InvalidTriplets, Unsupported
from pairseek.model.items import Items
from pairseek.store import migrate, populations, studies
from pairseek.store import sessions as stored
from pairseek.store.database import Database
from pairseek.store.locks import try_lock
from pairseek.web.access import auth
from pairseek.web.errors import Problem
from pairseek.web.learning import learner, similarity
from pairseek.web.results import bundle, tables
from pairseek.web.sessions import forgetting, simulated
from pairseek.web.sessions.prefetch import Gate
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies import forms
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.checks import check
from pairseek.web.studies.configuration import configured
from pairseek.web.studies.creation import add_items, create_study
from pairseek.web.studies.items import read_items

N = 10
PLACES = np.random.default_rng(3).standard_normal((N, 2))
IDS = [f"i{k}" for k in range(N)]


def things(n=N):
    ids = [f"i{k}" for k in range(n)]
    return Items(
        None, ids, [f"Thing {k}" for k in range(n)], data={"colour": [f"#0000{k % 90 + 10}" for k in range(n)]}
    )


def alike(**changes):
    return configuration(**{"kind": "similarity", "slug": "alike", "answers": 12, "dimensions": 2, **changes})


@pytest.fixture
def database(tmp_path):
    made = Database(str(tmp_path / "s.db"))
    migrate.prepare(made)
    yield made
    made.close()


def made(database, **changes):
    create_study(database, alike(**changes), things(), is_open=True, who="test")
    return Catalogue(database).by_slug("alike")


def nearer(query, places=PLACES):
    anchor, left, right = (places[IDS.index(query[side]["id"])] for side in ("anchor", "left", "right"))
    return "left" if np.sum((anchor - left) ** 2) <= np.sum((anchor - right) ** 2) else "right"


def judged(database, study, people=1, *, say=nearer, count=None):
    sessions, out = Sessions(database, Catalogue(database)), []
    for _ in range(people):
        session_id, _ = sessions.open(study, {})
        state, given = sessions.state(sessions.by_id(session_id)), 0
        while state["query"] is not None and given != count:
            sent = answer_to(state["query"]["query"], say(state["query"]), 900)
            state = sessions.answer(sessions.by_id(session_id), sent)
            given += 1
        out.append(session_id)
    return out


# Configuration


def test_a_list_of_things_is_enough(tmp_path):
    path = tmp_path / "dogs.csv"
    path.write_text("id,label,text\na,Akita,big\nb,Beagle,small\nc,Collie,long\nd,Dachs,low\n")
    items = read_items(path, placed=False)
    assert items.d == 0
    assert items.labels == ("Akita", "Beagle", "Collie", "Dachs")
    assert items.data["text"] == ("big", "small", "long", "low")
    study = configured({"title": "What is alike?", "kind": "similarity"})
    check(study, items)
    assert study.random == 0.1
    assert configured(study.model_dump(mode="json")) == study
    assert configured({"title": "x", "kind": "similarity", "random": 0}).random == 0
    # Coordinates in the file are left out.
    path.write_text("id,x,y\na,1,2\nb,2,3\nc,3,5\nd,4,1\n")
    assert read_items(path, placed=False).d == 0
    path.write_text("id,label\na,Akita\nb,Beagle\n")
    # A preference study of such items learns from its people.
    assert read_items(path).d == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"strategy": "infogain"}, "a similarity study has no strategy: remove"),
        ({"scaled": True}, "a similarity study has no scaled"),
        ({"offer": {"tie": True}}, "offers no ties: offer skip"),
        ({"kind": "preference"}, "dimensions is a setting for similarity studies"),
        ({"kind": "likeness"}, "'kind' is 'likeness'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(InvalidParameter, match=words):
        alike(**changes)


def test_items_and_pairs_that_do_not_fit_are_refused():
    with pytest.raises(InvalidItems):
        check(alike(), things(3))
    with pytest.raises(InvalidItems):
        check(alike(), things(5000))
    with refused("dimensions"):
        check(alike(dimensions=3), things(4))
    pair = {"left": "i1", "right": "i2", "answer": "i1"}
    with refused("attention"):
        check(alike(attention={"pairs": [pair]}), things())
    with refused("attention"):
        check(alike(attention={"pairs": [{**pair, "anchor": "i1"}]}), things())
    with refused("practice"):
        check(alike(practice={"left": "i1", "right": "i2", "anchor": "zz"}), things())
    check(alike(attention={"pairs": [{**pair, "anchor": "i3"}]}), things())


# Sessions


def test_a_session_asks_about_three_different_items_and_ends(database):
    study = made(database, repeated=0.2, attention={"pairs": [
        {"left": "i1", "right": "i2", "answer": "i1", "anchor": "i3"}], "every": 5})  # fmt: skip
    session_id = judged(database, study)[0]
    sessions = Sessions(database, Catalogue(database))
    row = sessions.by_id(session_id)
    assert row.reason == "12 answers were given"
    rows = list(tables.rows_of(database, study, "answers"))
    assert len(rows) == 12
    assert all(len({row["anchor"], row["left"], row["right"]}) == 3 for row in rows)
    assert {row["kind"] for row in rows} >= {"strategy", "attention"}
    again = [row for row in rows if row["kind"] == "repeated"]
    first = {row["query"]: row for row in rows}
    assert all(row["anchor"] == first[row["repeats"]]["anchor"] for row in again)
    assert tables.columns_of(study, "answers")[: len(rows[0])] == list(rows[0])
    assert next(tables.rows_of(database, study, "estimates"))["radius"] is None


def test_undo_asks_the_same_question_again(database):
    study = made(database)
    sessions = Sessions(database, Catalogue(database))
    session_id, _ = sessions.open(study, {})
    row = sessions.by_id(session_id)
    first = sessions.state(row)["query"]
    sessions.answer(row, answer_to(first["query"], "left"))
    state = sessions.undo(sessions.by_id(session_id), first["query"])
    again = state["query"]
    assert [again[side]["id"] for side in ("anchor", "left", "right")] == [
        first[side]["id"] for side in ("anchor", "left", "right")
    ]
    # Another worker that knows nothing in memory asks the same.
    other = Sessions(database, Catalogue(database)).state(sessions.by_id(session_id))
    assert other["query"] == again


def test_a_session_keeps_the_map_with_which_it_began(database):
    study = made(database)
    began = judged(database, study, count=2)[0]
    judged(database, study, 3)
    assert similarity.learn(database, study, "test") == 1
    sessions = Sessions(database, Catalogue(database))
    assert sessions.snapshot(sessions.by_id(began)).state.placement is None
    later = judged(database, study, 1, count=1)[0]
    assert sessions.by_id(later).population == 1
    assert sessions.snapshot(sessions.by_id(later)).state.placement is not None


# Learning


def test_learning_comes_by_itself_and_predicts(database):
    study = made(database, random=0.2)
    assert [similarity.is_learning_due(10, count, None) for count in (9, 10)] == [False, True]
    assert [similarity.is_learning_due(40, 100 + more, 100) for more in (19, 20)] == [False, True]
    for _ in range(8):
        judged(database, study)
        similarity.learn_if_due(database, study)
    versions = similarity.all_versions(database, study)
    assert [version.version for version in versions] == list(range(1, len(versions) + 1))
    assert len(versions) >= 6
    newest = versions[-1].learned
    assert newest.judgements == 96
    # Judges without noise: few of about 19 judgements kept apart are wrong, with a standard error of about 0.1.
    assert newest.held_out > 6
    assert newest.error < 0.4
    assert newest.undecided.mean() < versions[0].learned.undecided.mean()
    similarity.learn(database, study, "test")
    actions = [note["action"] for note in database.read(lambda c: studies.audit_log_of(c, "alike"))]
    assert actions.count("map") == 1, "the audit log has what people have done"


def test_void_answers_and_simulated_people_teach_nothing(database):
    study = made(database)
    people = judged(database, study, 2)
    simulated.simulate_session(Sessions(database, Catalogue(database)), Gate(), study, np.random.default_rng(0))
    assert len(similarity.judgements_of(database, study).sessions) == 2
    database.write(lambda c: stored.mark(c, people[0], None, "void", "test", "me"))
    assert similarity.judgements_of(database, study).sessions == [people[1]]


def test_a_study_emptied_by_voiding_keeps_its_last_map_and_says_why(database):
    study = made(database)
    people = judged(database, study, 2)
    similarity.learn_if_due(database, study)
    for one in people:
        database.write(lambda c, one=one: stored.mark(c, one, None, "void", "test", "me"))
    with pytest.raises(InvalidTriplets):
        similarity.learn(database, study, "test")
    more = judged(database, study, 1)
    database.write(lambda c: stored.mark(c, more[0], None, "void", "test", "me"))
    similarity.learn_if_due(database, study)
    similarity.learn_if_due(database, study)
    assert similarity.newest_map(database, study).version == 1
    notes = database.read(lambda c: studies.audit_log_of(c, "alike"))
    failed = [note for note in notes if note["action"] == "learning_failed"]
    assert len(failed) == 1
    assert "no valid judgements" in failed[0]["details"]["reason"]


def test_all_left_and_an_item_nobody_saw_are_findings(database):
    study = made(database)
    judged(database, study, 4, say=lambda query: "left")
    similarity.learn(database, study, "test")
    findings = similarity.newest_map(database, study).learned.findings
    assert any(finding.name == "agreement" and "no better than a coin" in finding.found for finding in findings)
    rows = np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0], [3, 2, 1]] * 4)
    learned = SimilarityMap.learn(Triplets(rows, IDS[:6]), labels=[f"Thing {k}" for k in range(6)])
    unseen = next(finding for finding in learned.findings if finding.name == "unseen items")
    assert "Thing 4" in unseen.found
    assert "asked about first" in unseen.advice


def test_two_learners_at_once_are_one(database):
    study = made(database)
    judged(database, study, 2)
    with try_lock(database, similarity.lock_name(study)) as held:
        assert held
        similarity.learn_if_due(database, study)
        with refused_with("learning", Problem):
            similarity.learn(database, study, "test")
    assert similarity.newest_map(database, study) is None
    threads = [threading.Thread(target=similarity.learn_if_due, args=(database, study)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.read(lambda c: populations.versions(c, study.row.id)) == [1]


def test_items_cannot_be_added_and_the_map_stays(database):
    study = made(database)
    judged(database, study, 2)
    similarity.learn(database, study, "test")
    with pytest.raises(Unsupported):
        add_items(database, study, Items(ids=["new", "newer"]), who="ann")
    again = Catalogue(database).by_slug("alike")
    assert (again.items.ids, similarity.newest_map(database, again).version) == (study.items.ids, 1)


# Exports


def test_a_bundle_replays_and_gives_its_triplets(database, tmp_path):
    study = made(database, random=0.2, repeated=0.1)
    for _ in range(3):
        judged(database, study)
        similarity.learn_if_due(database, study)
    file = io.BytesIO()
    bundle.write(database, study, file)
    path = tmp_path / "alike.zip"
    path.write_bytes(file.getvalue())
    found = list(bundle.replayed(bundle.read(path)))
    assert len(found) == 3
    assert all(one.same for one in found)
    triplets = Triplets.read(path)
    assert len(triplets) == 36
    assert triplets.ids == tuple(IDS)
    create_study(database, configuration(), Items(PLACES, IDS), is_open=True, who="test")
    other = Catalogue(database).by_slug("which")
    simulated.simulate_session(Sessions(database, Catalogue(database)), Gate(), other, np.random.default_rng(0))
    file = io.BytesIO()
    bundle.write(database, other, file)
    path.write_bytes(file.getvalue())
    with pytest.raises(InvalidTriplets):
        Triplets.read(path)


# Search among these


def test_a_search_among_the_items_of_a_map(database):
    study = made(database)
    with refused_with("no_map", Problem):
        similarity.create_preference_study(database, study, "test")
    judged(database, study, 4)
    similarity.learn(database, study, "test")
    slug = similarity.create_preference_study(database, study, "test")
    assert slug == "alike-search"
    assert similarity.create_preference_study(database, study, "test") == "alike-search-2"
    made_of = Catalogue(database).by_slug(slug)
    learned = similarity.newest_map(database, study).learned
    assert np.array_equal(made_of.items.coordinates, learned.final.coordinates)
    assert made_of.items.data["colour"] == study.items.data["colour"]
    assert made_of.configuration.response["k"] == pytest.approx(learned.k, rel=1e-3)
    with refused_with("not_similarity", Problem):
        similarity.create_preference_study(database, made_of, "test")


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        cli.main(list(map(str, arguments)))
    said = capsys.readouterr()
    return left.value.code, said.out + said.err


def test_commands_make_a_search_and_replay(database, tmp_path, capsys):
    study = made(database)
    judged(database, study, 2)
    similarity.learn(database, study, "test")
    where = ("--database", tmp_path / "s.db")
    code, said = run(capsys, "study", "create", "--from", "alike", "--slug", "found", *where)
    assert (code, "Created the study found with 10 items from the map of alike" in said) == (0, True)
    code, said = run(capsys, "study", "create", *where)
    assert (code != 0, "give either FILE, or --from STUDY" in said) == (True, True)
    path = tmp_path / "alike.zip"
    with path.open("wb") as file:
        bundle.write(database, study, file)
    code, said = run(capsys, "rank", path)
    assert (code != 0, "whose answers say which items are alike" in said) == (True, True)
    code, said = run(capsys, "replay", path)
    assert (code, "questions that would be different now: 0." in said) == (0, True)
    code, said = run(capsys, "replay", path, "--strategy", "epmv")
    assert (code != 0, "has only one strategy" in said) == (True, True)


def test_forgetting_a_judge_drops_the_maps_that_were_learned_from_them(database):
    study = made(database)
    people = judged(database, study, 2)
    similarity.learn(database, study, "test")
    going = judged(database, study, 1, count=2)[0]
    forgetting.forget(database, study, people[0], "test")
    assert similarity.newest_map(database, study) is None
    sessions = Sessions(database, Catalogue(database))
    assert sessions.state(sessions.by_id(going))["query"]["anchor"] is not None
    assert similarity.learn(database, study, "test") == 2


def test_after_a_judge_is_forgotten_the_map_is_learned_again_at_once(database):
    study = made(database)
    first = judged(database, study, 6)
    similarity.learn(database, study, "test")
    more = judged(database, study, 2)
    assert similarity.learn(database, study, "test") == 2
    # The first map stays, with which there are too few new answers to be due; the newest is gone.
    forgetting.forget_session(database, study, more[0], "test")
    similarity.learn_if_due(database, study)
    assert database.read(lambda c: populations.newest(c, study.row.id)) == 3
    known = database.read(lambda c: populations.sessions_learned_from(c, study.row.id, 3))
    assert known == {*first, more[1]}
    similarity.learn_if_due(database, study)
    assert database.read(lambda c: populations.newest(c, study.row.id)) == 3


def test_the_form_makes_a_similarity_study():
    sent = {"title": "Alike?", "kind": "similarity", "dimensions": "2", "attention": "i1, i2, i1, i3"}
    record = forms.record_of(None, {**sent, "answers": "12", "practice.left": "i1", "practice.right": "i2",
                                    "practice.anchor": "i4"})  # fmt: skip
    settings = configured(record)
    assert settings.is_similarity
    assert (settings.dimensions, settings.random) == (2, 0.1)
    assert settings.attention.pairs[0].anchor == "i3"
    check(settings, things())


# Pages


def test_pages_from_the_first_visitor_to_the_search(tmp_path, monkeypatch):
    # Here and not in a process of low priority, which takes longer on a busy machine.
    monkeypatch.setattr(learner, "learn_in_process", similarity.learn_version)
    settings = alike(practice=True, random=0.2)
    with cheap_passwords(), served(tmp_path / "s.db", studies=[(settings, things())]) as visitors:
        database = visitors.service.database
        study = visitors.service.catalogue.by_slug("alike")
        auth.set_password(database, "owner", "a long password of ours")
        owner = visitors.browser()
        csrf = csrf_of(owner.get("/login"))
        sent = {"name": "owner", "password": "a long password of ours", "csrf": csrf}
        assert owner.post("/login", data=sent).status_code == 303
        empty = owner.get("/studies/alike")
        assert "There is no map yet. The first one is learned after 10 judgements; about 150" in empty.text
        for _ in range(3):
            person = visitors.browser()
            state = begin(person, "alike")
            page = person.get("/s/alike/run").text
            assert "Which of these two is more like this one?" in page
            assert 'id="anchor"' in page
            while state["query"] is not None:
                state = answer(person, state, nearer(state["query"]), "alike").json()
            assert person.get("/s/alike/result").status_code == 200
            assert person.get("/s/alike/mine").json()["answers"][0]["anchor"] in IDS
        until = time.monotonic() + 60
        while similarity.newest_map(database, study) is None and time.monotonic() < until:
            time.sleep(0.1)
        page = owner.get("/studies/alike")
        assert "What is alike" in page.text
        assert page.text.count("alike-item") == N
        session = visitors.service.overview.participants(study)[0][0]["session"]
        assert "Compared with" in owner.get(f"/studies/alike/people/{session}").text
        assert owner.get("/studies/alike/findings").headers["location"] == "/studies/alike"
        reply = owner.post("/studies/alike/search", data={"csrf": csrf_of(page)})
        assert reply.headers["location"] == "/studies/alike-search"
        assert owner.get("/studies/alike-search").status_code == 200
        state = begin(visitors.browser(), "alike-search")
        assert state["query"]["anchor"] is None
