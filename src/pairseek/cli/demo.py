"""``pairseek demo``: find your colour by asking which of two you prefer."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text

from pairseek.cli.terminal.conversation import SimulatedTypist, converse
from pairseek.cli.terminal.keys import PipeKeys, TerminalKeys, Typist
from pairseek.cli.terminal.result import Result
from pairseek.cli.terminal.saving import ANSWERS, SearchFile, how_to_go_on, new_search, resumed_search, unused
from pairseek.cli.terminal.tty import Stopped, is_keyboard, keyboard, orderly_stop
from pairseek.cli.terminal.views import DemoView, FullScreen, Lines
from pairseek.core.text import plural
from pairseek.datasets import colours
from pairseek.errors import InvalidParameter
from pairseek.search import Search

_WATCHED = 6.0  # seconds that a simulated search may take to be watched, whatever its length
_PAUSE = 0.4  # seconds for one of its answers
_REHEARSED = 3  # answers; after that the particles have been weighed and moved


def demo(
    *,
    answers: Annotated[
        int | None,
        typer.Option(
            metavar="N", help=f"Stop after so many answers (ties count, skips do not).  [dim]\\[{ANSWERS}][/]"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="The same seed and the same answers give the same questions.")
    ] = None,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate", metavar="", help="Let a simulated user answer, with a colour in mind that the seed decides."
        ),
    ] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the search in this new file, after every answer.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Go on with a search that was kept, and keep it there.")
    ] = None,
) -> None:
    """Find your colour among 949 by saying which of two you prefer.

    Two colours at a time, chosen so that your answer tells most about where
    your favourite lies. At the end you see the colour that fits your answers
    and the five names nearest to it, each with its chance to be your best.

    [bold]←[/] or [bold]1[/]  the left one         [bold]u[/]  undo
    [bold]→[/] or [bold]2[/]  the right one        [bold]q[/]  quit and keep
    [bold]=[/]       a tie                [bold]?[/]  help
    [bold]s[/]       skip, no answer

    The colours need a terminal with true colour; elsewhere there are names and
    codes. Keys can come from a pipe too, as characters.
    """
    _check(answers, seed, resume)
    try:
        with orderly_stop():
            code = _search(Console(highlight=False), answers, seed, save, resume, simulate=simulate)
    except Stopped as stopped:  # before the first pair or after the last
        code = stopped.code
    raise typer.Exit(code)


def _search(
    console: Console, answers: int | None, seed: int | None, save: Path | None, resume: Path | None, *, simulate: bool
) -> int:
    """Open the search, ask, and say what was found or where it was kept; give the exit code."""
    search = new_search(answers, seed) if resume is None else resumed_search(resume, answers)
    file = SearchFile(_where_to_keep(save, resume))
    person = SimulatedTypist(search) if simulate else None
    if save is not None or search.finished is None:
        file.save(search)  # a place that cannot be written to is better known before the first answer
    code = 0 if search.finished else _sitting(console, search, file, person)
    if search.finished:
        console.print(Result(search, None if person is None else person.target))
    _say_farewell(console, search, file.path, simulate=simulate)
    return code


def _check(answers: int | None, seed: int | None, resume: Path | None) -> None:
    if answers is not None and answers < 1:
        raise InvalidParameter(f"--answers is {answers}: give a whole number, at least 1")
    if seed is not None and seed < 0:
        raise InvalidParameter(f"--seed is {seed}: give a whole number, at least 0")
    if seed is not None and resume is not None:
        raise InvalidParameter(
            f"--seed {seed} with --resume: the search in {resume} has its own seed; leave --seed out"
        )


def _where_to_keep(save: Path | None, resume: Path | None) -> Path | None:
    if save is None or (resume is not None and save.resolve() == resume.resolve()):
        return resume
    return unused(save)


def _sitting(console: Console, search: Search, file: SearchFile, person: SimulatedTypist | None) -> int:
    """Ask until the end, or until the person or a signal ends it; give the exit code."""
    with ExitStack() as stack:
        stack.enter_context(keyboard())
        view: DemoView
        if is_keyboard() and sys.stdout.isatty() and not console.is_dumb_terminal:
            _rehearse(console)
            view = stack.enter_context(FullScreen.opened(console))
            if person is not None:
                person.linger = min(_PAUSE, _WATCHED / (search.forecast() or 1)) / 2
        else:
            view = Lines(console, keys=person is None)
        code = 0
        try:
            done = converse(search, person or _typist(view), view, file.save)
        except Stopped as stopped:
            done, code = False, stopped.code
        if not done:
            # While the screen is still open: leaving it fails if the terminal is gone, and the answers must not.
            file.keep(search)
    return code


def _typist(view: DemoView) -> Typist:
    if is_keyboard():
        return TerminalKeys(sys.stdin.fileno(), view.idle)
    return PipeKeys(None if sys.stdin is None else sys.stdin.buffer)


def _rehearse(console: Console) -> None:
    """Go once through all that an answer takes, so that nothing has to be compiled while a person waits for it."""
    logger = logging.getLogger("pairseek")
    with Status("Preparing the first pair", console=console) as status, ExitStack() as stack:
        handler = _Beside(status)
        logger.addHandler(handler)
        stack.callback(logger.removeHandler, handler)
        search = Search(colours(), rng=0)
        for _ in range(_REHEARSED):
            query = search.ask()
            search.tell(query, winner=query.left)


class _Beside(logging.Handler):
    """What the library has to say, next to the spinner and not across it."""

    def __init__(self, status: Status) -> None:
        super().__init__()
        self._status = status

    def emit(self, record: logging.LogRecord) -> None:
        """Show it."""
        self._status.update(record.getMessage().capitalize())


def _say_farewell(console: Console, search: Search, path: Path | None, *, simulate: bool) -> None:
    lines = []
    if path is None and search.finished is None:
        lines = ["Nothing was answered, so nothing was kept."]
    elif path is not None:
        further = ["--simulate"] if simulate else []
        if search.finished:
            further += ["--answers", str(search.answers + ANSWERS)]
        lines = [f"Kept {plural(search.answers, 'answer')} in {path}. Go on with", how_to_go_on(path, further)]
    console.print(Text("\n".join(["", *(f"  {line}" for line in lines), ""])), soft_wrap=True)
