"""Execution of tasks in single-threaded processes on this machine."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import TypeVar

from pairseek.errors import PairseekError
from pairseek.experiments.runs.main_guard import require_main_guard
from pairseek.experiments.runs.pickling import pickle_work
from pairseek.experiments.runs.plan import Task, WorkOf
from pairseek.experiments.runs.worker import TRIALS_KEPT_NOTE, describe_failure, perform, prepare_pickled
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
