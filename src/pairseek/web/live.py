"""A session in memory: what its rows lead to, and what a page sees of it."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, field

from pairseek._types import JSON
from pairseek.store.cache import Foreseen
from pairseek.store.database import now
from pairseek.store.events import EventRow, QueryRow
from pairseek.store.sessions import SessionRow
from pairseek.web.catalogue import Study
from pairseek.web.standing import Standing


@dataclass(frozen=True, slots=True)
class Said:
    """An answer as it comes in."""

    query: str
    outcome: str
    rt_ms: int | None = None
    shown_at: str | None = None
    sent_at: str | None = None
    attempt: int | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """What follows an answer that was not given yet."""

    standing: Standing
    query: QueryRow | None


@dataclass(eq=False)
class Live:
    """A session in memory."""

    row: SessionRow
    study: Study
    standing: Standing
    queries: dict[str, QueryRow]
    events: list[EventRow]
    current: QueryRow | None = None
    prepared: dict[str, Prepared] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    kept: int = 0
    foreseen: Foreseen | None = None
    """What was kept of the queries to come, until it is known whether it holds."""
    put_by: str | None = None
    """The query whose following ones are kept."""

    def answered_names(self) -> set[str]:
        """Queries that were answered, even if the answer was taken back."""
        return {event.query for event in self.events if event.kind == "answer"}


def outcomes_of(study: Study) -> list[str]:
    """What a person may say to a pair."""
    offer = study.configuration.offer
    return ["left", "right", *(["tie"] if offer.tie else []), *(["skip"] if offer.skip else [])]


def foreseen(live: Live, outcome: str) -> Prepared:
    """What would follow this answer to the open query."""
    asked, standing = _answering(live, outcome)
    names = live.answered_names() | {asked.name}
    return Prepared(standing, standing.query(live.row.id, list(live.queries.values()), names))


def put_by(live: Live) -> Foreseen | None:
    """What follows each answer to the open query, to be kept; None until all of it is known, and once it is kept."""
    asked, ready = live.current, dict(live.prepared)
    if asked is None or live.put_by == asked.name or set(ready) != set(outcomes_of(live.study)):
        return None
    live.put_by = asked.name
    content = {outcome: asdict(one.query) for outcome, one in ready.items() if one.query is not None}
    return Foreseen(live.row.id, asked.name, live.standing.place, content)


def take_up(live: Live) -> None:
    """Use what was kept, if it follows from where the session stands and the program that runs."""
    kept, asked = live.foreseen, live.current
    live.foreseen = None
    if kept is None or asked is None or kept.query != asked.name or kept.digest != live.standing.place:
        return
    live.put_by = asked.name
    for outcome, query in kept.content.items():
        live.prepared[outcome] = Prepared(_answering(live, outcome)[1], QueryRow(**query))


def _answering(live: Live, outcome: str) -> tuple[QueryRow, Standing]:
    """The open query, and where the session stands after this answer to it."""
    asked = live.current
    assert asked is not None
    event = EventRow(live.row.id, len(live.events), asked.name, "answer", outcome, None, None, None, None, now(), None)
    return asked, live.standing.answering(asked, event)


def state_of(live: Live) -> JSON:
    """What a page has to know now."""
    standing, study = live.standing, live.study
    offer = study.configuration.offer
    is_open = live.row.is_open or live.row.kind != "person"
    finished = live.current is None
    status = "finished" if finished else "asking" if is_open else "closed"
    last = standing.done[-1].query.name if standing.done and offer.undo and is_open else None
    answered, left = standing.answered, _left(live)
    return {
        "status": status,
        "query": pair_of(study, live.current) if status == "asking" and live.current is not None else None,
        "progress": {
            "answered": answered,
            "total": study.configuration.answers if not study.configuration.stop else None,
            "left": 0 if finished else left,
            "share": 1.0 if finished else 0.0 if left is None else answered / max(1, answered + left),
        },
        "can": {"undo": last, "tie": offer.tie, "skip": offer.skip},
        "result": f"/s/{study.row.slug}/result" if finished else None,
    }


def _left(live: Live) -> int | None:
    """The forecast, as it was when the open query was chosen where that is stored."""
    if live.current is not None and "left" in live.current.details:
        stored: int | None = live.current.details["left"]
        return stored
    return live.standing.left


def pair_of(study: Study, query: QueryRow) -> JSON:
    """A query as a page gets it: what kind of pair it is stays hidden."""
    return {
        "query": query.name,
        "number": query.position + 1,
        "left": study.card(query.left),
        "right": study.card(query.right),
    }
