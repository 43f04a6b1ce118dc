"""The first use, when kernels are compiled: a word to the person who waits, and a shorter wait."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("pairseek")
_done: set[str] = set()


@contextmanager
def first_use(seconds: float = 1.0, *, part: str = "search") -> Iterator[None]:
    """Log a message if what is inside, on the first use of this part in this process, takes longer than this."""
    if part in _done:
        yield
        return
    timer = threading.Timer(
        seconds,
        logger.warning,
        ["compiling numerical kernels; this happens once on a machine and takes a few seconds"],
    )
    timer.daemon = True
    timer.start()
    # The compiler makes millions of small objects, few of them garbage: without collection it is a tenth faster.
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
        _done.add(part)
    finally:
        if collecting:
            gc.enable()
        timer.cancel()
