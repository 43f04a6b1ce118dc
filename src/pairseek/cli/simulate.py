"""Command ``pairseek simulate``: simulations of users, from a specification or options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pairseek.cli.options import Jobs, LagOne, Samples, Scheduler, Table
from pairseek.cli.progress import RunProgress
from pairseek.cli.runs import interruptible, job_count, print_paths
from pairseek.core.types import JSON
from pairseek.errors import InvalidParameter
from pairseek.experiments import Specification, read_record, read_specification, run
from pairseek.experiments.figure_style import require_drawing
from pairseek.experiments.report import Section, write_report
from pairseek.experiments.reproduction import draw_any
from pairseek.model.noise import NOISES


def command(
    specification: Annotated[
        Path | None, typer.Argument(metavar="[FILE.toml]", help="Specification file. Without one, give options.")
    ] = None,
    *,
    data: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Items: food10k, synthetic, colours, or a file.")
    ] = None,
    dimension: Annotated[
        int | None, typer.Option(metavar="D", help="Number of dimensions of food10k or synthetic.")
    ] = None,
    strategies: Annotated[str | None, typer.Option(metavar="A,B", help="Strategies, such as infogain,random.")] = None,
    k: Annotated[str | None, typer.Option("--k", metavar="K", help="Noise constant: a number, or published.")] = None,
    noise: Annotated[str | None, typer.Option(metavar="NOISE", help=f"Kind of noise: {', '.join(NOISES)}.")] = None,
    truth: Annotated[
        str | None, typer.Option(metavar="TRUTH", help="Answers of the simulated users: matched or noiseless.")
    ] = None,
    queries: Annotated[int | None, typer.Option(metavar="N", help="Number of answers per trial.")] = None,
    trials: Annotated[int | None, typer.Option(metavar="N", help="Number of simulated users.")] = None,
    samples: Samples = None,
    rate: Annotated[
        str | None, typer.Option(metavar="SHARE|default", help="Share of the pairs that are candidates, or default.")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="A,B", help="Metrics, such as squared_error,kendall_tau.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Output folder.  [dim]\\[pairseek-results/NAME][/]")
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    lag_one: LagOne = False,
    table: Table = "csv",
) -> None:
    """Simulate users, and compare strategies.

    Describe the simulation in a specification file, by options, or both: options
    override the file. docs/how-to/experiments.md describes the file's format. The
    output folder contains the table of all trials, a figure per setting, and
    report.html.
    """
    scalars = {"data": data, "dimension": dimension, "truth": truth}
    scalars |= {"queries": queries, "trials": trials, "samples": samples, "seed": seed}
    lists = {"strategies": strategies, "metrics": metrics}
    changes: JSON = {
        **{name: value for name, value in scalars.items() if value is not None},
        **{name: [part.strip() for part in text.split(",")] for name, text in lists.items() if text is not None},
    }
    if rate is not None:
        changes["rate"] = _parse_number(rate)
    if k is not None or noise is not None:
        changes["response"] = {
            **({} if k is None else {"k": _parse_number(k)}),
            **({} if noise is None else {"noise": noise}),
        }
    resolved = _specification_of(specification, changes)
    require_drawing()
    console = Console(highlight=False)
    folder = out or Path("pairseek-results") / resolved.name
    with interruptible(console):
        with RunProgress(console, resolved.title or resolved.name) as progress:
            results = run(
                resolved,
                folder,
                jobs=job_count(jobs, scheduler),
                scheduler=scheduler,
                table=table,  # type: ignore[arg-type]
                progress=progress,
            )
        pictures = draw_any(results, folder, lag=int(lag_one))
        title = resolved.title or f"Simulation: {resolved.name}"
        section = Section(title, pictures, results, folder=folder)
        report = write_report(folder / "report.html", title, [section], lag=int(lag_one))
    print_paths(console, [report, folder / f"table.{table}"])


def _parse_number(text: str) -> float | str:
    """Parse a number; return other text unchanged for the specification to check."""
    try:
        return float(text)
    except ValueError:
        return text


def _specification_of(path: Path | None, changes: JSON) -> Specification:
    if path is None:
        if "strategies" not in changes or "data" not in changes:
            raise InvalidParameter(
                "give a specification file, or at least --data and --strategies; see docs/how-to/experiments.md"
            )
        return read_record({"name": "simulation", **changes}, folder=Path())
    specification = read_specification(path)
    refused = [name for name in changes if name in ("data", "dimension", "truth", "response", "strategies")]
    if refused:
        option = "k" if refused[0] == "response" else refused[0]
        raise InvalidParameter(f"--{option} with {path}: change it in the file")
    if "metrics" in changes:
        changes["metrics"] = tuple(changes["metrics"])
    return replace(specification, **changes)
