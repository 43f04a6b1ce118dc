"""Views of the demo: a full screen that is redrawn in place, or plain lines."""

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

_CHOSEN = {Key.TIE: "tie", Key.SKIP: "skipped", Key.UNDO: "undo the previous answer"}

_KEYS = "1 or 2,  = tie,  s skip,  u undo,  q quit and save"


class DemoView(Protocol):
    """Display of the state of the demo."""

    def show(self, screen: ScreenState) -> None:
        """Show this state."""
        ...

    def idle(self) -> None:
        """React to changes of the terminal while no key is pressed."""
        ...


class FullScreen:
    """Full-screen view that is redrawn in place and adapts to the size of the terminal."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console = console
        self._live = live
        self._size = console.size

    @classmethod
    @contextmanager
    def opened(cls, console: Console) -> Iterator[FullScreen]:
        """Open the alternate screen of the terminal, and restore the previous content at the end."""
        # Redirected output would corrupt the screen.
        with Live(
            console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        ) as live:
            yield cls(console, live)

    def show(self, screen: ScreenState) -> None:
        """Redraw the screen."""
        self._size = self._console.size
        self._live.update(Frame(screen), refresh=True)

    def idle(self) -> None:
        """Redraw the screen if the size of the terminal has changed."""
        if self._console.size != self._size:
            self._size = self._console.size
            self._live.refresh()


class Lines:
    """View that prints lines, for pipes, files and dumb terminals.

    Parameters
    ----------
    console
        Console for the output.
    keys
        Whether to list the keys, for a person who types.
    """

    def __init__(self, console: Console, *, keys: bool) -> None:
        self._console = console
        self._asked = ""
        self._print(Text.assemble((QUESTION, "bold"), f"  {_KEYS}" if keys else ""))

    def show(self, screen: ScreenState) -> None:
        """Print the changes since the last state."""
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
        """Do nothing, because printed lines need no update."""

    def _pair(self, screen: ScreenState) -> Text:
        text = Text()
        for number, colour in ((1, screen.left), (2, screen.right)):
            chip = Text("    ", f"on {colour.hex}") if in_true_colour(self._console) else Text()
            text.append_text(Text.assemble("  ", (str(number), "bold"), " ", chip, f" {colour.name} {colour.hex}"))
        return text

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True, highlight=False)
