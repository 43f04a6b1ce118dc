"""Learning in a process of low priority, which does not slow down people who are answering.

The process reads the answers and fits; the worker that started it stores the result. A low-priority process must not
write, because it would hold SQLite's only write lock for as long as other processes keep it from running.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading

from pairseek.core.types import JSON
from pairseek.errors import PairseekError, StoreUnavailable
from pairseek.experiments.runs.processes import THREAD_COUNT_VARIABLES
from pairseek.store.database import Database
from pairseek.web.learning import populations, similarity
from pairseek.web.learning.learned import LearnedVersion
from pairseek.web.studies.catalogue import Catalogue, Study

# Seconds after which learning is aborted.
_MAX_SECONDS = 3600.0
# Without -P, Python imports from the working directory first and would execute a file yaml.py there.
_PYTHON = (sys.executable, "-P", "-c")
# Before the imports, which take seconds, the program lowers its priority if the system can. It also starts a thread
# that exits when the parent process ends, because nobody would store the result.
_PROGRAM = f"""
import os, sys, threading
getattr(os, "nice", abs)(10)
task = sys.stdin.buffer.readline()
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
from {__name__} import main
main(task)
"""


class LearningFailed(PairseekError):
    """Learning has ended without a new version."""


def learn_in_process(database: Database, study: Study) -> LearnedVersion:
    """Learn from the answers of a study in a separate process with one thread and low priority.

    The process ends with this one, for whatever reason.
    """
    task = {"database": database.url.render_as_string(hide_password=False), "study": study.row.slug}
    reply = _run_process([*_PYTHON, _PROGRAM], task)
    if "error" in reply:
        raise (StoreUnavailable if reply["unavailable"] else LearningFailed)(reply["error"])
    return LearnedVersion.from_record(reply)


def _run_process(command: list[str], task: JSON) -> JSON:
    """Send a task to a process and return its reply."""
    environment = {**os.environ, **dict.fromkeys(THREAD_COUNT_VARIABLES, "1")}
    try:
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment
            ) as process,
        ):
            assert process.stdin is not None
            assert process.stdout is not None
            timeout = threading.Timer(_MAX_SECONDS, process.kill)
            timeout.daemon = True
            timeout.start()
            try:
                # Standard input stays open, because its end would tell the process that this one has ended. If the
                # process has already ended, its exit code is reported below.
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(json.dumps(task).encode() + b"\n")
                output = process.stdout.read()
            finally:
                timeout.cancel()
            code = process.wait()
            errors.seek(0)
            fallback = "the process was killed" if code < 0 else "there was no output"
            last_lines = errors.read().decode(errors="replace").strip().splitlines()[-1:] or [fallback]
    except OSError as error:
        raise LearningFailed(f"the learning process could not be used: {error}") from None
    try:
        reply: JSON = json.loads(output)
    except ValueError:
        raise LearningFailed(f"learning ended with exit code {code}: {last_lines[0][:300]}") from None
    return reply


def main(task: bytes) -> None:
    """Carry out a task, and write the learned version to standard output."""
    json.dump(_learned(json.loads(task)), sys.stdout, allow_nan=False)


def _learned(task: JSON) -> JSON:
    database = Database(task["database"])
    try:
        study = Catalogue(database).by_slug(task["study"])
        learn = similarity.learn_version if study.configuration.is_similarity else populations.learn_version
        return learn(database, study).record()
    except PairseekError as error:
        return {"error": str(error), "unavailable": isinstance(error, StoreUnavailable)}
    finally:
        database.close()
