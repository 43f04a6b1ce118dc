"""View of a session's result: recommended items, map, and sentences about the answers."""

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
from pairseek.web.sessions.state import RECOMMENDATION_COUNT, EffectiveAnswer, SessionState
from pairseek.web.studies.catalogue import Study

# Number of recommended items on the result page, by goal: the nearest items, a pick with two others, or a list.
_SHOWN_COUNTS: dict[Goal, int] = {"taste": RECOMMENDATION_COUNT, "best": 3, "list": LIST_SIZE}
# Message keys for how certain the favourite is, with the smallest probability of being best for each.
_CERTAINTY_THRESHOLDS = {"high": 0.8, "some": 0.4, "low": 0.0}
# Largest number of items whose pictures the map of a result shows.
_MAX_PICTURES = 40
REGION_PROBABILITY = 0.95
"""Posterior probability of the region that the map of a result shows."""


@lru_cache(maxsize=16)
def plane_of(items: Items) -> Plane:
    """Return the plane on which items are drawn."""
    return map_plane(items.coordinates)


def project(items: Items, points: FloatArray) -> list[tuple[float, float]]:
    """Project (m, d) points onto the plane of the map."""
    return as_pairs(plane_of(items).project(np.atleast_2d(points)))


def as_pairs(points: FloatArray) -> list[tuple[float, float]]:
    """Convert (m, 2) points to pairs of Python numbers."""
    return [(x, y) for x, y in points.tolist()]


@lru_cache(maxsize=16)
def _dots(items: Items) -> tuple[tuple[float, float, str | None, str], ...]:
    if not items.d:
        return ()
    colours = items.data.get("colour")
    places = project(items, items.coordinates)
    return tuple(
        (x, y, str(colours[row]) or None if colours is not None else None, items.labels[row])
        for row, (x, y) in enumerate(places)
    )


def dots(items: Items) -> list[Dot]:
    """Return the items on the map as (x, y, colour, label); none for items without coordinates."""
    return list(_dots(items))


@dataclass(frozen=True, slots=True)
class SessionResult:
    """Result of a session: recommended items, map, and sentences about the answers."""

    nearest: list[Near]
    map: MapData | None
    learned: list[LearnedContext]


def session_result(study: Study, session: SessionHistory, crowd: Population | None = None) -> SessionResult:
    """Return the result of a session, or the stored result if this model version cannot compute it.

    Only the goal ``taste`` has a map and a sentence about it. For one of a study's first people, ``crowd`` is the
    appeal of the items to the people before them, which the recommendations combine with the person's answers.
    """
    goal = study.configuration.goal
    done = session.done
    study = study.with_catalogue(session.row.catalogue)
    if study.configuration.is_similarity:
        return SessionResult([], None, _answering_sentences(done))
    state = session.state(study, done) if session.parts.computes_results(session.row) else None
    if state is not None and crowd is not None:
        state = replace(state, parts=SessionParts.resolved(study.configuration, session.parts.study_items, crowd))
    shown = recommended_items(study, state, session.row.final)[: _SHOWN_COUNTS[goal]]
    learned = [] if state is None else _sentences(state, done, shown)
    if goal != "taste":
        return SessionResult(shown, None, [sentence for sentence in learned if sentence["key"] != "answers"])
    return SessionResult(shown, _result_map(study, estimate_facts(state, session.row.final)), learned)


def estimate_facts(state: SessionState | None, final: JSON | None) -> JSON | None:
    """Return the estimate computed from the state, or the stored one without a state."""
    if state is None:
        return final
    return {**state.estimate_record(), "covariance": state.covariance.tolist()}


def recommended_items(study: Study, state: SessionState | None, final: JSON | None) -> list[Near]:
    """Return the recommended items, computed from the state, or the stored ones without a state.

    They are in descending order of the choice share, which pages show. The probability of being best is not shown: it
    can be higher for an item about which little is known than for items that are liked better on average.
    """
    if state is None:
        stored = (final or {}).get("nearest", [])
        return [_recommended_item(study, name, probability, None) for name, probability in stored]
    items = state.search.recommend(RECOMMENDATION_COUNT)
    shares = state.search.choice_shares(item.id for item in items)
    order = sorted(range(len(items)), key=lambda index: -shares[index])
    return [_recommended_item(study, str(items[index].id), items[index].probability, shares[index]) for index in order]


def _recommended_item(study: Study, name: str, probability: float, share: float | None) -> Near:
    return {"card": study.card(name), "probability": probability, "share": share}


def _result_map(study: Study, estimate: JSON | None) -> MapData | None:
    """Return the items, the estimate, and the outline of its credible region on the plane of the map."""
    if estimate is None or not study.items.d:
        return None
    mean, covariance = np.array(estimate["mean"]), np.array(estimate["covariance"])
    point, outline = plane_of(study.items).region(mean, covariance, REGION_PROBABILITY)
    return {
        "items": dots(study.items),
        "point": (float(point[0]), float(point[1])),
        "ellipse": as_pairs(outline),
        "pictures": _pictures(study),
    }


def _pictures(study: Study) -> list[tuple[float, float, str]]:
    """Return (x, y, address) of the pictures' smallest copies if the items are few."""
    items = study.items
    names = items.data.get("image")
    if names is None or items.n > _MAX_PICTURES:
        return []
    return [
        (x, y, f"/media/{study.row.slug}/{name}/{study.pictures[str(name)][0][0]}")
        for (x, y), name in zip(project(items, items.coordinates), names, strict=True)
        if study.pictures.get(str(name))
    ]


def _sentences(state: SessionState, done: Sequence[EffectiveAnswer], nearest: list[Near]) -> list[LearnedContext]:
    """Return sentences about the result and the answers."""
    axes = plane_of(state.parts.study_items).axes
    d = len(axes)
    before, after = (
        np.linalg.det(axes.T @ belief.covariance[:d, :d] @ axes + 1e-300 * np.eye(2))
        for belief in (state.search.with_events(()).belief, state.search.belief)
    )
    sentences: list[LearnedContext] = [_certainty(nearest[0])] if nearest else []
    if state.answer_count and before > 0:
        percent = max(1, round(100 * min(1.0, float(np.sqrt(after / before)))))
        sentences.append({"key": "answers", "values": {"count": state.answer_count, "percent": percent}})
    return sentences + _answering_sentences(done)


def _certainty(best: Near) -> LearnedContext:
    """Return a sentence about how certain the favourite is."""
    key = next(name for name, threshold in _CERTAINTY_THRESHOLDS.items() if best["probability"] >= threshold)
    return {"key": f"sure.{key}", "values": {"label": best["card"]["name"]}}


def _answering_sentences(done: Sequence[EffectiveAnswer]) -> list[LearnedContext]:
    """Return sentences about the person's consistency and speed."""
    repeated = [
        answer for answer in done if answer.query.kind == "repeated" and answer.winner is not None and not answer.void
    ]
    sentences: list[LearnedContext] = []
    if repeated:
        winners = {answer.query.name: answer.winner for answer in done}
        same = sum(answer.winner == winners.get(str(answer.query.details.get("repeats"))) for answer in repeated)
        sentences.append({"key": "consistent", "values": {"count": len(repeated), "same": same}})
    times = [answer.event.rt_ms for answer in done if answer.event.rt_ms is not None]
    if times:
        sentences.append({"key": "speed", "values": {"seconds": round(float(np.median(times)) / 1000, 1)}})
    return sentences
