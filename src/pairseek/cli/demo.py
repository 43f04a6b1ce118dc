"""Command ``pairseek demo``: a search for a favourite colour in the terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
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
from pairseek.cli.terminal.saving import ANSWERS, SearchFile, new_search, resume_command, resumed_search, unused
from pairseek.cli.terminal.tty import Stopped, is_keyboard, keyboard, orderly_stop
from pairseek.cli.terminal.views import DemoView, FullScreen, Lines
from pairseek.core.text import plural
from pairseek.datasets import colours
from pairseek.errors import InvalidParameter
from pairseek.search import Search

_WATCHED = 6.0  # maximum seconds of a simulated search on the screen
_PAUSE = 0.4  # maximum seconds per simulated answer
_WARMUP = 3  # answers that exercise all compiled kernels


def demo(
    *,
    answers: Annotated[
        int | None,
        typer.Option(metavar="N", help=f"Number of answers. Ties count, skips do not.  [dim]\\[{ANSWERS}][/]"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Random seed. The same seed and answers give the same questions.")
    ] = None,
    simulate: Annotated[
        bool,
        typer.Option("--simulate", metavar="", help="Let a simulated user answer. The seed determines its favourite."),
    ] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the search to this new file after every answer.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Resume a saved search, and continue to save it there.")
    ] = None,
) -> None:
    """Find your favourite among 949 colours by comparing two at a time.

    Each pair is the one with the most informative answer. The result shows the
    estimated colour and the five nearest names, with their probability to be
    your favourite.

    [bold]←[/] or [bold]1[/]  choose left          [bold]u[/]  undo
    [bold]→[/] or [bold]2[/]  choose right         [bold]q[/]  quit and save
    [bold]=[/]       a tie                [bold]?[/]  help
    [bold]s[/]       skip

    A terminal without true colour shows names and codes. Standard input may be
    a pipe with one character per key.
    """
    _validate(answers, seed, resume)
    try:
        with orderly_stop() as check:
            console = Console(highlight=False)
            code = _search(console, answers, seed, save, resume, simulate=simulate, check=check)
    except Stopped as stopped:  # a signal before the first pair or after the last one
        code = stopped.code
    raise typer.Exit(code)


def _search(
    console: Console,
    answers: int | None,
    seed: int | None,
    save: Path | None,
    resume: Path | None,
    *,
    simulate: bool,
    check: Callable[[], None],
) -> int:
    """Run the search, print the result and the saved file, and return the exit code."""
    search = new_search(answers, seed) if resume is None else resumed_search(resume, answers)
    file = SearchFile(_save_path(save, resume))
    person = SimulatedTypist(search) if simulate else None
    if save is not None or search.finished is None:
        file.save(search)  # fail before the first answer if the file is not writable
    code = 0 if search.finished else _run(console, search, file, person, check)
    if search.finished:
        console.print(Result(search, None if person is None else person.target))
    _print_saved(console, search, file.path, simulate=simulate)
    return code


def _validate(answers: int | None, seed: int | None, resume: Path | None) -> None:
    if answers is not None and answers < 1:
        raise InvalidParameter(f"--answers is {answers}: give a whole number, at least 1")
    if seed is not None and seed < 0:
        raise InvalidParameter(f"--seed is {seed}: give a whole number, at least 0")
    if seed is not None and resume is not None:
        raise InvalidParameter(
            f"--seed {seed} with --resume: the search in {resume} has its own seed; leave --seed out"
        )


def _save_path(save: Path | None, resume: Path | None) -> Path | None:
    if save is None or (resume is not None and save.resolve() == resume.resolve()):
        return resume
    return unused(save)


def _run(
    console: Console, search: Search, file: SearchFile, person: SimulatedTypist | None, check: Callable[[], None]
) -> int:
    """Ask questions until the search, the person or a signal ends it, and return the exit code."""
    with ExitStack() as stack:
        stack.enter_context(keyboard())
        view: DemoView
        if is_keyboard() and sys.stdout.isatty() and not console.is_dumb_terminal:
            _warm_up(console)
            check()
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
            # Save before the screen closes: closing it fails if the terminal was closed.
            file.save_always(search)
    return code


def _typist(view: DemoView) -> Typist:
    if is_keyboard():
        return TerminalKeys(sys.stdin.fileno(), view.idle)
    return PipeKeys(None if sys.stdin is None else sys.stdin.buffer)


def _warm_up(console: Console) -> None:
    """Run a short search, so that no kernel is compiled while a person waits."""
    logger = logging.getLogger("pairseek")
    with Status("Preparing the first pair", console=console) as status, ExitStack() as stack:
        handler = _StatusHandler(status)
        logger.addHandler(handler)
        stack.callback(logger.removeHandler, handler)
        search = Search(colours(), rng=0)
        for _ in range(_WARMUP):
            query = search.ask()
            search.tell(query, winner=query.left)


class _StatusHandler(logging.Handler):
    """Log handler that shows messages next to the spinner."""

    def __init__(self, status: Status) -> None:
        super().__init__()
        self._status = status

    def emit(self, record: logging.LogRecord) -> None:
        """Show the message of a record."""
        self._status.update(record.getMessage().capitalize())


def _print_saved(console: Console, search: Search, path: Path | None, *, simulate: bool) -> None:
    lines = []
    if path is None and search.finished is None:
        lines = ["There are no answers, so nothing was saved."]
    elif path is not None:
        further = ["--simulate"] if simulate else []
        if search.finished:
            further += ["--answers", str(search.answers + ANSWERS)]
        lines = [f"Saved {plural(search.answers, 'answer')} in {path}. Resume:", resume_command(path, further)]
    console.print(Text("\n".join(["", *(f"  {line}" for line in lines), ""])), soft_wrap=True)
