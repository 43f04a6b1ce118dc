"""Signals: an orderly end of a command."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(KeyboardInterrupt):
    """Termination by a signal; ``code`` is the conventional exit code of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


@contextlib.contextmanager
def orderly_stop() -> Iterator[Callable[[], None]]:
    """Raise `Stopped` at the first Ctrl-C, SIGTERM or SIGHUP, and ignore further signals during the cleanup.

    Python drops an exception that is raised within a callback of a compiled library. The function that is yielded
    raises it again, and so does the next signal.
    """
    arrived: list[int] = []

    def check() -> None:
        if arrived:
            raise Stopped(arrived[0])

    if threading.current_thread() is not threading.main_thread():
        yield check
        return

    def stop(number: int, _: FrameType | None) -> None:
        for one in _SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        arrived.append(number)
        raise Stopped(number)

    report = sys.unraisablehook

    def dropped(arguments: sys.UnraisableHookArgs) -> None:
        if not isinstance(arguments.exc_value, Stopped):
            report(arguments)
            return
        for one in _SIGNALS:
            signal.signal(one, stop)

    before = {one: signal.signal(one, stop) for one in _SIGNALS}
    sys.unraisablehook = dropped
    try:
        yield check
    finally:
        sys.unraisablehook = report
        for one, handler in before.items():
            signal.signal(one, handler)
