"""Tasks of which only one may run at a time across processes and servers."""

import os
import signal
import subprocess
import sys

import pytest
import sqlalchemy as sa

from pairseek.errors import StoreUnavailable
from pairseek.store import locks, migrate
from pairseek.store.database import Database

HOLDER = """
import sys, time
from pairseek.store import locks
from pairseek.store.database import Database
with locks.try_lock(Database(sys.argv[1]), "learning") as held:
    print(held, flush=True)
    time.sleep(60)
"""

STARTING = """
import sys
from pairseek.store import migrate
from pairseek.store.database import Database
sys.stdin.read()
migrate.prepare(Database(sys.argv[1]))
"""


@pytest.fixture
def database(database_url):
    made = Database(database_url)
    migrate.prepare(made)
    yield made
    made.close()


def test_one_at_a_time_may_run_a_task(database, database_url):
    other = Database(database_url)
    with locks.try_lock(database, "learning") as mine:
        assert mine
        with locks.try_lock(other, "learning") as theirs, locks.try_lock(database, "learning") as again:
            assert not theirs
            assert not again
        with locks.try_lock(other, "housekeeping") as unrelated:
            assert unrelated
    with locks.try_lock(other, "learning") as theirs:
        assert theirs
    other.close()


def test_an_error_releases_the_lock(database, database_url):
    with pytest.raises(ZeroDivisionError), locks.try_lock(database, "learning"):
        1 / 0  # noqa: B018
    other = Database(database_url)
    with locks.try_lock(other, "learning") as held:
        assert held
    other.close()


def test_the_lock_of_a_killed_process_is_free(database, database_url):
    command = [sys.executable, "-c", HOLDER, database_url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as holder:
        assert holder.stdout.readline() == "True\n"
        with locks.try_lock(database, "learning") as held:
            assert not held
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    for _ in range(100):
        with locks.try_lock(database, "learning") as held:
            if held:
                break
    else:
        pytest.fail("the lock outlives its process")


def test_a_lost_connection_does_no_harm_to_the_task(cluster):
    database = Database(cluster.database())
    with locks.try_lock(database, "learning") as held:
        assert held
        admin = Database(str(database.url.render_as_string(hide_password=False)))
        ended = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        admin.read(lambda connection: connection.execute(sa.text(ended)).all())
        admin.close()
    with locks.try_lock(database, "learning") as held:
        assert held
    database.close()


def test_without_a_database_there_is_no_lock():
    database = Database("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(StoreUnavailable), locks.try_lock(database, "learning"):
        pass


def test_servers_that_start_together_on_an_empty_database_create_the_tables_once(cluster):
    url = cluster.database()
    # Processes, because the environment of migrations belongs to a process.
    starting = [subprocess.Popen([sys.executable, "-c", STARTING, url], stdin=subprocess.PIPE) for _ in range(2)]
    for one in starting:
        one.stdin.close()
    assert [one.wait(timeout=120) for one in starting] == [0, 0]
    database = Database(url)
    assert migrate.current_version(database) == migrate.newest_version()
    database.close()
