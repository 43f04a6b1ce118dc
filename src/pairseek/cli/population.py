"""``pairseek population``: learn from people who came before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pairseek.cli.judgements import AsJson
from pairseek.cli.people import Appeal, Curvature, Rescale, choices_and_items, dimension_of, wish
from pairseek.cli.service import DatabaseOption, me, opened, study_named
from pairseek.errors import InvalidParameter
from pairseek.population import Population

app = typer.Typer(help="Learn from people who came before.", no_args_is_help=True)


@app.command()
def fit(
    source: Annotated[str, typer.Argument(metavar="STUDY|DATA", help="Name of a study in its link, or a file.")],
    *,
    items: Annotated[
        Path | None,
        typer.Option(metavar="ITEMS", help="For a file: items with coordinates, as CSV, .npy, .npz or .mat."),
    ] = None,
    learn: Annotated[str | None, typer.Option(metavar="D|auto", help="For a file: learn coordinates instead.")] = None,
    appeal: Appeal = "yes",
    rescale: Rescale = "no",
    curvature: Curvature = "no",
    seed: Annotated[int, typer.Option(metavar="N", help="For a file: everything random follows from it.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="For a file: where to.  [dim]\\[NAME.population.json][/]"),
    ] = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """Learn from a study's finished sessions, or from a file of choices, rankings or ratings.

    A study's sessions that begin from then on begin with it; earlier ones keep
    what they began with. From a file it is written as JSON, for
    [bold]ps.Population.load[/].
    """
    path = Path(source)
    if not path.suffix:
        given = {
            "--items": items is not None,
            "--learn": learn is not None,
            "--out": out is not None,
            "--appeal": appeal != "yes",
            "--rescale": rescale != "no",
            "--curvature": curvature != "no",
            "--seed": seed != 0,
        }
        unused = next((name for name, is_given in given.items() if is_given), None)
        if unused is not None:
            raise InvalidParameter(
                f"{unused} with the study {source!r}: a study has its own items, and learns an appeal and where people "
                f"are; leave it out, or name a file with its ending"
            )
        _of_study(source, database, as_json=as_json)
        return
    target = path.with_suffix(".population.json") if out is None else out
    for name, other in (("choices", path), ("items", items)):
        if other is not None and target.resolve() == other.resolve():
            raise InvalidParameter(f"--out is {target}, which holds the {name}: name another file")
    choices, known = choices_and_items(path, items, learned=learn is not None)
    wishes = {
        "dimension": None if learn is None else dimension_of("--learn", learn),
        "appeal": wish("--appeal", appeal),
        "rescale": wish("--rescale", rescale),
        "curvature": wish("--curvature", curvature),
    }
    console = Console(stderr=True, highlight=False)
    with console.status(f"Learning from {len(choices.people)} people, {len(choices):,} pairs") as status:
        population = Population.fit(choices, known, rng=seed, progress=status.update, **wishes)  # type: ignore[arg-type]
    population.save(target)
    _show(population, f"Wrote {target}", as_json=as_json)


def _of_study(slug: str, database: str | None, *, as_json: bool) -> None:
    found = opened(database, new=False)
    try:
        from pairseek.web.data import populations

        version, population = populations.fit(found, study_named(found, slug), me())
    finally:
        found.close()
    _show(population, f"Sessions of {slug} that begin from now on begin with version {version}.", as_json=as_json)


def _show(population: Population, done: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({**population.provenance, "people": population.people, "honest": population.honest}))
        return
    typer.echo(f"Learned from {population.people} people about {population.items.n} items.")
    if population.informed:
        typer.echo(f"{population.honest:.0%} of them answer by more than chance.")
    for note in population.provenance["notes"]:
        typer.echo(f"{note}.")
    typer.echo(done)
