"""Steps of a session: pure functions from a snapshot and a request to the rows to be stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from pairseek.core.types import JSON
from pairseek.errors import AnswerConflict, UnknownQuery
from pairseek.store.events import AskedPair, EventRow
from pairseek.web.errors import invalid
from pairseek.web.sessions.access import is_expired, result_confirmed, session_expired, study_closed, too_many_events
from pairseek.web.sessions.playing import PlaybackSide, Played, check_played, has_failed, playback_of
from pairseek.web.sessions.snapshot import Snapshot
from pairseek.web.studies.catalogue import Study

TIMESTAMP = r"^([0-9][0-9TZ:.+-]*)?$"
"""Pattern of times that clients send; a spreadsheet would execute a text that begins with a sign."""
EVENTS_PER_ANSWER = 4
"""Number of events (answers, skips, undos) that a session may have per answer that the study asks for."""
SPARE_EVENTS = 100
"""Number of events that a session may have in addition."""
# Number of answers that this limit assumes if a study has only stop rules.
_ASSUMED_ANSWERS = 1000

_Time: TypeAlias = Annotated[str | None, Field(max_length=32, pattern=TIMESTAMP)]
_Count: TypeAlias = Annotated[int | None, Field(ge=0, le=2**31 - 1)]


class Answer(BaseModel):
    """Answer to the current query."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str = Field(max_length=64, examples=["p1"])
    outcome: Literal["left", "right", "tie", "skip"]
    rt_ms: _Count = Field(default=None, description="reaction time")
    shown_at: _Time = None
    sent_at: _Time = None
    attempt: _Count = None
    played: dict[PlaybackSide, Played] | None = Field(
        default=None,
        description="whether the sound or video on each side was played; failed: it could not be loaded; null: unknown",
    )


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """Changes that a request makes to a session, to be stored in one transaction.

    Attributes
    ----------
    before, after
        Session before and after the step.
    new
        Pairs to store.
    event
        Answer or undo to store; `with_time` adds the time and the duration of the computation.
    end
        Reason and result, if the session ends.
    prefetched
        Whether the next pair was computed in advance.
    """

    before: Snapshot
    after: Snapshot
    new: tuple[AskedPair, ...] = ()
    event: EventRow | None = None
    end: tuple[str, JSON] | None = None
    prefetched: bool = False

    def with_time(self, at: str, milliseconds: float) -> Step:
        """Return the step with the time at which it is stored and the duration of its computation."""
        event = None if self.event is None else replace(self.event, at=at, server_ms=milliseconds)
        new = tuple(replace(pair, asked_at=at) for pair in self.new)
        after = self.after if self.end is None else self.after.with_end(*self.end, at)
        return replace(self, after=after.with_open_pair(new[-1]) if new else after, new=new, event=event)


def resume(snapshot: Snapshot) -> Step | None:
    """Choose a pair for a session without an open pair, or end it; return None if there is nothing to store."""
    if snapshot.row.finished_at is not None:
        return None
    snapshot.parts.check()
    return None if snapshot.current is not None else _next_step(snapshot, snapshot)


def advance(snapshot: Snapshot, answer: Answer) -> Step | None:
    """Apply an answer to the open pair, and choose the next pair.

    Repeating a stored answer changes nothing. An answer that cannot be stored raises an error with the reason.
    """
    stored = snapshot.outcome_of(answer.query)
    if stored is not None:
        if stored != answer.outcome:
            raise AnswerConflict(
                f"query {answer.query!r} has the answer {stored}, received {answer.outcome}: undo first to change it"
            )
        return resume(snapshot)
    study = snapshot.study
    _check_open(snapshot)
    if is_expired(snapshot.row, study):
        raise session_expired()
    _check_room(snapshot)
    # The first request of a session may answer a pair that no earlier request has asked for.
    first_step = resume(snapshot)
    asked = snapshot if first_step is None else first_step.after
    pair = asked.current
    if pair is None or pair.name != answer.query:
        open_query = "none" if pair is None else repr(pair.name)
        raise UnknownQuery(f"query {answer.query!r} is not open in this session: the open query is {open_query}")
    played = playback_of(study, pair, answer.played)
    _check_offered(study, answer.outcome, played)
    facts = (answer.outcome, answer.rt_ms, answer.shown_at, answer.sent_at, answer.attempt, "", None)
    event = EventRow(asked.row.id, asked.events, pair.name, "answer", *facts, played)
    step = _next_step(asked, asked.after_answer(answer.outcome), answer.outcome)
    return replace(step, event=event, new=(*(() if first_step is None else first_step.new), *step.new))


def undo(snapshot: Snapshot, name: str) -> Step | None:
    """Undo the last answer, which must belong to this pair, and ask the pair again.

    The snapshot's stored pairs must include the pair of the last answer. Undoing an answer twice changes nothing.
    """
    if name in snapshot.undone:
        return resume(snapshot)
    if not snapshot.study.configuration.offer.undo:
        raise invalid("this study does not offer undo", name, "Answer the next pair.", "not_offered")
    _check_open(snapshot)
    snapshot.parts.check()
    if snapshot.row.confirmed_at is not None:
        raise result_confirmed()
    _check_room(snapshot)
    if not snapshot.done or snapshot.done[-1].name != name:
        last = "none" if not snapshot.done else repr(snapshot.done[-1].name)
        raise UnknownQuery(f"query {name!r} was not answered last: the last answered query is {last}; undo that one")
    event = EventRow(snapshot.row.id, snapshot.events, name, "undo", None, None, None, None, None, "", None)
    undone = snapshot.without_last_answer()
    reopened = replace(undone, row=replace(undone.row, finished_at=None, reason=None, final=None))
    return replace(_next_step(snapshot, reopened), event=event)


def _next_step(before: Snapshot, after: Snapshot, outcome: str = "") -> Step:
    """Return the step to the pair that follows the answers, or to the end of the session."""
    state, is_prefetched = after.state, outcome in before.prefetched
    pair = before.prefetched[outcome] if is_prefetched else after.next_pair(state)
    is_stored = pair is not None and any(other.name == pair.name for other in after.asked)
    end = None if pair is not None else (str(state.next_pair[1]), state.final())
    new = () if pair is None or is_stored else (pair,)
    return Step(before, after.with_open_pair(pair), new, end=end, prefetched=is_prefetched)


def _check_open(snapshot: Snapshot) -> None:
    if not snapshot.accepts_answers:
        raise study_closed(snapshot.study.row.slug)


def _check_room(snapshot: Snapshot) -> None:
    if snapshot.events >= EVENTS_PER_ANSWER * (snapshot.study.configuration.answers or _ASSUMED_ANSWERS) + SPARE_EVENTS:
        raise too_many_events()


def _check_offered(study: Study, outcome: str, played: Mapping[str, str] | None) -> None:
    """Raise a `Problem` for an answer that the study does not offer, or that came before everything was played."""
    offer = study.configuration.offer
    # A pair can always be skipped if an item could not be loaded.
    is_offered = {"tie": offer.tie, "skip": offer.skip or has_failed(played)}
    if not is_offered.get(outcome, True):
        raise invalid(f"this study does not offer a {outcome}", outcome, "Send left or right.", "not_offered")
    check_played(study, outcome, played)
