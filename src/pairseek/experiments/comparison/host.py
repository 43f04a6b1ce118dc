"""A child process that runs methods, so that a method that hangs or dies harms nothing else."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

from pairseek.errors import PairseekError
from pairseek.experiments.comparison.replay import MethodFault
from pairseek.experiments.runs.plan import Task
from pairseek.numerics.parallel import set_thread_count

Send = Callable[[tuple[Any, ...]], None]
_BEGIN_LIMIT_FACTOR = 10
"""Factor on the time limit for `begin`, which may learn from other people."""
_END_TIMEOUT = 5.0


class Performance(Protocol):
    """Work that announces its calls of a method while it performs a task."""

    def perform(self, task: Task, send: Send) -> None:
        """Perform a task; send ``("call", name, step)`` before a call, ``("rest",)`` after it, and every result."""
        ...


@dataclass
class Host:
    """A child process that performs tasks, and is replaced after a fault.

    Attributes
    ----------
    data
        The pickled `Performance`.
    limit
        Seconds for each call of a method.
    """

    data: bytes
    limit: float
    _process: Any = field(default=None, repr=False)
    _pipe: Connection | None = field(default=None, repr=False)

    def perform(self, task: Task) -> Iterator[tuple[Any, ...]]:
        """Yield the results of a task; raise `MethodFault` if a call hangs or the process dies."""
        pipe = self._start_if_needed()
        pipe.send(task)
        call: tuple[str, int] | None = None
        while True:
            limit = None if call is None else self.limit * (_BEGIN_LIMIT_FACTOR if call[0] == "begin" else 1)
            if not pipe.poll(limit):
                assert call is not None
                self.end()
                raise MethodFault("hangs", call[1], f"{call[0]} took more than {limit:g} s")
            try:
                message = pipe.recv()
            except EOFError:
                self.end()
                name, step = call or ("between two calls", 0)
                raise MethodFault("dies", step, f"the process ended in {name}") from None
            if message[0] == "call":
                call = (message[1], message[2])
            elif message[0] == "rest":
                call = None
            elif message[0] == "end":
                return
            elif message[0] == "fault":
                raise MethodFault(*message[1:])
            elif message[0] == "error":
                raise PairseekError(message[1])
            else:
                yield message

    def _start_if_needed(self) -> Connection:
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, child_pipe = context.Pipe()
            self._process = context.Process(target=_serve, args=(self.data, child_pipe, os.getpid()), daemon=True)
            with _allow_children():
                self._process.start()
            child_pipe.close()
        return self._pipe

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join(_END_TIMEOUT)
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


@contextlib.contextmanager
def _allow_children() -> Iterator[None]:
    """Allow this process to start a child even if it is a daemon, like the workers of a cluster."""
    configuration: dict[str, Any] = vars(multiprocessing.current_process())["_config"]
    was_daemon = configuration.get("daemon")
    configuration["daemon"] = False
    try:
        yield
    finally:
        configuration["daemon"] = was_daemon


def _serve(data: bytes, pipe: Connection, parent: int) -> None:
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    set_thread_count(1)
    performance: Performance = pickle.loads(data)
    with contextlib.suppress(EOFError):
        while True:
            task = pipe.recv()
            try:
                performance.perform(task, pipe.send)
            except MethodFault as fault:
                pipe.send(("fault", fault.kind, fault.step, str(fault)))
            except Exception as error:  # noqa: BLE001 - raised again in the parent
                pipe.send(("error", f"{type(error).__name__}: {error}"))
            else:
                pipe.send(("end",))


def _end_with_parent(parent: int) -> None:
    """Exit when the parent has ended, so that a hanging method does not run for ever."""
    wait = threading.Event()
    while os.getppid() == parent:
        wait.wait(1.0)
    os._exit(1)
