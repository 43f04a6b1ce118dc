"""Zip archives from elsewhere, read with a limit on the memory that their parts need."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

# Memory that any archive may need, that it may need in addition for each of its own bytes, and the most. Chosen by
# judgement, not by a measurement of real bundles.
_BASE, _FACTOR, _MOST = 100_000_000, 200, 2_000_000_000
# Bytes of a parsed list or object, and of a reference to an entry of one.
_CONTAINER, _ENTRY = 64, 8

UNREADABLE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError)
"""What the standard library raises for archives that are damaged, encrypted or compressed in another way."""


class ArchiveTooLarge(Exception):
    """Raised when the parts of an archive would need more memory than its size justifies."""


class LimitedArchive:
    """Open zip archive whose parts are counted before they are unpacked, and again before they are parsed.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._most = min(_MOST, _BASE + _FACTOR * path.stat().st_size)
        self._left = self._most
        self._archive = zipfile.ZipFile(path)

    def __enter__(self) -> LimitedArchive:
        """Return the archive, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the archive."""
        self._archive.close()

    def read(self, name: str) -> bytes:
        """Return a part; raise `KeyError` if it is missing, and `ArchiveTooLarge`."""
        # An archive cannot unpack to more than it announces: the reader stops there.
        self._spend(self._archive.getinfo(name).file_size)
        content = self._archive.read(name)
        self._spend(_CONTAINER * (content.count(b"[") + content.count(b"{")) + _ENTRY * content.count(b","))
        return content

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ArchiveTooLarge(f"its parts unpack to more than {self._most:,} bytes")
