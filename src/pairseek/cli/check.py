"""``pairseek check``: is a catalogue fit to be searched?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pairseek.cli.judgements import AsJson, Scaled, Where, read, response_of
from pairseek.core.validation import one_of
from pairseek.embed import Health, check
from pairseek.embed.health_page import write_health
from pairseek.errors import InvalidParameter
from pairseek.runs.figure_style import require_drawing
from pairseek.model.items import Items
from pairseek.model.priors import UniformBox
from pairseek.model.responses import NOISES, RESPONSES

_STYLES = {"good": "green", "note": "yellow", "act": "bold red"}


def command(
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help="Items as CSV, .npy, .npz or .mat.")],
    *,
    triplets: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Triplets as CSV: the noise is fitted to them, and compared.")
    ] = None,
    where: Where = None,
    standardize: Annotated[
        bool, typer.Option("--standardize", metavar="", help="Divide each coordinate by its standard deviation first.")
    ] = False,
    scaled: Scaled = False,
    k: Annotated[float | None, typer.Option("--k", metavar="K", help="Noise constant, instead of fitting it.")] = None,
    noise: Annotated[str, typer.Option(metavar="NOISE", help="With --k: constant, normalized or decaying.")] = (
        "normalized"
    ),
    response: Annotated[str, typer.Option(metavar="NAME", help="With --k: logistic or probit.")] = "logistic",
    box: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="Where people may be.  [dim]\\[the box that the items fill][/]"),
    ] = None,
    radius: Annotated[
        float | None, typer.Option(metavar="R", help="Radius to reach with 95 % certainty.  [dim]\\[half the first][/]")
    ] = None,
    people: Annotated[int, typer.Option(metavar="N", help="Simulated people, to count their answers.")] = 5,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the pairs and people that are drawn.")] = 0,
    page: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with plots.")] = None,
    as_json: AsJson = False,
) -> None:
    """Before anybody is asked: is this catalogue fit to be searched?

    Scales, duplicates, outliers, what the prior covers, how informative pairs
    are, how reliable answers will be and how many are needed; and what to do
    about it.
    """
    one_of(noise, "--noise", NOISES)
    one_of(response, "--response", RESPONSES)
    if page is not None:
        require_drawing()
    looked_at = _catalogue(items, standardize=standardize, scaled=scaled)
    health = check(
        looked_at,
        None if triplets is None else read(triplets, looked_at.ids, "--where", where),
        response=None if k is None else response_of(response, noise, k),  # type: ignore[arg-type]
        prior=None if box is None else _box(box),
        radius=radius,
        people=people,
        rng=seed,
    )
    files = [] if page is None else [write_health(health, page)]
    if as_json:
        typer.echo(json.dumps({**health.record(), "files": [str(path) for path in files]}, indent=1))
        return
    _show(Console(highlight=False), health, files)


def _catalogue(path: Path, *, standardize: bool, scaled: bool) -> Items:
    """Read the items; a finding takes the place of a `ScaleWarning`."""
    items = Items._of_file(path)
    items = items.standardized() if standardize else items
    return items.scaled() if scaled else items


def _box(text: str) -> UniformBox:
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
    acts = sum(finding.level == "act" for finding in health.findings)
    done = "Nothing needs doing." if not acts else f"{acts} to act on before people are asked."
    console.print(Text(f"\n{done}"))
    for path in files:
        console.print(Text(f"  {path}"), soft_wrap=True)
