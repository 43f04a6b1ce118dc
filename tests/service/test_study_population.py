"""A study that learns from its own people: versions, sessions that keep theirs, bundles that replay."""

import io
import time

import numpy as np
import pytest

import pairseek as ps
from helpers.serving import answer_to, configuration, csrf_of, served, some_items
from pairseek import cli
from pairseek.errors import InvalidChoices
from pairseek.people.population import Choices
from pairseek.store import migrate
from pairseek.store import sessions as stored
from pairseek.store.database import Database
from pairseek.store.events import AskedPair, EventRow
from pairseek.web.access.auth import set_password
from pairseek.web.learning import learner, populations
from pairseek.web.results import bundle, tables
from pairseek.web.sessions import history
from pairseek.web.sessions import simulated as simulating
from pairseek.web.sessions.parts import SessionParts
from pairseek.web.sessions.prefetch import Gate
from pairseek.web.sessions.service import Sessions
from pairseek.web.sessions.state import EffectiveAnswer, SessionState
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import create_study
from pairseek.web.views import result as results

ITEMS = some_items(12)


@pytest.fixture
def database(tmp_path):
    made = Database(str(tmp_path / "p.db"))
    migrate.prepare(made)
    create_study(made, configuration(answers=12), ITEMS, is_open=True, who="test")
    yield made
    made.close()


def worker(database):
    return Sessions(database, Catalogue(database))


def study(database):
    return Catalogue(database).by_slug("which")


def answered(database, people, *, count=12, seed=0):
    """People who mostly like what has a high first coordinate; some like the second more."""
    sessions = worker(database)
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(people):
        taste = 2.0 * ITEMS.coordinates @ np.array([1.5, rng.normal()])
        session_id, _ = sessions.open(study(database), {})
        made.append(session_id)
        state = sessions.state(sessions.by_id(session_id))
        for _ in range(count):
            left, right = (ITEMS.index(state["query"][side]["id"]) for side in ("left", "right"))
            chance = 1 / (1 + np.exp(taste[right] - taste[left]))
            outcome = "left" if rng.random() < chance else "right"
            state = sessions.answer(sessions.by_id(session_id), answer_to(state["query"]["query"], outcome, 500))
    return made


def test_sessions_begin_with_the_newest_version_and_keep_it(database):
    first = answered(database, 12)
    (open_now,) = answered(database, 1, count=3)
    version, population = populations.fit(database, study(database), "ann")
    # The one that goes on is not finished, so it teaches nothing yet.
    assert (version, population.people) == (1, 12)
    (second,) = answered(database, 1, seed=5)
    assert populations.fit(database, study(database), "ann")[0] == 2
    (third,) = answered(database, 1, count=1, seed=6)
    sessions = worker(database)
    assert [sessions.by_id(one).population for one in (first[0], open_now, second, third)] == [None, None, 1, 2]
    searches = [sessions.snapshot(sessions.by_id(one)).state.search for one in (open_now, second, third)]
    assert np.all(searches[0].configuration.items.appeal == 0)
    assert np.array_equal(searches[1].configuration.items.appeal, population.items.appeal)
    assert searches[1].configuration.prior == population.prior
    assert not np.array_equal(searches[2].configuration.items.appeal, searches[1].configuration.items.appeal)
    # What most like comes first, before a question is asked.
    best = searches[1].recommend(3)[0].id
    assert ITEMS.coordinates[ITEMS.index(best), 0] > np.median(ITEMS.coordinates[:, 0])


def test_another_worker_asks_the_same_and_a_bundle_replays(database, tmp_path):
    answered(database, 10)
    populations.fit(database, study(database), "ann")
    (session_id,) = answered(database, 1, count=5, seed=8)
    states = [one.state(one.by_id(session_id)) for one in (worker(database), worker(database))]
    assert states[0] == states[1]
    content = io.BytesIO()
    bundle.write(database, study(database), content)
    path = tmp_path / "which.zip"
    path.write_bytes(content.getvalue())
    read = bundle.read(path)
    assert {version for version, _, _ in read.parts} == {None, 1}
    compared = list(bundle.replayed(read))
    assert len(compared) == 11
    assert all(one.same for one in compared)
    choices = Choices.read(path)
    assert len(choices.people) == 11
    assert choices.ids == ITEMS.ids


def test_the_coordinate_that_few_people_leave_uncertain_is_not_shown(database):
    answered(database, 4)
    _, population = populations.fit(database, study(database), "ann")
    assert population.items.d == ITEMS.d + 1
    (session_id,) = answered(database, 1, seed=9)
    sessions = worker(database)
    state = sessions.snapshot(sessions.by_id(session_id)).state
    assert state.search.configuration.items.d == ITEMS.d + 1
    assert np.shape(state.final()["covariance"]) == (ITEMS.d, ITEMS.d)
    (one,) = (
        iterate_history
        for iterate_history in history.iterate_histories(database, study(database))
        if iterate_history.row.id == session_id
    )
    assert len(results.session_result(study(database), one).map["point"]) == 2
    (row,) = (row for row in tables.rows_of(database, study(database), "estimates") if row["session"] == session_id)
    assert [name for name in row if name in ITEMS.columns] == [f"x{i}" for i in range(ITEMS.d)]


def test_without_finished_sessions_or_from_random_answers_nothing_is_learned(database):
    with pytest.raises(InvalidChoices):
        populations.fit(database, study(database), "ann")
    sessions = worker(database)
    rng = np.random.default_rng(3)
    for _ in range(6):
        session_id, _ = sessions.open(study(database), {})
        state = sessions.state(sessions.by_id(session_id))
        for _ in range(12):
            outcome = "left" if rng.random() < 0.5 else "right"
            state = sessions.answer(sessions.by_id(session_id), answer_to(state["query"]["query"], outcome, 500))
    with pytest.raises(InvalidChoices):
        populations.fit(database, study(database), "ann")
    (after,) = answered(database, 1, count=1)
    assert sessions.by_id(after).population is None


def test_the_command_learns_from_a_study_and_from_a_file(database, tmp_path, monkeypatch, capsys):
    answered(database, 10)
    database.close()
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            cli.main(list(arguments))
        said = capsys.readouterr()
        return left.value.code, said.out + said.err

    code, said = run("population", "fit", "which", "--database", str(tmp_path / "p.db"))
    assert code == 0, said
    assert "Learned from 10 people about 12 items." in said
    assert "start with version 1" in said
    assert run("export", "which", "--out", "w.zip", "--database", str(tmp_path / "p.db"))[0] == 0
    code, said = run("population", "fit", "w.zip")
    assert code == 0, said
    assert (tmp_path / "w.population.json").exists()
    code, said = run("population", "fit", "which", "--learn", "2", "--database", str(tmp_path / "p.db"))
    assert code != 0
    assert "this option applies only to files" in said
    code, said = run("population", "fit", "which", "--curvature", "auto", "--database", str(tmp_path / "p.db"))
    assert code == 2
    assert "--curvature with the study 'which'" in said
    for words in (("population", "fit", "witch"), ("export", "witch")):
        code, said = run(*words, "--database", str(tmp_path / "p.db"))
        assert code == 2
        assert "there is no study 'witch' in the database: see pairseek study list" in said


def test_items_of_an_array_are_named_by_their_row(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    np.save("i.npy", np.linspace(-1, 1, 6)[:, None])
    lines = [f"{p},{i},{i + rng.normal():.2f}" for p in range(12) for i in range(6)]
    (tmp_path / "r.csv").write_text("\n".join(["person,item,rating", *lines]))
    with pytest.raises(SystemExit) as left:
        cli.main(["population", "fit", "r.csv", "--items", "i.npy"])
    assert left.value.code == 0
    assert ps.Population.load("r.population.json").items.ids == tuple("012345")


def test_a_file_of_choices_is_never_written_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "person,item,rating\nann,tea,5\nann,milk,1\nbob,tea,2\nbob,milk,4\n"
    (tmp_path / "r.csv").write_text(text)
    (tmp_path / "i.csv").write_text("id,x\ntea,0\nmilk,1\n")
    for target, what in (("r.csv", "choices"), ("./i.csv", "items")):
        with pytest.raises(SystemExit):
            cli.main(["population", "fit", "r.csv", "--items", "i.csv", "--out", target])
        assert f"which is the file of the {what}: give another file" in capsys.readouterr().err
    assert (tmp_path / "r.csv").read_text() == text
    with pytest.raises(SystemExit):
        cli.main(["population", "fit", "r.csv", "--items", "i.csv"])
    said = capsys.readouterr().out
    # What two people chose between two things says nothing, and then nobody is said to answer by more than chance.
    assert "no more informative than random answers" in said
    assert "more than chance" not in said


def test_the_button(tmp_path, monkeypatch):
    # Here and not in another process, which takes longer.
    monkeypatch.setattr(learner, "learn_in_process", populations.learn_version)
    with served(tmp_path / "b.db", studies=[(configuration(answers=12), ITEMS)]) as visitors:
        database = visitors.service.database
        set_password(database, "ann", "a long password")
        browser = visitors.browser(headers={"accept": "text/html"})
        page = browser.get("/login")
        browser.post("/login", data={"csrf": csrf_of(page), "name": "ann", "password": "a long password"})
        page = browser.get("/studies/which")
        assert "Learn now" in page.text
        refused = browser.post("/studies/which/population", data={"csrf": csrf_of(page)})
        assert refused.status_code == 409
        assert "no finished session" in refused.text
        answered(database, 10)
        reply = browser.post("/studies/which/population", data={"csrf": csrf_of(page)})
        assert (reply.status_code, reply.headers["location"]) == (303, "/studies/which?learning=1#population")
        assert "is learning from its finished sessions" in browser.get("/studies/which?learning=1").text
        until = time.monotonic() + 120
        while "fitted a population" not in browser.get("/studies/which").text:
            assert time.monotonic() < until
            time.sleep(0.5)
        assert browser.post("/studies/which/population").status_code == 403


def test_ties_of_a_study_teach_their_width(database):
    asked = configuration(answers=12, slug="ties", offer={"tie": True})
    create_study(database, asked, ITEMS, is_open=True, who="test")
    sessions, rng = worker(database), np.random.default_rng(4)
    which = Catalogue(database).by_slug("ties")
    for _ in range(12):
        session_id, _ = sessions.open(which, {})
        state = sessions.state(sessions.by_id(session_id))
        for number in range(12):
            left, right = (ITEMS.coordinates[ITEMS.index(state["query"][side]["id"]), 0] for side in ("left", "right"))
            outcome = "tie" if number % 3 == 0 else "left" if left + 0.1 * rng.normal() > right else "right"
            state = sessions.answer(sessions.by_id(session_id), answer_to(state["query"]["query"], outcome, 500))
    _, found = populations.fit(database, which, "ann")
    # A third of the answers are ties; without them there is no width to fit.
    assert found.tie_width > 0.2


def test_what_everybody_likes_is_expected_of_a_person_too():
    items = ps.Items([[-1.0], [1.0]], ids=["plain", "liked"], appeal=[0.0, 8.0])
    prior = {"name": "gaussian", "mean": [-0.5], "covariance": [[0.01]]}
    made = configuration(prior=prior, response={"name": "logistic", "k": 2.0, "noise": "constant"})
    query = AskedPair("s", "p1", 0, "strategy", "plain", "liked", "", {})
    answered = EffectiveAnswer(query, EventRow("s", 1, "p1", "answer", "right", 900, None, None, None, "", None))
    state = SessionState(made, SessionParts.resolved(made, items), 1, (answered.answered_pair(),))
    # The person is nearer to the one and takes the other, as most do.
    assert state.search.estimate().point[0] < -0.4
    assert state.search.expect("plain", "liked").probability_left < 0.1


def test_only_what_people_said_of_their_own_teaches(tmp_path):
    made = Database(str(tmp_path / "a.db"))
    migrate.prepare(made)
    known = {"left": ITEMS.ids[0], "right": ITEMS.ids[1], "answer": ITEMS.ids[0]}
    create_study(
        made, configuration(answers=12, attention={"pairs": [known], "every": 4}), ITEMS, is_open=True, who="test"
    )
    first, second, *_ = answered(made, 15)
    simulating.simulate_session(worker(made), Gate(), study(made), np.random.default_rng(4))
    made.write(lambda connection: stored.mark(connection, first, None, "void", "left the room", "ann"))
    asked = next(row for row in tables.rows_of(made, study(made), "answers") if row["session"] == second)
    made.write(lambda connection: stored.mark(connection, second, asked["query"], "void", "a slip", "ann"))
    rows = list(tables.rows_of(made, study(made), "answers"))
    taught = [
        row for row in rows if not (row["simulated"] or row["void"] or row["undone"] or row["kind"] == "attention")
    ]
    _, population = populations.fit(made, study(made), "ann")
    made.close()
    assert population.people == 14
    assert population.provenance["pairs"] == len(taught)
    # 16 people with twelve answers, three of them checks; one person is simulated, one void, and one answer.
    assert len(rows) == 192
    assert len(taught) == 14 * 9 - (asked["kind"] != "attention")
