"""Screen layout of the demo: two colours, the progress and the keys."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from pairseek.cli.terminal.keys import Key
from pairseek.cli.terminal.swatches import Colour, card, in_true_colour, side_by_side, swatch
from pairseek.core.text import plural
from pairseek.core.types import Query

QUESTION = "Which colour do you prefer?"
_WIDEST, _TALLEST = 96, 18  # maximum size in cells; larger swatches are too far apart to compare
_GAP = 2
_KEYS = (("← →", "choose"), ("=", "tie"), ("s", "skip"), ("u", "undo"), ("q", "quit and save"), ("?", "help"))
_HELP = (
    ("← or 1", "choose left"),
    ("→ or 2", "choose right"),
    ("=", "tie: no preference"),
    ("s", "skip this pair"),
    ("u", "undo the last key"),
    ("q", "quit and save; Ctrl-C too"),
)
_ABOUT = (
    "The 95 % radius measures the uncertainty: your colour is within this distance of the estimate with a probability "
    "of 95 %. The distance from black to white is 1."
)

_NO_COLOUR = "No true colour: names only (see ?)."
_COLOURLESS = "A terminal with true colour sets COLORTERM=truecolor. "


@dataclass(frozen=True, slots=True)
class ScreenState:
    """Content of the screen.

    Attributes
    ----------
    query
        The current query.
    left, right
        The two colours.
    answers
        Number of answers so far.
    radius
        Radius of the 95 % credible region in Oklab.
    remaining
        Expected number of remaining answers; None without a stop rule.
    undoable
        Whether undo is possible.
    said
        Confirmation of the last action.
    hint
        Explanation of an invalid key.
    chosen
        The answer to this pair, which is shown briefly before the next pair.
    help
        Whether the help replaces the colours.
    """

    query: Query
    left: Colour
    right: Colour
    answers: int
    radius: float
    remaining: int | None
    undoable: bool = False
    said: str = ""
    hint: str = ""
    chosen: Key | None = None
    help: bool = False


def progress(screen: ScreenState) -> list[str]:
    """Describe the number of answers, the radius and the remaining answers."""
    return [
        plural(screen.answers, "answer"),
        f"95 % radius {screen.radius:.3f}",
        "no stop rule" if screen.remaining is None else f"{screen.remaining} more expected",
    ]


@dataclass(frozen=True, slots=True)
class Frame:
    """Renderable that fits the state of the screen to the current size of the terminal."""

    screen: ScreenState

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield lines that fit the terminal, centred."""
        columns, rows = options.size
        width = min(columns - 4, _WIDEST) if columns >= 24 else columns
        lines = self._lines(console, width, rows)
        margin = " " * ((columns - width) // 2)
        for _ in range(max(0, (rows - len(lines)) // 3)):
            yield Text()
        for line in lines:
            row = Text.assemble(margin, line, no_wrap=True, overflow="crop")
            row.truncate(columns)
            yield row

    def _lines(self, console: Console, width: int, rows: int) -> list[Text]:
        # Small terminals omit the blank lines.
        blank = [Text()] if rows >= 17 else []
        head = [
            *blank,
            _between(Text(QUESTION, "bold"), Text("pairseek", "dim"), width),
            self._notice(console, width),
            *blank,
        ]
        foot = [*blank, *self._progress(width), *blank, *_wrapped(_KEYS, width)]
        room = rows - len(head) - len(foot)
        if self.screen.help:
            return [*head, *_help(console, width), *blank, Text("Press any key to go back.", "dim")]
        height = min(max(room - 1, 2), _TALLEST)
        return [*head, *self._pair(console, width, height), *foot]

    def _notice(self, console: Console, width: int) -> Text:
        screen = self.screen
        text = Text(screen.said, "dim")
        if screen.hint:
            text = Text(screen.hint, "yellow")
        elif not screen.said and not in_true_colour(console):
            text = Text(_NO_COLOUR, "dim")
        text.truncate(width, overflow="ellipsis")
        return text

    def _pair(self, console: Console, width: int, height: int) -> list[Text]:
        each = (width - _GAP) // 2
        draw = swatch if in_true_colour(console) else card
        blocks = [draw(colour, each, height) for colour in (self.screen.left, self.screen.right)]
        labels = [self._label(key, words, each) for key, words in ((Key.LEFT, "← 1"), (Key.RIGHT, "→ 2"))]
        return side_by_side([[*block, label] for block, label in zip(blocks, labels, strict=True)], _GAP)

    def _label(self, key: Key, words: str, width: int) -> Text:
        chosen = self.screen.chosen is key or self.screen.chosen is Key.TIE
        return Text(f"  {'●' if chosen else words}".ljust(width), "bold" if chosen else "dim")

    def _progress(self, width: int) -> Iterable[Text]:
        screen = self.screen
        if screen.remaining is not None:
            total = screen.answers + screen.remaining
            done = round(width * screen.answers / total) if total else width
            yield Text.assemble("━" * done, ("─" * (width - done), "dim"))
        yield from _flowed([Text(words) for words in progress(screen)], Text("  ·  ", "dim"), width)


def _between(left: Text, right: Text, width: int) -> Text:
    space = width - left.cell_len - right.cell_len
    return Text.assemble(left, " " * space, right) if space > 2 else left


def _wrapped(keys: Iterable[tuple[str, str]], width: int) -> list[Text]:
    return _flowed([Text.assemble((key, "bold"), " ", (words, "dim")) for key, words in keys], Text("   "), width)


def _flowed(parts: Iterable[Text], separator: Text, width: int) -> list[Text]:
    """Arrange the parts in as few lines as possible, without breaking a part."""
    lines: list[Text] = []
    for part in parts:
        if lines and lines[-1].cell_len + separator.cell_len + part.cell_len <= width:
            lines[-1] = Text.assemble(lines[-1], separator, part)
        else:
            lines.append(part)
    return lines


def _help(console: Console, width: int) -> list[Text]:
    keys = [Text.assemble((key.ljust(9), "bold"), words) for key, words in _HELP]
    about = _ABOUT if in_true_colour(console) else _COLOURLESS + _ABOUT
    return [*keys, Text(), *(Text(line, "dim") for line in textwrap.wrap(about, width))]
