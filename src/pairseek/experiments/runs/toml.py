"""Serialization of plain records as TOML."""

from __future__ import annotations

import json

from pairseek.core.types import JSON


def to_toml(record: JSON) -> str:
    """Return the record as TOML: plain values first, then each list of mappings as an array of tables.

    TOML has no null: keys whose value is None are left out.
    """
    arrays = {name: value for name, value in record.items() if _is_array_of_tables(value)}
    lines = [f"{name} = {_value(value)}" for name, value in record.items() if value is not None and name not in arrays]
    for name, tables in arrays.items():
        for entry in tables:
            lines += ["", f"[[{name}]]", *(f"{key} = {_value(value)}" for key, value in entry.items())]
    return "\n".join(lines) + "\n"


def _is_array_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)


def _value(value: object) -> str:
    if isinstance(value, dict):
        fields = (f"{key} = {_value(inner)}" for key, inner in value.items() if inner is not None)
        return "{ " + ", ".join(fields) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    # Strings, integers and booleans have the same syntax in JSON and TOML.
    return json.dumps(value, ensure_ascii=False)
