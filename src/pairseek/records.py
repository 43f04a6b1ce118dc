"""Items, queries and events as plain data: what a saved search holds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pairseek.core.types import JSON, Event, Query, QueryInfo, Side
from pairseek.errors import InvalidFile
from pairseek.model.items import Items, Space

_QUERY = re.compile(r"q[0-9]{1,9}(\.[0-9]{1,9})?")


def items_record(items: Items | Space) -> JSON:
    """Items or a space."""
    if isinstance(items, Space):
        return {"kind": "space", **asdict(items)}
    return {
        "kind": "items",
        "hash": items.hash,
        "ids": list(items.ids),
        "labels": list(items.labels),
        "coordinates": items.coordinates.tolist(),
        "appeal": items.appeal.tolist(),
        "data": {name: list(map(str, values)) for name, values in items.data.items()},
    }


def items_from(record: Mapping[str, Any]) -> Items | Space:
    """What `items_record` described."""
    if record["kind"] == "space":
        fields = ("low", "high", "min_separation", "max_separation")
        return Space(*(record[name] for name in fields))
    items = Items._unwarned(record["coordinates"], record["ids"], record["labels"], record["appeal"], record["data"])
    if items.hash != record["hash"]:
        raise InvalidFile("the items in the file do not fit their own hash: it was damaged or edited")
    return items


def query_record(query: Query) -> JSON:
    """A query with its info, without the time it took. A utility that is not finite is null: JSON has no other."""
    info = None if query.info is None else {k: v for k, v in asdict(query.info).items() if k != "seconds"}
    if info is not None and info["utility"] is not None and not math.isfinite(info["utility"]):
        info["utility"] = None
    return {"id": query.id, "left": query.left, "right": query.right, "info": info}


def query_from(record: Mapping[str, Any]) -> Query:
    """What `query_record` described."""
    info = None if record["info"] is None else QueryInfo(**record["info"])
    name = record["id"]
    if not isinstance(name, str) or not _QUERY.fullmatch(name):
        raise InvalidFile(f"a query has the id {name!r}: ids are q0, q1, q1.2 and so on")
    return Query(name, _side(record["left"]), _side(record["right"]), info)


def order(query: Query) -> tuple[int, int]:
    """From its id: the number of events before it and, where several were asked at once, which of them it was."""
    events, _, index = query.id[1:].partition(".")
    return int(events), int(index or 0)


def check_order(events: Sequence[Event], pending: Sequence[Query]) -> None:
    """Refuse queries that cannot have been asked when they stand there."""
    asked = [(event.query, count) for count, event in enumerate(events) if event.query is not None]
    asked += [(query, len(events)) for query in pending]
    for query, count in asked:
        if order(query)[0] > count:
            raise InvalidFile(f"the query {query.id!r} comes before it can have been asked")
    if len({query.id for query, _ in asked}) < len(asked):
        raise InvalidFile("two queries have the same id")


def event_record(event: Event) -> JSON:
    """An event with the query it answered."""
    return {
        "left": event.left,
        "right": event.right,
        "outcome": event.outcome,
        "winner": event.winner,
        "query": None if event.query is None else query_record(event.query),
    }


def event_from(record: Mapping[str, Any]) -> Event:
    """What `event_record` described."""
    left, right = _side(record["left"]), _side(record["right"])
    winner = None if record["winner"] is None else _side(record["winner"])
    outcome = record["outcome"]
    if outcome not in ("answer", "tie", "skip") or (outcome == "answer") != (winner is not None):
        raise InvalidFile(f"an event has the outcome {outcome!r} and the winner {winner!r}, which do not fit together")
    if winner is not None and winner not in (left, right):
        raise InvalidFile(f"an event between {left!r} and {right!r} has the winner {winner!r}")
    return Event(left, right, outcome, winner, None if record["query"] is None else query_from(record["query"]))


def _side(value: Any) -> Side:
    return tuple(map(float, value)) if isinstance(value, list | tuple) else value
