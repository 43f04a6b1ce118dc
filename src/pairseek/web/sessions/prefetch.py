"""Prefetching of the next query for each possible answer.

Each worker has one prefetching thread. It starts a step only while the worker serves no request, skips queries that
have been answered meanwhile, and rests after a step that was starved of CPU, because requests need the CPU more. Its
priority is not lowered: if the thread were suspended while it holds the interpreter lock, requests would have to wait.
Prefetched and requested pairs are equal, because both are functions of the events.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, InvalidStateError

from pairseek.core.types import JSON
from pairseek.errors import PairseekError
from pairseek.numerics.parallel import thread_count
from pairseek.store.sessions import SessionRow
from pairseek.web.operations.rounds import Rounds, note_failure
from pairseek.web.sessions.service import Sessions
from pairseek.web.sessions.snapshot import Snapshot
from pairseek.web.sessions.view import outcomes_of, pair_of

# Largest number of waiting jobs; the oldest are dropped.
_MAX_JOBS = 200
# Seconds between two checks for jobs; a new job starts a round immediately unless the last round failed.
_ROUND_SECONDS = 1.0
# A step was starved of CPU if it computed for less than this share of its duration.
_MIN_CPU_SHARE = 0.6
# Shorter steps never count as starved.
_MIN_STEP_SECONDS = 0.004
# Duration of the rest after a starved step, as a multiple of the step's duration.
_REST_FACTOR = 8.0
# Longest rest after a step.
_MAX_REST_SECONDS = 1.0


class Gate:
    """Counter of requests in progress; background work waits until there are none."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._busy = 0

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Count a request while the block runs."""
        with self._condition:
            self._busy += 1
        try:
            yield
        finally:
            with self._condition:
                self._busy -= 1
                if not self._busy:
                    self._condition.notify_all()

    def wait_idle(self, seconds: float) -> bool:
        """Wait at most ``seconds`` until no request is in progress; return whether that succeeded."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._busy, seconds)


class Prefetcher:
    """Background thread that prefetches queries.

    Parameters
    ----------
    sessions
        Sessions whose next pairs are prefetched.
    gate
        Counter of requests, which take precedence.
    """

    def __init__(self, sessions: Sessions, gate: Gate) -> None:
        self._sessions, self._gate = sessions, gate
        self._condition = threading.Condition()
        self._jobs: OrderedDict[tuple[str, str], tuple[SessionRow, Future[JSON | None]]] = OrderedDict()
        self._rest_until = 0.0
        self.rounds = Rounds("prefetch", _ROUND_SECONDS, self.round)

    def start(self) -> None:
        """Start the thread."""
        self.rounds.start()

    def stop(self) -> None:
        """Stop after the current step."""
        self.rounds.stop()
        with self._condition:
            for _, future in self._jobs.values():
                future.cancel()
            self._jobs.clear()
        self.rounds.stop(10.0)

    def prefetch(self, row: SessionRow, query: str) -> Future[JSON | None]:
        """Prefetch the pair after each possible answer to a query; the result is None if it was answered meanwhile."""
        key = (row.id, query)
        with self._condition:
            job = self._jobs.get(key)
            if job is not None:
                return job[1]
            future: Future[JSON | None] = Future()
            if self.rounds.stopped:
                future.set_result(None)
                return future
            # A session has only one open query, so jobs for its earlier queries are obsolete.
            for older in [other for other in self._jobs if other[0] == row.id]:
                _settle(self._jobs.pop(older)[1], None)
            self._jobs[key] = (row, future)
            while len(self._jobs) > _MAX_JOBS:
                # The oldest query is the most likely to have been answered already.
                _, (_, oldest) = self._jobs.popitem(last=False)
                _settle(oldest, None)
        self.rounds.wake()
        return future

    def round(self) -> None:
        """Work through all waiting jobs."""
        while not self.rounds.stopped:
            with self._condition:
                if not self._jobs:
                    return
                # Newest first: its participant is the least likely to answer before the job is done.
                key, (row, future) = next(reversed(self._jobs.items()))
            result = None
            try:
                result = self._prefetch(row, key[1])
            except PairseekError:
                pass  # the request repeats the computation and reports the error
            except Exception:  # noqa: BLE001 - logged; the other sessions continue
                note_failure("prefetch")
            with self._condition:
                self._jobs.pop(key, None)
                _settle(future, result)

    def _prefetch(self, row: SessionRow, query: str) -> JSON | None:
        snapshot = self._snapshot_at(row, query)
        if snapshot is None:
            # Another worker has served this session so far.
            self._sessions.state(row)
            snapshot = self._snapshot_at(row, query)
        if snapshot is None:
            return None
        study = snapshot.study
        for outcome in outcomes_of(study):
            while not self._wait_for_turn():
                if self.rounds.stopped or self._snapshot_at(row, query) is None:
                    return None
            snapshot = self._step(row, query, outcome)
            if snapshot is None:
                return None
        no_pairs: JSON = {"query": query, "left": None, "right": None, "tie": None, "skip": None}
        pairs = {name: None if pair is None else pair_of(study, pair) for name, pair in snapshot.prefetched.items()}
        return {**no_pairs, **pairs}

    def _snapshot_at(self, row: SessionRow, query: str) -> Snapshot | None:
        """Return the snapshot of a session with this open query; None if it is not in memory or has moved on."""
        snapshot = self._sessions.peek(row.id)
        is_open = snapshot is not None and snapshot.current is not None and snapshot.current.name == query
        return snapshot if is_open else None

    def _wait_for_turn(self) -> bool:
        """Wait briefly for the end of the rest and of all requests; return whether the next step may begin."""
        rest = self._rest_until - time.monotonic()
        if rest > 0:
            time.sleep(min(rest, 0.1))
            return False
        return self._gate.wait_idle(1.0)

    def _back_off(self, seconds: float, cpu_seconds: float) -> None:
        """Rest after a step that was starved of CPU.

        If kernels use several threads, a step also waits for those threads, so its CPU time says nothing.
        """
        if thread_count() == 1 and seconds > _MIN_STEP_SECONDS and cpu_seconds < _MIN_CPU_SHARE * seconds:
            self._rest_until = time.monotonic() + min(_REST_FACTOR * seconds, _MAX_REST_SECONDS)

    def _step(self, row: SessionRow, query: str, outcome: str) -> Snapshot | None:
        """Prefetch the pair after this answer; return the snapshot with it, or None if the query is obsolete."""
        snapshot = self._snapshot_at(row, query)
        if snapshot is None or outcome in snapshot.prefetched:
            return snapshot
        start, cpu_start = time.perf_counter(), time.thread_time()
        after = snapshot.after_answer(outcome)
        pair = after.next_pair(after.state)
        self._back_off(time.perf_counter() - start, time.thread_time() - cpu_start)
        return self._sessions.add_prefetched(snapshot, outcome, pair)


def _settle(future: Future[JSON | None], result: JSON | None) -> None:
    """Set the result of a future unless it was cancelled."""
    with contextlib.suppress(InvalidStateError):
        future.set_result(result)
