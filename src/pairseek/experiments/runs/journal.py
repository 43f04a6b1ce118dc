"""Crash-safe folder of results.

The journal, ``trials.jsonl``, has a line with a checksum for each finished task, which is on disk before the next task
is accepted. A truncated line is dropped and its task runs again. When all tasks are done, tables are written from the
journal in the order of the plan rather than of completion, so they do not depend on interruptions or machines.
Durations go to a separate file.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import platform
import tomllib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pairseek._version import __version__
from pairseek.core.files import write_atomically
from pairseek.core.types import JSON
from pairseek.errors import InvalidFile, InvalidParameter
from pairseek.experiments.runs.plan import Outcome, RunPlan, Task
from pairseek.experiments.runs.toml import to_toml

try:
    import fcntl
except ImportError:  # not a Unix system: concurrent runs in a folder are not detected
    fcntl = None  # type: ignore[assignment]

RESULTS_FORMAT = "pairseek results"
JOURNAL_FILE = "trials.jsonl"
RUN_FILE = "run.json"
SPECIFICATION_FILE = "specification.toml"


def write_result(path: Path, content: str | bytes) -> None:
    """Write a file of results atomically; an error says that finished trials are kept."""
    try:
        write_atomically(path, content)
    except OSError as error:
        raise InvalidFile(f"cannot write {path}: {error.strerror or error}; {_RESUME_ADVICE}") from error


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


_RESUME_ADVICE = "finished trials are kept: run the same command again to resume"


class ResultsFolder:
    """The journal of a run, open for writing; create it with `open_folder`."""

    def __init__(self, path: Path, plan: RunPlan, run: JSON, journal: BinaryIO) -> None:
        self.path = path
        self.plan = plan
        self.outcomes: dict[Task, Outcome] = {}
        self._run = run
        self._journal = journal

    @classmethod
    @contextlib.contextmanager
    def open_folder(cls, path: Path, plan: RunPlan) -> Iterator[ResultsFolder]:
        """Create a folder, or resume an existing folder of the same specification; refuse any other."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidParameter(f"the folder {path} cannot be created: {error.strerror or error}") from None
        run = _run_record(path, plan)
        with _open_locked(path / JOURNAL_FILE) as journal:
            folder = cls(path, plan, run, journal)
            folder._read_journal()
            folder._start_session()
            yield folder

    def add(self, outcome: Outcome) -> None:
        """Append the outcome of a task, and return once it is on disk."""
        try:
            self._journal.write(_journal_line(outcome))
            self._journal.flush()
            os.fsync(self._journal.fileno())
        except OSError as error:
            raise InvalidFile(
                f"cannot write {self.path / JOURNAL_FILE}: {error.strerror or error}; {_RESUME_ADVICE}"
            ) from error
        self.outcomes[outcome.task] = outcome

    def note(self, **facts: object) -> None:
        """Store facts about this session for the report."""
        self._run["sessions"][-1].update(facts)
        self._save()

    def _save(self) -> None:
        write_result(self.path / RUN_FILE, json.dumps(self._run, indent=1) + "\n")

    def _read_journal(self) -> None:
        valid_bytes = 0
        for line in self._journal:
            outcome = _parse_line(line)
            if outcome is None:
                break
            self.outcomes[outcome.task] = outcome
            valid_bytes += len(line)
        self._journal.seek(valid_bytes)
        self._journal.truncate()

    def _start_session(self) -> None:
        self._run["trials"] = self.plan.units
        self._run["sessions"].append(
            {
                "began": datetime.now(UTC).isoformat(timespec="seconds"),
                "trials_at_hand": len(self.outcomes),
                "machine": platform.machine(),
                "system": f"{platform.system()} {platform.release()}",
                "processor": _processor_name(),
                "cores": os.cpu_count(),
                "python": platform.python_version(),
                "numpy": np.__version__,
            }
        )
        write_result(self.path / SPECIFICATION_FILE, to_toml(self.plan.record))
        self._save()


def _run_record(path: Path, plan: RunPlan) -> JSON:
    """Return the content of `run.json`, or a new record for an empty folder; refuse any other folder."""
    file = path / RUN_FILE
    if not file.exists():
        other_files = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))
        if other_files:
            raise InvalidParameter(
                f"the folder {path} holds {other_files[0]!r} and no results: name an empty or new folder"
            )
        return {"format": RESULTS_FORMAT, "pairseek": __version__, "identity": plan.identity, "sessions": []}
    try:
        run: JSON = json.loads(file.read_text(encoding="utf-8"))
        is_same, version, earlier_trials = run["identity"] == plan.identity, run["pairseek"], int(run["trials"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidFile(f"{file} cannot be read ({error}): name another folder; nothing was changed") from None
    if not is_same:
        raise InvalidParameter(
            f"the folder {path} holds results of another specification: name another folder, or see "
            f"{SPECIFICATION_FILE} in it; nothing was changed"
        )
    if version != __version__:
        raise InvalidParameter(
            f"the folder {path} was created by pairseek {version}, this is {__version__}: name another folder, to keep "
            f"the results of two versions apart"
        )
    if earlier_trials > plan.units:
        raise InvalidParameter(
            f"the folder {path} is for {earlier_trials} trials, {plan.units} were requested: request at least "
            f"{earlier_trials}, or name another folder"
        )
    return run


@contextlib.contextmanager
def _open_locked(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("a+b")
    except OSError as error:
        raise InvalidParameter(f"{path} cannot be written: {error.strerror or error}") from None
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidParameter(
                    f"another run is writing to {path.parent}: wait for it, or name another folder"
                ) from None
        file.seek(0)
        yield file


def _journal_line(outcome: Outcome) -> bytes:
    task = outcome.task
    body = [task.group, task.arm, task.unit, outcome.asked, outcome.values, outcome.seconds]
    body += [outcome.note] if outcome.note else []
    text = json.dumps(body, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parse_line(line: bytes) -> Outcome | None:
    """Parse a line of the journal; return None if it is damaged or truncated."""
    checksum, _, text = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text):
        return None
    group, arm, unit, asked, values, seconds, *note = json.loads(text)
    return Outcome(Task(group, arm, unit), tuple(map(tuple, values)), tuple(seconds), asked, *note)


def read_journal(path: Path) -> dict[Task, Outcome]:
    """Return the outcomes of the finished tasks in a journal."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror or error}") from None
    outcomes = map(_parse_line, lines)
    return {outcome.task: outcome for outcome in outcomes if outcome is not None}


def earlier_record(folder: Path) -> JSON:
    """Return the specification in a folder of results of this version."""
    try:
        version = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))["pairseek"]
        record: JSON = tomllib.loads((folder / SPECIFICATION_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidParameter(f"{folder} does not hold readable results ({error}): name another folder") from None
    if version != __version__:
        raise InvalidParameter(f"the folder {folder} was created by pairseek {version}, this is {__version__}")
    return record


def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
