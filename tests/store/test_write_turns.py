"""Turns of writers to SQLite: threads and processes exclude each other, and nobody waits for a process that is gone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time

import pytest

import pairseek.store.write_turns as turns
from pairseek.store.database import Database
from pairseek.store.write_turns import WriteTurns

HOLDS = """
import sys
from pathlib import Path
from pairseek.store.write_turns import WriteTurns
with WriteTurns(Path(sys.argv[1])):
    print("holds", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def database(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def other(database):
    """Another process, which has its turn until it is killed or its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "holds\n"
        yield process
        process.kill()


def take_in_thread(mine):
    """Start to take a turn; return an event that is set once it is taken, and an event that ends it."""
    taken, end = threading.Event(), threading.Event()

    def take() -> None:
        with mine:
            taken.set()
            end.wait(30)

    threading.Thread(target=take, daemon=True).start()
    return taken, end


def test_one_thread_after_the_other(database):
    mine = WriteTurns(database)
    first, end_first = take_in_thread(mine)
    assert first.wait(30)
    second, end_second = take_in_thread(mine)
    assert not second.wait(0.05)
    end_first.set()
    assert second.wait(30)
    end_second.set()


@pytest.mark.skipif(turns.fcntl is None, reason="this system has no locks of files")
class TestProcesses:
    @pytest.mark.parametrize("how", ["ends", "is killed"])
    def test_a_turn_begins_when_the_other_process_ends_its_own(self, database, other, monkeypatch, how):
        monkeypatch.setattr(turns, "_MAX_WAIT_SECONDS", 60.0)
        taken, end = take_in_thread(WriteTurns(database))
        assert not taken.wait(0.2)
        other.kill() if how == "is killed" else other.stdin.close()
        assert taken.wait(30)
        end.set()

    def test_who_has_waited_long_goes_on_without_and_frees_nothing(self, database, other, monkeypatch):
        monkeypatch.setattr(turns, "_MAX_WAIT_SECONDS", 0.1)
        mine = WriteTurns(database)
        with mine:
            pass
        monkeypatch.setattr(turns, "_MAX_WAIT_SECONDS", 60.0)
        taken, end = take_in_thread(WriteTurns(database))
        assert not taken.wait(0.2)
        other.stdin.close()
        assert taken.wait(30)
        end.set()

    def test_a_folder_that_cannot_be_opened_is_no_obstacle(self, tmp_path):
        with WriteTurns(tmp_path / "missing" / "study.db"):
            assert not (tmp_path / "missing").exists()

    def test_only_the_user_of_the_database_can_delay_its_writers(self, database):
        # Another user may open the folder, and whoever opens a file may lock it.
        folder = os.open(database.parent, os.O_RDONLY)
        turns.fcntl.flock(folder, turns.fcntl.LOCK_EX)
        mine, began = WriteTurns(database), time.monotonic()
        with mine:
            assert mine._held
        os.close(folder)
        mine.close()
        assert time.monotonic() - began < turns._MAX_WAIT_SECONDS
        assert stat.S_IMODE((database.parent / "study.db-turns.lock").stat().st_mode) == 0o600

    def test_a_link_in_place_of_the_lock_file_is_not_followed(self, database):
        (database.parent / "study.db-turns.lock").symlink_to(database.parent / "elsewhere")
        with WriteTurns(database):
            assert not (database.parent / "elsewhere").exists()

    def test_a_closed_one_is_opened_again(self, database):
        mine = WriteTurns(database)
        for _ in range(2):
            with mine:
                assert mine._held
            mine.close()
        mine.close()


@pytest.mark.skipif(turns.fcntl is None, reason="this system has no locks of files")
def test_an_error_within_a_write_ends_the_turn(tmp_path):
    path = tmp_path / "study.db"
    database, mine = Database(str(path)), WriteTurns(path)

    def fails(_):
        handle = os.open(f"{path}-turns.lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            turns.fcntl.flock(handle, turns.fcntl.LOCK_EX | turns.fcntl.LOCK_NB)
        os.close(handle)
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            database.write(fails)
        with mine:
            assert mine._held
    database.close()
    mine.close()
