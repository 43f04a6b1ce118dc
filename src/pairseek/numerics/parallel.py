"""Multithreaded execution of kernels, with bit-identical results for any number of threads.

A range is always cut at the same points, each chunk writes only its own rows, and a thread pool runs the chunks.
Kernels release the GIL. numba's own parallel loops are not used: they take several times longer to compile, and two
threads must not enter them at once, which would happen in a web service.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pairseek.core.validation import whole
from pairseek.errors import InvalidParameter

THREADS_VARIABLE = "PAIRSEEK_THREADS"
_pool: tuple[int, int, ThreadPoolExecutor] | None = None
_threads: int | None = None


def thread_count() -> int:
    """Return the number of threads: from `set_thread_count`, else ``PAIRSEEK_THREADS``, else the available cores."""
    if _threads is not None:
        return _threads
    text = os.environ.get(THREADS_VARIABLE, "")
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise InvalidParameter(f"{THREADS_VARIABLE} is {text!r}: give a whole number, at least 1")
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def set_thread_count(threads: int | None) -> None:
    """Set the number of threads of this process; None restores the default from the environment.

    Examples
    --------
    >>> import pairseek as ps
    >>> ps.set_thread_count(1)   # results do not depend on it
    """
    global _threads
    _threads = None if threads is None else whole(threads, "the number of threads")


def _workers() -> ThreadPoolExecutor:
    """Return the shared thread pool; replace it when the number of threads or the process has changed."""
    global _pool
    # A forked child inherits the pool object but not its threads, so the process id is part of the key.
    key = (thread_count(), os.getpid())
    pool = _pool
    if pool is None or pool[:2] != key:
        # Two concurrent callers may create two pools; the one that is not kept ends after its last chunk.
        _pool = pool = (*key, ThreadPoolExecutor(key[0], thread_name_prefix="pairseek"))
    return pool[2]


def for_ranges(kernel: Callable[..., None], n: int, chunk: int, *arguments: object) -> None:
    """Call ``kernel(start, stop, *arguments)`` for each chunk of ``range(n)``, on all threads."""
    ranges = [(start, min(start + chunk, n)) for start in range(0, n, chunk)]
    if len(ranges) <= 1 or thread_count() <= 1:
        for start, stop in ranges:
            kernel(start, stop, *arguments)
        return
    workers = _workers()
    futures = [workers.submit(kernel, start, stop, *arguments) for start, stop in ranges]
    for future in futures:
        future.result()
