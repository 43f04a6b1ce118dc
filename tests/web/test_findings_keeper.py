"""Keeper of findings: one computation at a time and one that waits, however often and on how many workers it is asked.

Except in one test, what a process of low priority does is done in this process.
"""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

from helpers.serving import answer_to, configuration, some_items
from pairseek.store import findings as stored
from pairseek.store import migrate
from pairseek.store import sessions as stored_sessions
from pairseek.store.database import Database
from pairseek.web.errors import Problem
from pairseek.web.operations.processes import ProcessFailed
from pairseek.web.results import findings_keeper
from pairseek.web.results.findings import study_findings
from pairseek.web.results.findings_keeper import FindingsKeeper
from pairseek.web.results.findings_process import findings_in_process, packed_findings
from pairseek.web.sessions import forgetting
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import create_study

SECONDS = 60


class Computing:
    """Computation of findings that lasts until it is let go, and counts how often and how many at once it runs."""

    def __init__(self) -> None:
        self.go, self.begun = threading.Event(), threading.Semaphore(0)
        self.count, self.running, self.most = 0, 0, 0
        self._lock = threading.Lock()

    def __call__(self, database, study_id):
        with self._lock:
            self.count, self.running = self.count + 1, self.running + 1
            self.most = max(self.most, self.running)
        self.begun.release()
        try:
            packed = packed_findings(database, study_id)
            assert self.go.wait(SECONDS)
            return packed
        finally:
            with self._lock:
                self.running -= 1


class Scene:
    """Study in which somebody answers, and the keepers of two workers."""

    def __init__(self, url: str) -> None:
        self.databases = [Database(url) for _ in range(2)]
        migrate.prepare(self.databases[0])
        create_study(self.databases[0], configuration(answers=500), some_items(), is_open=True, who="test")
        catalogues = [Catalogue(database) for database in self.databases]
        self.study, self.sessions = catalogues[0].by_slug("which"), Sessions(self.databases[0], catalogues[0])
        self.session = self.sessions.open(self.study, {}, seed=1)[0]
        self.keepers = [FindingsKeeper(*pair) for pair in zip(self.databases, catalogues, strict=True)]
        for keeper in self.keepers:
            keeper.start()

    def answer(self) -> None:
        row = self.sessions.by_id(self.session)
        self.sessions.answer(row, answer_to(self.sessions.state(row)["query"]["query"], "left"))

    def row(self):
        return self.databases[0].read(lambda connection: stored.row_of(connection, self.study.row.id))

    def close(self) -> None:
        for keeper, database in zip(self.keepers, self.databases, strict=True):
            keeper.rounds.stop(SECONDS)
            database.close()


@pytest.fixture
def computing(monkeypatch):
    computing = Computing()
    monkeypatch.setattr(findings_keeper, "findings_in_process", computing)
    monkeypatch.setattr(findings_keeper, "_RETRY_SECONDS", 0.01)
    yield computing
    computing.go.set()


@pytest.fixture(params=["sqlite", "postgresql"])
def scene(request, tmp_path, cluster, computing):
    url = cluster.database() if request.param == "postgresql" else f"sqlite:///{tmp_path / 'k.db'}"
    with contextlib.closing(Scene(url)) as made:
        yield made
        computing.go.set()


def until_current(keeper, study, since=None) -> None:
    until = time.monotonic() + SECONDS
    while not keeper.status(study, since).is_current:
        assert time.monotonic() < until
        time.sleep(0.02)


def answers_in(findings) -> int:
    return sum(person.answers for person in findings.group.people)


def test_polls_on_two_workers_while_people_answer_cause_one_running_and_one_waiting_computation(scene, computing):
    scene.answer()
    newest = scene.keepers[0].look(scene.study)
    assert (newest.findings, newest.is_current, newest.computation) == (None, False, 1)
    assert computing.begun.acquire(timeout=SECONDS)
    for _ in range(10):
        scene.answer()
        for keeper in scene.keepers:
            assert keeper.look(scene.study).computation == 2
            assert not keeper.status(scene.study).is_current
            assert not keeper.status(scene.study, 2).is_current
    computing.go.set()
    for keeper in scene.keepers:
        until_current(keeper, scene.study, 2)
        # Every worker has the findings, whoever computed them.
        assert answers_in(keeper.look(scene.study).findings) == 11
        assert keeper.look(scene.study).is_current
    assert (computing.count, computing.most) == (2, 1)


def test_a_computation_includes_the_answers_before_its_number_was_given(scene, computing):
    computing.go.set()
    scene.answer()
    number = scene.keepers[0].look(scene.study).computation
    until_current(scene.keepers[1], scene.study, number)
    assert scene.keepers[1].status(scene.study).computed_at > scene.study.row.created_at
    assert answers_in(scene.keepers[1].look(scene.study).findings) == 1
    scene.answer()
    assert scene.keepers[0].status(scene.study, number).is_current
    assert not scene.keepers[0].status(scene.study).is_current
    # A number that nobody was given means nothing.
    assert not scene.keepers[0].status(scene.study, 10**9).is_current
    assert answers_in(scene.keepers[1].wait_for_current(scene.study)) == 2


def test_polls_of_findings_that_are_being_computed_write_nothing(scene, computing, monkeypatch):
    number = scene.keepers[0].look(scene.study).computation
    assert computing.begun.acquire(timeout=SECONDS)
    monkeypatch.setattr(scene.databases[1], "write", None)
    for _ in range(3):
        assert not scene.keepers[1].status(scene.study, number).is_current
    assert scene.row().wanted == number


def test_a_mark_and_a_deletion_make_findings_outdated(scene, computing):
    computing.go.set()
    scene.answer()
    keeper = scene.keepers[0]
    keeper.wait_for_current(scene.study)
    scene.databases[0].write(lambda c: stored_sessions.mark(c, scene.session, None, "void", "a test", "ann"))
    assert not keeper.status(scene.study).is_current
    assert keeper.wait_for_current(scene.study).group.people[0].void
    forgetting.forget_session(scene.databases[0], scene.study, scene.session, "ann")
    assert scene.keepers[1].look(scene.study).findings is None
    assert keeper.wait_for_current(scene.study).group.people == ()


def test_findings_computed_during_a_deletion_are_not_kept(scene, computing):
    keeper = scene.keepers[0]
    scene.answer()
    number = keeper.look(scene.study).computation
    assert computing.begun.acquire(timeout=SECONDS)
    # Now the computation has read the answers.
    forgetting.forget_session(scene.databases[0], scene.study, scene.session, "ann")
    computing.go.set()
    until_current(keeper, scene.study, number)
    assert keeper.look(scene.study).findings.group.people == ()


def test_a_worker_takes_over_from_one_that_was_killed(scene, computing):
    computing.go.set()
    number = scene.databases[1].write(lambda connection: stored.request(connection, scene.study.row.id))
    assert scene.databases[1].write(lambda connection: stored.begin(connection, scene.study.row.id)) == number
    # The computation has begun and will never end.
    scene.keepers[0].rounds.wake()
    until_current(scene.keepers[0], scene.study, number)


def test_failures_are_reported_but_not_those_about_a_deleted_study(scene, computing, monkeypatch):
    keeper = FindingsKeeper(scene.databases[0], Catalogue(scene.databases[0]))

    def fails(*_):
        raise ProcessFailed("no memory")

    def deletes(*_):
        forgetting.delete_study(scene.databases[0], scene.study, "ann")
        raise ProcessFailed("no study with this name")

    for other in scene.keepers:
        other.rounds.stop(SECONDS)
    monkeypatch.setattr(findings_keeper, "findings_in_process", fails)
    keeper.look(scene.study)
    with pytest.raises(ProcessFailed, match="no memory"):
        keeper.round()
    monkeypatch.setattr(findings_keeper, "findings_in_process", deletes)
    keeper.round()
    assert scene.row() == stored.FindingsRow()
    assert keeper.look(scene.study).computation == 0
    monkeypatch.setattr(findings_keeper, "_WAIT_SECONDS", 0.05)
    with pytest.raises(Problem, match="are being computed"):
        keeper.wait_for_current(scene.study)


def test_a_process_of_low_priority_computes_the_same_findings(tmp_path, monkeypatch):
    monkeypatch.setattr(findings_keeper, "findings_in_process", findings_in_process)
    monkeypatch.setattr(findings_keeper, "_WAIT_SECONDS", 4 * SECONDS)
    with contextlib.closing(Scene(f"sqlite:///{tmp_path / 'k.db'}")) as scene:
        scene.answer()
        found = scene.keepers[0].wait_for_current(scene.study)
        expected = study_findings(scene.databases[0], scene.study)
        assert found.group.people == expected.group.people
        assert str(found.careful) == str(expected.careful)
        with pytest.raises(ProcessFailed, match="there is no study"):
            findings_in_process(scene.databases[0], 99)
