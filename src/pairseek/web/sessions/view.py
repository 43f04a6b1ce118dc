"""State of a session as pages and the API show it."""

from __future__ import annotations

from pairseek.store.events import AskedPair
from pairseek.web.pages.contexts.shared import PairSchema, StateSchema, Status
from pairseek.web.sessions.snapshot import Snapshot
from pairseek.web.sessions.state import count_answers
from pairseek.web.studies.catalogue import Study


def outcomes_of(study: Study) -> list[str]:
    """Return the outcomes that the study offers."""
    offer = study.configuration.offer
    return ["left", "right", *(["tie"] if offer.tie else []), *(["skip"] if offer.skip else [])]


def state_of(snapshot: Snapshot) -> StateSchema:
    """Return the state of a session as JSON for pages and the API."""
    study, current, accepts = snapshot.study, snapshot.current, snapshot.accepts_answers
    configuration = study.configuration
    offer = configuration.offer
    status: Status = "finished" if current is None else "asking" if accepts else "closed"
    can_undo = offer.undo and accepts and snapshot.row.confirmed_at is None
    answered, remaining = count_answers(snapshot.done), _remaining(snapshot)
    return {
        "status": status,
        "query": pair_of(study, current) if status == "asking" and current is not None else None,
        "progress": {
            "answered": answered,
            "total": configuration.answers if not configuration.stops_early else None,
            "remaining": remaining,
            "share": 1.0 if current is None else _share(answered, remaining, configuration.answers),
        },
        "can": {
            "undo": snapshot.done[-1].name if snapshot.done and can_undo else None,
            "tie": offer.tie,
            "skip": offer.skip,
        },
        "result": f"/s/{study.row.slug}/result" if current is None else None,
    }


def _share(answered: int, remaining: int | None, maximum: int | None) -> float:
    """Return the fraction of the answers that have been given, of the maximum if the number cannot be predicted."""
    if remaining is not None:
        return answered / max(1, answered + remaining)
    return 0.0 if maximum is None else answered / max(1, maximum)


def _remaining(snapshot: Snapshot) -> int | None:
    """Return the number of remaining answers; with stop rules, the forecast stored with the open pair."""
    if snapshot.current is None:
        return 0
    configuration = snapshot.study.configuration
    if configuration.stops_early:
        remaining: int | None = snapshot.current.details["remaining"]
        return remaining
    return None if configuration.answers is None else max(0, configuration.answers - count_answers(snapshot.done))


def pair_of(study: Study, pair: AskedPair) -> PairSchema:
    """Return a pair as JSON, without its kind, which participants must not see."""
    anchor = pair.details.get("anchor")
    return {
        "query": pair.name,
        "number": pair.position + 1,
        "anchor": None if anchor is None else study.card(anchor),
        "left": study.card(pair.left),
        "right": study.card(pair.right),
    }
