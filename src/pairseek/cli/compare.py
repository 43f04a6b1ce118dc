"""Command ``pairseek compare``: methods compared on the same people, answers and knowledge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pairseek.cli.options import Jobs, Scheduler
from pairseek.cli.progress import RunProgress
from pairseek.cli.runs import interruptible, job_count, print_paths
from pairseek.experiments import ComparisonResults, compare, read_comparison
from pairseek.experiments.comparison.report import TITLES, write_comparison
from pairseek.experiments.comparison.specification import PRESETS


def command(
    specification: Annotated[
        str, typer.Argument(metavar="SPEC", help=f"Specification file in TOML, or one of {', '.join(PRESETS)}.")
    ],
    *,
    methods: Annotated[
        str | None,
        typer.Option(metavar="A;B", help="Only methods whose labels start with one of these, separated by semicolons."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="A;B", help="Only these data sets, separated by semicolons.")
    ] = None,
    people: Annotated[int | None, typer.Option(metavar="N", help="Number of people from each data set.")] = None,
    half: Annotated[
        str | None,
        typer.Option(metavar="HALF", help="Half of the people: choosing (to choose settings) or reporting."),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed.")] = None,
    limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time after which a call to a method counts as hanging.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Output folder.  [dim]\\[pairseek-results/compare-NAME][/]")
    ] = None,
    reuse: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Copy replays of the same methods and data from this earlier output."),
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
) -> None:
    """Compare methods on the same people.

    Recorded or simulated people are replayed with every method. All methods get
    the same answers, predict the same withheld pairs, and see only what they
    declare to know. docs/benchmarks/compare.md describes the specification and
    how to add a method.

    The output folder contains report.html and tables in CSV. Run the same
    command again to resume an interrupted run.
    """
    options = {"people": people, "half": half, "seed": seed, "limit": limit}
    changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    comparison = read_comparison(specification, **changes).only(methods=_parts(methods), data=_parts(data))
    console = Console(highlight=False)
    folder = out or Path("pairseek-results") / f"compare-{comparison.name}"
    with interruptible(console), RunProgress(console, comparison.title or comparison.name) as progress:
        results = compare(
            comparison,
            folder,
            reuse=reuse or (),
            jobs=job_count(jobs, scheduler),
            scheduler=scheduler,
            progress=progress,
            note=lambda line: console.print(Text(f"  {line}", "dim")) if console.is_terminal else None,
        )
    report = write_comparison(folder / "report.html", results)
    show(console, results)
    print_paths(console, [report, *(folder / f"{name}.csv" for name in ("summary", "differences", "people", "faults"))])


def _parts(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(";") if part.strip()]


def show(console: Console, results: ComparisonResults) -> None:
    """Print the accuracy of each method on each data set, and the faults."""
    summary = results.summary()
    for data, counts in zip(results.labels, results.counts, strict=True):
        console.print(Text(f"{data}: {TITLES['accuracy'].lower()}, after answers:", "dim"))
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in ("method", "knows"):
            table.add_column(name)
        for count in counts:
            table.add_column(str(count), justify="right")
        for entry in results.comparison.entries:
            rows = [row for row in summary if (row["data"], row["method"]) == (data, entry.label)]
            cells = [
                "" if row["accuracy"] != row["accuracy"] else f"{row['accuracy']:.3f}±{row['accuracy_se']:.3f}"
                for row in rows
            ]
            mark = f" ({rows[0]['faults']} failed)" if rows[0]["faults"] else ""
            table.add_row(entry.label + mark, entry.knows, *cells)
        console.print(table)
        console.print()
    for line in results.fault_lines():
        console.print(Text(line, "red"), soft_wrap=True)
