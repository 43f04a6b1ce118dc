"""Worker side of a batch of runs: prepare the work once, then perform tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from pairseek.experiments.runs.plan import Outcome, Task, Work, WorkOf
from pairseek.numerics.parallel import set_thread_count

TRIALS_KEPT_NOTE = "finished trials are kept"
"""Last words of the error message of a failed run: what happens to the results so far."""
_performers: dict[str, Callable[[Task], Any]] = {}


def prepare(work: WorkOf[object], name: str = "") -> None:
    """Unpack the work, and limit this process to one thread."""
    set_thread_count(1)
    _performers[name] = work.begin()


def prepare_pickled(data: bytes) -> None:
    """Unpack pickled work; defer any exception to the first task, which can report it to the parent."""
    try:
        prepare(pickle.loads(data))
    except Exception as error:  # noqa: BLE001 - an exception in its initializer would break the pool without a message
        failure = error

        def fail(_: Task) -> object:
            raise failure

        _performers[""] = fail


def perform(task: Task, name: str = "") -> Any:
    """Perform a task of prepared work."""
    return _performers[name](task)


def prepare_and_perform(work: Work, task: Task, name: str) -> Outcome:
    """Perform a task, after preparing the work if needed."""
    if name not in _performers:
        prepare(work, name)
    outcome: Outcome = perform(task, name)
    return outcome


def describe_failure(
    work: WorkOf[object], task: Task, error: BaseException, fate_of_results: str = TRIALS_KEPT_NOTE
) -> str:
    """Return the message for a task that raised an exception."""
    return f"{work.describe(task)} failed: {type(error).__name__}: {error}; {fate_of_results}"
