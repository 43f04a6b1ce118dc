"""Log notice that kernels are being compiled, which can take a minute at first use."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core import event

from pairseek.numerics import kernel_cache

logger = logging.getLogger("pairseek")
_notified = False


@contextmanager
def compilation_notice(seconds: float = 1.0) -> Iterator[None]:
    """Log a notice once compilation has taken this long: at most once for all processes that compile together."""
    timer = _CompilationTimer(seconds)
    try:
        with event.install_listener("numba:compile", timer):
            yield
    finally:
        timer.close()


class _CompilationTimer(event.Listener):
    """Listener that measures numba's compilation time, and pauses garbage collection while numba compiles."""

    def __init__(self, seconds: float) -> None:
        self._remaining = seconds
        self._depth = 0  # compilations nest: a kernel compiles the functions it calls
        self._began = 0.0
        self._timer: threading.Timer | None = None
        self._has_paused_collection = False

    def on_start(self, _: object) -> None:
        """Start the timer at the outermost compilation."""
        self._depth += 1
        if self._depth > 1:
            return
        # Compilation allocates millions of small objects, few of them garbage; pausing collection makes it 10 % faster.
        if gc.isenabled():
            self._has_paused_collection = True
            gc.disable()
        self._began = time.perf_counter()
        self._timer = threading.Timer(max(self._remaining, 0.0), _log_notice)
        self._timer.daemon = True
        self._timer.start()

    def on_end(self, _: object) -> None:
        """Stop the timer at the end of the outermost compilation."""
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._remaining -= time.perf_counter() - self._began

    def close(self) -> None:
        """Cancel the timer and restore garbage collection."""
        if self._timer is not None:
            self._timer.cancel()
        if self._has_paused_collection:
            gc.enable()


def notify_if_workers_compile() -> None:
    """Log the notice before starting processes, if each of them will have to compile the kernels."""
    if kernel_cache.own_cache_folders().writable is None:
        _log_notice()


def _log_notice() -> None:
    global _notified
    if not _notified:
        _notified = True
        if kernel_cache.claim_notice():
            logger.warning(kernel_cache.notice())
