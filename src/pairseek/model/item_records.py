"""Records of items and spaces in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairseek.errors import InvalidFile
from pairseek.model.items import Items
from pairseek.model.spaces import Space


def items_from(record: Mapping[str, Any]) -> Items | Space:
    """Return the items or space written by `Items.record` or `Space.record`."""
    if record["kind"] == "space":
        fields = ("low", "high", "min_separation", "max_separation")
        return Space(*(record[name] for name in fields))
    coordinates = record["coordinates"] if any(record["coordinates"]) else None
    items = Items._without_warnings(coordinates, record["ids"], record["labels"], record["appeal"], record["data"])
    if items.hash != record["hash"]:
        raise InvalidFile("the items in the file do not match their hash: the file was damaged or edited")
    return items
