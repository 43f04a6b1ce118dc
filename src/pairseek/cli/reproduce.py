"""``pairseek reproduce``: the figures of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Columns

from pairseek.cli.progress import RunProgress
from pairseek.cli.simulations import Jobs, LagOne, Scheduler, Table, interruptible, job_count, made
from pairseek.errors import InvalidParameter
from pairseek.experiments import REPRODUCTIONS, SPECIFICATIONS, Wishes, reproduce
from pairseek.experiments.paper import PRESETS
from pairseek.experiments.report import write_report
from pairseek.experiments.reproduction import chosen


def command(
    figures: Annotated[list[str], typer.Argument(metavar="FIGURE...|all|list", help="Which; `list` shows them.")],
    *,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="quick: fewer users, minutes. paper: the paper's numbers.")
    ] = "quick",
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where to.  [dim]\\[pairseek-results/PRESET][/]")
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    lag_one: LagOne = False,
    trials: Annotated[int | None, typer.Option(metavar="N", help="Users a setting, in place of the preset's.")] = None,
    strategies: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only these strategies, such as InfoGain,Random.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Another seed.")] = None,
    data: Annotated[
        str, typer.Option(metavar="NAME", help="food10k, or synthetic: a stand-in of the same shape.")
    ] = "food10k",
    triplets: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Triplets for triplet-error: anchor,near,far a line.")
    ] = None,
    table: Table = "csv",
) -> None:
    """Make figures of the paper, by simulation with the same code that serves people.

    Each figure gets a folder with the table of all trials, the figure as PNG
    and SVG, and what was run. report.html shows them all and stands alone.

    A run that is interrupted, or killed, goes on where it stopped when the
    same command is given again.
    """
    console = Console(highlight=False)
    if "list" in figures:
        console.print(_list(), soft_wrap=True)
        return
    names = chosen(figures)
    wishes = Wishes(
        preset=preset,  # type: ignore[arg-type]
        data=data,
        trials=trials,
        seed=seed,
        strategies=tuple(part.strip() for part in strategies.split(",")) if strategies else (),
        lag=int(lag_one),
        triplets=triplets,
        jobs=job_count(jobs, scheduler),
        scheduler=scheduler,
        table=table,  # type: ignore[arg-type]
    )
    if triplets is not None and "triplet-error" not in names:
        raise InvalidParameter(f"--triplets {triplets}: that is for the figure triplet-error; name it too")
    folder = out or Path("pairseek-results") / preset
    sections = []
    with interruptible(console):
        for name in names:
            with RunProgress(console, REPRODUCTIONS[name].title) as progress:
                sections.append(reproduce(name, folder / name, wishes, progress=progress))
        title = f"The paper, reproduced: {', '.join(names)} ({preset})"
        report = write_report(folder / "report.html", title, sections, lag=wishes.lag)
    made(console, [report, *(path for section in sections for picture in section.pictures for path in picture.paths)])


def _list() -> Columns:
    columns = Columns(box=None, pad_edge=False, header_style="dim")
    for heading in ("figure", "what", *(f"trials, {preset}" for preset in PRESETS)):
        columns.add_column(heading, no_wrap=heading == "figure", justify="right" if "trials" in heading else "left")
    for name, reproduction in REPRODUCTIONS.items():
        counts = []
        for preset in PRESETS:
            made = SPECIFICATIONS[name](preset) if name in SPECIFICATIONS else None
            counts.append(f"{made.trials * len(made.settings) * len(made.strategies):,}" if made else "-")
        columns.add_row(name, reproduction.title, *counts)
    return columns
