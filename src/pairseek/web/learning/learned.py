"""Versions that a study has learned, ready to be stored."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import Self

from pairseek.core.types import JSON


@dataclass(frozen=True, eq=False)
class LearnedVersion:
    """Population or map learned from the answers of a study, before it is stored.

    Attributes
    ----------
    content
        Compressed record of the population or map.
    sessions
        Ids of the sessions that it was learned from.
    facts
        Facts about the version for the study's owner, stored with the content.
    note
        Details for the audit log.
    """

    content: bytes
    sessions: tuple[str, ...]
    facts: JSON
    note: JSON

    @classmethod
    def of(cls, learned: JSON, sessions: list[str], facts: JSON, note: JSON) -> Self:
        """Build a version from the record of a population or map."""
        return cls(zlib.compress(json.dumps(learned, allow_nan=False).encode(), 6), tuple(sessions), facts, note)

    @property
    def learned(self) -> JSON:
        """Record of the population or map."""
        record: JSON = json.loads(zlib.decompress(self.content))
        return record

    def record(self) -> JSON:
        """Return the version as JSON data."""
        content = base64.b64encode(self.content).decode()
        return {"content": content, "sessions": list(self.sessions), "facts": self.facts, "note": self.note}

    @classmethod
    def from_record(cls, record: JSON) -> Self:
        """Build a version from JSON data written by `record`."""
        content = base64.b64decode(record["content"])
        return cls(content, tuple(record["sessions"]), record["facts"], record["note"])
