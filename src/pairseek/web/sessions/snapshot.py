"""Snapshot of a session: the content of its rows, with which a request continues.

A worker caches the snapshots of recent sessions. They share items, parts and strings, so an answer takes about a
hundred bytes. The search is rebuilt from a snapshot on demand, which is faster than choosing the next pair.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from pairseek.core.types import JSON
from pairseek.store.events import AnsweredPair, Answers, AskedPair
from pairseek.store.sessions import SessionRow
from pairseek.web.sessions.parts import SessionParts
from pairseek.web.sessions.similarity import session_state
from pairseek.web.sessions.state import SessionState, answered_pair, answers_hash
from pairseek.web.studies.catalogue import Study


@dataclass(frozen=True, eq=False, slots=True)
class Snapshot:
    """Session in one of its versions.

    Attributes
    ----------
    row
        Stored row of the session.
    study, parts
        Study and parts, shared with other sessions.
    done
        Answers that were not undone.
    undone
        Outcomes of undone answers, by the name of their pair.
    events
        Number of stored events.
    asked
        Stored pairs from the current position onwards.
    current
        Open pair; None until it is chosen, and at the end.
    prefetched
        Next pairs that were computed in advance, by the answer to the open pair; None if the answer ends the session.
    """

    row: SessionRow
    study: Study
    parts: SessionParts
    done: tuple[AnsweredPair, ...] = ()
    undone: Mapping[str, str] = field(default_factory=dict)
    events: int = 0
    asked: tuple[AskedPair, ...] = ()
    current: AskedPair | None = None
    prefetched: Mapping[str, AskedPair | None] = field(default_factory=dict)

    @classmethod
    def of_rows(
        cls,
        row: SessionRow,
        study: Study,
        parts: SessionParts,
        answers: Answers,
        asked: tuple[AskedPair, ...],
        void: Container[str],
    ) -> Self:
        """Build a snapshot from stored rows; ``void`` contains the names of the pairs whose answers are void."""
        done = tuple(pair._replace(void=True) if pair.name in void else pair for pair in answers.done)
        snapshot = cls(row, study, parts, done, answers.undone, answers.events, asked)
        return snapshot if row.finished_at is not None else replace(snapshot, current=snapshot.open_pair())

    @property
    def state(self) -> SessionState:
        """State of the session, which is rebuilt on each access."""
        return session_state(self.study.configuration, self.parts, self.row.seed, self.done)

    @property
    def accepts_answers(self) -> bool:
        """Whether the session accepts answers; previews and simulated sessions do so even in a closed study."""
        return self.row.accepts_answers

    def outcome_of(self, name: str) -> str | None:
        """Return the answer to a pair, even if it was undone; None without an answer."""
        outcome = next((pair.outcome for pair in self.done if pair.name == name), None)
        return self.undone.get(name) if outcome is None else outcome

    def after_answer(self, outcome: str) -> Self:
        """Return the session after this answer to the open pair, before the next pair is chosen."""
        assert self.current is not None
        return self._with_done((*self.done, answered_pair(self.current, outcome)))

    def without_last_answer(self) -> Self:
        """Return the session after its last answer was undone, before the pair is asked again."""
        last = self.done[-1]
        return replace(self._with_done(self.done[:-1]), undone={**self.undone, last.name: last.outcome})

    def _with_done(self, done: tuple[AnsweredPair, ...]) -> Self:
        row = replace(self.row, version=self.row.version + 1)
        return replace(self, row=row, done=done, events=self.events + 1, current=None, prefetched={})

    def with_open_pair(self, pair: AskedPair | None) -> Self:
        """Return the session with this open pair."""
        others = (
            other
            for other in self.asked
            if other.position >= len(self.done) and (pair is None or other.name != pair.name)
        )
        return replace(self, asked=(*others, *(() if pair is None else (pair,))), current=pair)

    def with_end(self, reason: str, result: JSON, at: str) -> Self:
        """Return the session with its end."""
        return replace(self, row=replace(self.row, finished_at=at, reason=reason, final=result))

    def open_pair(self) -> AskedPair | None:
        """Return the stored pair that was asked after these answers and is not answered; None if there is none."""
        return next((pair for pair in self._pairs_after_done() if self.outcome_of(pair.name) is None), None)

    def next_pair(self, state: SessionState) -> AskedPair | None:
        """Return the pair to ask after these answers; None at the end.

        The pair is a function of the answers and the stored pairs. If its answer was undone, it is asked again under a
        new name.
        """
        stored = self.open_pair()
        if stored is not None:
            return stored
        undone = self._pairs_after_done()
        pair = undone[-1] if undone else state.next_pair[0]
        if pair is None:
            return None
        count = sum(other.position == len(self.done) for other in self.asked)
        name = f"p{len(self.done) + 1}" if not count else f"p{len(self.done) + 1}-{count + 1}"
        return replace(pair if undone else state.with_details(pair), session_id=self.row.id, name=name)

    def _pairs_after_done(self) -> list[AskedPair]:
        """Return the stored pairs that were asked after exactly these answers."""
        pairs = [pair for pair in self.asked if pair.position == len(self.done)]
        answers = answers_hash(self.done) if pairs else None
        return [pair for pair in pairs if pair.details.get("after") == answers]
