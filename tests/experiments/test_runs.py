"""Runs in processes and on a cluster: resumed after kills and a full disk, and refused."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import psutil
import pytest

import pairseek as ps
from pairseek.errors import InvalidFile, InvalidParameter, PairseekError
from pairseek.experiments import Contender, Results, Task, read_record, read_specification, run, to_toml
from pairseek.experiments.runs import cluster as cluster_module
from pairseek.experiments.runs import processes
from pairseek.experiments.runs.journal import JOURNAL_FILE, RUN_FILE, ResultsFolder, read_journal

SPEC = read_record(
    {
        "name": "small",
        "data": "synthetic",
        "dimension": 2,
        "subsample": 60,
        "response": {"k": "published"},
        "queries": 4,
        "trials": 3,
        "samples": 200,
        "rate": 0.2,
        "metrics": ["squared_error", "posterior_trace"],
        "strategies": ["infogain", "random"],
    }
)


@dataclass(frozen=True)
class Failing:
    """A strategy that fails."""

    name: ClassVar[str] = "failing"

    def score(self, candidates, belief):
        raise ZeroDivisionError("no such thing")


@dataclass(frozen=True)
class Deadly:
    """A strategy that kills its process on first use."""

    marker: str
    name: ClassVar[str] = "deadly"

    def score(self, candidates, belief):
        try:
            Path(self.marker).touch(exist_ok=False)
        except FileExistsError:
            return np.zeros(len(candidates))
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Folder of a run without interruptions."""
    folder = tmp_path_factory.mktemp("undisturbed") / "results"
    run(SPEC, folder)
    return folder


class TestRunning:
    def test_it_leaves_table_specification_version_machine_and_durations(self, undisturbed):
        record = json.loads((undisturbed / RUN_FILE).read_text())
        (session,) = record["sessions"]
        assert record["pairseek"] == ps.__version__
        assert (session["trials_run"], session["jobs"]) == (6, 1)
        assert session["seconds"] > 0
        assert session["cores"] == os.cpu_count()
        assert (undisturbed / "specification.toml").read_text() == to_toml(SPEC)
        assert len((undisturbed / "table.csv").read_text().splitlines()) == 1 + 2 * 3 * 5
        assert len((undisturbed / "durations.csv").read_text().splitlines()) == 1 + 2 * 3 * 5

    def test_a_finished_folder_is_read_and_not_run_again(self, undisturbed):
        table = (undisturbed / "table.csv").read_bytes()
        again = run(SPEC, undisturbed)
        assert json.loads((undisturbed / RUN_FILE).read_text())["sessions"][-1]["trials_run"] == 0
        assert (undisturbed / "table.csv").read_bytes() == table
        assert np.array_equal(Results.read(undisturbed).values, again.values)

    def test_the_table_is_the_same_for_any_number_of_jobs(self, undisturbed, tmp_path):
        statuses = []
        run(SPEC, tmp_path / "two", jobs=2, progress=statuses.append)
        assert (tmp_path / "two" / "table.csv").read_bytes() == (undisturbed / "table.csv").read_bytes()
        assert statuses[0].done == (0, 0)
        assert statuses[-1].done == (3, 3)
        assert statuses[-1].total == 3
        assert len(statuses) == 7

    def test_workers_use_one_thread(self, tmp_path):
        before = dict(os.environ)
        spec = replace(SPEC, strategies=(Contender(Counting(str(tmp_path / "threads"))),), trials=1)
        run(spec, tmp_path / "out")
        assert (tmp_path / "threads").read_text() == "1 1 1"
        assert dict(os.environ) == before

    def test_a_run_can_be_extended_but_not_shortened(self, undisturbed, tmp_path):
        run(replace(SPEC, trials=1), tmp_path / "out")
        results = run(SPEC, tmp_path / "out")
        assert json.loads((tmp_path / "out" / RUN_FILE).read_text())["sessions"][-1]["trials_run"] == 4
        assert results.values.shape[2] == 3
        assert (tmp_path / "out" / "table.csv").read_bytes() == (undisturbed / "table.csv").read_bytes()
        with pytest.raises(InvalidParameter, match="is for 3 trials, 2 were requested"):
            run(replace(SPEC, trials=2), tmp_path / "out")

    def test_an_error_names_its_trial_and_keeps_finished_trials(self, tmp_path):
        spec = replace(SPEC, strategies=(SPEC.strategies[1], Contender(Failing())))
        with pytest.raises(
            PairseekError, match=r"trial 0 of Failing in setting 'simulation' failed: ZeroDivisionError"
        ):
            run(spec, tmp_path)
        assert Task(0, 0, 0) in read_journal(tmp_path / JOURNAL_FILE)

    def test_a_script_without_a_main_guard_is_refused_before_it_starts_workers(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(
            "import pairseek as ps\n"
            "from pairseek.experiments import Contender, Setting, Specification, run\n"
            "print('begins')\n"
            "def work():\n"
            "    setting = Setting(data=ps.datasets.colours(), scaled=False, prior=None)\n"
            "    spec = Specification('mine', (setting,), (Contender(ps.Random()),), queries=1, trials=1)\n"
            "    run(spec, 'out')\n"
            "work()\n"
        )
        ended = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout) == (1, "begins\n")
        assert "script.py, line 8, starts worker processes" in ended.stderr
        assert 'below `if __name__ == "__main__":`' in ended.stderr
        assert not (tmp_path / "out").exists()

    def test_a_strategy_in_a_module_beside_the_specification_is_found_by_workers_too(self, tmp_path):
        (tmp_path / "beside_it.py").write_text(
            "from dataclasses import dataclass\n"
            "from typing import ClassVar\n"
            "@dataclass(frozen=True)\n"
            "class Widest:\n"
            "    name: ClassVar[str] = 'widest'\n"
            "    def score(self, candidates, belief):\n"
            "        return candidates.variance\n"
        )
        (tmp_path / "mine.toml").write_text(
            "data = 'colours'\nqueries = 2\ntrials = 1\nstrategies = ['beside_it:Widest']\n"
        )
        results = run(read_specification(tmp_path / "mine.toml"), tmp_path / "out")
        assert np.isfinite(results.values).all()

    def test_a_worker_that_dies_is_replaced(self, tmp_path):
        spec = replace(SPEC, strategies=(Contender(Deadly(str(tmp_path / "died"))),), trials=2)
        results = run(spec, tmp_path / "out", jobs=2)
        assert (tmp_path / "died").exists()
        assert np.isfinite(results.values).all()
        # A leftover worker would keep this process alive.
        for child in multiprocessing.active_children():
            child.join(10)
        assert multiprocessing.active_children() == []


@dataclass(frozen=True)
class Counting:
    """A strategy that records how many threads it may use."""

    marker: str
    name: ClassVar[str] = "counting"

    def score(self, candidates, belief):
        from pairseek.numerics.parallel import thread_count

        counts = [thread_count(), os.environ["OMP_NUM_THREADS"], os.environ["OPENBLAS_NUM_THREADS"]]
        Path(self.marker).write_text(" ".join(map(str, counts)))
        return np.zeros(len(candidates))


INTERACTIVE = """
import sys
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
import pairseek as ps
from pairseek.experiments import Contender, Setting, Specification, run

@dataclass(frozen=True)
class Mine:
    name: ClassVar[str] = "mine"

    def score(self, candidates, belief):
        return np.arange(len(candidates))

items = ps.Items(np.random.default_rng(0).normal(size=(30, 2)))
spec = Specification("own", (Setting("own", items, prior=None),), (Contender(Mine()),), queries=2, trials=2, rate=None)
if sys.argv[2] == "without":
    sys.modules["cloudpickle"] = None
print(run(spec, sys.argv[1], jobs=2).values.shape)
"""


class TestCustomParts:
    """Strategies that workers cannot import by name."""

    def interactive(self, tmp_path, cloudpickle):
        command = [sys.executable, "-c", INTERACTIVE, str(tmp_path / "out"), cloudpickle]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def test_a_strategy_of_a_notebook_runs_in_several_processes(self, tmp_path):
        done = self.interactive(tmp_path, "with")
        assert done.stdout == "(1, 1, 2, 3, 2)\n", done.stderr

    def test_without_cloudpickle_it_is_refused_with_the_reason(self, tmp_path):
        done = self.interactive(tmp_path, "without")
        assert done.returncode == 1
        assert "cannot be sent to worker processes (Mine is defined in an interactive session)" in done.stderr
        assert "pip install cloudpickle" in done.stderr

    def test_a_strategy_defined_in_a_function(self, tmp_path, monkeypatch):
        @dataclass(frozen=True)
        class Local:
            name: ClassVar[str] = "local"

            def score(self, candidates, belief):
                return np.arange(len(candidates))

        spec = replace(SPEC, strategies=(Contender(Local()),), trials=1)
        assert np.isfinite(run(spec, tmp_path / "out").values).all()
        monkeypatch.setitem(sys.modules, "cloudpickle", None)
        with pytest.raises(InvalidParameter, match=r"cannot be sent to worker processes \(Can't .*Local"):
            run(replace(spec, trials=2), tmp_path / "out")

    def test_work_that_cannot_be_unpacked_names_the_error(self, tmp_path):
        spec = replace(SPEC, strategies=(Contender(Unreadable()),), trials=1)
        with pytest.raises(PairseekError):
            run(spec, tmp_path / "out")


def _unreadable():
    raise RuntimeError("not on this machine")


@dataclass(frozen=True)
class Unreadable:
    """A strategy that can be pickled but not unpickled."""

    name: ClassVar[str] = "unreadable"

    def score(self, candidates, belief):
        return np.zeros(len(candidates))

    def __reduce__(self):
        return _unreadable, ()


class TestKilling:
    @pytest.mark.long
    def test_after_three_sigkills_the_table_is_byte_for_byte_that_of_an_undisturbed_run(self, tmp_path):
        spec = replace(SPEC, queries=20, trials=8, samples=2000)
        (tmp_path / "spec.toml").write_text(to_toml(spec))
        code = (
            "import sys; from pathlib import Path\n"
            "from pairseek.experiments import read_specification, run\n"
            "if __name__ == '__main__': run(read_specification(sys.argv[1]), sys.argv[2], jobs=2)\n"
        )
        script = tmp_path / "go.py"
        script.write_text(code)
        command = [sys.executable, str(script), str(tmp_path / "spec.toml")]
        journal = tmp_path / "killed" / JOURNAL_FILE
        lines = 0
        for _ in range(3):
            process = subprocess.Popen([*command, str(tmp_path / "killed")])
            _until(lambda before=lines: journal.exists() and journal.read_bytes().count(b"\n") > before, process)
            workers = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            process.wait()
            # Workers notice that their parent is gone.
            assert psutil.wait_procs(workers, timeout=10)[1] == []
            lines = journal.read_bytes().count(b"\n")
        assert 3 <= lines < 16
        assert not (tmp_path / "killed" / "table.csv").exists()
        subprocess.run([*command, str(tmp_path / "killed")], check=True)
        subprocess.run([*command, str(tmp_path / "whole")], check=True)
        assert (tmp_path / "killed" / "table.csv").read_bytes() == (tmp_path / "whole" / "table.csv").read_bytes()
        sessions = json.loads((tmp_path / "killed" / RUN_FILE).read_text())["sessions"]
        assert len(sessions) == 4
        assert sessions[-1]["trials_at_hand"] == lines

    @pytest.mark.parametrize("damage", ["cut", "flipped", "garbage"])
    def test_a_damaged_line_is_dropped_and_its_trial_run_again(self, undisturbed, tmp_path, damage):
        for name in (RUN_FILE, JOURNAL_FILE, "specification.toml"):
            (tmp_path / name).write_bytes((undisturbed / name).read_bytes())
        journal = tmp_path / JOURNAL_FILE
        content = journal.read_bytes()
        if damage == "cut":
            journal.write_bytes(content[:-20])
        elif damage == "flipped":
            journal.write_bytes(content[:-30] + bytes([content[-30] ^ 1]) + content[-29:])
        else:
            journal.write_bytes(content + b"\x00\xff nonsense")
        run(SPEC, tmp_path)
        assert (tmp_path / "table.csv").read_bytes() == (undisturbed / "table.csv").read_bytes()
        rerun = json.loads((tmp_path / RUN_FILE).read_text())["sessions"][-1]["trials_run"]
        assert rerun == (0 if damage == "garbage" else 1)


def _until(condition, process, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < end, "nothing was written"
        time.sleep(0.01)


class TestRefusing:
    def test_a_folder_of_another_specification_is_refused(self, undisturbed):
        before = {path: path.read_bytes() for path in undisturbed.rglob("*") if path.is_file()}
        for change in ({"seed": 1}, {"queries": 5}, {"samples": 201}, {"strategies": SPEC.strategies[:1]}):
            with pytest.raises(InvalidParameter):
                run(replace(SPEC, **change), undisturbed)
        assert {path: path.read_bytes() for path in undisturbed.rglob("*") if path.is_file()} == before

    def test_a_folder_with_other_files_is_left_alone(self, tmp_path):
        (tmp_path / "thesis.txt").write_text("years of work")
        with pytest.raises(InvalidParameter, match=r"holds 'thesis.txt' and no results"):
            run(SPEC, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]

    def test_another_version_is_refused(self, undisturbed, tmp_path):
        record = json.loads((undisturbed / RUN_FILE).read_text())
        (tmp_path / RUN_FILE).write_text(json.dumps({**record, "pairseek": "0.0.1"}))
        with pytest.raises(InvalidParameter, match=r"was created by pairseek 0.0.1, this is"):
            run(SPEC, tmp_path)

    def test_a_damaged_description_is_named(self, tmp_path):
        (tmp_path / RUN_FILE).write_text("{")
        with pytest.raises(InvalidFile):
            run(SPEC, tmp_path)

    def test_two_runs_at_once_on_one_folder(self, tmp_path):
        with (
            ResultsFolder.open_folder(tmp_path, SPEC.plan(_items())),
            pytest.raises(InvalidParameter, match="another run is writing to"),
        ):
            run(SPEC, tmp_path)

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(InvalidParameter):
            run(SPEC, tmp_path / "file" / "results")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"jobs": 0}, "jobs is 0"),
            ({"table": "xlsx"}, "table is 'xlsx'"),
            ({"jobs": 2, "scheduler": "tcp://127.0.0.1:1"}, "a scheduler is given: leave jobs out"),
        ],
    )
    def test_wrong_options_are_refused_before_anything_is_written(self, tmp_path, change, message):
        with pytest.raises(InvalidParameter, match=message):
            run(SPEC, tmp_path / "out", **change)
        assert not (tmp_path / "out").exists()

    def test_a_full_disk_loses_nothing(self, undisturbed, tmp_path, monkeypatch):
        fsync, calls = os.fsync, []

        def full(descriptor):
            calls.append(descriptor)
            if len(calls) == 5:
                raise OSError(errno.ENOSPC, "No space left on device")
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(InvalidFile):
            run(SPEC, tmp_path / "out")
        monkeypatch.undo()
        assert 1 <= len(read_journal(tmp_path / "out" / JOURNAL_FILE)) < 6
        run(SPEC, tmp_path / "out")
        assert (tmp_path / "out" / "table.csv").read_bytes() == (undisturbed / "table.csv").read_bytes()


def test_a_worker_ends_when_its_pool_is_gone():
    context = multiprocessing.get_context("spawn")
    life, held = context.Pipe(duplex=False)
    process = context.Process(target=processes._end_with_pool, args=(life,))
    process.start()
    try:
        process.join(1.0)
        assert process.is_alive()
        held.close()
        process.join(60.0)
        assert process.exitcode == 1
    finally:
        process.kill()
        process.join()
        process.close()
        life.close()


def _items():
    from pairseek.experiments.simulation import load_items

    return load_items(SPEC)


# Dask warns while it cleans up after a killed worker.
@pytest.mark.filterwarnings("ignore")
class TestCluster:
    def test_every_trial_is_there_once_when_a_worker_is_killed_in_the_middle(self, undisturbed, tmp_path):
        from distributed import LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
            killed = []

            def kill_one(progress):
                if sum(progress.done) == 2 and not killed:
                    worker = next(iter(cluster.workers.values()))
                    killed.append(worker.pid)
                    os.kill(worker.pid, signal.SIGKILL)

            run(SPEC, tmp_path / "out", scheduler=cluster.scheduler_address, progress=kill_one)
        assert killed
        lines = (tmp_path / "out" / JOURNAL_FILE).read_bytes().splitlines()
        assert len(lines) == len(read_journal(tmp_path / "out" / JOURNAL_FILE)) == 6
        assert (tmp_path / "out" / "table.csv").read_bytes() == (undisturbed / "table.csv").read_bytes()

    def test_a_scheduler_that_does_not_answer_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setattr(cluster_module, "CONNECT_TIMEOUT", 1)
        with pytest.raises(InvalidParameter, match=r"the scheduler tcp://127.0.0.1:9 does not answer"):
            run(SPEC, tmp_path / "out", scheduler="tcp://127.0.0.1:9")
        with pytest.raises(InvalidParameter):
            run(SPEC, tmp_path / "out", scheduler="nonsense")

    def test_a_scheduler_without_workers_is_named(self, tmp_path, monkeypatch):
        from distributed import LocalCluster

        monkeypatch.setattr(cluster_module, "WORKER_TIMEOUT", 1)
        with (
            LocalCluster(n_workers=0, dashboard_address=None) as cluster,
            pytest.raises(InvalidParameter, match="has no workers after 1 s"),
        ):
            run(SPEC, tmp_path / "out", scheduler=cluster.scheduler_address)
