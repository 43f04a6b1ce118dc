"""Notification during the compilation of kernels, which takes seconds at first use."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

logger = logging.getLogger("pairseek")
_notified = False


@contextmanager
def first_use(seconds: float = 1.0) -> Iterator[None]:
    """Log a message, once in a process, if compilation inside the context takes longer than this."""
    watch = _Watch(seconds)
    try:
        with event.install_listener("numba:compile", watch):
            yield
    finally:
        watch.close()


class _Watch(event.Listener):
    """A numba listener that measures compilation time, and pauses garbage collection meanwhile."""

    def __init__(self, seconds: float) -> None:
        self._remaining = seconds
        self._depth = 0  # compilations are nested: a kernel compiles the functions that it calls
        self._began = 0.0
        self._timer: threading.Timer | None = None
        self._collecting = False

    def on_start(self, _: Any) -> None:
        """Start the timer at the outermost compilation."""
        self._depth += 1
        if self._depth > 1:
            return
        # Compilation allocates millions of small objects, few of them garbage: without collection it is 10 % faster.
        if gc.isenabled():
            self._collecting = True
            gc.disable()
        self._began = time.perf_counter()
        self._timer = threading.Timer(max(self._remaining, 0.0), _notify)
        self._timer.daemon = True
        self._timer.start()

    def on_end(self, _: Any) -> None:
        """Stop the timer at the end of the outermost compilation."""
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._remaining -= time.perf_counter() - self._began

    def close(self) -> None:
        """Cancel the timer and restore garbage collection."""
        if self._timer is not None:
            self._timer.cancel()
        if self._collecting:
            gc.enable()


def _notify() -> None:
    global _notified
    if not _notified:
        _notified = True
        logger.warning("compiling numerical kernels; this happens once on a machine and takes up to a minute")
