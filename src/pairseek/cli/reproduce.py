"""Command ``pairseek reproduce``: reproduction of the paper's figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable

from pairseek.cli.options import Jobs, LagOne, Scheduler, Table
from pairseek.cli.progress import RunProgress
from pairseek.cli.runs import interruptible, job_count, print_paths
from pairseek.errors import InvalidParameter
from pairseek.experiments import REPRODUCTIONS, SPECIFICATIONS, ReproductionOptions, reproduce
from pairseek.experiments.paper import PRESETS
from pairseek.experiments.report import write_report
from pairseek.experiments.reproduction import require_data, select_figures


def command(
    figures: Annotated[
        list[str],
        typer.Argument(metavar="FIGURE...|all|list", help="Names of figures, or all; list shows the names."),
    ],
    *,
    preset: Annotated[
        str,
        typer.Option(metavar="NAME", help="quick (fewer users) or paper (the paper's numbers)."),
    ] = "quick",
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Output folder.  [dim]\\[pairseek-results/PRESET][/]")
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    lag_one: LagOne = False,
    trials: Annotated[
        int | None, typer.Option(metavar="N", help="Number of simulated users per setting, instead of the preset's.")
    ] = None,
    strategies: Annotated[
        str | None, typer.Option(metavar="A,B", help="Strategies to run, such as InfoGain,Random.  [dim]\\[all][/]")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed, instead of the preset's.")] = None,
    data: Annotated[
        str, typer.Option(metavar="NAME", help="Items: food10k, or synthetic (random items of the same shape).")
    ] = "food10k",
    triplets: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Triplets for the figure triplet-error, with anchor,near,far on each line."),
    ] = None,
    table: Table = "csv",
    only_finished: Annotated[
        bool,
        typer.Option("--finished", help="Run no trials: draw and report only the finished users."),
    ] = False,
) -> None:
    """Reproduce figures of the paper by simulation.

    The output folder has a folder per figure, with the table of all trials, the
    figure as PNG and SVG, and its specification. report.html contains all figures
    in one self-contained file.

    Progress bars estimate the remaining time. Run the same command again to
    resume an interrupted run.
    """
    console = Console(highlight=False)
    if "list" in figures:
        console.print(_figure_table(), soft_wrap=True)
        return
    names = select_figures(figures)
    options = ReproductionOptions(
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
        finished=only_finished,
    )
    if triplets is not None and "triplet-error" not in names:
        raise InvalidParameter(
            f"--triplets {triplets}: only the figure triplet-error uses it; add that figure, or leave --triplets out"
        )
    folder = out or Path("pairseek-results") / preset
    sections = []
    with interruptible(console):
        require_data(names, options)
        for name in names:
            with RunProgress(console, REPRODUCTIONS[name].title) as progress:
                sections.append(reproduce(name, folder / name, options, progress=progress))
        title = f"The paper, reproduced: {', '.join(names)} ({preset})"
        report = write_report(folder / "report.html", title, sections, lag=options.lag)
    print_paths(
        console, [report, *(path for section in sections for picture in section.pictures for path in picture.paths)]
    )


def _figure_table() -> RichTable:
    table = RichTable(box=None, pad_edge=False, header_style="dim")
    for heading in ("figure", "content", *(f"trials, {preset}" for preset in PRESETS)):
        table.add_column(heading, no_wrap=heading == "figure", justify="right" if "trials" in heading else "left")
    for name, reproduction in REPRODUCTIONS.items():
        counts = []
        for preset in PRESETS:
            specification = SPECIFICATIONS[name](preset) if name in SPECIFICATIONS else None
            counts.append(
                f"{specification.trials * len(specification.settings) * len(specification.strategies):,}"
                if specification
                else "-"
            )
        table.add_row(name, reproduction.title, *counts)
    return table
