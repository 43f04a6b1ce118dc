"""Execution of long runs: worker processes, termination by signals, and the list of written files."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType

import typer
from rich.console import Console
from rich.text import Text

from pairseek.errors import InvalidParameter

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(KeyboardInterrupt):
    """Termination by a signal; ``code`` is the conventional exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


@contextlib.contextmanager
def orderly_stop() -> Iterator[Callable[[], None]]:
    """Raise `Stopped` at the first Ctrl-C, SIGTERM or SIGHUP, and ignore further signals during the cleanup.

    Python discards an exception that is raised inside a callback of a compiled library. Call the yielded function to
    raise a discarded `Stopped` again; a second signal raises it too.
    """
    received: list[int] = []

    def check() -> None:
        if received:
            raise Stopped(received[0])

    if threading.current_thread() is not threading.main_thread():
        yield check
        return

    def stop(number: int, _: FrameType | None) -> None:
        for other in _SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        received.append(number)
        raise Stopped(number)

    previous_hook = sys.unraisablehook

    def on_unraisable(arguments: sys.UnraisableHookArgs) -> None:
        if not isinstance(arguments.exc_value, Stopped):
            previous_hook(arguments)
            return
        for number in _SIGNALS:
            signal.signal(number, stop)

    handlers = {number: signal.signal(number, stop) for number in _SIGNALS}
    sys.unraisablehook = on_unraisable
    try:
        yield check
    finally:
        sys.unraisablehook = previous_hook
        for number, handler in handlers.items():
            signal.signal(number, handler)


def job_count(jobs: int | None, scheduler: str | None) -> int:
    """Return the number of worker processes."""
    if jobs is not None and jobs < 1:
        raise InvalidParameter(f"--jobs is {jobs}: give a whole number, at least 1")
    if scheduler is not None:
        if jobs is not None:
            raise InvalidParameter(f"--jobs {jobs} with --scheduler: the cluster has its own workers; leave --jobs out")
        return 1
    if jobs is not None:
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def interruptible(console: Console) -> Iterator[None]:
    """End the run cleanly on a signal, and print how to resume it."""
    try:
        with orderly_stop():
            yield
    except Stopped as stopped:
        console.print("Stopped. Finished trials are kept: run the same command again to resume.")
        raise typer.Exit(stopped.code) from None


def print_paths(console: Console, paths: Iterable[Path]) -> None:
    """Print the paths of written files, one per line."""
    for path in paths:
        console.print(Text(f"  {path}"), soft_wrap=True)
