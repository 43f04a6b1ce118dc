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
from pairseek.experiments.runs.worker import KEPT, describe_failure, perform, prepare_pickled
from pairseek.numerics import compilation

Result = TypeVar("Result")

ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "PAIRSEEK_THREADS",
)
_MAX_BROKEN_POOLS = 3
"""Number of process pools that may break, for instance when memory runs out, before the run fails."""


def on_processes(
    work: WorkOf[Result], pending: list[Task], take: Callable[[Result], None], *, jobs: int, kept: str = KEPT
) -> None:
    """Run the tasks, and pass each outcome to ``take`` as it arrives.

    A worker that dies is replaced, and its task runs again. An exception in a task ends the run; earlier outcomes have
    been passed on by then. Error messages end with ``kept``, which says what happens to those outcomes.
    """
    require_main_guard()
    data = pickle_work(work)
    compilation.notify_if_workers_compile()
    remaining = dict.fromkeys(pending)
    broken = 0
    while remaining:
        try:
            _with_pool(work, data, remaining, take, jobs, kept)
        except BrokenProcessPool:
            broken += 1
            if broken > _MAX_BROKEN_POOLS:
                raise PairseekError(
                    f"worker processes died {broken} times: if memory ran out, run the same command again with fewer "
                    f"jobs; {kept}"
                ) from None


def _with_pool(
    work: WorkOf[Result],
    data: bytes,
    remaining: dict[Task, None],
    take: Callable[[Result], None],
    jobs: int,
    kept: str,
) -> None:
    context = multiprocessing.get_context("spawn")
    # A pool that breaks while starting a worker loses track of that worker. This end of the pipe closes with the pool,
    # and then every remaining worker exits.
    life, held = context.Pipe(duplex=False)
    with (
        contextlib.closing(life),
        contextlib.closing(held),
        _environment(),
        ProcessPoolExecutor(jobs, context, initializer=_start, initargs=(data, life)) as pool,
    ):
        waiting = iter(list(remaining))
        running: dict[Future[Result], Task] = {}

        def submit(count: int) -> None:
            for task in itertools.islice(waiting, count):
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
                        raise PairseekError(describe_failure(work, task, error, kept)) from error
                    take(outcome)
                    del remaining[task]
                    submit(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """Set thread counts for child processes, which read them when they import numpy."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _start(data: bytes, life: Connection) -> None:
    # Ctrl-C reaches the whole process group, but the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_pool, args=(life,), daemon=True).start()
    prepare_pickled(data)


def _end_with_pool(life: Connection) -> None:
    """Exit when the pool ends; otherwise workers would outlive a parent that was killed."""
    # Nothing is ever sent: the pipe becomes readable only when its other end closes.
    life.poll(None)
    os._exit(1)
