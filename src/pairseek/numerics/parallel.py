"""Execution of kernels on several threads, with results equal to the bit for any number of them.

A range is always cut at the same places, each piece writes only its own rows, and the pieces are handed to a
pool. Kernels release the GIL. A plain pool is used rather than numba's own parallel loops because those are not
safe to enter from two Python threads at once, as a web service does, and compile several times longer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pairseek.core.validation import whole
from pairseek.errors import InvalidParameter

ENVIRONMENT = "PAIRSEEK_THREADS"
_pool: tuple[int, int, ThreadPoolExecutor] | None = None
_threads: int | None = None


def thread_count() -> int:
    """Return the number of threads: `set_thread_count`, else ``PAIRSEEK_THREADS``, else the available cores."""
    if _threads is not None:
        return _threads
    text = os.environ.get(ENVIRONMENT, "")
    if text:
        if not text.isdigit() or int(text) < 1:
            raise InvalidParameter(f"{ENVIRONMENT} is {text!r}: give a whole number, at least 1")
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def set_thread_count(threads: int | None) -> None:
    """Use this many threads from now on in this process; None: as the environment says.

    Examples
    --------
    >>> import pairseek as ps
    >>> ps.set_thread_count(1)   # results do not depend on it
    """
    global _threads
    _threads = None if threads is None else whole(threads, "the number of threads")


def _workers() -> ThreadPoolExecutor:
    """Return the shared thread pool; a new one after the number of threads or the process has changed."""
    global _pool
    # A forked child inherits the pool object but not its threads, so the process id is part of the key.
    key = (thread_count(), os.getpid())
    pool = _pool
    if pool is None or pool[:2] != key:
        # Two concurrent callers may create two pools; the unreferenced one ends with its last piece.
        _pool = pool = (*key, ThreadPoolExecutor(key[0], thread_name_prefix="pairseek"))
    return pool[2]


def for_ranges(kernel: Callable[..., None], n: int, chunk: int, *arguments: object) -> None:
    """Call ``kernel(start, stop, *arguments)`` for the pieces of ``range(n)``, on all threads."""
    pieces = [(start, min(start + chunk, n)) for start in range(0, n, chunk)]
    if len(pieces) <= 1 or thread_count() <= 1:
        for start, stop in pieces:
            kernel(start, stop, *arguments)
        return
    workers = _workers()
    futures = [workers.submit(kernel, start, stop, *arguments) for start, stop in pieces]
    for future in futures:
        future.result()
