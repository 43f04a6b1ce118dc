"""Learning in a process of low priority, so that nobody who is answering waits for it.

The process reads the answers and fits; the worker that started it stores the result. A process of low priority must not
write, because it would hold the lock of SQLite's one writer for as long as others keep it from running.
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
from pairseek.experiments.runs.processes import ONE_THREAD
from pairseek.store.database import Database
from pairseek.web.learning import populations, similarity
from pairseek.web.learning.learned import LearnedVersion
from pairseek.web.studies.catalogue import Catalogue, Study

# Seconds after which learning is given up.
_MOST_SECONDS = 3600.0
# Before the imports, which take seconds, the priority is lowered, where the system can, and a thread begins to wait for
# the end of the process that asked: nobody would store the result then.
_PROGRAM = f"""
import os, sys, threading
getattr(os, "nice", abs)(10)
task = sys.stdin.buffer.readline()
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
from {__name__} import main
main(task)
"""


class LearningFailed(PairseekError):
    """Learning ended without a new version."""


def learn_apart(database: Database, study: Study) -> LearnedVersion:
    """Learn from the answers of a study in another process with one thread and low priority.

    The process ends with this one, however that ends.
    """
    task = {"database": database.url.render_as_string(hide_password=False), "study": study.row.slug}
    answer = _answer_of([sys.executable, "-c", _PROGRAM], task)
    if "error" in answer:
        raise (StoreUnavailable if answer["unavailable"] else LearningFailed)(answer["error"])
    return LearnedVersion.from_record(answer)


def _answer_of(command: list[str], task: JSON) -> JSON:
    """Send a task to a process and return its answer."""
    environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1")}
    try:
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment
            ) as process,
        ):
            assert process.stdin is not None
            assert process.stdout is not None
            limit = threading.Timer(_MOST_SECONDS, process.kill)
            limit.daemon = True
            limit.start()
            try:
                # Standard input stays open: its end tells the process that this one is gone. A process that has already
                # ended is reported by its exit code below.
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(json.dumps(task).encode() + b"\n")
                said = process.stdout.read()
            finally:
                limit.cancel()
            code = process.wait()
            errors.seek(0)
            silent = "the process was killed" if code < 0 else "nothing was said"
            last = errors.read().decode(errors="replace").strip().splitlines()[-1:] or [silent]
    except OSError as error:
        raise LearningFailed(f"the process that learns could not be used: {error}") from None
    try:
        answer: JSON = json.loads(said)
    except ValueError:
        raise LearningFailed(f"learning ended with code {code}: {last[0][:300]}") from None
    return answer


def main(task: bytes) -> None:
    """Do a task, and write the version that was learned to standard output."""
    json.dump(_learned(json.loads(task)), sys.stdout, allow_nan=False)


def _learned(task: JSON) -> JSON:
    database = Database(task["database"])
    try:
        study = Catalogue(database).named(task["study"])
        learn = similarity.learned if study.configuration.is_similarity else populations.learned
        return learn(database, study).record()
    except PairseekError as error:
        return {"error": str(error), "unavailable": isinstance(error, StoreUnavailable)}
    finally:
        database.close()
