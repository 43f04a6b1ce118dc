"""The file that keeps a search between one sitting and the next."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from pairseek.datasets import colours
from pairseek.errors import InvalidFile, InvalidParameter
from pairseek.search import Search
from pairseek.stopping import AfterAnswers

ANSWERS = 15
"""Enough to find the region of a colour (median error about 0.1 in Oklab), few enough for a minute."""
_DEFAULT = "pairseek-demo"


class SearchFile:
    """Saves a search to the file that was named for it, if one was.

    Parameters
    ----------
    path
        The file; None: none until the person quits.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def save(self, search: Search) -> None:
        """Save, if there is a file to save to."""
        if self.path is not None:
            _write(search, self.path)

    def keep(self, search: Search) -> None:
        """Save what was answered in any case: without a name, to one that is free in the current folder."""
        if self.path is None and search.history:
            self.path = _free_name()
        self.save(search)


def new_search(answers: int | None, seed: int | None) -> Search:
    """A search over the named colours."""
    return Search(colours(), stop=AfterAnswers(ANSWERS if answers is None else answers), rng=seed)


def resumed_search(path: Path, answers: int | None) -> Search:
    """The search in a file; with a number of answers, that is its end from now on."""
    search = Search.load(path)
    if search.items != colours():
        raise InvalidFile(f"{path} is a search among other things than the named colours: load it with Search.load")
    if answers is not None:
        search.stop = (AfterAnswers(answers),)
    return search


def unused(path: Path) -> Path:
    """The path for a new file; an existing one is never overwritten."""
    if path.exists():
        raise InvalidParameter(
            f"--save {path}: that exists already; go on with --resume {shlex.quote(str(path))}, or give another name"
        )
    return path


def how_to_go_on(path: Path, further: Sequence[str] = ()) -> str:
    """The command that takes the search up again."""
    # In a virtual environment that is not activated, the name alone would not be found.
    own = Path(sys.argv[0]).name == "pairseek" and not shutil.which("pairseek")
    program = sys.argv[0] if own else "pairseek"
    return shlex.join([program, "demo", "--resume", str(path), *further])


def _free_name() -> Path:
    number = 1
    while True:
        path = Path(f"{_DEFAULT}.json" if number == 1 else f"{_DEFAULT}-{number}.json")
        if not path.exists():
            return path
        number += 1


def _write(search: Search, path: Path) -> None:
    try:
        search.save(path)
    except OSError as error:
        before = "the file is as it was before" if path.exists() else "nothing was written"
        raise InvalidFile(f"cannot save to {path}: {error.strerror or error}; {before}") from error
