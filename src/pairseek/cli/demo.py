"""Command ``pairseek demo``: a search for a favourite colour in the terminal."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from pairseek.cli.runs import Stopped, orderly_stop
from pairseek.core.text import plural
from pairseek.datasets import colours, hex_from_oklab
from pairseek.errors import InvalidFile, InvalidParameter
from pairseek.model.items import Items
from pairseek.model.responses import Logistic
from pairseek.search import Search
from pairseek.search.defaults import TIE_WIDTH
from pairseek.search.simulate import SimulatedUser
from pairseek.search.stopping import AfterAnswers

ANSWERS = 15
"""Default number of answers, which gives a median error of about 0.1 in Oklab within about a minute."""
# Makes the simulated user's random numbers independent of the search's.
_SIMULATED_USER_KEY = 0x636F6C6F7572


def demo(
    *,
    answers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help=f"Number of answers; ties count.  [dim]\\[{ANSWERS}][/]")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Random seed. The same seed and answers give the same questions."),
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", metavar="", help="Let a simulated user answer.")] = False,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Save to this new file after every answer.")] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Resume a saved search, and save it there.")
    ] = None,
) -> None:
    """Find your favourite among 949 colours by comparing two at a time.

    Each pair is chosen so that your answer is as informative as possible. Type a
    key and press Enter; standard input may also be a file with one key per line.
    Terminals without true colour show names and codes only.

    [bold]1[/]  choose left    [bold]=[/]  about equal    [bold]q[/]  stop and save
    [bold]2[/]  choose right   [bold]u[/]  undo
    """
    if seed is not None and resume:
        raise InvalidParameter(
            f"--seed {seed} with --resume: the search in {resume} already has a seed; leave --seed out"
        )
    if save and save.exists():
        raise InvalidParameter(f"--save {save}: the file already exists; resume it with --resume, or give another name")
    search, items, path = _search(answers, seed, resume), colours(), save or resume
    if search.items != items:
        raise InvalidFile(f"{resume} is not a search over the named colours: load it with Search.load")
    if path:
        search.save(path)  # fail before the first answer if the file is not writable
    rng = np.random.default_rng([search.seed, _SIMULATED_USER_KEY])
    favourite = int(rng.integers(items.n)) if simulate else None
    user = SimulatedUser(items.coordinates[favourite], search.response, rng=rng) if simulate else None
    console, exit_code = Console(highlight=False, markup=False, emoji=False), 0
    with orderly_stop() as check:
        try:
            _ask_questions(console, search, items, user, path, check)
            path = _save_unfinished(search, path)
        except Stopped as stopped:
            exit_code = stopped.code
            path = _save_unfinished(search, path)
        if search.history:
            _show_result(console, search, items, favourite)
        _show_path(console, search, path, simulate=simulate)
    raise typer.Exit(exit_code)


def _search(answers: int | None, seed: int | None, resume: Path | None) -> Search:
    if resume is None:
        # The key = reports a tie, so the response needs a tie width.
        stop = AfterAnswers(answers or ANSWERS)
        return Search(colours(), response=Logistic(tie_width=TIE_WIDTH), stop=stop, rng=seed)
    return Search.load(resume, stop=AfterAnswers(answers)) if answers else Search.load(resume)


def _ask_questions(
    console: Console,
    search: Search,
    items: Items,
    user: SimulatedUser | None,
    path: Path | None,
    check: Callable[[], None],
) -> None:
    """Ask questions until the search is finished or the person stops."""
    while search.finished is None:
        query, remaining = search.ask(), search.forecast()
        check()
        total = "" if remaining is None else f" of {search.answers + remaining}"
        console.print(f"\n{search.answers + 1}{total}: which colour do you prefer?")
        rows = [items.index(query.left), items.index(query.right)]
        _show_colours(console, [(f"{i}  {items.labels[row]}", _hex_code(items, row)) for i, row in enumerate(rows, 1)])
        if user:
            key = "1" if user.answer(items, query) == query.left else "2"
        else:
            key = _read_key(console, can_undo=bool(search.history))
        if key == "q":
            return
        if key == "u":
            search.undo()
        elif key == "=":
            search.tell(query, tie=True)
        else:
            search.tell(query, winner=query.left if key == "1" else query.right)
        if path:
            search.save(path)


def _read_key(console: Console, *, can_undo: bool) -> str:
    """Return the next valid key; the end of the input means stop."""
    while True:
        console.print("1 or 2 choose, = about equal, u undo, q stop: ", end="")
        try:
            line = sys.stdin.buffer.readline() if sys.stdin else b""
        except OSError:  # The terminal was closed.
            line = b""
        key = line.decode(errors="replace").strip().lower() if line else "q"
        if key in ("1", "2", "=", "q") or (key == "u" and can_undo):
            return key
        console.print("There is nothing to undo yet." if key == "u" else "Type one of these keys, then Enter.")


def _show_colours(console: Console, names_and_hex_codes: list[tuple[str, str]]) -> None:
    grid = Table.grid(padding=(0, 2))
    for _ in names_and_hex_codes:
        grid.add_column(width=min(36, console.width // 2 - 2))
    if _true_colour(console):
        grid.add_row(*(Padding("", (3, 0, 0, 0), style=f"on {hex_code}") for _, hex_code in names_and_hex_codes))
    grid.add_row(*(f"{name} {hex_code}" for name, hex_code in names_and_hex_codes))
    console.print(grid)


def _show_result(console: Console, search: Search, items: Items, favourite: int | None) -> None:
    estimate = search.estimate()
    distances = np.linalg.norm(items.coordinates - estimate.point, axis=1)
    colours = [(f"Your colour, near {items.labels[int(np.argmin(distances))]}", hex_from_oklab(estimate.point))]
    if favourite is not None:
        colours.append((f"Simulated favourite: {items.labels[favourite]}", _hex_code(items, favourite)))
    console.print(f"\nAfter {plural(search.answers, 'answer')}:\n")
    _show_colours(console, colours)
    radius = f"{estimate.credible_radius(0.95):.3f}"
    console.print(
        f"\nWith a probability of 95 %, the favourite is within {radius} of the estimate (black to white: 1)."
    )
    if favourite is not None:
        console.print(f"The simulated favourite is {distances[favourite]:.3f} away from it.")
    console.print(f"\nRecommended colours, with the probability of being the favourite among all {items.n}:\n")
    grid = Table.grid(padding=(0, 2))
    for colour in search.recommend(5):
        hex_code = _hex_code(items, items.index(colour.id))
        chip = [Padding("    ", style=f"on {hex_code}")] if _true_colour(console) else []
        grid.add_row(*chip, colour.label, hex_code, f"{100 * colour.probability:4.1f} %")
    console.print(grid)


def _show_path(console: Console, search: Search, path: Path | None, *, simulate: bool) -> None:
    if path is None:
        console.print("" if search.history else "\nThere are no answers, so nothing was saved.")
        return
    # Without an activated virtual environment, the shell needs the folder of `pairseek`.
    needs_folder = Path(sys.argv[0]).name == "pairseek" and not shutil.which("pairseek")
    words = [sys.argv[0] if needs_folder else "pairseek", "demo", "--resume", str(path)]
    words += ["--simulate"] if simulate else []
    words += ["--answers", str(search.answers + ANSWERS)] if search.finished else []
    console.print(
        f"\nSaved {plural(search.answers, 'answer')} in {path}. Resume:\n  {shlex.join(words)}", soft_wrap=True
    )


def _save_unfinished(search: Search, path: Path | None) -> Path | None:
    """Save an unfinished search that has no file yet under a free name; return the path of its file."""
    if path is None and search.history and not search.finished:
        names = (Path(f"pairseek-demo{'' if number == 1 else f'-{number}'}.json") for number in count(1))
        path = next(name for name in names if not name.exists())
        search.save(path)
    return path


def _hex_code(items: Items, row: int) -> str:
    return str(items.data["hex"][row])


def _true_colour(console: Console) -> bool:
    """Return whether the terminal has true colour; a palette would make different colours look alike."""
    return console.color_system == "truecolor" and not console.no_color
