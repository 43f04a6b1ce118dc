"""A search as a conversation: show a pair, take a key, until the search has finished or the person has."""

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
    Key.HASTY: "Too fast: look, then press again.",
    Key.UNDO: "There is nothing to undo yet.",
}
# One word more in the seed's key, so that the person simulated is not drawn from the search's own numbers.
_PERSON = 0x636F6C6F7572


def converse(search: Search, typist: Typist, view: DemoView, save: Callable[[Search], None]) -> bool:
    """Ask until the search has finished.

    Parameters
    ----------
    search
        A search over the named colours.
    typist
        Who answers.
    view
        Where it is shown.
    save
        Called after every answer, tie, skip and undo.

    Returns
    -------
    bool
        False if the typist quit before the end.
    """
    said = ""
    while search.finished is None:
        query = search.ask()
        screen = dataclasses.replace(_screen(search, query), said=said)
        key = _meant(typist, view, screen)
        if key in (Key.QUIT, Key.END):
            return False
        view.show(dataclasses.replace(screen, chosen=key))
        time.sleep(typist.linger)
        said = _act(search, query, key)
        save(search)
    return True


def _meant(typist: Typist, view: DemoView, screen: ScreenState) -> Key:
    """The next key that means something at this screen; the others get a hint."""
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


def _act(search: Search, query: Query, key: Key) -> str:
    """Tell the search, and say what was done."""
    if key is Key.UNDO:
        search.undo()
        return "Taken back: here is that pair again."
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


def _screen(search: Search, query: Query) -> ScreenState:
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
    """A simulated user with one of the colours in mind, the same for the same seed of the search.

    Parameters
    ----------
    search
        Its seed decides the colour and the answers.
    pause
        Seconds to look at a pair before answering, so that people can follow.
    """

    def __init__(self, search: Search, *, pause: float = 0.0) -> None:
        items = _items(search)
        rng = np.random.default_rng([search.seed, _PERSON])
        self.target = int(rng.integers(items.n))
        self.linger = pause / 2
        self._user = SimulatedUser(items.coordinates[self.target], search.response, rng=rng)
        self._items = items

    def next(self, query: Query) -> Key:
        """The key for the colour that this user prefers."""
        time.sleep(self.linger)
        return Key.LEFT if self._user.answer(self._items, query) == query.left else Key.RIGHT
