"""Serialization of the parts of a search by name (`encode`, `decode`), and of its queries and events."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from pairseek.core.types import JSON, Event, Query, QueryInfo, Side
from pairseek.core.user_parts import name_of
from pairseek.core.validation import caller_level, suggestion
from pairseek.errors import DefaultWarning, InvalidFile, InvalidParameter
from pairseek.model.priors import PRIORS
from pairseek.model.response_parameters import MAX_RESIDUAL
from pairseek.model.responses import RESPONSES
from pairseek.model.unknowns import UNKNOWNS, LogNormal, Unknown
from pairseek.pairs.sources import SOURCES, Rest
from pairseek.pairs.strategies import UTILITIES, all_strategies
from pairseek.posteriors import POSTERIORS
from pairseek.search.stopping import STOP_RULES

ModelChoice: TypeAlias = Literal["present", "as saved"]
"""Model of a restored search: the present one, or only the one that it was saved with."""

_CLASSES_BY_KIND: dict[str, Mapping[str, Any]] = {
    "response": RESPONSES,
    "prior": PRIORS,
    "posterior": POSTERIORS,
    "strategy": UTILITIES,
    "candidates": SOURCES,
    "stop": STOP_RULES,
    "rest": {"rest": Rest},
    "unknown": UNKNOWNS,
}
PART_KINDS = tuple(_CLASSES_BY_KIND)
"""Kinds of parts of a search."""

# Default prior of an unknown residual in earlier versions.
_RESIDUAL_PRIOR = LogNormal(1.0, 0.7)

_QUERY_ID = re.compile(r"q[0-9]{1,9}(\.[0-9]{1,9})?")


def parts_by_name(kind: str) -> Mapping[str, Any]:
    """Return the classes of a kind of part by name."""
    return all_strategies() if kind == "strategy" else _CLASSES_BY_KIND[kind]


def encode(part: object) -> JSON:
    """Return a part as {"name": ..., field: value, ...}."""
    kind = type(part).__name__
    if not dataclasses.is_dataclass(part):
        raise InvalidParameter(
            f"{kind} is not a dataclass, so its settings cannot be serialized: decorate it with @dataclass(frozen=True)"
        )
    name = name_of(part)
    tables = map(parts_by_name, _CLASSES_BY_KIND)
    original = next((table[name] for table in tables if name in table and isinstance(part, table[name])), None)
    if original is not None and type(part) is not original:
        raise InvalidParameter(
            f"{kind} is a subclass of {original.__name__} with the same name {name!r}, so it would be loaded as a "
            f"plain {original.__name__}: give the class its own name"
        )
    fields = {
        f.name: _to_json(getattr(part, f.name), f"{kind}.{f.name}")
        for f in dataclasses.fields(part)
        if f.init and f.compare
    }
    return {"name": name, **fields}


def decode(kind: str, record: object) -> Any:
    """Restore the part that `encode` wrote; the field of an error is a path such as ``prior.low``."""
    try:
        return _decode(kind, record)
    except InvalidParameter as error:
        error.within(kind)
        raise


def _decode(kind: str, record: object) -> Any:
    choices = parts_by_name(kind)
    if not isinstance(record, Mapping):
        raise InvalidParameter(f"{kind} is {record!r}: give a name and settings, such as {{'name': ...}}")
    name = str(record.get("name"))
    if name not in choices:
        noun = "prior of an unknown number" if kind == "unknown" else kind
        raise InvalidParameter(
            f"unknown {noun} {name!r}: use one of {', '.join(sorted(choices))}{suggestion(name, choices)}",
            field="name",
        )
    fields = {key: _from_json(key, value) for key, value in record.items() if key != "name"}
    settings = {f.name for f in dataclasses.fields(choices[name]) if f.init}
    unknown = sorted(set(fields) - settings)
    if unknown:
        raise InvalidParameter(
            f"{kind} {name!r} has no setting {unknown[0]!r}: it takes {', '.join(sorted(settings)) or 'none'}",
            field=unknown[0],
        )
    return choices[name](**fields)


def decode_saved(kind: str, record: object) -> Any:
    """Restore a part of a saved search; None for absent candidates, a list for stop rules."""
    if record is None and kind == "candidates":
        return None
    if kind == "stop" and isinstance(record, list):
        return [decode_saved(kind, rule) for rule in record]
    record = present_form(kind, record)
    try:
        return decode(kind, record)
    except InvalidParameter as error:
        if not isinstance(record, Mapping) or record.get("name") in parts_by_name(kind):
            raise
        raise InvalidParameter(
            f"{error}; if it is your own class, give it again: load(path, {kind}=...)", field=kind
        ) from None


def present_form(kind: str, record: Any) -> Any:
    """Return the record of a saved part without settings that only earlier versions had.

    The residual of a response could be unknown, with a log-normal prior. It becomes the number that gives utilities the
    same variance before the first answer.
    """
    residual = record.get("residual") if kind == "response" and isinstance(record, Mapping) else None
    if residual != "unknown" and not isinstance(residual, Mapping):
        return record
    unknown = _from_json("residual", residual)
    prior = (unknown.prior or _RESIDUAL_PRIOR) if isinstance(unknown, Unknown) else None
    if not isinstance(prior, LogNormal):
        return record
    deviation = min((prior.median or 1.0) * math.exp(prior.spread**2), MAX_RESIDUAL)
    warnings.warn(
        f"the saved response has an unknown residual, which pairseek no longer infers: it is read as "
        f"residual={deviation:.3g}, the root mean square of its prior",
        DefaultWarning,
        stacklevel=caller_level(),
    )
    return {**record, "residual": deviation}


def _to_json(value: object, where: str) -> Any:
    """Return a setting as JSON data; `where` names it in errors."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [_to_json(x, where) for x in value]
    if isinstance(value, tuple(UNKNOWNS.values())):
        return encode(value)
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InvalidParameter(
        f"{where} is {value!r}, which cannot be serialized: use finite numbers, strings and lists of them"
    )


def _from_json(setting: str, value: object) -> Any:
    """Return a setting from JSON data, with lists as tuples and unknown numbers decoded."""
    if value == "unknown":
        value = {"name": value}
    if isinstance(value, Mapping):
        try:
            return _decode("unknown", value)
        except InvalidParameter as error:
            error.within(setting)
            raise
    return tuple(_from_json(setting, x) for x in value) if isinstance(value, list) else value


def query_record(query: Query) -> JSON:
    """Return a query with its info except the time. JSON has no infinity or NaN, so such a utility becomes null."""
    info = None if query.info is None else {k: v for k, v in dataclasses.asdict(query.info).items() if k != "seconds"}
    if info is not None and info["utility"] is not None and not math.isfinite(info["utility"]):
        info["utility"] = None
    return {"id": query.id, "left": query.left, "right": query.right, "info": info}


def query_from(record: Mapping[str, Any]) -> Query:
    """Restore the query that `query_record` wrote."""
    info = None if record["info"] is None else QueryInfo(**record["info"])
    name = record["id"]
    if not isinstance(name, str) or not _QUERY_ID.fullmatch(name):
        raise InvalidFile(f"a query has the id {name!r}: expected an id such as q0, q1 or q1.2")
    return Query(name, _side_from(record["left"]), _side_from(record["right"]), info)


def query_id(events: int, index: int) -> str:
    """Return the id of the query with this index after a number of events."""
    return f"q{events}" if index == 0 else f"q{events}.{index}"


def query_position(query: Query) -> tuple[int, int]:
    """Read the number of events before a query, and its index among queries asked at once, from its id."""
    events, _, index = query.id[1:].partition(".")
    return int(events), int(index or 0)


def check_query_order(events: Sequence[Event], pending: Sequence[Query]) -> None:
    """Validate that every query follows the number of events in its id, and that ids are unique."""
    asked = [(event.query, count) for count, event in enumerate(events) if event.query is not None]
    asked += [(query, len(events)) for query in pending]
    for query, count in asked:
        if query_position(query)[0] > count:
            raise InvalidFile(f"the query {query.id!r} precedes events that it must follow")
    if len({query.id for query, _ in asked}) < len(asked):
        raise InvalidFile("two queries have the same id")


def event_record(event: Event) -> JSON:
    """Return an event with the query that it answers."""
    return {
        "left": event.left,
        "right": event.right,
        "outcome": event.outcome,
        "winner": event.winner,
        "query": None if event.query is None else query_record(event.query),
    }


def event_from(record: Mapping[str, Any]) -> Event:
    """Restore the event that `event_record` wrote."""
    left, right = _side_from(record["left"]), _side_from(record["right"])
    winner = None if record["winner"] is None else _side_from(record["winner"])
    outcome = record["outcome"]
    if outcome not in ("answer", "tie", "skip") or (outcome == "answer") != (winner is not None):
        raise InvalidFile(f"an event has the outcome {outcome!r} and the winner {winner!r}, which are inconsistent")
    if winner is not None and winner not in (left, right):
        raise InvalidFile(f"an event between {left!r} and {right!r} has the winner {winner!r}")
    return Event(left, right, outcome, winner, None if record["query"] is None else query_from(record["query"]))


_OUTCOME_LETTERS = {"answer": "", "tie": "t", "skip": "s"}
# Light records identify a part by a hash if its own record has more characters than this.
_MAX_PART_LENGTH = 600


def digest(record: object) -> str:
    """Return the SHA-256 of plain data."""
    return hashlib.sha256(json.dumps(record, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def light_part(part: object) -> JSON:
    """Return a part as plain data, or its name and hash if that would be long."""
    record = encode(part)
    if len(json.dumps(record)) <= _MAX_PART_LENGTH:
        return record
    return {"name": record["name"], "sha256": digest(record)}


def light_event(event: Event) -> list[Any]:
    """Return an event as [left, right, "l" | "r" | "t" | "s", id of its query or null]."""
    letter = _OUTCOME_LETTERS[event.outcome] or ("l" if event.winner == event.left else "r")
    return [event.left, event.right, letter, None if event.query is None else event.query.id]


def event_from_light(record: Sequence[Any]) -> Event:
    """Restore the event that `light_event` wrote, without the info of its query."""
    left, right, letter, name = record
    outcome = {"l": "answer", "r": "answer", "t": "tie", "s": "skip"}[letter]
    winner = {"l": left, "r": right}.get(letter)
    query = None if name is None else {"id": name, "left": left, "right": right, "info": None}
    return event_from({"left": left, "right": right, "outcome": outcome, "winner": winner, "query": query})


def light_query(query: Query) -> list[Any]:
    """Return a query as [id, left, right]."""
    return [query.id, query.left, query.right]


def query_from_light(record: Sequence[Any]) -> Query:
    """Restore the query that `light_query` wrote, without its info."""
    name, left, right = record
    return query_from({"id": name, "left": left, "right": right, "info": None})


def _side_from(value: object) -> Side:
    if isinstance(value, list | tuple):
        return tuple(map(float, value))
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InvalidFile(f"one side of a pair is {value!r}: expected the id of an item, or a point")
    return value
