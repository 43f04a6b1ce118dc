"""Orderly termination of a command by a signal."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(KeyboardInterrupt):
    """Termination by a signal; ``code`` is the conventional exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


@contextlib.contextmanager
def orderly_stop() -> Iterator[Callable[[], None]]:
    """Raise `Stopped` at the first Ctrl-C, SIGTERM or SIGHUP, and ignore further signals during the cleanup.

    Python discards an exception that is raised inside a callback from a compiled library. The yielded function raises
    it again, and so does the next signal.
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
