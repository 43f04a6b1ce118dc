"""Trials on this machine: fresh processes of one thread each."""

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

from pairseek.errors import PairseekError
from pairseek.runs.plan import Outcome, Task, Work
from pairseek.runs.worker import describe, perform, prepare

ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "PAIRSEEK_THREADS",
)
_DEATHS = 3
"""Pools that may break, as when the system runs out of memory, before the run gives up."""


def on_processes(work: Work, pending: list[Task], take: Callable[[Outcome], None], *, jobs: int) -> None:
    """Run the tasks and hand over each outcome as it comes.

    A worker that dies is replaced and its trial run again. An error in a trial ends the run; what was finished before
    has been handed over.
    """
    left = dict.fromkeys(pending)
    deaths = 0
    while left:
        try:
            _with_pool(work, left, take, jobs)
        except BrokenProcessPool:
            deaths += 1
            if deaths > _DEATHS:
                raise PairseekError(
                    f"worker processes died {deaths} times, perhaps for want of memory: run the same command again "
                    f"with fewer jobs; finished trials are kept"
                ) from None


def _with_pool(work: Work, left: dict[Task, None], take: Callable[[Outcome], None], jobs: int) -> None:
    context = multiprocessing.get_context("spawn")
    # A pool that breaks while it starts a worker forgets that worker. This end of the pipe closes with the pool, and
    # whoever is left then ends.
    life, held = context.Pipe(duplex=False)
    with (
        contextlib.closing(life),
        contextlib.closing(held),
        _environment(),
        ProcessPoolExecutor(jobs, context, initializer=_start, initargs=(work, life)) as pool,
    ):
        waiting = iter(list(left))
        running: dict[Future[Outcome], Task] = {}

        def submit(count: int) -> None:
            for task in itertools.islice(waiting, count):
                running[pool.submit(perform, task)] = task

        try:
            # A short queue: an interruption waits only for what is being run.
            submit(2 * jobs)
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task = running.pop(future)
                    try:
                        outcome = future.result()
                    except BrokenProcessPool:
                        raise
                    except Exception as error:  # whatever a trial raises is told with the trial's name
                        raise PairseekError(describe(work, task, error)) from error
                    take(outcome)
                    del left[task]
                    submit(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """Variables that a process reads when numpy is loaded; this one has loaded it already."""
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


def _start(work: Work, life: Connection) -> None:
    # Ctrl-C reaches the whole group; it is for the parent to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_pool, args=(life,), daemon=True).start()
    prepare(work)


def _end_with_pool(life: Connection) -> None:
    """A parent that was killed cannot say good-bye: without this its workers would wait for it for ever."""
    # Nothing is ever sent: the pipe speaks only when its other end is closed, by the parent or by its death.
    life.poll(None)
    os._exit(1)
