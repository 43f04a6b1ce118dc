"""Execution of tasks in single-threaded processes on this machine."""

from __future__ import annotations

import ast
import contextlib
import itertools
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import TypeVar

from pairseek.errors import PairseekError
from pairseek.experiments.runs.plan import Task, WorkOf
from pairseek.experiments.runs.worker import TRIALS_KEPT_NOTE, describe_failure, perform, pickle_work, prepare_pickled
from pairseek.numerics import compilation

Result = TypeVar("Result")

THREAD_COUNT_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "PAIRSEEK_THREADS",
)
_MAX_BROKEN_POOLS = 3
"""Number of process pools that may break, for instance when memory runs out, before the run fails."""


def run_on_processes(
    work: WorkOf[Result],
    pending: list[Task],
    on_outcome: Callable[[Result], None],
    *,
    jobs: int,
    fate_of_results: str = TRIALS_KEPT_NOTE,
) -> None:
    """Run the tasks, and pass each outcome to ``on_outcome`` as it arrives.

    A worker that dies is replaced, and its task runs again. An exception in a task ends the run, after the earlier
    outcomes were passed on. Error messages end with ``fate_of_results``, which says whether these outcomes are kept.
    """
    require_main_guard()
    data = pickle_work(work)
    compilation.notify_if_workers_compile()
    remaining = dict.fromkeys(pending)
    broken = 0
    while remaining:
        try:
            _with_pool(work, data, remaining, on_outcome, jobs, fate_of_results)
        except BrokenProcessPool:
            broken += 1
            if broken > _MAX_BROKEN_POOLS:
                raise PairseekError(
                    f"worker processes died {broken} times: if memory ran out, run the same command again with fewer "
                    f"jobs; {fate_of_results}"
                ) from None


def _with_pool(
    work: WorkOf[Result],
    data: bytes,
    remaining: dict[Task, None],
    on_outcome: Callable[[Result], None],
    jobs: int,
    fate_of_results: str,
) -> None:
    context = multiprocessing.get_context("spawn")
    # A pool that breaks while starting a worker loses track of that worker. The parent's end of this pipe closes with
    # the pool, and then every remaining worker exits.
    lifeline, lifeline_end = context.Pipe(duplex=False)
    with (
        contextlib.closing(lifeline),
        contextlib.closing(lifeline_end),
        _single_thread_environment(),
        ProcessPoolExecutor(jobs, context, initializer=_start_worker, initargs=(data, lifeline)) as pool,
    ):
        unsubmitted = iter(list(remaining))
        running: dict[Future[Result], Task] = {}

        def submit(count: int) -> None:
            for task in itertools.islice(unsubmitted, count):
                running[pool.submit(perform, task)] = task

        try:
            # The queue is short, so an interruption waits only for running tasks.
            submit(2 * jobs)
            while running:
                done = wait(running, return_when=FIRST_COMPLETED).done
                # Take outcomes before errors, to keep those that arrive together with an error.
                for future in sorted(done, key=lambda future: future.exception() is not None):
                    task = running.pop(future)
                    try:
                        outcome = future.result()
                    except BrokenProcessPool:
                        raise
                    except Exception as error:  # report any exception with the name of its task
                        raise PairseekError(describe_failure(work, task, error, fate_of_results)) from error
                    on_outcome(outcome)
                    del remaining[task]
                    submit(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextlib.contextmanager
def _single_thread_environment() -> Iterator[None]:
    """Set thread counts for child processes, which read them when they import numpy."""
    saved = {name: os.environ.get(name) for name in THREAD_COUNT_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_COUNT_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _start_worker(data: bytes, lifeline: Connection) -> None:
    # Ctrl-C reaches the whole process group, but the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_pool, args=(lifeline,), daemon=True).start()
    prepare_pickled(data)


def _end_with_pool(lifeline: Connection) -> None:
    """Exit when the pool ends, so that workers do not outlive a killed parent."""
    # Nothing is ever sent: the pipe becomes readable only when its other end closes.
    lifeline.poll(None)
    os._exit(1)


_MODULE_NAME = "__name__"


def require_main_guard() -> None:
    """Raise an error if worker processes would run the calling script again.

    A worker imports the script that started it. Without ``if __name__ == "__main__":`` it would itself reach the call
    that starts workers. Unreadable scripts pass, and so do interactive sessions, which workers do not import.
    """
    module = sys.modules.get("__main__")
    path = getattr(module, "__file__", None)
    spec = getattr(module, "__spec__", None)
    # Workers do not import the `__main__.py` of a package.
    if path is None or (spec is not None and spec.name.endswith(".__main__")):
        return
    line = _executing_line(os.path.abspath(path))
    if line is not None and not _is_guarded(Path(path), line):
        raise PairseekError(
            f"{path}, line {line}, starts worker processes, which import this file and would run it again: put "
            f'what the script does below `if __name__ == "__main__":`'
        )


def _executing_line(path: str) -> int | None:
    """Return the line of the script that is being executed; None if the call does not come from the script."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and os.path.abspath(code.co_filename) == path:
            return frame.f_lineno
        frame = frame.f_back
    return None


def _is_guarded(path: Path, line: int) -> bool:
    """Return whether the script tests the name of the module at or before the line."""
    try:
        script = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return True
    conditions = [node.test for node in script.body if isinstance(node, ast.If) and node.lineno <= line]
    return any(isinstance(part, ast.Name) and part.id == _MODULE_NAME for test in conditions for part in ast.walk(test))
