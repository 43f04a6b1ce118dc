"""View of a session's result: estimate, nearest items, map and sentences about the answers."""

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

# Items on the result page: the nearest ones, the pick with two others, or the list.
_SHOWN: dict[Goal, int] = {"taste": NEAREST, "best": 3, "list": LIST_SIZE}
# Words for how sure the favourite is, by the least probability that the item is the best of all.
_SURE = {"high": 0.8, "some": 0.4, "low": 0.0}
# Largest number of items whose pictures are on the map of a result.
_PICTURES = 40
REGION = 0.95
"""Posterior probability of the region that the map of a result shows."""


@lru_cache(maxsize=16)
def plane(items: Items) -> Plane:
    """Return the plane of the map of the items."""
    return map_plane(items.coordinates)


def flat(items: Items, points: FloatArray) -> list[tuple[float, float]]:
    """Return (m, d) points in the plane of the map."""
    return pairs_of(plane(items).project(np.atleast_2d(points)))


def pairs_of(points: FloatArray) -> list[tuple[float, float]]:
    """Return (m, 2) points as plain numbers."""
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
    """Return all items on the map: x, y, colour, label; none where they have no coordinates."""
    if items.d == 0:
        return []
    return list(_dots(items))


@dataclass(frozen=True, slots=True)
class SessionResult:
    """Result of a session: nearest items, map, and sentences about the answers."""

    nearest: list[Near]
    map: MapData | None
    learned: list[LearnedContext]


def found(study: Study, one: SessionHistory, crowd: Population | None = None) -> SessionResult:
    """Return the result of a session; as stored at its end if the model version differs.

    The map and what is said of it belong to the goal of learning a taste. ``crowd`` is the appeal of the items for
    those who came before one of the first people of a study: the recommended items follow from it and from the
    person's own answers.
    """
    goal = study.configuration.goal
    done = one.done
    study = study.at(one.row.catalogue)
    if study.configuration.is_similarity:
        return SessionResult([], None, _manner(done))
    state = one.state(study, done) if one.parts.is_current else None
    if state is not None and crowd is not None:
        state = replace(state, parts=SessionParts.resolved(study.configuration, one.parts.given, crowd))
    shown = nearest(study, state, one.row.final)[: _SHOWN[goal]]
    learned = [] if state is None else _learned(state, done, shown)
    if goal != "taste":
        return SessionResult(shown, None, [sentence for sentence in learned if sentence["key"] != "answers"])
    return SessionResult(shown, _map(study, estimate_facts(state, one.row.final)), learned)


def estimate_facts(state: SessionState | None, final: JSON | None) -> JSON | None:
    """Return the estimate: computed from the state if given, else as stored at the end."""
    if state is None:
        return final
    return {**state.estimate_record(), "covariance": state.covariance.tolist()}


def nearest(study: Study, state: SessionState | None, final: JSON | None) -> list[Near]:
    """Return the recommended items in the order of the share that is shown beside them.

    They are computed from the state if given, else as stored. The probability of being the best of all is not shown: an
    item about which little is known may have a larger one than items that are liked more on the whole.
    """
    if state is None:
        return [_near(study, name, chance, None) for name, chance in (final or {}).get("nearest", [])]
    found = state.search.recommend(NEAREST)
    shares = state.search.choice_shares(one.id for one in found)
    order = sorted(range(len(found)), key=lambda place: -shares[place])
    return [_near(study, str(found[place].id), found[place].probability, shares[place]) for place in order]


def _near(study: Study, name: str, probability: float, share: float | None) -> Near:
    return {"card": study.card(name), "probability": probability, "share": share}


def _map(study: Study, estimate: JSON | None) -> MapData | None:
    """Return the items, the estimate and the outline of its credible region on the plane of the map."""
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
    """Return the pictures of a few items at their places, each in its smallest copy."""
    items = study.items
    names = items.data.get("image")
    if names is None or items.n > _PICTURES:
        return []
    return [
        (x, y, f"/media/{study.row.slug}/{name}/{study.pictures[str(name)][0][0]}")
        for (x, y), name in zip(flat(items, items.coordinates), names, strict=True)
        if study.pictures.get(str(name))
    ]


def _learned(state: SessionState, done: Sequence[EffectiveAnswer], nearest: list[Near]) -> list[LearnedContext]:
    """Return sentences as keys of the message catalogue with their numbers."""
    axes = plane(state.parts.given).axes
    d = len(axes)
    before, after = (
        np.linalg.det(axes.T @ belief.covariance[:d, :d] @ axes + 1e-300 * np.eye(2))
        for belief in (state.search.after(()).belief, state.search.belief)
    )
    out: list[LearnedContext] = [_how_sure(nearest[0])] if nearest else []
    if state.answered and before > 0:
        percent = max(1, round(100 * min(1.0, float(np.sqrt(after / before)))))
        out.append({"key": "answers", "values": {"count": state.answered, "percent": percent}})
    out += _manner(done)
    return out


def _how_sure(best: Near) -> LearnedContext:
    """Return one plain sentence on how sure the favourite is."""
    key = next(word for word, least in _SURE.items() if best["probability"] >= least)
    return {"key": f"sure.{key}", "values": {"label": best["card"]["name"]}}


def _manner(done: Sequence[EffectiveAnswer]) -> list[LearnedContext]:
    """Return sentences about how the person has answered."""
    twice = [one for one in done if one.query.kind == "repeated" and one.winner is not None and not one.void]
    out: list[LearnedContext] = []
    if twice:
        first = {one.query.name: one.winner for one in done}
        same = sum(one.winner == first.get(str(one.query.details.get("repeats"))) for one in twice)
        out.append({"key": "consistent", "values": {"count": len(twice), "same": same}})
    times = [one.event.rt_ms for one in done if one.event.rt_ms is not None]
    if times:
        out.append({"key": "speed", "values": {"seconds": round(float(np.median(times)) / 1000, 1)}})
    return out
