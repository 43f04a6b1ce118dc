"""Replay of arrivals for ``pairseek evaluate --arrivals``."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pairseek.cli.progress import RunProgress
from pairseek.cli.runs import interruptible, job_count, print_paths
from pairseek.core.text import plural
from pairseek.core.types import JSON
from pairseek.evaluate.arrivals import ArrivalPlan, ArrivalResults, arrivals
from pairseek.population import Choices


def show_arrivals(data: Path, plan: ArrivalPlan, out: Path | None, jobs: int | None, *, as_json: bool) -> None:
    """Run the replay, and print its table."""
    choices = Choices.read(data)
    console = Console(highlight=False, stderr=as_json)
    folder = out or Path("pairseek-results") / f"arrivals-{data.stem}"
    with (
        interruptible(console),
        RunProgress(console, f"{data.name}: {plural(len(choices.ids), 'item')}") as progress,
    ):
        results = arrivals(choices, folder, plan, jobs=job_count(jobs, None), progress=progress)
    if as_json:
        typer.echo(json.dumps({"plan": plan.record(), "summary": results.summary()}, indent=1))
        return
    _print(console, results)
    print_paths(console, [folder / "arrivals.csv", folder / "sessions.csv"])


def _print(console: Console, results: ArrivalResults) -> None:
    console.print(Text("Accuracy on withheld pairs by arrival at a study that learns from its people:", "dim"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in (
        "arrivals",
        "answers",
        "learning",
        "popularity",
        "told",
        "above popularity",
        "below told",
        "dimension",
    ):
        table.add_column(name, justify="left" if name == "arrivals" else "right")
    table.add_column("sessions", justify="right", style="dim")
    last = None
    for row in results.summary():
        label = row["arrivals"] if row["arrivals"] != last else ""
        last = row["arrivals"]
        table.add_row(label, *_cells(row))
    console.print(table)
    console.print()
    told = plural(results.plan.told, "dimension")
    words = (
        f"Mean of {plural(results.plan.orders, 'order')} of arrival; standard errors are over people. Popularity knows "
        f"the same earlier answers. The study that was told coordinates knows all recorded choices of everybody else, "
        f"in {told}."
    )
    console.print(Text(words), soft_wrap=True)


def _cells(row: JSON) -> list[str]:
    def led(name: str) -> str:
        error = row[f"{name}_se"]
        return f"{row[name]:+.3f}" + ("" if error is None else f"±{error:.3f}")

    dimension = "" if row["dimension"] is None else f"{row['dimension']:.1f}"
    values = [f"{row[name]:.3f}" for name in ("learning", "popularity", "told")]
    return [str(row["answers"]), *values, led("lead"), led("behind"), dimension, str(row["sessions"])]
