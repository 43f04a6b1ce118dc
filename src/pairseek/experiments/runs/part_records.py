"""Names and records of parts: pairseek's own by short name, other parts as ``module:Class``."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

from pairseek.core.types import JSON
from pairseek.errors import InvalidParameter
from pairseek.pairs.strategies.base import Procedure, Utility, strategy_of
from pairseek.search import serialization


def default_label(strategy: Utility | Procedure) -> str:
    """Return the label in the paper's notation: InfoGain, GaussCloud-4, ActRank-3."""
    number, name = strategy_of(strategy).label_number, type(strategy).__name__
    return name if number is None else f"{name}-{number}"


def strategy_record(strategy: Utility | Procedure) -> JSON:
    """Return the name and parameters of a strategy as plain data."""
    return part_record("strategy", strategy)


def part_record(kind: str, part: object) -> JSON:
    """Return the name and parameters of a part as plain data; for the kinds, see `serialization.parts_by_name`."""
    record = {key: value for key, value in serialization.encode(part).items() if value is not None}
    cls = type(part)
    if serialization.parts_by_name(kind).get(record["name"]) is not cls:
        record["name"] = f"{cls.__module__}:{cls.__qualname__}"
    return record


def part_from_record(kind: str, record: Mapping[str, Any]) -> Any:
    """Build the part from a record by `part_record`."""
    name = str(record.get("name"))
    if ":" not in name:
        return serialization.decode(kind, record)
    parameters = {
        key: tuple(value) if isinstance(value, list) else value for key, value in record.items() if key != "name"
    }
    return _import_part(kind, name)(**parameters)


def strategy_from_record(record: Mapping[str, Any], answers: int) -> Utility | Procedure:
    """Build a strategy from its record; ``answers`` is the number of answers for strategies that plan ahead."""
    cls = serialization.parts_by_name("strategy").get(str(record.get("name")))
    if cls is not None and "answers" in {field.name for field in dataclasses.fields(cls)}:
        record = {"answers": answers, **record}
    strategy: Utility | Procedure = part_from_record("strategy", record)
    return strategy


def _import_part(kind: str, name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidParameter(
            f"the {kind} {name!r} cannot be imported ({error}): give module:Class, with a module that is installed, "
            f"or lies in the folder of the specification"
        ) from None
