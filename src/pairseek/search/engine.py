"""The engine of a search: the belief and the next pair as pure functions of its configuration and its events.

The seed decides only the sides of a pair, ties between pairs of items without coordinates, and the draws of strategies
and sources that are random by name. Each draw is keyed by the seed, the number of events and its purpose, never taken
from one advancing stream, so that undo, load and replay agree by construction.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pairseek.core.types import Belief, Event, Evidence, FloatArray, IntArray, ItemId, Query
from pairseek.errors import Unsupported
from pairseek.model.curvature import extended_points, extended_prior
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.spaces import Space
from pairseek.pairs.context import SelectionContext
from pairseek.pairs.features import typical_response
from pairseek.pairs.selection import ChosenPair, Draws, PairRules, choose_pair
from pairseek.posteriors.residuals import infer_with_residuals
from pairseek.posteriors.span import infer_within_span
from pairseek.search.configuration import SearchConfiguration
from pairseek.search.serialization import query_id

# Independent streams of random numbers.
_CHOICE_STREAM = 0
_SIDES_STREAM = 1
_PROCEDURE_STREAM = 2
_SCORES_STREAM = 3


def infer(configuration: SearchConfiguration, events: Sequence[Event]) -> Belief:
    """Return the posterior of the user point, and of any residual utilities, after these events."""
    items, response, posterior = configuration.items, configuration.response, configuration.posterior
    evidence, pairs = _evidence(configuration, events)
    prior = extended_prior(configuration.prior, response, items.d)

    def infer_posterior(evidence: Evidence, prior: Prior) -> Belief:
        if response.residual_deviation == 0.0 or pairs is None:
            return posterior.infer(evidence, prior, response)
        return infer_with_residuals(posterior, evidence, pairs, prior, response)

    belief = infer_within_span(infer_posterior, evidence, prior)
    if not configuration.removed or belief.residuals is None:
        return belief
    rows = belief.residuals.rows
    return belief.for_catalogue(np.where(rows < configuration.catalogue.n, rows, -1))


def next_pair(
    configuration: SearchConfiguration,
    events: Sequence[Event],
    pending: Sequence[Query] = (),
    *,
    seed: int,
    belief: Belief | None = None,
) -> ChosenPair | None:
    """Return the pair to ask after these events while other queries are pending; None once a procedure has finished.

    ``belief`` is `infer(configuration, events)` if the caller has computed it already.
    """
    started = time.perf_counter()
    belief = infer(configuration, events) if belief is None else belief
    procedure = configuration.procedure
    procedure_rng = None if procedure is None else _generator(seed, _PROCEDURE_STREAM)
    position = len(events), len(pending)
    draws = Draws(_generator(seed, _CHOICE_STREAM, *position), _seeds(seed, _SCORES_STREAM, *position), procedure_rng)
    askable = configuration.askable
    context = replace(selection_context(configuration, belief, askable), history=events, pending=pending)
    pair = choose_pair(askable, context, PairRules(configuration.candidates, configuration.rest), draws, procedure)
    return None if pair is None else replace(pair, info=replace(pair.info, seconds=time.perf_counter() - started))


def query_of_pair(pair: ChosenPair, events: int, index: int, *, seed: int) -> Query:
    """Return a chosen pair as query `index` after a number of events; the seed decides the sides."""
    return pair.query(query_id(events, index), _generator(seed, _SIDES_STREAM, events, index))


def selection_context(
    configuration: SearchConfiguration, belief: Belief, items: Items | Space | None = None
) -> SelectionContext:
    """Return the inputs of pair selection under a belief, for the given items or all."""
    items = configuration.items if items is None else items
    belief = belief_about(configuration, belief, items)
    response = typical_response(configuration.response, belief)
    return SelectionContext.of(configuration.modelled(items), belief, response, configuration.utility)


def belief_about(configuration: SearchConfiguration, belief: Belief, items: Items | Space) -> Belief:
    """Convert a belief about the items of the configuration to other items, such as a part of the catalogue."""
    if belief.residuals is None or items is configuration.items:
        return belief
    ids, other = configuration.catalogue.ids, items._require_catalogue(Unsupported("a continuous Space has no items"))
    return belief.for_catalogue(
        np.array([other.find(ids[row]) for row in belief.residuals.rows.tolist()], dtype=np.int64)
    )


def _generator(seed: int, purpose: int, events: int = 0, index: int = 0) -> np.random.Generator:
    return np.random.default_rng(_seeds(seed, purpose, events, index))


def _seeds(seed: int, purpose: int, events: int = 0, index: int = 0) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed, events, purpose, index])


def _evidence(configuration: SearchConfiguration, events: Sequence[Event]) -> tuple[Evidence, IntArray | None]:
    """Return the logit planes of all answers and ties, oriented towards the winner, and the rows of their items."""
    answers = [event for event in events if event.outcome != "skip"]
    sides = [(e.left, e.right) if e.winner is None else (e.winner, e.loser) for e in answers]
    pairs = None
    if isinstance(configuration.items, Items):
        rows = _item_rows(configuration, [side for pair in sides for side in pair])
        points, appeals = _item_coordinates(configuration, rows)
        pairs = rows.reshape(-1, 2)
        winners, losers = points[::2], points[1::2]
        appeal = appeals[::2] - appeals[1::2]
    else:
        d = configuration.items.d
        winners, losers = (np.array([pair[i] for pair in sides], dtype=np.float64).reshape(-1, d) for i in (0, 1))
        appeal = np.zeros(len(sides))
    slopes, offsets = configuration.response.planes(winners, losers, appeal)
    decided = np.array([float(event.outcome == "answer") for event in answers])
    return Evidence(np.ascontiguousarray(slopes), offsets, decided), pairs


def _item_rows(configuration: SearchConfiguration, sides: Sequence[Any]) -> IntArray:
    """Return the rows of items; the rows of removed items follow the rows of the catalogue."""
    items = configuration.catalogue
    rows = np.array([items.find(side) for side in sides], dtype=np.int64)
    if configuration.removed:
        removed_rows: dict[ItemId, int] = {name: items.n + i for i, name in enumerate(configuration.removed)}
        for i in np.flatnonzero(rows < 0).tolist():
            rows[i] = removed_rows[sides[i]]
    return rows


def _item_coordinates(configuration: SearchConfiguration, rows: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the (m, d) coordinates and (m,) appeals of items in the model, including removed items."""
    items, removed = configuration.catalogue, list(configuration.removed.values())
    if not removed:
        modelled = configuration.modelled(items)
        return modelled.coordinates[rows], modelled.appeal[rows]
    present_rows = np.minimum(rows, items.n - 1)
    points, appeal = items.coordinates[present_rows], items.appeal[present_rows]
    for i in np.flatnonzero(rows >= items.n).tolist():
        item = removed[int(rows[i]) - items.n]
        points[i], appeal[i] = item.coordinates, item.appeal
    return extended_points(points, appeal, configuration.prior, configuration.response)
