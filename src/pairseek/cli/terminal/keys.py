"""Key presses: what they mean, and reading them from a terminal or a pipe."""

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
"""Seconds for which a new pair takes no answer: nobody has looked at it yet, so the press was meant for the last."""
REPEATING = 0.06
"""Presses closer together than this many seconds come from a key that is held down, not from a decision."""
_SPLIT = 0.1  # seconds that the rest of an escape sequence may take; over slow lines it comes in pieces
_IDLE = 0.2  # seconds between looks at the size of the terminal


class Key(Enum):
    """What a press means."""

    LEFT = auto()
    RIGHT = auto()
    TIE = auto()
    SKIP = auto()
    UNDO = auto()
    QUIT = auto()
    HELP = auto()
    OTHER = auto()
    """Nothing here."""
    HASTY = auto()
    """Something, but too soon to be meant for this pair."""
    END = auto()
    """There will be no more."""


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
    r"""The keys in these bytes, and the beginning of an escape sequence that is not complete yet.

    Parameters
    ----------
    data
        As they came from the terminal.
    final
        Nothing more will follow: an incomplete sequence is a press that means nothing.

    Examples
    --------
    >>> decode(b"1\x1b[C\x1b")
    ([<Key.LEFT: 1>, <Key.RIGHT: 2>], b'\x1b')
    """
    keys: list[Key] = []
    at = 0
    while at < len(data):
        if data[at] != 0x1B:
            # The later bytes of a UTF-8 character are not presses of their own.
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
    """Whoever answers: a person at a terminal, a pipe, a simulation."""

    linger: float
    """Seconds for which an answer stays on the screen before the next pair comes."""

    def next(self, query: Query) -> Key:
        """The next key, when this query is on the screen."""
        ...


class TerminalKeys:
    """Presses on a terminal that hands over every byte at once, see `pairseek.cli.terminal.tty.keyboard`.

    Parameters
    ----------
    descriptor
        The terminal's file descriptor.
    idle
        Called a few times a second while nothing is pressed.
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
        """The next key; `Key.HASTY` for an answer that came too soon or from a key held down."""
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
            data = b""  # the terminal has gone away
        self._take(data, final=not data)
        if not data:
            self._keys.append(Key.END)

    def _take(self, data: bytes, *, final: bool) -> None:
        keys, self._rest = decode(self._rest + data, final=final)
        self._keys.extend(keys)


class PipeKeys:
    """Characters from a pipe or a file; white space between them means nothing."""

    linger = 0.0

    def __init__(self, stream: BinaryIO | None) -> None:
        self._stream = stream
        self._keys: deque[Key] = deque()
        self._rest = b""

    def next(self, query: Query) -> Key:  # noqa: ARG002 - a pipe does not look at the pair
        """The next key, or `Key.END`."""
        while not self._keys:
            data = b"" if self._stream is None else self._stream.read(1)
            keys, self._rest = decode(self._rest + data.translate(None, b" \t\r\n"), final=not data)
            self._keys.extend(keys)
            if not data:
                self._keys.append(Key.END)
        return self._keys.popleft()
