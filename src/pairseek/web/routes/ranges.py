"""Byte ranges of HTTP requests (RFC 9110, section 14)."""

from __future__ import annotations

import re
from collections.abc import Mapping

_RANGE = re.compile(r"bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*", re.ASCII | re.IGNORECASE)


class Unsatisfiable(Exception):
    """A range that begins after the end."""


def byte_range(headers: Mapping[str, str], size: int, etag: str) -> tuple[int, int] | None:
    """Return the first byte of the requested range and the byte after its last; None for the whole file.

    Several ranges, other units and malformed ranges are ignored, as the standard allows, and so is a range with an
    ``If-Range`` of another version.
    """
    match = _RANGE.fullmatch(headers.get("range", "").strip())
    if match is None or headers.get("if-range", etag).strip() != etag:
        return None
    first, last = match.groups()
    if not first:
        if not last:
            return None
        if int(last) == 0:
            raise Unsatisfiable
        return max(0, size - int(last)), size
    if last and int(last) < int(first):
        return None
    if int(first) >= size:
        raise Unsatisfiable
    return int(first), min(int(last) + 1, size) if last else size
