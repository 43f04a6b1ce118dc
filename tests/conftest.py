"""What all tests share: the profile of hypothesis, the optional shared data, and the number of threads."""

from __future__ import annotations

import faulthandler
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import pairseek
from helpers.browsers import browser, visit  # noqa: F401

# The same examples in every run, on any machine, however loaded.
settings.register_profile(
    "pairseek",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=int(os.environ.get("PAIRSEEK_TEST_EXAMPLES", "60")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("pairseek")


def shared_folder() -> Path | None:
    """The folder with ``data/`` and ``reference/``: PAIRSEEK_DATA, or ``shared`` beside the checkout."""
    named = os.environ.get("PAIRSEEK_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    return folder if (folder / "reference" / "stan-posteriors.json").is_file() else None


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    """A thread or process that a test left behind is told by its stack, instead of keeping the run from ending."""
    # One of several workers waits here for the others.
    if not hasattr(config, "workerinput"):
        faulthandler.dump_traceback_later(60, exit=True, file=sys.__stderr__)


def pytest_report_header() -> str:
    folder = shared_folder()
    if folder is None:
        return "pairseek: shared data not found (set PAIRSEEK_DATA); synthetic checks stand in for it"
    return f"pairseek: shared data found in {folder}"


@pytest.fixture(scope="session")
def shared() -> Path | None:
    """The shared data, or None. A test that asks for it asserts something either way."""
    return shared_folder()


@pytest.fixture
def on_threads():
    """``on_threads(count, function)`` calls the function with that many threads; the setting is put back after."""

    def call(count, function):
        pairseek.set_thread_count(count)
        try:
            return function()
        finally:
            pairseek.set_thread_count(None)

    return call


@pytest.fixture(scope="session")
def cluster():
    """A PostgreSQL of our own."""
    from helpers import postgres

    with postgres.cluster() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """The address of an empty database, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return request.getfixturevalue("cluster").database()


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder: exit code, output, errors."""
    from pairseek.cli import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run
