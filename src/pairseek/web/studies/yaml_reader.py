"""Reader of study files in YAML, which limits the time and memory that a file can take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

from pairseek.errors import InvalidParameter
from pairseek.web.studies.configuration import MAX_TEXT_LENGTH

MAX_YAML_LENGTH = 300_000
"""Largest number of characters of a study file."""
# Largest depth of nesting.
_MAX_DEPTH = 20
_MAX_VALUES = 20_000
# Largest number of keys of a mapping.
_MAX_KEYS = 1000
# Largest number of digits of a number.
_MAX_DIGITS = 400
# YAML numbers, including hexadecimal and base 60.
_NUMBER = re.compile(r"[-+]?\.?[0-9][0-9a-fA-FxXoO_:.+-]*")


def read_yaml(text: str) -> Any:
    """Parse YAML to plain data; raise an `InvalidParameter` with the line of a syntax error."""
    if len(text) > MAX_YAML_LENGTH:
        raise InvalidParameter(
            f"the study file has more than {MAX_YAML_LENGTH:,} characters: keep only settings in it, not items"
        )
    try:
        _check_yaml(yaml.parse(text, Loader=yaml.SafeLoader))
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise InvalidParameter(f"the study file cannot be read{where}: {problem}; fix it there") from None
    except (RecursionError, ValueError, ArithmeticError) as error:
        if isinstance(error, InvalidParameter):
            raise
        raise InvalidParameter(f"the study file cannot be read: {error}; write plain settings") from None


def _check_yaml(events: Iterable[yaml.Event]) -> None:
    """Raise an `InvalidParameter` at the first event of YAML that takes far longer to read than its length suggests."""
    # Number of nodes that each open list or mapping may still contain. The time to read YAML grows with the square of
    # the depth and, for keys with equal hashes, with the square of the number of keys.
    remaining = [_MAX_VALUES]
    for number, event in enumerate(events):
        if isinstance(event, yaml.AliasEvent):
            # Nested aliases can expand to more than fits in memory.
            raise _rejection("contains aliases (*name)", event, "write the settings in full")
        if isinstance(event, yaml.NodeEvent):
            remaining[-1] -= 1
        if isinstance(event, yaml.CollectionStartEvent):
            remaining.append(2 * _MAX_KEYS if isinstance(event, yaml.MappingStartEvent) else _MAX_VALUES)
        elif isinstance(event, yaml.CollectionEndEvent):
            remaining.pop()
        if len(remaining) > _MAX_DEPTH:
            raise _rejection(f"nests lists and mappings more than {_MAX_DEPTH} deep", event, "write plain settings")
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > MAX_TEXT_LENGTH:
            raise _rejection(f"has a text of more than {MAX_TEXT_LENGTH:,} characters", event, "shorten it")
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > _MAX_DIGITS and _NUMBER.fullmatch(event.value):
            raise _rejection(f"has a number of more than {_MAX_DIGITS} digits", event, "shorten it")
        if remaining[-1] < 0 or number > 2 * _MAX_VALUES:
            limit = f"{_MAX_VALUES:,} values, or {_MAX_KEYS:,} settings in one mapping"
            raise _rejection(f"has more than {limit}", event, "keep only settings in it, not items")


def _rejection(problem: str, event: yaml.Event, advice: str) -> InvalidParameter:
    mark = event.start_mark
    return InvalidParameter(f"the study file {problem}, line {1 if mark is None else mark.line + 1}: {advice}")
