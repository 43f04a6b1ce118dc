"""Main loop of the demo: show a pair, read a key, update the search."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import numpy as np

from pairseek.cli.terminal.frames import ScreenState
from pairseek.cli.terminal.keys import Key, Typist
from pairseek.cli.terminal.result import colour_of
from pairseek.cli.terminal.views import DemoView
from pairseek.core.types import Query
from pairseek.model.items import Items
from pairseek.search import Search
from pairseek.simulate import SimulatedUser

_HINTS = {
    Key.OTHER: "That key does nothing: ? shows help.",
    Key.HASTY: "Too fast: look at the pair, then press again.",
    Key.UNDO: "There is nothing to undo yet.",
}
# Stream constant of the simulated user, which keeps its random numbers independent of those of the search.
_PERSON = 0x636F6C6F7572


def converse(search: Search, typist: Typist, view: DemoView, save: Callable[[Search], None]) -> bool:
    """Ask questions until the search has finished or the person quits.

    Parameters
    ----------
    search
        A search over the named colours.
    typist
        Source of the keys.
    view
        Display of the questions.
    save
        Called after every answer, tie, skip and undo.

    Returns
    -------
    bool
        Whether the search has finished. False if the person quit.
    """
    said = ""
    while search.finished is None:
        query = search.ask()
        screen = dataclasses.replace(_screen_state(search, query), said=said)
        key = _valid_key(typist, view, screen)
        if key in (Key.QUIT, Key.END):
            return False
        view.show(dataclasses.replace(screen, chosen=key))
        time.sleep(typist.linger)
        said = _apply(search, query, key)
        save(search)
    return True


def _valid_key(typist: Typist, view: DemoView, screen: ScreenState) -> Key:
    """Return the next key that is valid in this state; invalid keys show a hint."""
    while True:
        view.show(screen)
        key = typist.next(screen.query)
        if key is Key.END:
            return key
        if screen.help:
            screen = dataclasses.replace(screen, help=False)
        elif key is Key.HELP:
            screen = dataclasses.replace(screen, help=True, hint="")
        elif key in (Key.OTHER, Key.HASTY) or (key is Key.UNDO and not screen.undoable):
            screen = dataclasses.replace(screen, hint=_HINTS[key])
        else:
            return key


def _apply(search: Search, query: Query, key: Key) -> str:
    """Apply a key to the search, and return a confirmation."""
    if key is Key.UNDO:
        search.undo()
        return "Undone: this is the previous pair."
    if key is Key.SKIP:
        search.skip(query)
        return "Skipped."
    if key is Key.TIE:
        search.tell(query, tie=True)
        return "A tie."
    winner = query.left if key is Key.LEFT else query.right
    search.tell(query, winner=winner)
    items = _items(search)
    return f"Chosen: {items.labels[items.index(winner)]}."


def _screen_state(search: Search, query: Query) -> ScreenState:
    items = _items(search)
    return ScreenState(
        query=query,
        left=colour_of(items, items.index(query.left)),
        right=colour_of(items, items.index(query.right)),
        answers=search.answers,
        radius=search.estimate().credible_radius(0.95),
        remaining=search.forecast(),
        undoable=bool(search.history),
    )


def _items(search: Search) -> Items:
    assert isinstance(search.items, Items)
    return search.items


class SimulatedTypist:
    """Simulated user whose favourite is one of the colours.

    Parameters
    ----------
    search
        The search, whose seed determines the favourite colour and the answers.
    pause
        Seconds per question, so that people can follow the simulation.
    """

    def __init__(self, search: Search, *, pause: float = 0.0) -> None:
        items = _items(search)
        rng = np.random.default_rng([search.seed, _PERSON])
        self.target = int(rng.integers(items.n))
        self.linger = pause / 2
        self._user = SimulatedUser(items.coordinates[self.target], search.response, rng=rng)
        self._items = items

    def next(self, query: Query) -> Key:
        """Return the key of the preferred colour."""
        time.sleep(self.linger)
        return Key.LEFT if self._user.answer(self._items, query) == query.left else Key.RIGHT
