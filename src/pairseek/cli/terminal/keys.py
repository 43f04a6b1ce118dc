"""Keys of the demo: their meaning, and readers for terminals and pipes."""

from __future__ import annotations

import os
import re
import select
import time
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import BinaryIO, Protocol

from pairseek.core.types import Query

SETTLING = 0.15
"""Seconds for which a new pair accepts no answer, because the press was meant for the previous pair."""
REPEATING = 0.06
"""Minimum seconds between two answers; faster presses are key repeats."""
_SPLIT = 0.1  # maximum seconds between the parts of an escape sequence, which a slow connection may split
_IDLE = 0.2  # seconds between checks of the terminal size


class Key(Enum):
    """Meaning of a key press."""

    LEFT = auto()
    RIGHT = auto()
    TIE = auto()
    SKIP = auto()
    UNDO = auto()
    QUIT = auto()
    HELP = auto()
    OTHER = auto()
    """A key without a meaning."""
    HASTY = auto()
    """A valid key that came too early for this pair."""
    END = auto()
    """The end of the input."""


_CHARACTERS = {
    **dict.fromkeys(b"1", Key.LEFT),
    **dict.fromkeys(b"2", Key.RIGHT),
    **dict.fromkeys(b"=", Key.TIE),
    **dict.fromkeys(b"sS", Key.SKIP),
    **dict.fromkeys(b"uU", Key.UNDO),
    **dict.fromkeys(b"qQ\x03\x04", Key.QUIT),
    **dict.fromkeys(b"?", Key.HELP),
}
_ARROWS = {b"C": Key.RIGHT, b"D": Key.LEFT}
# ESC [ parameters final, ESC O final (arrows in application mode), or ESC and a character (Alt held down).
_SEQUENCE = re.compile(rb"\x1b(?:(?:\[[0-?]*[ -/]*|O)([@-~])|[^\x1b\[O])", re.DOTALL)
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")


def decode(data: bytes, *, final: bool = False) -> tuple[list[Key], bytes]:
    r"""Decode bytes into keys, and return the bytes of an incomplete escape sequence.

    Parameters
    ----------
    data
        Bytes from the terminal.
    final
        Whether the input ends here. An incomplete sequence is then a key without a meaning.

    Examples
    --------
    >>> decode(b"1\x1b[C\x1b")
    ([<Key.LEFT: 1>, <Key.RIGHT: 2>], b'\x1b')
    """
    keys: list[Key] = []
    at = 0
    while at < len(data):
        if data[at] != 0x1B:
            # Skip the continuation bytes of UTF-8 characters.
            if not 0x80 <= data[at] < 0xC0:
                keys.append(_CHARACTERS.get(data[at], Key.OTHER))
            at += 1
        elif not final and _UNFINISHED.match(data, at):
            return keys, data[at:]
        elif match := _SEQUENCE.match(data, at):
            keys.append(_ARROWS.get(match[1] or b"", Key.OTHER))
            at = match.end()
        else:
            keys.append(Key.OTHER)
            at += 1
    return keys, b""


class Typist(Protocol):
    """Source of keys: a person at a terminal, a pipe, or a simulation."""

    linger: float
    """Seconds for which an answer is shown before the next pair."""

    def next(self, query: Query) -> Key:
        """Return the next key while this query is shown."""
        ...


class TerminalKeys:
    """Keys from a terminal in the raw mode of `pairseek.cli.terminal.tty.keyboard`.

    Parameters
    ----------
    descriptor
        The terminal's file descriptor.
    idle
        Called a few times per second while no key is pressed.
    """

    linger = 0.0

    def __init__(self, descriptor: int, idle: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._idle = idle
        self._keys: deque[Key] = deque()
        self._rest = b""
        self._query = ""
        self._appeared = self._pressed = float("-inf")

    def next(self, query: Query) -> Key:
        """Return the next key; `Key.HASTY` for an answer that came too early or from a key repeat."""
        if query.id != self._query:
            self._query, self._appeared = query.id, time.monotonic()
        while not self._keys:
            self._read()
        key, now = self._keys.popleft(), time.monotonic()
        hasty = now - self._appeared < SETTLING or now - self._pressed < REPEATING
        self._pressed = now
        return Key.HASTY if hasty and key not in (Key.QUIT, Key.HELP, Key.END) else key

    def _read(self) -> None:
        if not select.select([self._descriptor], [], [], _SPLIT if self._rest else _IDLE)[0]:
            if self._rest:
                self._take(b"", final=True)
            self._idle()
            return
        try:
            data = os.read(self._descriptor, 1024)
        except OSError:
            data = b""  # the terminal was closed
        self._take(data, final=not data)
        if not data:
            self._keys.append(Key.END)

    def _take(self, data: bytes, *, final: bool) -> None:
        keys, self._rest = decode(self._rest + data, final=final)
        self._keys.extend(keys)


class PipeKeys:
    """Keys from the characters of a pipe or a file, without white space."""

    linger = 0.0

    def __init__(self, stream: BinaryIO | None) -> None:
        self._stream = stream
        self._keys: deque[Key] = deque()
        self._rest = b""

    def next(self, query: Query) -> Key:  # noqa: ARG002 - the protocol has this argument
        """Return the next key, or `Key.END`."""
        while not self._keys:
            data = b"" if self._stream is None else self._stream.read(1)
            keys, self._rest = decode(self._rest + data.translate(None, b" \t\r\n"), final=not data)
            self._keys.extend(keys)
            if not data:
                self._keys.append(Key.END)
        return self._keys.popleft()
