"""Learning in a process of low priority: the same result as here, failures with words, no orphans, both databases."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import pairseek
from helpers.serving import answer, begin, configuration, csrf_of, served
from pairseek.errors import StoreUnavailable
from pairseek.model.items import Items
from pairseek.people.learning import MIN_SESSIONS
from pairseek.store import learning as stored_learning
from pairseek.store import migrate, studies
from pairseek.store import populations as stored
from pairseek.store.database import Database
from pairseek.web.access.auth import set_password
from pairseek.web.learning import learner, populations, similarity
from pairseek.web.learning import process as learning_process
from pairseek.web.learning.process import LearningFailed, learn_in_process
from pairseek.web.operations import processes
from pairseek.web.operations.processes import ProcessFailed
from pairseek.web.results import bundle
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import create_study

N, ANSWERS = 10, 12
PLACES = np.random.default_rng(3).standard_normal((N, 2))
THINGS = Items(ids=[f"i{k}" for k in range(N)], labels=[f"Thing {k}" for k in range(N)])
SECONDS = 240


def asked(query):
    return (int(query[side]["id"][1:]) for side in ("left", "right"))


def liking(person):
    """Return the answers of somebody with an ideal point, who likes the last things most."""
    point = np.random.default_rng(person).standard_normal(2)
    utility = 0.5 * np.arange(N) - np.sum((PLACES - point) ** 2, axis=1)

    def say(query):
        left, right = asked(query)
        return "left" if utility[left] > utility[right] else "right"

    return say


def nearer(query):
    anchor = PLACES[int(query["anchor"]["id"][1:])]
    left, right = (np.sum((anchor - PLACES[item]) ** 2) for item in asked(query))
    return "left" if left <= right else "right"


def visited(visitors, slug, say, count=ANSWERS):
    """Let one person answer through the pages; return the browser and the last state."""
    browser = visitors.browser()
    state = begin(browser, slug)
    for _ in range(count):
        reply = answer(browser, state, say(state["query"]), slug)
        assert reply.status_code == 200, reply.text
        state = reply.json()
    return browser, state


def study(database, slug):
    return Catalogue(database).by_slug(slug)


def awaited(database, slug, version):
    """Wait until a study has learned a version by itself."""
    until = time.monotonic() + SECONDS
    number = study(database, slug).row.id
    while version not in database.read(lambda connection: stored.versions(connection, number)):
        failure = database.read(lambda connection: stored_learning.state(connection, number)).failure
        assert failure is None, failure
        assert time.monotonic() < until, "the study did not learn"
        time.sleep(0.2)


def replays(database, slug, path):
    content = io.BytesIO()
    bundle.write(database, study(database, slug), content)
    path.write_bytes(content.getvalue())
    compared = list(bundle.replayed(bundle.read(path)))
    return len(compared), all(one.same for one in compared)


def owner(visitors):
    set_password(visitors.service.database, "ann", "a long password")
    browser = visitors.browser(headers={"accept": "text/html"}, follow_redirects=True)
    page = browser.get("/login")
    browser.post("/login", data={"csrf": csrf_of(page), "name": "ann", "password": "a long password"})
    return browser


@pytest.mark.long
def test_a_list_of_things_learns_by_itself_on_both_databases(database_url, tmp_path):
    with served(database_url, studies=[(configuration(answers=ANSWERS), THINGS)]) as visitors:
        database = visitors.service.database
        for person in range(MIN_SESSIONS):
            visited(visitors, "which", liking(person))
        awaited(database, "which", 1)
        browser, _ = visited(visitors, "which", liking(99))
        mine = browser.get("/s/which/mine").json()["session"]
        sessions = visitors.service.sessions
        assert sessions.by_id(mine).population == 1
        assert "strategy" in {pair.kind for pair in sessions.snapshot(sessions.by_id(mine)).done}
        page = owner(visitors).get("/studies/which")
        assert "Version 1 predicts" in page.text
        assert replays(database, "which", tmp_path / "which.zip") == (MIN_SESSIONS + 1, True)
        # The process has learned what this one learns, to the last bit.
        here = populations.learn_version(database, study(database, "which"))
        apart = learn_in_process(database, study(database, "which"))
        assert (apart.content, apart.sessions, apart.note) == (here.content, here.sessions, here.note)
        assert {**apart.facts, "seconds": 0} == {**here.facts, "seconds": 0}


@pytest.mark.long
def test_a_similarity_study_goes_the_whole_way_on_both_databases(database_url, tmp_path):
    settings = configuration(kind="similarity", slug="alike", answers=ANSWERS, random=0.2)
    with served(database_url, studies=[(settings, THINGS)]) as visitors:
        database = visitors.service.database
        visited(visitors, "alike", nearer)
        awaited(database, "alike", 1)
        for _ in range(4):
            visited(visitors, "alike", nearer)
        awaited(database, "alike", 2)
        browser = owner(visitors)
        page = browser.get("/studies/alike")
        assert "judgements" in page.text
        pairseek.set_thread_count(1)
        try:
            here = similarity.learn_version(database, study(database, "alike"))
        finally:
            pairseek.set_thread_count(None)
        apart = learn_in_process(database, study(database, "alike"))
        assert (apart.content, apart.sessions, apart.facts) == (here.content, here.sessions, here.facts)
        count, same = replays(database, "alike", tmp_path / "alike.zip")
        assert (count, same) == (5, True)
        made = browser.post("/studies/alike/search", data={"csrf": csrf_of(page)})
        assert made.url.path == "/studies/alike-search"
        target = np.argmin(np.sum((PLACES - PLACES[3]) ** 2, axis=1))

        def towards(query):
            left, right = (np.sum((PLACES[item] - PLACES[target]) ** 2) for item in asked(query))
            return "left" if left <= right else "right"

        _, state = visited(visitors, "alike-search", towards, 8)
        assert state["progress"]["answered"] == 8


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="the test reads the processes of Linux")
def test_the_process_ends_with_the_one_that_started_it(tmp_path):
    url = f"sqlite:///{tmp_path / 'o.db'}"
    with closing(Database(url)) as database:
        migrate.prepare(database)
        create_study(database, configuration(), THINGS, is_open=True, who="test")
    # The second process announces itself and then learns for ever.
    script = (
        "import sys; from pairseek.web.learning import process as p; from pairseek.web.operations import processes\n"
        "def waits(*_):\n    import os, time; sys.stderr.write(f'{os.getpid()}\\n'); time.sleep(600)\n"
        "p.populations.learn_version = waits\nexec(processes._PROGRAM.format(module=p.__name__))"
    )
    parent = (
        f"import sys; from pairseek.web.operations import processes as p\n"
        f"task = {{'database': {url!r}, 'study': 'which'}}\n"
        f"import subprocess, tempfile; tempfile.TemporaryFile = lambda: open({str(tmp_path / 'errors')!r}, 'w+b')\n"
        f"p._run_process([sys.executable, '-c', {script!r}], task)"
    )
    first = subprocess.Popen([sys.executable, "-c", parent])
    try:
        until = time.monotonic() + SECONDS
        while not (tmp_path / "errors").exists() or not (tmp_path / "errors").read_text().strip():
            assert first.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        second = int((tmp_path / "errors").read_text().split()[0])
        assert Path(f"/proc/{second}").exists()
        assert os.getpriority(os.PRIO_PROCESS, second) > os.getpriority(os.PRIO_PROCESS, first.pid)
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    while Path(f"/proc/{second}").exists():
        assert time.monotonic() < until, "the process outlives the one that started it"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("raise RuntimeError('no memory')", "the process ended with exit code 1: RuntimeError: no memory"),
        ("import os; os.kill(os.getpid(), 9)", "the process ended with exit code -9: the process was killed"),
        ("print('hello')", "learning has failed: Expecting value"),
    ],
)
def test_a_process_that_fails_is_told_to_the_owner(script, words, tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_PROGRAM", script)
    with closing(Database(str(tmp_path / "t.db"))) as database:
        migrate.prepare(database)
        create_study(database, configuration(), THINGS, is_open=True, who="test")
        with pytest.raises(LearningFailed, match=words):
            learn_in_process(database, study(database, "which"))


def test_the_process_imports_nothing_from_the_working_directory(tmp_path, monkeypatch):
    """A server may be started in a folder that others can write to."""
    trap = (
        f"open({str(tmp_path / 'executed')!r}, 'w').close()\nraise SystemExit('imported from the working directory')\n"
    )
    for name in ("yaml", "json", "numpy"):
        (tmp_path / f"{name}.py").write_text(trap)
    url = f"sqlite:///{tmp_path / 'o.db'}"
    with closing(Database(url)) as database:
        migrate.prepare(database)
        create_study(database, configuration(), THINGS, is_open=True, who="test")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(LearningFailed):
            learn_in_process(database, study(database, "which"))
    assert not (tmp_path / "executed").exists()


def test_a_process_that_cannot_be_started_and_one_that_takes_too_long(monkeypatch):
    with pytest.raises(ProcessFailed, match="could not be used"):
        processes._run_process(["/no/such/program"], {})
    monkeypatch.setattr(processes, "_MAX_SECONDS", 0.2)
    with pytest.raises(ProcessFailed, match="the process ended with exit code -9"):
        processes._run_process([sys.executable, "-c", "import time; time.sleep(60)"], {})


class TestHere:
    """What the process does, in this one."""

    @pytest.fixture
    def database(self, tmp_path):
        with closing(Database(str(tmp_path / "t.db"))) as made:
            migrate.prepare(made)
            create_study(made, configuration(), THINGS, is_open=True, who="test")
            yield made

    def test_errors_come_back_as_data(self, database):
        task = {"database": database.url.render_as_string(hide_password=False), "study": "which"}
        assert learning_process._learned(task) == {
            "error": "the study 'which' has no finished session with an answer: a population needs two people",
            "unavailable": False,
        }
        assert "no study with this name" in learning_process._learned({**task, "study": "nobody"})["error"]

    def test_a_database_that_is_away_is_tried_again(self, database, monkeypatch):
        answers = {"error": "the database does not answer", "unavailable": True}
        monkeypatch.setattr(learning_process, "run_in_process", lambda *_: json.dumps(answers))
        with pytest.raises(StoreUnavailable):
            populations.learn_now(database, study(database, "which"), "ann", learn_in_process)
        state = database.read(lambda connection: stored_learning.state(connection, 1))
        assert (state.tried, state.failure) == (None, None)

    def test_a_request_waits_for_the_learning_under_way(self, database, monkeypatch):
        calls = []

        def fails(*_):
            calls.append(1)
            raise LearningFailed("not today")

        monkeypatch.setattr(learner, "learn_in_process", fails)
        one, which = learner.Learner(database, Catalogue(database)), study(database, "which")
        one.request(which, "ann")
        with populations.try_lock(database, populations.lock_name(which)) as held:
            assert held
            one.round()
        assert not calls
        one.round()
        one.round()
        assert len(calls) == 1
        assert database.read(lambda connection: stored_learning.state(connection, 1)).failure == "not today"
        assert [row.slug for row in database.read(studies.all_studies)] == ["which"]
