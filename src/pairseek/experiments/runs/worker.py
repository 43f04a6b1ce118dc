"""Worker side of a batch of runs: prepare the work once, then perform tasks."""

from __future__ import annotations

import contextlib
import io
import pickle
import sys
from collections.abc import Callable
from typing import Any

from pairseek.errors import InvalidParameter
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


_PICKLING_ERRORS = (pickle.PicklingError, AttributeError, TypeError, ValueError)


def pickle_work(work: WorkOf[object]) -> bytes:
    """Return the pickled work.

    Workers import classes by name, which is impossible for classes defined inside functions, in a notebook or in an
    interactive session (module ``__main__`` without a file). Those are pickled by value if cloudpickle is installed.

    Raises
    ------
    InvalidParameter
        If the work cannot be pickled; the message says why.
    """
    try:
        data = pickle.dumps(work)
    except _PICKLING_ERRORS as error:
        return _pickle_by_value(work, str(error))
    names = _interactive_names(data)
    return data if not names else _pickle_by_value(work, f"{', '.join(names)} is defined in an interactive session")


def _interactive_names(data: bytes) -> list[str]:
    """Return the names in the pickle from a ``__main__`` module that workers cannot import."""
    main = sys.modules["__main__"]
    if getattr(main, "__file__", None) is not None or getattr(main, "__spec__", None) is not None:
        return []
    reader = _NameReader(io.BytesIO(data))
    # An unreadable pickle fails in the worker too, which reports it with the name of the task.
    with contextlib.suppress(Exception):
        reader.load()
    return reader.names


class _NameReader(pickle.Unpickler):
    """Unpickler that collects names from the ``__main__`` module."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.names: list[str] = []

    def find_class(self, module: str, name: str) -> Any:
        if module == "__main__":
            self.names.append(name)
        return super().find_class(module, name)


def _pickle_by_value(work: WorkOf[object], reason: str) -> bytes:
    advice = "define your classes at the top level of a module that can be imported"
    try:
        import cloudpickle
    except ModuleNotFoundError:
        raise InvalidParameter(
            f"the run cannot be sent to worker processes ({reason}): {advice}, or pip install cloudpickle"
        ) from None
    try:
        data: bytes = cloudpickle.dumps(work)
    except _PICKLING_ERRORS as error:
        raise InvalidParameter(f"the run cannot be sent to worker processes ({error}): {advice}") from None
    return data
