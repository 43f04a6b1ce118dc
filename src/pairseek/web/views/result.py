"""View of a session's result: estimate, recommended items, map and sentences about the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from pairseek.core.maps import Plane, map_plane
from pairseek.core.types import JSON, FloatArray
from pairseek.model.items import Items
from pairseek.people.population import Population
from pairseek.search.goals import LIST_SIZE, Goal
from pairseek.web.pages.contexts.maps import Dot, MapData
from pairseek.web.pages.contexts.participant import LearnedContext, Near
from pairseek.web.sessions.history import SessionHistory
from pairseek.web.sessions.parts import SessionParts
from pairseek.web.sessions.state import NEAREST, EffectiveAnswer, SessionState
from pairseek.web.studies.catalogue import Study

# Number of items on the result page by goal: the nearest ones, the pick with two others, or the list.
_SHOWN: dict[Goal, int] = {"taste": NEAREST, "best": 3, "list": LIST_SIZE}
# Words for how certain the favourite is, with the smallest probability of being best that each needs.
_CERTAINTY = {"high": 0.8, "some": 0.4, "low": 0.0}
# Largest number of items whose pictures the map of a result shows.
_MAX_PICTURES = 40
REGION = 0.95
"""Posterior probability of the region that the map of a result shows."""


@lru_cache(maxsize=16)
def plane(items: Items) -> Plane:
    """Return the plane of the map of the items."""
    return map_plane(items.coordinates)


def flat(items: Items, points: FloatArray) -> list[tuple[float, float]]:
    """Project (m, d) points onto the plane of the map."""
    return pairs_of(plane(items).project(np.atleast_2d(points)))


def pairs_of(points: FloatArray) -> list[tuple[float, float]]:
    """Convert (m, 2) points to pairs of plain numbers."""
    return [(x, y) for x, y in points.tolist()]


@lru_cache(maxsize=16)
def _dots(items: Items) -> tuple[tuple[float, float, str | None, str], ...]:
    if not items.d:
        return ()
    colours = items.data.get("colour")
    places = flat(items, items.coordinates)
    return tuple(
        (x, y, str(colours[row]) or None if colours is not None else None, items.labels[row])
        for row, (x, y) in enumerate(places)
    )


def dots(items: Items) -> list[Dot]:
    """Return all items on the map as (x, y, colour, label); an empty list for items without coordinates."""
    if items.d == 0:
        return []
    return list(_dots(items))


@dataclass(frozen=True, slots=True)
class SessionResult:
    """Result of a session: recommended items, map, and sentences about the answers."""

    nearest: list[Near]
    map: MapData | None
    learned: list[LearnedContext]


def session_result(study: Study, session: SessionHistory, crowd: Population | None = None) -> SessionResult:
    """Return the result of a session, as stored at its end if the model version differs.

    Only the goal ``taste`` has a map and a sentence about it. For one of a study's first people, ``crowd`` is the
    appeal of the items to those who came before: it contributes to the recommendations together with the person's own
    answers.
    """
    goal = study.configuration.goal
    done = session.done
    study = study.at(session.row.catalogue)
    if study.configuration.is_similarity:
        return SessionResult([], None, _manner(done))
    state = session.state(study, done) if session.parts.computes_results(session.row) else None
    if state is not None and crowd is not None:
        state = replace(state, parts=SessionParts.resolved(study.configuration, session.parts.study_items, crowd))
    shown = nearest(study, state, session.row.final)[: _SHOWN[goal]]
    learned = [] if state is None else _learned(state, done, shown)
    if goal != "taste":
        return SessionResult(shown, None, [sentence for sentence in learned if sentence["key"] != "answers"])
    return SessionResult(shown, _map(study, estimate_facts(state, session.row.final)), learned)


def estimate_facts(state: SessionState | None, final: JSON | None) -> JSON | None:
    """Return the estimate: computed from the state if given, otherwise as stored at the end."""
    if state is None:
        return final
    return {**state.estimate_record(), "covariance": state.covariance.tolist()}


def nearest(study: Study, state: SessionState | None, final: JSON | None) -> list[Near]:
    """Return the recommended items in descending order of the choice share that is shown with them.

    They are computed from the state if given, otherwise as stored. The probability of being best is not shown, because
    an item about which little is known can have a higher one than items that are liked more on the whole.
    """
    if state is None:
        return [_near(study, name, chance, None) for name, chance in (final or {}).get("nearest", [])]
    items = state.search.recommend(NEAREST)
    shares = state.search.choice_shares(item.id for item in items)
    order = sorted(range(len(items)), key=lambda index: -shares[index])
    return [_near(study, str(items[index].id), items[index].probability, shares[index]) for index in order]


def _near(study: Study, name: str, probability: float, share: float | None) -> Near:
    return {"card": study.card(name), "probability": probability, "share": share}


def _map(study: Study, estimate: JSON | None) -> MapData | None:
    """Return the items, the estimate, and the outline of its credible region on the plane of the map."""
    if estimate is None or not study.items.d:
        return None
    mean, covariance = np.array(estimate["mean"]), np.array(estimate["covariance"])
    point, outline = plane(study.items).region(mean, covariance, REGION)
    return {
        "items": dots(study.items),
        "point": (float(point[0]), float(point[1])),
        "ellipse": pairs_of(outline),
        "pictures": _pictures(study),
    }


def _pictures(study: Study) -> list[tuple[float, float, str]]:
    """Return (x, y, address) of the pictures' smallest copies, if the items are few."""
    items = study.items
    names = items.data.get("image")
    if names is None or items.n > _MAX_PICTURES:
        return []
    return [
        (x, y, f"/media/{study.row.slug}/{name}/{study.pictures[str(name)][0][0]}")
        for (x, y), name in zip(flat(items, items.coordinates), names, strict=True)
        if study.pictures.get(str(name))
    ]


def _learned(state: SessionState, done: Sequence[EffectiveAnswer], nearest: list[Near]) -> list[LearnedContext]:
    """Return sentences as message-catalogue keys with their values."""
    axes = plane(state.parts.study_items).axes
    d = len(axes)
    before, after = (
        np.linalg.det(axes.T @ belief.covariance[:d, :d] @ axes + 1e-300 * np.eye(2))
        for belief in (state.search.with_events(()).belief, state.search.belief)
    )
    out: list[LearnedContext] = [_certainty(nearest[0])] if nearest else []
    if state.answered and before > 0:
        percent = max(1, round(100 * min(1.0, float(np.sqrt(after / before)))))
        out.append({"key": "answers", "values": {"count": state.answered, "percent": percent}})
    out += _manner(done)
    return out


def _certainty(best: Near) -> LearnedContext:
    """Return a sentence about how certain the favourite is."""
    key = next(word for word, threshold in _CERTAINTY.items() if best["probability"] >= threshold)
    return {"key": f"sure.{key}", "values": {"label": best["card"]["name"]}}


def _manner(done: Sequence[EffectiveAnswer]) -> list[LearnedContext]:
    """Return sentences about the person's consistency and speed."""
    repeated = [
        answer for answer in done if answer.query.kind == "repeated" and answer.winner is not None and not answer.void
    ]
    out: list[LearnedContext] = []
    if repeated:
        first = {answer.query.name: answer.winner for answer in done}
        same = sum(answer.winner == first.get(str(answer.query.details.get("repeats"))) for answer in repeated)
        out.append({"key": "consistent", "values": {"count": len(repeated), "same": same}})
    times = [answer.event.rt_ms for answer in done if answer.event.rt_ms is not None]
    if times:
        out.append({"key": "speed", "values": {"seconds": round(float(np.median(times)) / 1000, 1)}})
    return out
