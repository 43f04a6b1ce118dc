"""Terminal modes and signals: unbuffered keys, and a clean end on a signal."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

try:
    import termios
except ImportError:  # not Unix: keys are read line by line
    termios = None  # type: ignore[assignment]

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


def is_keyboard() -> bool:
    """Return whether standard input is a terminal with unbuffered keys."""
    return termios is not None and sys.stdin is not None and sys.stdin.isatty()


@contextlib.contextmanager
def keyboard() -> Iterator[None]:
    r"""Disable line buffering and echo, and restore the terminal at the end.

    Ctrl-C still sends its signal. Ctrl-Z and Ctrl-\ do not, because they would leave the full screen open in the shell.
    Pending input is discarded at both ends, so that it neither answers a pair nor reaches the shell.
    """
    if not is_keyboard():
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    modes = termios.tcgetattr(descriptor)
    modes[3] &= ~(termios.ICANON | termios.ECHO)
    off = bytes([os.fpathconf(descriptor, "PC_VDISABLE") & 0xFF])
    modes[6][termios.VSUSP] = modes[6][termios.VQUIT] = off
    modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
    try:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, modes)
        yield
    finally:
        # Restoring fails if the terminal was closed.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
