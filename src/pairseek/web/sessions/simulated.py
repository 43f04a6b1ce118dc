"""Simulated participants, whose sessions are marked as simulated."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import expit

from pairseek.core.types import Query
from pairseek.pairs.features import typical_response
from pairseek.search.simulate import SimulatedUser
from pairseek.search.state import SearchState
from pairseek.web.sessions.advance import Answer
from pairseek.web.sessions.prefetch import Gate
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.catalogue import Study

MAX_SESSIONS = 200
# Median of the simulated reaction times.
_MEDIAN_TIME_MS = 1500.0
# Standard deviation of the logarithm of the simulated reaction times.
_LOG_TIME_DEVIATION = 0.5


def simulate_sessions(sessions: Sessions, gate: Gate, study: Study, count: int, rng: np.random.Generator) -> None:
    """Simulate ``count`` sessions, one after another; requests take precedence."""
    for _ in range(count):
        simulate_session(sessions, gate, study, np.random.default_rng(rng.integers(2**63)))


def simulate_session(sessions: Sessions, gate: Gate, study: Study, rng: np.random.Generator) -> str:
    """Simulate a session of a person drawn from the prior, and return its id."""
    if study.configuration.is_similarity:
        return _simulate_judge(sessions, gate, study, rng)
    search = SearchState(study.configuration.resolved(study.items), 0)
    resolved = search.configuration
    point = resolved.prior.sample(1, study.items.d, rng)[0]
    person = SimulatedUser(point, typical_response(resolved.response, search.belief), rng)
    seed = int(rng.integers(2**63))
    session_id, _ = sessions.open(study, {}, kind="simulated", seed=seed, truth={"point": point.tolist()})
    row = sessions.by_id(session_id)
    assert row is not None
    state = sessions.state(row)
    while state["query"] is not None:
        gate.wait_idle(5.0)
        pair = state["query"]
        left, right = pair["left"]["id"], pair["right"]["id"]
        asked = sessions.snapshot(row).current
        assert asked is not None
        expected = asked.details.get("expected")
        winner = expected or person.answer(study.items, Query(pair["query"], left, right))
        outcome: Literal["left", "right"] = "left" if winner == left else "right"
        state = sessions.answer(row, Answer(query=pair["query"], outcome=outcome, rt_ms=_reaction_ms(rng)))
        row = sessions.by_id(session_id)
        assert row is not None
    return session_id


def _simulate_judge(sessions: Sessions, gate: Gate, study: Study, rng: np.random.Generator) -> str:
    """Simulate a session of a similarity study; all simulated judges of a study share one random map."""
    places = np.random.default_rng([study.row.id, study.items.n]).standard_normal((study.items.n, 2))
    session_id, _ = sessions.open(study, {}, kind="simulated", seed=int(rng.integers(2**63)), truth={})
    row = sessions.by_id(session_id)
    assert row is not None
    state = sessions.state(row)
    while state["query"] is not None:
        gate.wait_idle(5.0)
        asked = sessions.snapshot(row).current
        assert asked is not None
        names = (asked.details["anchor"], asked.left, asked.right)
        anchor, left, right = (places[study.items.find(name)] for name in names)
        # Items that occur only in attention pairs have no coordinates, and their answer is known.
        logit = float(np.sum((anchor - right) ** 2) - np.sum((anchor - left) ** 2))
        says_left = bool(rng.random() < expit(logit))
        expected = asked.details.get("expected")
        if expected is not None:
            says_left = expected == asked.left
        outcome: Literal["left", "right"] = "left" if says_left else "right"
        state = sessions.answer(row, Answer(query=asked.name, outcome=outcome, rt_ms=_reaction_ms(rng)))
        row = sessions.by_id(session_id)
        assert row is not None
    return session_id


def _reaction_ms(rng: np.random.Generator) -> int:
    return round(_MEDIAN_TIME_MS * float(np.exp(_LOG_TIME_DEVIATION * rng.standard_normal())))
