"""Keeper of findings: few computations however often they are asked for, on all workers, while people answer."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

from helpers.serving import answer_to, configuration, some_items
from pairseek.store import migrate
from pairseek.store.database import Database
from pairseek.web.results import findings_keeper
from pairseek.web.results.findings import study_findings
from pairseek.web.results.findings_keeper import FindingsKeeper
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import create_study


class Computing:
    """Computation of findings that lasts until it is let go, and counts how often and how many at once it runs."""

    def __init__(self) -> None:
        self.go, self.begun = threading.Event(), threading.Semaphore(0)
        self.count, self.running, self.most = 0, 0, 0
        self._lock = threading.Lock()

    def __call__(self, database, study):
        with self._lock:
            self.count, self.running = self.count + 1, self.running + 1
            self.most = max(self.most, self.running)
        self.begun.release()
        try:
            assert self.go.wait(60)
            return study_findings(database, study)
        finally:
            with self._lock:
                self.running -= 1


class Scene:
    """Study in which somebody answers, and the keepers of two workers."""

    def __init__(self, url: str) -> None:
        self.databases = [Database(url) for _ in range(2)]
        migrate.prepare(self.databases[0])
        create_study(self.databases[0], configuration(answers=500), some_items(), is_open=True, who="test")
        catalogue = Catalogue(self.databases[0])
        self.study, self.sessions = catalogue.by_slug("which"), Sessions(self.databases[0], catalogue)
        self.session = self.sessions.open(self.study, {}, seed=1)[0]
        self.keepers = [FindingsKeeper(database) for database in self.databases]

    def answer(self) -> None:
        row = self.sessions.by_id(self.session)
        self.sessions.answer(row, answer_to(self.sessions.state(row)["query"]["query"], "left"))

    def close(self) -> None:
        for keeper, database in zip(self.keepers, self.databases, strict=True):
            keeper.close()
            database.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def scene(request, tmp_path, cluster):
    url = cluster.database() if request.param == "postgresql" else f"sqlite:///{tmp_path / 'k.db'}"
    with contextlib.closing(Scene(url)) as made:
        yield made


@pytest.fixture
def computing(monkeypatch):
    computing = Computing()
    monkeypatch.setattr(findings_keeper, "study_findings", computing)
    yield computing
    computing.go.set()


def until_current(keeper, study, since) -> None:
    until = time.monotonic() + 60
    while not keeper.look(study, since=since)[1]:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_polls_while_people_answer_cause_one_running_and_one_waiting_computation(scene, computing):
    keeper = scene.keepers[0]
    keeper.look(scene.study)
    assert computing.begun.acquire(timeout=60)
    for _ in range(20):
        scene.answer()
        assert keeper.look(scene.study) == (None, False)
    asked_at = time.time()
    computing.go.set()
    until_current(keeper, scene.study, asked_at)
    assert computing.count == 2


def test_workers_compute_findings_of_a_study_in_turn(scene, computing, monkeypatch):
    monkeypatch.setattr(findings_keeper, "_RETRY_SECONDS", 0.01)
    asked_at = time.time()
    for keeper in scene.keepers:
        keeper.look(scene.study)
    assert computing.begun.acquire(timeout=60)
    waiting = threading.Thread(target=scene.keepers[1].wait_for_current, args=(scene.study,))
    waiting.start()
    for _ in range(5):
        scene.answer()
        for keeper in scene.keepers:
            keeper.look(scene.study)
        time.sleep(0.02)
    computing.go.set()
    for keeper in scene.keepers:
        until_current(keeper, scene.study, asked_at)
    waiting.join(60)
    assert computing.most == 1


def test_findings_that_include_all_answers_until_a_time_are_current_for_it(scene):
    keeper = scene.keepers[0]
    scene.answer()
    before = time.time()
    found = keeper.wait_for_current(scene.study)
    after = time.time()
    scene.answer()
    assert keeper.look(scene.study, since=before) == (found, True)
    assert keeper.look(scene.study, since=after) == (found, False)
    assert keeper.look(scene.study) == (found, False)


def test_pages_have_findings_computed_again_only_after_a_pause(scene, computing, monkeypatch):
    keeper = scene.keepers[0]
    computing.go.set()
    keeper.wait_for_current(scene.study)
    monkeypatch.setattr(findings_keeper, "_PAUSE", 1e9)
    scene.answer()
    for _ in range(5):
        keeper.look(scene.study)
    time.sleep(0.2)
    assert computing.count == 1
    assert keeper.wait_for_current(scene.study).group.people[0].answers == 1
    assert computing.count == 2


def test_findings_computed_during_a_deletion_are_not_kept(scene, computing):
    keeper = scene.keepers[0]
    keeper.look(scene.study)
    assert computing.begun.acquire(timeout=60)
    keeper.clear_cache()
    computing.go.set()
    keeper.close()
    assert keeper._cache == {}
