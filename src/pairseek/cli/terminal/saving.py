"""File of a demo search, to save and resume it."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from pairseek.datasets import colours
from pairseek.defaults import TIE_WIDTH
from pairseek.errors import InvalidFile, InvalidParameter
from pairseek.model.responses import Logistic
from pairseek.search import Search
from pairseek.stopping import AfterAnswers

ANSWERS = 15
"""Default number of answers: they take a minute, and the median error is about 0.1 in Oklab."""
_DEFAULT = "pairseek-demo"


class SearchFile:
    """Optional file to which a search is saved.

    Parameters
    ----------
    path
        The file. None saves nothing until `save_always` chooses a name.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def save(self, search: Search) -> None:
        """Save the search if there is a file."""
        if self.path is not None:
            _write(search, self.path)

    def save_always(self, search: Search) -> None:
        """Save a search that has answers; without a path, choose an unused name in the current folder."""
        if self.path is None and search.history:
            self.path = _free_name()
        self.save(search)


def new_search(answers: int | None, seed: int | None) -> Search:
    """Start a search over the named colours."""
    stop = AfterAnswers(ANSWERS if answers is None else answers)
    # The keys offer a tie.
    return Search(colours(), response=Logistic(tie_width=TIE_WIDTH), stop=stop, rng=seed)


def resumed_search(path: Path, answers: int | None) -> Search:
    """Load a search, and optionally replace its number of answers."""
    search = Search.load(path)
    if search.items != colours():
        raise InvalidFile(f"{path} is not a search over the named colours: load it with Search.load")
    return search if answers is None else Search.load(path, stop=AfterAnswers(answers))


def unused(path: Path) -> Path:
    """Return the path if no file exists there; raise an error otherwise."""
    if path.exists():
        raise InvalidParameter(
            f"--save {path}: the file exists already; resume it with --resume {shlex.quote(str(path))}, or give "
            f"another name"
        )
    return path


def resume_command(path: Path, further: Sequence[str] = ()) -> str:
    """Return the shell command that resumes the search."""
    # The name alone is not on the path if the virtual environment is not activated.
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
        before = "the file is unchanged" if path.exists() else "nothing was written"
        raise InvalidFile(f"cannot save to {path}: {error.strerror or error}; {before}") from error
