"""Shared state of one worker: database, sessions, prefetching, rate limits and rendering."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from anyio import CapacityLimiter
from fastapi import Request
from starlette.responses import HTMLResponse

from pairseek.store import migrate, people
from pairseek.store.database import Database
from pairseek.store.sessions import SessionRow
from pairseek.web.access.auth import LOGIN_COOKIE, MAX_CONCURRENT_HASHES
from pairseek.web.access.rates import Rates
from pairseek.web.access.security import CSRF_COOKIE, csrf_token, form_nonce, set_cookie
from pairseek.web.learning.learner import Learner
from pairseek.web.operations.metrics import Latency
from pairseek.web.operations.readiness import Readiness
from pairseek.web.operations.rounds import Background, logging_errors
from pairseek.web.pages import languages, preferred_language, render
from pairseek.web.pages.contexts.shared import StateSchema
from pairseek.web.results.findings_keeper import FindingsKeeper
from pairseek.web.results.recent_pages import RecentPages
from pairseek.web.sessions.advance import Answer
from pairseek.web.sessions.housekeeping import Housekeeper
from pairseek.web.sessions.links import link_key
from pairseek.web.sessions.prefetch import Gate, Prefetcher
from pairseek.web.sessions.service import Sessions
from pairseek.web.settings import Settings
from pairseek.web.studies.attributes import AttributeCache
from pairseek.web.studies.catalogue import Catalogue, Study
from pairseek.web.views.overview import Overview

T = TypeVar("T")

# Participants' requests that a worker serves at a time: one computes while the other waits for the disk.
_REQUEST_THREADS = 2
# Heavy tasks that a worker does at a time: one may wait for the disk, or compute without the interpreter lock. Uploads
# may take minutes, so results and exports have threads of their own.
_HEAVY_THREADS = 2
_RESULT_THREADS = 2
# Downloads of a worker that wait for findings at a time.
_WAITING_DOWNLOADS = 8
# In a similarity study, the learner checks whether learning is due after every this many answers of a session.
_ANSWERS_PER_CHECK = 5


@dataclass(eq=False)
class Service:
    """State of one worker, shared by all routes."""

    settings: Settings
    database: Database
    catalogue: Catalogue
    sessions: Sessions
    secret: str
    link_key: str
    gate: Gate
    prefetcher: Prefetcher | None
    rates: Rates
    overview: Overview
    findings: FindingsKeeper
    result_pages: RecentPages
    readiness: Readiness
    housekeeper: Housekeeper
    learner: Learner
    attributes: AttributeCache
    latency: Latency = field(default_factory=Latency)
    hashing: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(MAX_CONCURRENT_HASHES))
    waiting: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_WAITING_DOWNLOADS))
    _workers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="pairseek-later")
    )
    _turns: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_REQUEST_THREADS, thread_name_prefix="pairseek-answer")
    )
    _heavy: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_HEAVY_THREADS, thread_name_prefix="pairseek-heavy")
    )
    _results: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_RESULT_THREADS, thread_name_prefix="pairseek-result")
    )

    @classmethod
    def open(cls, settings: Settings, preloaded: Mapping[int, Study] | None = None) -> Service:
        """Open the database, check its schema, and start the background threads; ``preloaded`` maps ids to studies.

        Message catalogues are read first, so that an invalid file is reported at the start.
        """
        languages()
        database = Database(settings.database)
        migrate.prepare(database)
        catalogue = Catalogue(database, preloaded)
        fresh = secrets.token_urlsafe(32)
        secret = settings.secret or database.write(lambda connection: people.secret(connection, fresh))
        sessions, gate = Sessions(database, catalogue, settings.kept_sessions, settings.most_sessions), Gate()
        prefetcher = Prefetcher(sessions, gate) if settings.prefetch != "never" else None
        if prefetcher is not None:
            prefetcher.start()
        rates, overview = Rates.of(settings, database, secret), Overview(database)
        findings, result_pages = FindingsKeeper(database, catalogue), RecentPages()
        findings.start()

        def clear() -> None:
            sessions.clear_cache()
            overview.clear_cache()
            findings.clear_cache()
            result_pages.clear()
            catalogue.clear_cache()

        housekeeper = Housekeeper(database, catalogue, clear)
        housekeeper.start()
        learner = Learner(database, catalogue)
        learner.start()
        background: list[Background] = [housekeeper, learner.rounds, findings.rounds]
        if prefetcher is not None:
            background.append(prefetcher.rounds)
        return cls(
            settings,
            database,
            catalogue,
            sessions,
            secret,
            link_key(database),
            gate,
            prefetcher,
            rates,
            overview,
            findings,
            result_pages,
            Readiness(database, background),
            housekeeper,
            learner,
            AttributeCache(database),
        )

    def close(self) -> None:
        """Stop the background threads and close the database."""
        if self.prefetcher is not None:
            self.prefetcher.stop()
        self.housekeeper.stop()
        self._turns.shutdown(cancel_futures=True)
        self._heavy.shutdown(cancel_futures=True)
        self._results.shutdown(cancel_futures=True)
        self.learner.stop()
        self._workers.shutdown(cancel_futures=True)
        self.findings.stop()
        self.readiness.close()
        self.database.close()

    def run_later(self, task: Callable[[], None]) -> None:
        """Run a task in a background thread."""
        self._workers.submit(logging_errors("task", task))

    async def run_in_turn(self, task: Callable[[], T]) -> T:
        """Run the task of a participant's request in one of a few threads, first come, first served.

        More threads would slow each other down by waiting for the interpreter lock.
        """
        with self.gate.working():
            return await asyncio.get_running_loop().run_in_executor(self._turns, task)

    async def run_heavy(self, task: Callable[[], T]) -> T:
        """Run the task of an upload, which may take long and much memory, in one of a few threads, in order.

        However many such requests arrive, participants wait for the interpreter lock of few threads.
        """
        return await asyncio.get_running_loop().run_in_executor(self._heavy, task)

    async def run_for_result(self, task: Callable[[], T]) -> T:
        """Run a task that computes a result, a page or a part of a download, in one of a few threads, in order."""
        return await asyncio.get_running_loop().run_in_executor(self._results, task)

    async def stream(self, chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the chunks of a download, each computed in its turn, so that downloads share the threads."""
        while (chunk := await self.run_for_result(lambda: next(chunks, None))) is not None:
            yield chunk

    def store_answer(self, row: SessionRow, answer: Answer) -> StateSchema:
        """Store an answer, return the next state, and start prefetching."""
        self.rates.answers.check(row.id)
        began = time.perf_counter()
        state = self.sessions.answer(row, answer)
        self.latency.add(time.perf_counter() - began)
        prefetcher = self.prefetcher_of(row)
        if prefetcher is not None and state["query"] is not None:
            prefetcher.prefetch(row, state["query"]["query"])
        if state["query"] is None or (
            self._is_similarity(row) and state["progress"]["answered"] % _ANSWERS_PER_CHECK == 0
        ):
            self.learner.check_soon()
        return state

    def prefetcher_of(self, row: SessionRow) -> Prefetcher | None:
        """Return the prefetcher if the session's study uses it, by default because its items take time to load."""
        if self.settings.prefetch == "always" or self.catalogue.by_id(row.study_id).has_media:
            return self.prefetcher
        return None

    def _is_similarity(self, row: SessionRow) -> bool:
        return self.catalogue.by_id(row.study_id).configuration.is_similarity

    def undo_answer(self, row: SessionRow, query: str) -> StateSchema:
        """Undo the last answer, which must be the one to this query."""
        self.rates.answers.check(row.id)
        return self.sessions.undo(row, query)

    def page(
        self, request: Request, name: str, data: Mapping[str, Any], *, status: int = 200, language: str | None = None
    ) -> HTMLResponse:
        """Render a page with the CSRF token for its forms."""
        nonce = form_nonce(request)
        chosen = page_language(request, language)
        text = render(
            name,
            {**data, "csrf": csrf_token(self.secret, nonce, request.cookies.get(LOGIN_COOKIE))},
            language=chosen,
            # Set by the routes of participants: a study's own texts.
            texts=getattr(request.state, "texts", {}),
        )
        response = HTMLResponse(text, status)
        if request.cookies.get(CSRF_COOKIE) != nonce:
            set_cookie(response, CSRF_COOKIE, nonce, self.settings)
        return response


def page_language(request: Request, language: str | None = None) -> str:
    """Return a language if it has a catalogue, else the one that the browser prefers."""
    return language if language in languages() else preferred_language(request.headers.get("accept-language"))


async def service_of(request: Request) -> Service:
    """Return the service of a request. Asynchronous, because starting a thread would cost more than the call."""
    service = request.app.state.service
    assert isinstance(service, Service)
    return service
