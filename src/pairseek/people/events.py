"""Pairs implied by events of a shop: purchases, clicks, views and impressions.

A person who was shown several items and bought one of them preferred it to the others. Each kind of event has a weight,
from 0 for an impression to 1 for a purchase, and an item counts by its weightiest event. Among the items of one visit,
an item wins against every item of less weight.

If it is not known what people were shown, an item with an event also wins against random items without one. Popular
items are drawn more often: more people have seen them, so passing them over tells more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pairseek.core.text import plural
from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.core.validation import is_number
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.people.implied_pairs import ImpliedPairs

EVENT_WEIGHTS: Mapping[str, float] = {
    "purchase": 1.0,
    "transaction": 1.0,
    "order": 1.0,
    "buy": 1.0,
    "cart": 0.5,
    "addtocart": 0.5,
    "add_to_cart": 0.5,
    "click": 0.2,
    "view": 0.1,
    "impression": 0.0,
}
"""Weights of the kinds of events, as several shops call them."""
VISIT_GAP_SECONDS = 1800.0
"""Seconds without an event after which a visit ends."""
_MAX_SECONDS = 1e11
"""Largest time that is read as seconds; larger numbers are milliseconds."""
_UNSEEN_DRAWN = 10
"""Number of items without an event that are drawn for each item with one."""
_POPULARITY_EXPONENT = 0.75
"""Items are drawn in proportion to their number of people to this power."""


class Events(NamedTuple):
    """Events in order of time, as indices.

    Attributes
    ----------
    person, item
        (m,) rows of the people and of the items.
    weight
        (m,) weights of the kinds.
    time
        (m,) seconds; None if nobody knows when the events were. Then each person has one visit.
    """

    person: IntArray
    item: IntArray
    weight: FloatArray
    time: FloatArray | None


def encoded_events(
    rows: Sequence[tuple[Any, ...]],
    people: Mapping[str, int],
    items: Mapping[ItemId, int],
    weights: Mapping[str, float],
) -> Events:
    """Check rows of (person, item, event), with or without a time, and convert them to indices."""
    width = len(rows[0]) if rows else 3
    kinds = {name.casefold(): _checked_weight(name, weight) for name, weight in weights.items()}
    time = np.empty(len(rows)) if width == 4 else None
    table = np.empty((len(rows), 2), dtype=np.int64)
    weight = np.empty(len(rows))
    for number, row in enumerate(rows):
        if len(row) != width or width not in (3, 4):
            raise InvalidChoices(
                f"row {number} has {plural(len(row), 'value')}: give person, item and event in every row, or also the "
                "time in every row"
            )
        person, item, kind = row[:3]
        if str(kind).casefold() not in kinds:
            raise InvalidChoices(
                f"row {number} has the unknown event {kind!r}: give the weight of each kind, such as "
                f"weights={{{str(kind)!r}: 0.5}}; the kinds are {', '.join(weights)}"
            )
        table[number] = people[str(person)], items[item]
        weight[number] = kinds[str(kind).casefold()]
        if time is not None:
            time[number] = _seconds(row[3], number)
    return Events(table[:, 0], table[:, 1], weight, time)


def _checked_weight(kind: str, weight: float) -> float:
    if not (is_number(weight) and 0.0 <= weight <= 1.0):
        raise InvalidParameter(f"the weight of {kind!r} is {weight!r}: give a number from 0 to 1", field="weights")
    return float(weight)


def _seconds(time: Any, number: int) -> float:
    """Convert a time to seconds; numbers that would be centuries away are milliseconds."""
    if isinstance(time, datetime):
        return time.timestamp()
    if not (is_number(time) and np.isfinite(time)):
        raise InvalidChoices(f"row {number} has the time {time!r}: give a datetime, or a number of seconds")
    return float(time) / (1000.0 if abs(time) > _MAX_SECONDS else 1.0)


def pairs_of_events(events: Events, people: int, items: int, max_pairs: int, rng: np.random.Generator) -> ImpliedPairs:
    """Compare the items of each person's visits, and draw items to compare with if nobody's impressions are known.

    Parameters
    ----------
    events
        All events.
    people, items
        Numbers of people and of items.
    max_pairs
        Approximate maximum number of pairs per person; more are subsampled at random.
    rng
        Generator of the items drawn and of the subsampling.
    """
    order = np.lexsort((np.zeros(len(events.person)) if events.time is None else events.time, events.person))
    person, item, weight = events.person[order], events.item[order], events.weight[order]
    starts = np.searchsorted(person, np.arange(people + 1))
    popularity = None if np.any(weight == 0.0) else _cumulative_popularity(person, item, items)
    tables = []
    for row, (start, end) in enumerate(pairwise(starts)):
        visits = _visits(None if events.time is None else events.time[order[start:end]], end - start)
        parts = [*_person_pairs(item[start:end], weight[start:end], visits, popularity, rng)]
        table = np.concatenate(parts) if parts else np.empty((0, 3))
        if len(table) > max_pairs:
            kept = np.sort(rng.choice(len(table), max_pairs, replace=False))
            table = table[kept] * [1.0, 1.0, len(table) / max_pairs]
        tables.append(np.insert(table, 0, row, axis=1))
    rows = np.concatenate(tables)
    person_rows, winner, loser = (np.ascontiguousarray(column) for column in rows[:, :3].astype(np.int64).T)
    return ImpliedPairs(person_rows, winner, loser, np.ascontiguousarray(rows[:, 3]), np.empty((0, 3), dtype=np.int64))


def _cumulative_popularity(person: IntArray, item: IntArray, items: int) -> FloatArray:
    """Return the (items,) cumulative probabilities of drawing an item to compare with."""
    visitors = np.unique(np.stack([person, item]), axis=1)[1]
    share = (np.bincount(visitors, minlength=items) + 1.0) ** _POPULARITY_EXPONENT
    return np.asarray(np.cumsum(share) / share.sum())


def _visits(time: FloatArray | None, count: int) -> Sequence[slice]:
    """Return the visits of one person, whose events are in order of time."""
    if time is None or not count:
        return [slice(0, count)]
    ends = [*(1 + np.flatnonzero(np.diff(time) > VISIT_GAP_SECONDS)).tolist(), count]
    return [slice(start, end) for start, end in pairwise([0, *ends])]


def _person_pairs(
    item: IntArray, weight: FloatArray, visits: Sequence[slice], popularity: FloatArray | None, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield (winner, loser, weight) rows of one person.

    A choice among n items has the Fisher information of its n - 1 pairs at the weight 2/n, at equal utilities: the
    multinomial diag(1/n) - 11'/n², against δδ'/4 of each pair.
    """
    person_items, positions = np.unique(item, return_inverse=True)
    level = np.zeros(len(person_items))
    np.maximum.at(level, positions, weight)
    for visit in visits:
        shown = np.unique(positions[visit])
        for winner in shown:
            losers = shown[level[shown] < level[winner]]
            if len(losers):
                share = 2.0 / (len(losers) + 1) * (level[winner] - level[losers])
                yield np.column_stack([np.full(len(losers), person_items[winner]), person_items[losers], share])
    if popularity is not None and len(person_items) < len(popularity):
        for winner, item_level, drawn in zip(
            person_items, level, _drawn_unseen(popularity, person_items, rng), strict=True
        ):
            # At the edge of a gap, rounding can draw an item with an event.
            losers = np.setdiff1d(drawn, person_items)
            share = 2.0 / (len(losers) + 1) * item_level
            yield np.column_stack([np.full(len(losers), winner), losers, np.full(len(losers), share)])


def _drawn_unseen(cumulative: FloatArray, person_items: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw a row of unseen items for each of a person's items, in proportion to their popularity."""
    begins = np.where(person_items > 0, cumulative[person_items - 1], 0.0)
    removed = np.cumsum(cumulative[person_items] - begins)
    # Where the interval of each removed item begins, once the earlier intervals are cut out.
    gaps = begins - np.concatenate([[0.0], removed[:-1]])
    draws = rng.random((len(person_items), _UNSEEN_DRAWN)) * (1.0 - removed[-1])
    gap_index = np.searchsorted(gaps, draws, side="right")
    draws += np.concatenate([[0.0], removed])[gap_index]
    return np.asarray(np.minimum(np.searchsorted(cumulative, draws, side="right"), len(cumulative) - 1))
