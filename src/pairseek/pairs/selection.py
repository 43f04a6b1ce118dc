"""Pure functions that choose the next pair: from items, from a continuous space, or by a procedure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from pairseek.core.text import plural
from pairseek.core.types import Event, FloatArray, Query, QueryInfo, Side
from pairseek.errors import NoPairLeft
from pairseek.model.items import Items
from pairseek.model.spaces import Space
from pairseek.pairs.context import Selection, SelectionContext, Source, keyed_generator
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.sources import Rest
from pairseek.pairs.strategies.base import BaseProcedure, BaseUtility, utility_of

# Largest number of other items with which an item is compared to estimate how often it is chosen.
_MAX_OPPONENTS = 300


@dataclass(frozen=True, slots=True)
class Draws:
    """Random draws of one selection: for random sources, for random scores, and for procedures."""

    choice: np.random.Generator
    scores: np.random.SeedSequence
    procedure: np.random.Generator | None = None


@dataclass(frozen=True, slots=True)
class PairRules:
    """Source of pairs and rest rules; the source is None for a space or a procedure."""

    source: Source | None
    rest: Rest


@dataclass(frozen=True, slots=True)
class ChosenPair:
    """The pair to ask now, before its items are assigned to sides.

    Attributes
    ----------
    first, second
        Item ids, or points of a `Space`.
    info
        Explanation of the query, whose ``probability_left`` is the probability of the first.
    depends_on_seed
        Whether the choice depends on the seed of the search.
    """

    first: Side
    second: Side
    info: QueryInfo
    depends_on_seed: bool

    def query(self, query_id: str, sides: np.random.Generator) -> Query:
        """Return the query, with sides drawn from a generator."""
        if not sides.integers(2):
            return Query(query_id, self.first, self.second, self.info)
        probability_second = 1 - self.info.probability_left - self.info.probability_tie
        info = replace(self.info, probability_left=probability_second)
        return Query(query_id, self.second, self.first, info)


class PairMemo(Protocol):
    """Memory of chosen pairs, shared by searches with the same configuration."""

    def recall(self, events: Sequence[Event]) -> ChosenPair | None:
        """Return the pair chosen after these events, or None if it is not stored."""
        ...

    def keep(self, events: Sequence[Event], value: ChosenPair) -> None:
        """Store the pair chosen after these events."""
        ...


def choose_pair(
    items: Items | Space,
    context: SelectionContext,
    rules: PairRules,
    draws: Draws,
    procedure: BaseProcedure | None = None,
) -> ChosenPair | None:
    """Return the pair to ask now, by the context's strategy or by a procedure; None if the procedure has finished."""
    before = draws.choice.bit_generator.state
    context = replace(context, draws=draws.scores)
    strategy: BaseUtility | BaseProcedure
    if isinstance(items, Space):
        pair, selection, strategy = _from_space(items, context, draws.choice)
    elif procedure is not None:
        assert draws.procedure is not None
        rows = procedure.next(items, context.history, draws.procedure)
        if rows is None:
            return None
        selection = Selection(int(rows[0]), int(rows[1]), float("nan"), 1, "its own choice")
        pair, strategy = _pair(context, selection), procedure
    else:
        pair, selection, strategy = _from_items(items, context, rules, draws.choice)
    depends_on_seed = (
        isinstance(strategy, BaseProcedure) or strategy.takes_generator or context.strategy.takes_generator
    )
    depends_on_seed = depends_on_seed or draws.choice.bit_generator.state != before
    info = _info(pair, selection, strategy.name, selection.chance if depends_on_seed else 1.0)
    return ChosenPair(*_sides(items, pair), info, depends_on_seed)


def pair_info(context: SelectionContext, first: int, second: int) -> QueryInfo:
    """Return the predicted answer to any pair of rows, with its expected information."""
    selection = Selection(first, second, float("nan"), 1, "given")
    return _info(_pair(context, selection), selection, "given", None)


def choice_shares(context: SelectionContext, rows: Sequence[int]) -> FloatArray:
    """Return for each row the probability that the person would choose the item over another one drawn at random.

    Ties count half. Large catalogues are subsampled evenly.
    """
    n = len(context.points)
    others = np.unique(np.linspace(0, n - 1, min(n, _MAX_OPPONENTS)).astype(np.int64))
    out = np.empty(len(rows))
    for position, row in enumerate(rows):
        opponents = others[others != row]
        first, tie = context.features(np.full(len(opponents), row), opponents).outcome_probabilities()
        out[position] = np.mean(first + 0.5 * tie)
    return out


def _pair(context: SelectionContext, selection: Selection) -> PairFeatures:
    return context.features(np.array([selection.first]), np.array([selection.second]))


def _info(pair: PairFeatures, selection: Selection, strategy: str, chance: float | None) -> QueryInfo:
    """Explain a pair whose first item is on the left."""
    first, tie = (float(values[0]) for values in pair.outcome_probabilities())
    return QueryInfo(
        strategy=strategy,
        candidates=selection.words,
        considered=selection.considered,
        utility=None if np.isnan(selection.utility) else selection.utility,
        information=max(0.0, float(pair.tabulated("information")[0])),
        probability_left=first,
        probability_tie=tie,
        chance=chance,
        gap=selection.gap if selection.gap is not None and np.isfinite(selection.gap) else None,
    )


def _from_items(
    items: Items, context: SelectionContext, rules: PairRules, rng: np.random.Generator
) -> tuple[PairFeatures, Selection, BaseUtility]:
    """Return the features of the best pair, the selection, and the utility that chose it."""
    strategy = utility_of(context.strategy.turn(len(context.history) + len(context.pending), context.belief))
    selection = _best_pair(items, replace(context, strategy=strategy), rules, rng)
    rival = strategy.rival(context.belief)
    if rival is not None:
        other = _best_pair(items, replace(context, strategy=utility_of(rival)), rules, rng)
        if other.utility > selection.utility:
            selection, strategy = other, utility_of(rival)
    return _pair(context, selection), selection, strategy


def _best_pair(items: Items, context: SelectionContext, rules: PairRules, rng: np.random.Generator) -> Selection:
    """Return the best permitted pair under the strictest resting set that permits one."""
    assert rules.source is not None  # Only a space or a procedure has no source.
    shown = [(items.find(event.left), items.find(event.right)) for event in context.history]
    open_pairs = [(items.index(query.left), items.index(query.right)) for query in context.pending]
    rule = ""
    for resting in rules.rest.after(shown, items.n):
        selection = rules.source.choose(replace(context, resting=resting.also(open_pairs)), rng)
        if selection is not None:
            return selection
        rule = resting.rule
    raise NoPairLeft(
        f"no pair is left to ask among {items.n} items after {plural(len(shown), 'question')}: {rule}; "
        f"allow earlier repetition with rest=Rest(pair=..., item=...)",
        rule=rule,
    )


def _from_space(
    space: Space, context: SelectionContext, rng: np.random.Generator
) -> tuple[PairFeatures, Selection, BaseUtility]:
    """Return the features of the best pair of a space, the selection, and the strategy."""
    from pairseek.pairs.sources.continuous import continuous_features  # searches among items do not need it

    belief, response, strategy = context.belief, context.response, context.strategy
    if not context.drawn:
        # Planes are sampled only to save time, so identical answers must lead to identical questions.
        rng = keyed_generator(belief, ("planes", strategy, response, space))
    assert strategy.planes is not None  # A search in a space rejects any other strategy.
    planes = strategy.planes(space, belief, response, rng)
    features = continuous_features(space, planes, belief, response)
    scores = context.scores(features)
    row = int(np.argmax(scores))
    words = "a plane in closed form" if len(features) == 1 else f"{len(features):,} sampled planes"
    selection = Selection(0, 1, float(scores[row]), len(features), words)
    return features.take(np.array([row])), selection, strategy


def _sides(items: Items | Space, pair: PairFeatures) -> tuple[Side, Side]:
    rows = int(pair.first[0]), int(pair.second[0])
    return items._side_of(rows[0], pair.points[rows[0]]), items._side_of(rows[1], pair.points[rows[1]])
