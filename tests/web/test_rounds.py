"""Background work of the service: no error ends it, and readiness knows of errors that persist."""

import ast
import re
import threading
import time
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from helpers.serving import begin, configuration, served, some_items
from pairseek import web
from pairseek.errors import StoreUnavailable
from pairseek.store import deletion, meta
from pairseek.store.database import Database
from pairseek.web.operations import rounds
from pairseek.web.operations.rounds import Rounds, attempt_all
from pairseek.web.sessions import forgetting, housekeeping

VACUUMING = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'VACUUM%' AND state = 'active'"
WEB = Path(web.__file__).parent


def until(condition, seconds=30):
    """Wait for a condition, and return its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)
    return value


def ready(visitors):
    reply = visitors.browser().get("/readyz")
    return reply.status_code, reply.json()


def forget(visitors, name):
    """Let someone begin, and forget them, as a researcher does."""
    begin(visitors.browser(), participant=name)
    service = visitors.service
    forgetting.forget(service.database, service.catalogue.by_slug("which"), name, "ann")
    service.housekeeper.clear_soon()


def counted(visitors, name):
    """Return how often this background work has failed, by the metrics of the service."""
    metrics = visitors.browser().get("/metrics").text
    line = re.search(rf'^pairseek_background_failures_total{{work="{name}"}} (\S+)', metrics, re.MULTILINE)
    return float(line[1]) if line else 0.0


def unscrubbed(visitors):
    return visitors.service.database.read(deletion.unscrubbed_since)


@pytest.fixture
def quick(monkeypatch):
    """Housekeeping in short rounds."""
    monkeypatch.setattr(housekeeping, "_ROUND_SECONDS", 0.05)
    monkeypatch.setattr(housekeeping, "_SCRUB_PAUSE_SECONDS", 0.05)
    # A retry pauses for as long as the round.
    monkeypatch.setattr(rounds, "_MAX_PAUSE_SECONDS", 0.2)


@pytest.mark.parametrize("stroke", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_vacuum_that_is_cancelled_is_repeated_and_later_deletions_are_scrubbed(cluster, quick, stroke):
    url = cluster.database()
    with (
        served(url, studies=[(configuration(), some_items())]) as visitors,
        psycopg.connect(url, autocommit=True) as admin,
        psycopg.connect(url) as locker,
    ):
        # VACUUM waits for this table, and is met there.
        admin.execute("CREATE TABLE aside (number integer)")
        locker.execute("LOCK TABLE aside IN ACCESS EXCLUSIVE MODE")
        for name in ("ann", "bob"):
            forget(visitors, name)
            pid = until(lambda: admin.execute(VACUUMING).fetchone())[0]
            admin.execute(f"SELECT {stroke}({pid})")
            until(lambda pid=pid: admin.execute(f"{VACUUMING} AND pid = {pid}").fetchone() is None)
            assert ready(visitors)[0] == 200
        problem = until(lambda: ready(visitors)[1].get("problems") or _strike(admin, stroke))
        assert problem == ["traces of deleted data could not be removed 3 times in a row"] or "4 times" in problem[0]
        assert counted(visitors, "housekeeping") >= 3
        locker.rollback()
        until(lambda: unscrubbed(visitors) is None)
        # The round that has removed the traces ends a moment later, and readiness hears of it then.
        until(lambda: ready(visitors) == (200, {"status": "ready"}))
        forget(visitors, "cleo")
        until(lambda: unscrubbed(visitors) is None)


def _strike(admin, stroke):
    row = admin.execute(VACUUMING).fetchone()
    if row:
        admin.execute(f"SELECT {stroke}({row[0]})")


@pytest.mark.parametrize("stroke", ["pg_cancel_backend", "pg_terminate_backend"])
def test_errors_of_the_driver_come_out_as_those_of_the_store(cluster, stroke):
    url = cluster.database()
    database = Database(url)
    with psycopg.connect(url, autocommit=True) as admin:

        def struck(connection):
            pid = connection.execute(sa.text("SELECT pg_backend_pid()")).scalar()
            threading.Timer(0.2, lambda: admin.execute(f"SELECT {stroke}({pid})")).start()
            connection.execute(sa.text("SELECT pg_sleep(30)"))

        def transaction(*, writes):
            with database.transaction(writes=writes) as connection:
                struck(connection)

        for writes in (True, False):
            with pytest.raises(StoreUnavailable):
                transaction(writes=writes)
        if stroke == "pg_cancel_backend":
            for attempt in (database.read, database.write):
                with pytest.raises(StoreUnavailable):
                    attempt(struck)
    database.close()


def test_faults_of_sqlite_are_survived_and_shown(tmp_path, quick):
    with served(tmp_path / "s.db", studies=[(configuration(), some_items())]) as visitors:
        service = visitors.service
        begin(visitors.browser())
        service.database.write(lambda c: c.execute(sa.text("ALTER TABLE rates RENAME TO gone")))
        service.database.write(lambda c: meta.put(c, "housekeeping_at", "2000-01-01T00:00:00.000000Z"))
        service.housekeeper._next_check = 0.0
        status, said = until(lambda: (found := ready(visitors))[1].get("status") == "degraded" and found)
        assert status == 200
        assert re.fullmatch(
            r"housekeeping failed \d+ times in a row: OperationalError|.*StoreUnavailable", said["problems"][0]
        )
        # Scrubbing goes on although the rest of housekeeping fails.
        name = visitors.service.database.read(lambda c: c.execute(sa.text("SELECT id FROM sessions")).scalar())
        forgetting.forget_session(service.database, service.catalogue.by_slug("which"), name, "ann")
        service.housekeeper.clear_soon()
        until(lambda: unscrubbed(visitors) is None)
        service.database.write(lambda c: c.execute(sa.text("ALTER TABLE gone RENAME TO rates")))
        until(lambda: ready(visitors) == (200, {"status": "ready"}))


WORK = ["housekeeping", "learning", "prefetch"]


def running(service):
    return {
        work.name: work
        for work in (
            service.housekeeper.rounds,
            service.learner.rounds,
            service.prefetcher.rounds,
        )
    }


@pytest.mark.parametrize("error", [ValueError("odd"), psycopg.errors.QueryCanceled(), MemoryError()])
@pytest.mark.parametrize("name", WORK)
def test_any_error_is_survived_and_shown_by_readiness_until_it_is_over(tmp_path, monkeypatch, name, error):
    monkeypatch.setattr(rounds, "_MAX_PAUSE_SECONDS", 0.05)
    with served(tmp_path / "s.db", prefetch=True) as visitors:
        work = running(visitors.service)[name]
        usual, fails = work._step, True

        def step():
            if fails:
                raise error
            usual()

        monkeypatch.setattr(work, "_step", step)
        monkeypatch.setattr(work, "_seconds", 0.02)
        work.wake()
        status, said = until(lambda: (found := ready(visitors))[1].get("status") == "degraded" and found)
        assert status == 200
        assert re.fullmatch(rf"{name} failed \d+ times in a row: {type(error).__name__}", said["problems"][0])
        assert counted(visitors, name) >= 1
        fails = False
        until(lambda: ready(visitors) == (200, {"status": "ready"}))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("name", WORK)
def test_a_worker_whose_thread_has_ended_is_not_ready(tmp_path, monkeypatch, name):
    with served(tmp_path / "s.db", prefetch=True) as visitors:
        work = running(visitors.service)[name]

        def step():
            raise SystemExit

        monkeypatch.setattr(work, "_step", step)
        monkeypatch.setattr(work, "_seconds", 0.02)
        work.wake()
        until(lambda: ready(visitors)[0] == 503)
        error = ready(visitors)[1]["error"]
        assert error["code"] == "background_ended"
        assert f"{name} has ended" in error["message"]


def test_single_tasks_are_logged_whatever_they_raise(tmp_path, caplog):
    with served(tmp_path / "s.db") as visitors:
        done = threading.Event()
        visitors.service.run_later(lambda: 1 / 0)
        visitors.service.run_later(done.set)
        assert done.wait(10)
    assert [record.facts["work"] for record in caplog.records if record.exc_info] == ["task"]


def test_a_failing_round_pauses_longer_each_time_and_a_wake_up_does_not_shorten_that():
    times, pauses = [], (0.05, 0.1, 0.2)

    def step():
        times.append(time.monotonic())
        raise ValueError

    work = Rounds("odd", 0.05, step)
    work.start()
    while len(times) <= len(pauses):
        work.wake()
        time.sleep(0.005)
    work.stop(5.0)
    for pause, first, second in zip(pauses, times, times[1:], strict=False):
        assert second - first >= pause
    assert not work.has_died


def test_a_step_that_fails_keeps_no_other_from_its_turn(caplog):
    done = []

    def fail(name):
        done.append(name)
        raise ValueError(name)

    with pytest.raises(ValueError, match="a"):
        attempt_all([lambda: fail("a"), lambda: done.append("b"), lambda: fail("c"), lambda: done.append("d")])
    assert done == ["a", "b", "c", "d"]
    assert len(caplog.records) == 1


def test_every_thread_of_the_service_that_repeats_something_is_one_of_rounds():
    """Others would have to survive errors, and be known to readiness, by themselves."""
    threads = {}
    for path in WEB.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
                "Thread",
                "ThreadPoolExecutor",
            ):
                threads[str(path.relative_to(WEB))] = threads.get(str(path.relative_to(WEB)), 0) + 1
    # Server: waits for the end of the first process. The others: tasks of requests, logged.
    assert threads == {
        "operations/rounds.py": 1,
        "operations/readiness.py": 1,
        "server.py": 1,
        "service.py": 4,
    }
