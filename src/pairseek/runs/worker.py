"""What happens inside a worker: unpack once, warm up once, run trials."""

from __future__ import annotations

from collections.abc import Callable

from pairseek.numerics.parallel import set_thread_count
from pairseek.runs.plan import Outcome, Task, Work

_begun: dict[str, Callable[[Task], Outcome]] = {}


def prepare(work: Work, name: str = "") -> None:
    """Unpack, on one thread from now on."""
    set_thread_count(1)
    _begun[name] = work.begin()


def perform(task: Task, name: str = "") -> Outcome:
    """Run a trial of work that was prepared."""
    return _begun[name](task)


def perform_parcel(work: Work, task: Task, name: str) -> Outcome:
    """Run a trial, preparing the work if this process has not seen it."""
    if name not in _begun:
        prepare(work, name)
    return perform(task, name)


def describe(work: Work, task: Task, error: BaseException) -> str:
    """Which trial failed, and how."""
    return f"{work.describe(task)} failed: {type(error).__name__}: {error}; trials that had finished are kept"
