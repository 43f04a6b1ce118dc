"""Parts to plain data and back, by name: what files, commands and HTTP speak."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pairseek.candidates import SOURCES, Rest
from pairseek.core.types import JSON
from pairseek.errors import InvalidParameter
from pairseek.model.priors import GaussianPrior, UniformBox
from pairseek.model.responses import RESPONSES
from pairseek.model.unknowns import UNKNOWNS
from pairseek.posteriors import POSTERIORS
from pairseek.stopping import STOP_RULES
from pairseek.strategies import STRATEGIES

PRIORS = {prior.name: prior for prior in (UniformBox, GaussianPrior)}
KINDS: dict[str, Mapping[str, Any]] = {
    "response": RESPONSES,
    "prior": PRIORS,
    "posterior": POSTERIORS,
    "strategy": STRATEGIES,
    "candidates": SOURCES,
    "stop": STOP_RULES,
    "rest": {"rest": Rest},
    "unknown": UNKNOWNS,
}


def encode(part: Any) -> JSON:
    """A part as {"name": ..., field: value, ...}."""
    kind = type(part).__name__
    if not dataclasses.is_dataclass(part):
        raise InvalidParameter(
            f"{kind} is not a dataclass, so its settings cannot be written down: put @dataclass(frozen=True) above it"
        )
    fields = {
        f.name: _plain(getattr(part, f.name), f"{kind}.{f.name}")
        for f in dataclasses.fields(part)
        if f.init and f.compare
    }
    return {"name": getattr(part, "name", type(part).__name__.lower()), **fields}


def decode(kind: str, record: Mapping[str, Any]) -> Any:
    """The part that `encode` described."""
    choices = KINDS[kind]
    if not isinstance(record, Mapping):
        raise InvalidParameter(f"{kind} is {record!r}: give a name and settings, such as {{'name': ...}}")
    name = str(record.get("name"))
    if name not in choices:
        what = "prior of an unknown number" if kind == "unknown" else kind
        raise InvalidParameter(
            f"unknown {what} {name!r}: use one of {', '.join(sorted(choices))}{_nearest(name, choices)}"
        )
    fields = {key: _frozen(value) for key, value in record.items() if key != "name"}
    known = {f.name for f in dataclasses.fields(choices[name]) if f.init}
    unknown = sorted(set(fields) - known)
    if unknown:
        raise InvalidParameter(
            f"{kind} {name!r} has no setting {unknown[0]!r}: it takes {', '.join(sorted(known)) or 'none'}"
        )
    return choices[name](**fields)


def kept(kind: str, record: Any) -> Any:
    """What a saved search says of a part: one, none, or the list of stop rules."""
    if record is None and kind == "candidates":
        return None
    if kind == "stop" and isinstance(record, list):
        return [kept(kind, rule) for rule in record]
    try:
        return decode(kind, record)
    except InvalidParameter as error:
        if not isinstance(record, Mapping) or record.get("name") in KINDS[kind]:
            raise
        raise InvalidParameter(f"{error}; one of your own is given again: load(path, {kind}=...)") from None


def _nearest(name: object, choices: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(str(name), choices, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(x, where) for x in value]
    if isinstance(value, tuple(UNKNOWNS.values())):
        return encode(value)
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InvalidParameter(
        f"{where} is {value!r}, which cannot be written down: use finite numbers, texts and lists of them"
    )


def _frozen(value: Any) -> Any:
    if value == "unknown":
        value = {"name": value}
    if isinstance(value, Mapping):
        return decode("unknown", value)
    return tuple(_frozen(x) for x in value) if isinstance(value, list) else value
