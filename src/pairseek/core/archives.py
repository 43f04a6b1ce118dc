"""Untrusted zip archives, read within a memory limit."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path

# An archive of n bytes may unpack to min(_MAX_BYTES, _BASE_BYTES + _EXPANSION_FACTOR n) bytes. The numbers are
# judgement calls, not measurements of real bundles.
_BASE_BYTES = 100_000_000
_EXPANSION_FACTOR = 200
_MAX_BYTES = 2_000_000_000
# Bytes in memory of a parsed list or object.
_CONTAINER_BYTES = 64
# Bytes of a reference in a list or object.
_REFERENCE_BYTES = 8

ARCHIVE_ERRORS = (
    OSError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""Exceptions that the standard library raises for damaged, encrypted or unsupported archives."""


class ArchiveTooLarge(Exception):
    """The parts of an archive would need more memory than its size justifies."""


class LimitedArchive:
    """Open zip archive that checks its memory budget before unpacking a part, and again before the part is parsed.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._budget = min(_MAX_BYTES, _BASE_BYTES + _EXPANSION_FACTOR * path.stat().st_size)
        self._remaining = self._budget
        self._archive = zipfile.ZipFile(path)

    def __enter__(self) -> LimitedArchive:
        """Return the archive; leaving the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the archive."""
        self._archive.close()

    def read(self, name: str) -> bytes:
        """Return a part; raise `KeyError` if it is missing, `ArchiveTooLarge` if it exceeds the budget."""
        # The declared size is safe to trust: zipfile stops reading there.
        self._spend(self._archive.getinfo(name).file_size)
        content = self._archive.read(name)
        containers = content.count(b"[") + content.count(b"{")
        self._spend(_CONTAINER_BYTES * containers + _REFERENCE_BYTES * content.count(b","))
        return content

    def _spend(self, size: int) -> None:
        self._remaining -= size
        if self._remaining < 0:
            raise ArchiveTooLarge(f"its parts unpack to more than {self._budget:,} bytes")
