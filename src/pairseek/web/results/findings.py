"""Findings of a study: whose answers count, the group ranking and the segments, kept until the answers change."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from cachetools import LRUCache

from pairseek.core.types import FloatArray
from pairseek.errors import InvalidChoices
from pairseek.model.items import Items
from pairseek.people.population import Choices
from pairseek.people.ranking import Ranking, Segmentation
from pairseek.people.ranking.ranking import ranked
from pairseek.people.ranking.segments import segmented
from pairseek.people.ranking.utilities import UtilityPosterior, mean_utilities
from pairseek.store import sessions
from pairseek.store.database import Database
from pairseek.web.errors import Problem
from pairseek.web.learning.study_choices import choices_of
from pairseek.web.pages.contexts.study import Quality
from pairseek.web.results.quality import NOTES, manner_of, quality_indicators
from pairseek.web.rounds import note_failure
from pairseek.web.sessions.history import SessionHistory, all_histories, estimates_along
from pairseek.web.studies.catalogue import Study

# Number of rankings in memory, each with its segments, and of studies with them.
_KEPT = 32
# Largest number of people on the map of a group, the newest ones.
_MOST_POINTS = 400
# Seconds for which a download waits for findings.
_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Participation:
    """Data quality of one person's answers.

    Attributes
    ----------
    session, name
        Id of the session, and the id that came with the link.
    answers
        Number of answers that count, attention pairs not included.
    quality
        Signs of quality: see `pairseek.web.results.quality.quality_indicators`.
    void
        Whether a researcher has voided the session.
    """

    session: str
    name: str | None
    answers: int
    quality: Quality
    void: bool

    @property
    def left_out(self) -> bool:
        """Whether the ranking leaves the person out: the session is void, or a sign of quality is conspicuous."""
        return self.void or not NOTES.issuperset(self.quality["flags"])


@dataclass(frozen=True, eq=False)
class GroupAnswers:
    """Answers of the people of a study.

    Attributes
    ----------
    people
        Everybody who has answered, the oldest first.
    careful, everyone
        Choices of those whom the ranking does not leave out, and of all but void sessions; None if there are none.
    simulated
        Whether they are simulated people, because no person has answered yet.
    first, last
        Times of the first and the last answer.
    points
        Estimate of the newest people on the items' coordinates: mean and covariance by session.
    """

    people: tuple[Participation, ...]
    careful: Choices | None
    everyone: Choices | None
    simulated: bool
    first: str | None = None
    last: str | None = None
    points: Mapping[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    def choices(self, *, everyone: bool = False) -> Choices:
        """Return the choices; raise `InvalidChoices` with the reason if there are none."""
        found = self.everyone if everyone else self.careful
        if found is not None:
            return found
        if not self.people:
            raise InvalidChoices(
                "nobody has answered yet: a ranking of a group needs at least three people", reason="nobody"
            )
        if all(one.void for one in self.people):
            raise InvalidChoices(
                "all sessions are void: restore some of them, or collect answers of others", reason="void"
            )
        raise InvalidChoices(
            "the ranking leaves out everybody who has answered, because of how they answered: see the table of people, "
            "or rank with everyone",
            reason="left_out",
        )


def no_ranking(study: Study) -> InvalidChoices:
    """Return the error for the ranking of a similarity study."""
    return InvalidChoices(
        f"the study {study.row.slug!r} asks what is alike, and not what people like: it has no ranking"
    )


def group_answers(database: Database, study: Study, *, located: bool = False) -> GroupAnswers:
    """Read who answered what; simulated people count as long as there is no answer of a person.

    The estimates of people on the map are there if ``located``.
    """
    if study.configuration.is_similarity:
        raise no_ranking(study)
    histories = [one for one in all_histories(database, study) if one.done]
    people = [one for one in histories if one.row.kind == "person"]
    simulated = not people and bool(histories)
    chosen = histories if simulated else people
    participations = tuple(_participation(study, one) for one in chosen)
    kept = [one for one, who in zip(chosen, participations, strict=True) if not who.left_out]
    times = sorted(event.at for one in chosen for event in one.events if event.kind == "answer")
    return GroupAnswers(
        participations,
        choices_of(study, kept),
        choices_of(study, [one for one in chosen if not one.is_void]),
        simulated,
        times[0] if times else None,
        times[-1] if times else None,
        _points(study, chosen) if located else {},
    )


def _points(study: Study, histories: list[SessionHistory]) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the estimates of the newest people: as stored at the end of the session, or computed."""
    out = {}
    for one in histories[-_MOST_POINTS:] if study.items.d else []:
        final = one.row.final
        if final is None or "covariance" not in final or any(answered.void for answered in one.done):
            if not one.parts.is_current:
                continue
            state = one.state(study, one.done)
            final = {**state.estimate_record(), "covariance": state.covariance}
        out[one.row.id] = np.array(final["mean"]), np.array(final["covariance"])
    return out


def _participation(study: Study, one: SessionHistory) -> Participation:
    done, row = one.done, one.row
    quality = quality_indicators(study.configuration, done, one.checks, manner_of(estimates_along(study, one)))
    count = sum(answered.counts for answered in done)
    return Participation(row.id, row.participant or row.prolific_pid, count, quality, one.is_void)


@dataclass(frozen=True, eq=False)
class GroupFindings:
    """Population model of a group, with its ranking and its segments."""

    model: UtilityPosterior
    ranking: Ranking
    segments: Segmentation


class FindingsCache:
    """Findings in memory, by the hashes of their choices and items: they hold until an answer comes or goes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: LRUCache[tuple[str, str], GroupFindings] = LRUCache(_KEPT)

    def known(self, choices: Choices, items: Items) -> GroupFindings | None:
        """Return findings that were computed before."""
        with self._lock:
            return self._known.get((choices.hash, items.hash))

    def of(self, choices: Choices, items: Items) -> GroupFindings:
        """Return the findings, computed if they are not known; raise `InvalidChoices` if there is nothing to rank."""
        found = self.known(choices, items)
        if found is None:
            model = mean_utilities(choices, items)
            found = GroupFindings(model, ranked(model, items), segmented(model))
            with self._lock:
                self._known[choices.hash, items.hash] = found
        return found

    def clear(self) -> None:
        """Remove all findings from memory, because somebody was forgotten."""
        with self._lock:
            self._known.clear()


CACHE = FindingsCache()
"""Findings of this process."""


def ranking_of(database: Database, study: Study, *, everyone: bool = False) -> Ranking:
    """Return the group ranking of a study; raise `InvalidChoices` if there is nothing to rank."""
    choices = group_answers(database, study).choices(everyone=everyone)
    return CACHE.of(choices, study.every_item).ranking


@dataclass(frozen=True, eq=False)
class StudyFindings:
    """Findings of a study at one time: without the people whom the ranking leaves out, and with everyone.

    Where there is nothing to rank, the error that says why is in place of the findings.
    """

    group: GroupAnswers
    careful: GroupFindings | InvalidChoices
    everyone: GroupFindings | InvalidChoices


def study_findings(database: Database, study: Study) -> StudyFindings:
    """Compute the findings of a study."""
    group = group_answers(database, study, located=True)
    return StudyFindings(group, _attempted(group, study, everyone=False), _attempted(group, study, everyone=True))


def _attempted(group: GroupAnswers, study: Study, *, everyone: bool) -> GroupFindings | InvalidChoices:
    try:
        return CACHE.of(group.choices(everyone=everyone), study.every_item)
    except InvalidChoices as error:
        return error.with_traceback(None)


class FindingsKeeper:
    """Findings of the studies of a database, computed by a thread of their own and kept until a session changes.

    Parameters
    ----------
    database
        Database of the studies.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: LRUCache[int, tuple[int, StudyFindings]] = LRUCache(_KEPT)
        self._running: dict[tuple[int, int], Future[StudyFindings]] = {}
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="pairseek-findings")

    def look(self, study: Study) -> tuple[StudyFindings | None, bool]:
        """Return the newest findings that are known, and whether they are current; otherwise begin to compute them."""
        known, running = self._begun(study)
        return known, running is None

    def awaited(self, study: Study) -> StudyFindings:
        """Return current findings as soon as the thread has computed them; raise a `Problem` after half a minute."""
        known, running = self._begun(study)
        if running is None:
            assert known is not None
            return known
        try:
            return running.result(_PATIENCE)
        except TimeoutError:
            raise Problem(
                503,
                "findings_not_ready",
                f"the findings of the study {study.row.slug!r} are being computed",
                received=study.row.slug,
                hint="Try again in a moment.",
                wait=10,
            ) from None

    def ranking(self, study: Study) -> Ranking:
        """Return the current group ranking, as `awaited`; raise `InvalidChoices` if there is nothing to rank."""
        if study.configuration.is_similarity:
            raise no_ranking(study)
        found = self.awaited(study).careful
        if isinstance(found, InvalidChoices):
            raise InvalidChoices(str(found), reason=found.reason, count=found.count)
        return found.ranking

    def _begun(self, study: Study) -> tuple[StudyFindings | None, Future[StudyFindings] | None]:
        """Return the newest findings that are known, and those being computed; None if the known ones are current."""
        number = study.row.id
        rows = self._database.read(lambda connection: sessions.of_study(connection, number, ["person", "simulated"]))
        mark = hash((study.row.additions, *((row.id, row.version, row.finished_at is None) for row in rows)))
        with self._lock:
            stored = self._known.get(number)
            if stored is not None and stored[0] == mark:
                return stored[1], None
            running = self._running.get((number, mark))
            if running is None:
                running = self._running[number, mark] = self._worker.submit(self._compute, study, mark)
        return None if stored is None else stored[1], running

    def _compute(self, study: Study, mark: int) -> StudyFindings:
        try:
            found = study_findings(self._database, study)
            with self._lock:
                self._known[study.row.id] = mark, found
            return found
        except Exception:
            # Nobody may be waiting for the future that holds it.
            note_failure("findings")
            raise
        finally:
            with self._lock:
                self._running.pop((study.row.id, mark), None)

    def clear_cache(self) -> None:
        """Remove all findings from memory, because somebody was forgotten."""
        CACHE.clear()
        with self._lock:
            self._known.clear()

    def close(self) -> None:
        """Stop the thread."""
        self._worker.shutdown(cancel_futures=True)
