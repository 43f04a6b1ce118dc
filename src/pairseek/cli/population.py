"""Command group ``pairseek population``: population fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pairseek.cli.choices import parse_dimension, parse_residual, parse_setting, read_choices_and_items
from pairseek.cli.database import current_user, find_study, open_database
from pairseek.cli.options import Appeal, AsJson, Coordinates, Curvature, DatabaseOption, Rescale, Residual
from pairseek.cli.progress import PopulationFitProgress
from pairseek.errors import InvalidParameter
from pairseek.people.population import Population

app = typer.Typer(help="Learn a population model from earlier people.", no_args_is_help=True)


@app.command()
def fit(
    source: Annotated[
        str, typer.Argument(metavar="STUDY|DATA", help="Name of a study in its link, or a file of recorded choices.")
    ],
    *,
    items: Annotated[
        Path | None,
        typer.Option(metavar="ITEMS", help="With a file: items with coordinates, as CSV, .npy, .npz or .mat."),
    ] = None,
    coordinates: Coordinates = None,
    learn: Annotated[
        str | None, typer.Option(metavar="D|auto", help="With a file: learn coordinates in this many dimensions.")
    ] = None,
    appeal: Appeal = "yes",
    rescale: Rescale = "no",
    curvature: Curvature = "no",
    residual: Residual = "auto",
    seed: Annotated[int, typer.Option(metavar="N", help="With a file: random seed.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="With a file: output file.  [dim]\\[NAME.population.json][/]"),
    ] = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """Fit a population to a study, or to a file of choices, rankings or ratings.

    For a study, the fit uses the finished sessions. New sessions of the study
    start with the population, and earlier sessions keep their prior. For a file,
    the population is written as JSON for [bold]ps.Population.load[/].
    """
    path = Path(source)
    if not path.suffix:
        file_options = {
            "--items": items is not None,
            "--coordinates": coordinates is not None,
            "--learn": learn is not None,
            "--out": out is not None,
            "--appeal": appeal != "yes",
            "--rescale": rescale != "no",
            "--curvature": curvature != "no",
            "--residual": residual != "auto",
            "--seed": seed != 0,
        }
        refused = next((name for name, is_given in file_options.items() if is_given), None)
        if refused is not None:
            raise InvalidParameter(
                f"{refused} with the study {source!r}: this option applies only to files; leave it out, or give a file "
                f"name with its extension"
            )
        _fit_to_study(source, database, as_json=as_json)
        return
    target = path.with_suffix(".population.json") if out is None else out
    for name, other in (("choices", path), ("items", items)):
        if other is not None and target.resolve() == other.resolve():
            raise InvalidParameter(f"--out is {target}, which is the file of the {name}: give another file")
    choices, catalogue = read_choices_and_items(path, items, coordinates, learns_coordinates=learn is not None)
    settings = {
        "dimension": None if learn is None else parse_dimension("--learn", learn),
        "appeal": parse_setting("--appeal", appeal),
        "rescale": parse_setting("--rescale", rescale),
        "curvature": parse_setting("--curvature", curvature),
        "residual": parse_residual(residual),
    }
    console = Console(stderr=True, highlight=False)
    count = f"{len(choices):,} pairs" if choices.ratings is None else f"{len(choices.ratings):,} ratings"
    task = f"Learning from {len(choices.people)} people, {count}"
    with PopulationFitProgress(console, task) as progress:
        population = Population.fit(choices, catalogue, rng=seed, progress=progress, **settings)  # type: ignore[arg-type]
    population.save(target)
    _show(population, f"Wrote {target}", as_json=as_json)


def _fit_to_study(slug: str, database: str | None, *, as_json: bool) -> None:
    with open_database(database, create=False) as opened:
        from pairseek.web.learning import populations

        version, population = populations.fit(opened, find_study(opened, slug), current_user())
    _show(population, f"New sessions of {slug} start with version {version}.", as_json=as_json)


def _show(population: Population, outcome: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({**population.provenance, "people": population.people, "honest": population.honest}))
        return
    typer.echo(f"Learned from {population.people} people about {population.items.n} items.")
    if population.informed:
        typer.echo(f"{population.honest:.0%} of them give answers that are more informative than random ones.")
    for note in population.provenance["notes"]:
        typer.echo(f"{note}.")
    typer.echo(outcome)
