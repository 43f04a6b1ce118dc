"""Where a search is shown: a screen that is redrawn in place, or line after line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from pairseek.cli.terminal.frames import QUESTION, Frame, ScreenState, progress
from pairseek.cli.terminal.keys import Key
from pairseek.cli.terminal.swatches import in_true_colour

_CHOSEN = {Key.TIE: "a tie", Key.SKIP: "skipped", Key.UNDO: "the last one is taken back"}

_KEYS = "1 or 2,  = tie,  s skip,  u undo,  q quit and keep"


class DemoView(Protocol):
    """Somewhere to show a screen of the search."""

    def show(self, screen: ScreenState) -> None:
        """Show it."""
        ...

    def idle(self) -> None:
        """Called now and then while nothing happens."""
        ...


class FullScreen:
    """One screen, redrawn in place and fitted anew when the terminal changes its size."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console = console
        self._live = live
        self._size = console.size

    @classmethod
    @contextmanager
    def opened(cls, console: Console) -> Iterator[FullScreen]:
        """The terminal's other screen, so that what was there before comes back untouched."""
        # Only what is shown here may write to the screen: a redirected line would tear it.
        with Live(
            console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        ) as live:
            yield cls(console, live)

    def show(self, screen: ScreenState) -> None:
        """Redraw."""
        self._size = self._console.size
        self._live.update(Frame(screen), refresh=True)

    def idle(self) -> None:
        """Redraw if the terminal has another size now."""
        if self._console.size != self._size:
            self._size = self._console.size
            self._live.refresh()


class Lines:
    """Line after line: for pipes, files and terminals that cannot move their cursor.

    Parameters
    ----------
    console
        Where to print.
    keys
        Whether somebody types and should know the keys.
    """

    def __init__(self, console: Console, *, keys: bool) -> None:
        self._console = console
        self._asked = ""
        self._print(Text.assemble((QUESTION, "bold"), f"  {_KEYS}" if keys else ""))

    def show(self, screen: ScreenState) -> None:
        """Say what is new since the last screen."""
        if screen.query.id != self._asked:
            self._asked = screen.query.id
            self._print(Text())
            self._print(Text("  ·  ".join(progress(screen)), "dim"))
            self._print(self._pair(screen))
        if screen.chosen is not None:
            words = {Key.LEFT: screen.left.name, Key.RIGHT: screen.right.name, **_CHOSEN}[screen.chosen]
            self._print(Text(f"  → {words}"))
        elif screen.help:
            self._print(Text(f"  {_KEYS}"))
        elif screen.hint:
            self._print(Text(f"  {screen.hint}"))

    def idle(self) -> None:
        """Nothing to do: what is written stays."""

    def _pair(self, screen: ScreenState) -> Text:
        text = Text()
        for number, colour in ((1, screen.left), (2, screen.right)):
            chip = Text("    ", f"on {colour.hex}") if in_true_colour(self._console) else Text()
            text.append_text(Text.assemble("  ", (str(number), "bold"), " ", chip, f" {colour.name} {colour.hex}"))
        return text

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True, highlight=False)
