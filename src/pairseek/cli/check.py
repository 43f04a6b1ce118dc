"""Command ``pairseek check``: diagnostics of items before a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pairseek.cli.items import read_items, read_triplets, response_of
from pairseek.cli.options import AsJson, Coordinates, Scaled, Where
from pairseek.cli.runs import print_paths
from pairseek.core.text import plural
from pairseek.core.validation import one_of
from pairseek.embed import Health, check
from pairseek.embed.health_page import write_health
from pairseek.errors import InvalidParameter
from pairseek.experiments.figure_style import require_drawing
from pairseek.model.noise import NOISES
from pairseek.model.priors import UniformBox
from pairseek.model.responses import RESPONSES

_STYLES = {"good": "green", "note": "yellow", "act": "bold red"}


def command(
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help="Items with coordinates, as CSV, .npy, .npz or .mat.")],
    *,
    coordinates: Coordinates = None,
    triplets: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Triplets as CSV, to fit the noise and measure agreement.")
    ] = None,
    where: Where = None,
    standardize: Annotated[
        bool, typer.Option("--standardize", metavar="", help="Divide each coordinate by its standard deviation first.")
    ] = False,
    scaled: Scaled = False,
    k: Annotated[
        float | None, typer.Option("--k", metavar="K", help="Noise constant. Without it, k is fitted.")
    ] = None,
    noise: Annotated[str, typer.Option(metavar="NOISE", help=f"Kind of noise, with --k: {', '.join(NOISES)}.")] = (
        "normalized"
    ),
    response: Annotated[
        str, typer.Option(metavar="NAME", help="Response model, with --k: logistic or probit.")
    ] = "logistic",
    box: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH",
            help="Bounds of the uniform prior of user points.  [dim]\\[bounding box of the items][/]",
        ),
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option(metavar="R", help="Target for the 95 % credible radius.  [dim]\\[half the prior's][/]"),
    ] = None,
    people: Annotated[
        int, typer.Option(metavar="N", help="Number of people to simulate to estimate the number of answers.")
    ] = 5,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
    page: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a report with plots to this HTML file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check items before a study, and recommend corrections.

    The report covers scales, duplicates, outliers, the coverage of the prior,
    the informativeness of pairs, the expected reliability of answers and the
    number of answers needed.
    """
    one_of(noise, "--noise", NOISES)
    one_of(response, "--response", RESPONSES)
    if page is not None:
        require_drawing()
    # The report has a finding about scales, so the `ScaleWarning` is suppressed.
    catalogue = read_items(items, coordinates=coordinates, quiet=True)
    catalogue = catalogue.standardized() if standardize else catalogue
    catalogue = catalogue.scaled() if scaled else catalogue
    health = check(
        catalogue,
        None if triplets is None else read_triplets(triplets, catalogue.ids, "--where", where),
        response=None if k is None else response_of(response, noise, k),  # type: ignore[arg-type]
        prior=None if box is None else _parse_box(box),
        radius=radius,
        people=people,
        rng=seed,
    )
    files = [] if page is None else [write_health(health, page)]
    if as_json:
        typer.echo(json.dumps({**health.record(), "files": [str(path) for path in files]}, indent=1))
        return
    _show(Console(highlight=False), health, files)


def _parse_box(text: str) -> UniformBox:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidParameter(f"--box is {text!r}: give two numbers, such as --box=-1,1") from None
    return UniformBox(low, high)


def _show(console: Console, health: Health, files: list[Path]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for finding in health.findings:
        words = Text(finding.found)
        if finding.advice:
            words.append(f"\n{finding.advice}", "dim")
        table.add_row(Text(finding.level, _STYLES[finding.level]), finding.name, words)
    console.print(table)
    urgent = sum(finding.level == "act" for finding in health.findings)
    summary = f"{plural(urgent, 'finding')} to act on before the study." if urgent else "No action is needed."
    console.print(Text(f"\n{summary}"))
    print_paths(console, files)
