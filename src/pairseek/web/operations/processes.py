"""Computations in processes of low priority, which do not slow down people who are answering.

Such a process reads the database and computes; the worker that started it stores the result. A low-priority process
must not write, because it would hold SQLite's only write lock for as long as other processes keep it from running.
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
from pairseek.errors import PairseekError
from pairseek.experiments.runs.processes import THREAD_COUNT_VARIABLES

# Seconds after which a computation is aborted.
_MAX_SECONDS = 3600.0
# Without -P, Python imports from the working directory first and would execute a file yaml.py there.
_PYTHON = (sys.executable, "-P", "-c")
# Before the imports, which take seconds, the program lowers its priority if the system can. It also starts a thread
# that exits when the parent process ends, because nobody would store the result.
_PROGRAM = """
import os, sys, threading
getattr(os, "nice", abs)(10)
task = sys.stdin.buffer.readline()
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
from {module} import main
main(task)
"""


class ProcessFailed(PairseekError):
    """A process has ended without a result."""


def run_in_process(module: str, task: JSON) -> bytes:
    """Call the function ``main`` of a module with a task, in a process with one thread and low priority.

    Return what it writes to standard output. The process ends with this one, for whatever reason.
    """
    return _run_process([*_PYTHON, _PROGRAM.format(module=module)], task)


def _run_process(command: list[str], task: JSON) -> bytes:
    """Send a task to a process and return its output; raise `ProcessFailed` if it fails or is killed."""
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
        raise ProcessFailed(f"the process could not be used: {error}") from None
    if code:
        raise ProcessFailed(f"the process ended with exit code {code}: {last_lines[0][:300]}")
    return output
