"""A terminal borrowed and given back: key presses without Enter, and an orderly end when a signal comes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

try:
    import termios
except ImportError:  # not a Unix: keys are then read as lines
    termios = None  # type: ignore[assignment]

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end; ``code`` is the exit code that says which."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


@contextlib.contextmanager
def orderly_stop() -> Iterator[None]:
    """Turn the first Ctrl-C, SIGTERM or SIGHUP into `Stopped`; further ones do not disturb the tidying up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        for one in _SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        raise Stopped(number)

    before = {one: signal.signal(one, stop) for one in _SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def is_keyboard() -> bool:
    """Whether standard input is a terminal whose keys can be read one by one."""
    return termios is not None and sys.stdin is not None and sys.stdin.isatty()


@contextlib.contextmanager
def keyboard() -> Iterator[None]:
    r"""Hand over each key at once and unseen; on leaving, the terminal is as it was.

    Ctrl-C still sends its signal. Ctrl-Z and Ctrl-\ do not: they would leave the shell with this screen.
    What was typed ahead is dropped at both ends, so that it answers no pair and reaches no shell.
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
        # A terminal that has gone away needs nothing back.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
