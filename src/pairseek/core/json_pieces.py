"""Reading and writing of long JSON texts in pieces.

The functions of the standard library hold the interpreter lock until the whole text is read or written, and every other
thread of a server waits that long. The functions here let other threads run after every few thousand values. Memory is
limited by what a reader keeps, because the values of a list can be taken one at a time.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

MAX_PIECE = 1_000_000
"""Largest number of characters of a value that is read at once: a list's element, or an object's member."""
_CHUNK_BYTES = 65_536
# Elements of a list that are written at once.
_ELEMENTS_PER_PIECE = 1000
_BLANKS = re.compile(r"[ \t\n\r]*")


class JSONReader:
    """Reader of one JSON text.

    Every method reads from the present position, and raises a `json.JSONDecodeError` if something else is there.

    Parameters
    ----------
    file
        The text in UTF-8.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._scan = json.JSONDecoder().raw_decode
        self._text, self._at, self._gone = "", 0, 0
        self._ended = False
        self._one_by_one_until = 0

    def value(self) -> Any:
        """Read one value at once; it may have at most `MAX_PIECE` characters."""
        self.peek()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except json.JSONDecodeError as error:
                problem, at = error.msg, error.pos
            except RecursionError:
                raise self.error("The values are nested too deeply") from None
            else:
                # A number at the end of what was read may go on, as in 1e-05.
                if end + len("e-") < len(self._text) or self._ended:
                    self._at = end
                    return value
                problem, at = "", self._at
            if self._ended:
                raise self.error(problem, at)
            if len(self._text) - self._at > MAX_PIECE:
                raise self.error(f"The value is not JSON, or too long (more than {MAX_PIECE:,} characters)")
            self._read_chunk()

    def elements(self) -> Iterator[Any]:
        """Yield the elements of a list; none may exceed `MAX_PIECE` characters."""
        for pieces in self._enclosed("[]", self._read_elements):
            yield from pieces

    def members(self) -> Iterator[str]:
        """Yield the names of an object's members; the caller reads the value of each before the next."""
        return self._enclosed("{}", self._name)

    def tree(self, most: float = math.inf, *, most_members: float = math.inf) -> Any:
        """Read a value of at most about ``most`` characters: objects by member, and their lists by element.

        Each object may have at most ``most_members`` members.
        """
        return self._tree(self.position + most, most_members)

    def end(self) -> None:
        """Check that nothing follows."""
        if self.peek():
            raise self.error("Extra data")

    def peek(self) -> str:
        """Skip blanks and return the next character without taking it; the empty text at the end."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            assert blanks is not None
            self._at = blanks.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended or not self._read_chunk():
                return ""

    @property
    def position(self) -> int:
        """Number of characters before the present position."""
        return self._gone + self._at

    def _tree(self, until: float, most_members: float) -> Any:
        first = self.peek()
        out: Any
        if first == "{":
            out = {}
            for count, name in enumerate(self.members(), 1):
                if count > most_members:
                    raise self.error(f"An object has more than {most_members:,} members")
                out[name] = self._tree(until, most_members)
            return out
        out = [] if first == "[" else self.value()
        for element in self.elements() if first == "[" else ():
            out.append(element)
            self._check_position(until)
        self._check_position(until)
        return out

    def _check_position(self, until: float) -> None:
        if self.position > until:
            raise self.error("The value is too long")

    def _enclosed(self, brackets: str, read: Callable[[], Any]) -> Iterator[Any]:
        self._expect(brackets[0])
        if self.peek() != brackets[1]:
            yield read()
            while self.peek() == ",":
                self._at += 1
                yield read()
        self._expect(brackets[1])

    def _read_elements(self) -> list[Any]:
        """Read the next elements of a list, if possible all that end within the chunk, else one."""
        if self.position >= self._one_by_one_until:
            for mark in ("],", "},", '",', ","):
                comma = self._text.rfind(mark, self._at) + len(mark) - 1
                if comma > self._at:
                    try:
                        elements: list[Any] = json.loads(f"[{self._text[self._at : comma]}]")
                    except (ValueError, RecursionError):
                        continue
                    self._at = comma
                    return elements
            # The list may end within the chunk. Another attempt at each of its elements would take very long.
            self._one_by_one_until = self._gone + len(self._text)
        return [self.value()]

    def _name(self) -> str:
        if self.peek() != '"':
            raise self.error("Expecting property name enclosed in double quotes")
        name: str = self.value()
        self._expect(":")
        return name

    def _expect(self, character: str) -> None:
        if self.peek() != character:
            raise self.error(f"Expecting '{character}'")
        self._at += 1

    def _read_chunk(self) -> bool:
        """Read another chunk, and return whether there was one.

        The chunk is at least as long as the text not yet consumed, so a long value is scanned only a few times.
        """
        content = self._file.read(max(_CHUNK_BYTES, len(self._text) - self._at))
        self._ended = not content
        try:
            fresh = self._utf8.decode(content, final=self._ended)
        except UnicodeDecodeError:
            raise self.error("The text is not UTF-8", len(self._text)) from None
        self._text, self._gone, self._at = self._text[self._at :] + fresh, self._gone + self._at, 0
        return not self._ended

    def error(self, problem: str, at: int | None = None) -> json.JSONDecodeError:
        """Return an error at a place in the text read last, by default the present one."""
        at = self._at if at is None else at
        error = json.JSONDecodeError(problem, "", 0)
        error.pos = self._gone + at
        return error


def written(value: object) -> Iterator[str]:
    """Yield the text of `json.dumps` without NaN and infinity, for objects with long lists."""
    if isinstance(value, dict):
        opening = "{"
        for name, member in value.items():
            yield f"{opening}{json.dumps(str(name))}: "
            yield from written(member)
            opening = ", "
        yield "}" if value else "{}"
    elif isinstance(value, list):
        for start in range(0, len(value), _ELEMENTS_PER_PIECE):
            yield ("[" if start == 0 else ", ") + json.dumps(
                value[start : start + _ELEMENTS_PER_PIECE], allow_nan=False
            )[1:-1]
        yield "]" if value else "[]"
    else:
        yield json.dumps(value, allow_nan=False)
