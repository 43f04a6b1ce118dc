"""The next query: from a catalogue, from a continuous space, or by a procedure. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairseek.candidates import AllPairs, Candidates, Rest, SampledPairs
from pairseek.candidates.context import Choice, Scene, Source, keyed_generator
from pairseek.candidates.continuous import mirrored_candidates
from pairseek.core.text import plural
from pairseek.core.types import Belief, Event, Query, QueryInfo, Side
from pairseek.errors import NoPairLeft
from pairseek.model.items import Items, Space
from pairseek.model.responses import Response
from pairseek.strategies.base import Procedure, Utility
from pairseek.strategies.infogain import InfoGain
from pairseek.strategies.random import Random
from pairseek.strategies.reliability_probe import Check

# A check has no bound, and many are as good: all pairs need not be looked at. Other sources are kept to.
_CHECKS = SampledPairs(count=2000)


@dataclass(frozen=True, eq=False)
class Situation:
    """All that the next query depends on, but for randomness."""

    items: Items | Space
    response: Response
    strategy: Utility | Procedure
    source: Source | None
    rest: Rest
    belief: Belief
    history: Sequence[Event]
    pending: Sequence[Query]


@dataclass(frozen=True, slots=True)
class Draws:
    """The generators of one choice: for the candidates, for the sides, and the one that a procedure always gets."""

    choice: np.random.Generator
    sides: np.random.Generator
    procedure: np.random.Generator


def next_query(situation: Situation, draws: Draws, name: str) -> Query | None:
    """The query to ask now; None when a procedure has finished."""
    chosen = _chosen(situation, draws)
    if chosen is None:
        return None
    pair, choice, strategy = chosen
    swap = bool(draws.sides.integers(2))
    info = _info(pair, choice, strategy.name, swap=swap)
    first, second = _shown(situation.items, pair)
    return Query(name, second, first, info) if swap else Query(name, first, second, info)


def pair_info(situation: Situation, first: int, second: int) -> QueryInfo:
    """What an answer to a pair of rows would tell, whoever chose it."""
    assert isinstance(situation.items, Items)
    scene = Scene.of(situation.items, situation.belief, situation.response)
    pair = scene.candidates(np.array([first]), np.array([second]))
    return _info(pair, Choice(first, second, float("nan"), 1, "given"), "given", swap=False)


def _info(pair: Candidates, choice: Choice, strategy: str, *, swap: bool) -> QueryInfo:
    likelier, information = (float(pair.gaussian(name)[0]) for name in ("probability", "information"))
    chance = min(likelier, 1.0) if pair.logit_mean[0] >= 0.0 else 1.0 - min(likelier, 1.0)
    return QueryInfo(
        strategy=strategy,
        candidates=choice.words,
        considered=choice.considered,
        utility=None if np.isnan(choice.utility) else choice.utility,
        information=max(0.0, information),
        probability_left=1 - chance if swap else chance,
        gap=choice.gap if choice.gap is not None and np.isfinite(choice.gap) else None,
    )


def _chosen(situation: Situation, draws: Draws) -> tuple[Candidates, Choice, Utility | Procedure] | None:
    """The pair, described as a single candidate, how it was chosen, and by what."""
    items, strategy = situation.items, _asking(situation)
    if isinstance(items, Space):
        assert isinstance(strategy, Utility)
        return *_from_space(items, strategy, situation, draws.choice), strategy
    if isinstance(strategy, Procedure):
        rows = strategy.next(items, situation.history, draws.procedure)
        if rows is None:
            return None
        choice = Choice(int(rows[0]), int(rows[1]), float("nan"), 1, "its own choice")
    else:
        choice = _from_items(items, strategy, situation, draws.choice)
        rival = strategy.rival(situation.belief) if isinstance(strategy, InfoGain) else None
        if rival is not None:
            other = _from_items(items, rival, situation, draws.choice)
            if other.utility > choice.utility:
                choice, strategy = other, rival
    scene = Scene.of(items, situation.belief, situation.response)
    return scene.candidates(np.array([choice.first]), np.array([choice.second])), choice, strategy


def _asking(situation: Situation) -> Utility | Procedure:
    """What chooses this question: the strategy, or what a strategy that takes turns says about items."""
    strategy = situation.strategy
    if isinstance(situation.items, Space) or not isinstance(strategy, InfoGain):
        return strategy
    return strategy.turn(len(situation.history) + len(situation.pending), situation.belief)


def _from_items(items: Items, strategy: Utility, situation: Situation, rng: np.random.Generator) -> Choice:
    assert situation.source is not None  # only a space or a procedure has none
    source, sampled = situation.source, isinstance(strategy, Check) and isinstance(situation.source, AllPairs)
    shown = [(items.index(event.left), items.index(event.right)) for event in situation.history]
    open_pairs = [(items.index(query.left), items.index(query.right)) for query in situation.pending]
    rule = ""
    for resting in situation.rest.after(shown, items.n):
        scene = Scene.of(items, situation.belief, situation.response, strategy, resting.also(open_pairs))
        choice = _CHECKS.choose(scene, scene.generator("checks")) if sampled else source.choose(scene, rng)
        if choice is not None:
            return choice
        rule = resting.rule
    raise NoPairLeft(
        f"no pair is left to ask among {items.n} items after {plural(len(shown), 'question')}: {rule}; "
        f"allow an earlier return with rest=Rest(pair=..., item=...)",
        rule=rule,
    )


def _from_space(
    space: Space, strategy: Utility, situation: Situation, rng: np.random.Generator
) -> tuple[Candidates, Choice]:
    belief = situation.belief
    if not isinstance(strategy, Random):
        # Planes are sampled to save time: equal answers lead to equal questions.
        rng = keyed_generator(belief, ("planes", strategy, situation.response, space))
    candidates = mirrored_candidates(strategy.name, space, belief, situation.response, rng)
    scores = np.asarray(strategy.score(candidates, belief))
    row = int(np.argmax(scores))
    words = "a plane in closed form" if len(candidates) == 1 else f"{len(candidates):,} sampled planes"
    return candidates.take(np.array([row])), Choice(0, 1, float(scores[row]), len(candidates), words)


def _shown(items: Items | Space, pair: Candidates) -> tuple[Side, Side]:
    rows = int(pair.first[0]), int(pair.second[0])
    if isinstance(items, Items):
        return items.ids[rows[0]], items.ids[rows[1]]
    return items.point(pair.points[rows[0]]), items.point(pair.points[rows[1]])
