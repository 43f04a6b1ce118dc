"""Command ``pairseek rank``: ranking of items for a group of people."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pairseek.cli.database import find_study, open_database
from pairseek.cli.items import read_items, with_text_ids
from pairseek.cli.options import AsJson, Coordinates, DatabaseOption
from pairseek.core.text import plural
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.people.formats import bundle
from pairseek.people.population import Choices
from pairseek.people.ranking import Ranking, rank


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="STUDY|BUNDLE|CHOICES", help="Name of a study in its link, its bundle, or a file of choices."
        ),
    ],
    *,
    items: Annotated[
        Path | None, typer.Option(metavar="ITEMS", help="With a file of choices: items, with or without coordinates.")
    ] = None,
    coordinates: Coordinates = None,
    everyone: Annotated[
        bool,
        typer.Option(
            "--everyone", metavar="", help="With a study or its bundle: include people whose answers look careless."
        ),
    ] = False,
    top: Annotated[int, typer.Option(metavar="N", help="Number of items to show.")] = 20,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write all items to this CSV file.")
    ] = None,
    database: DatabaseOption = None,
    as_json: AsJson = False,
) -> None:
    """Rank items by what a group of people likes, and show the uncertainty.

    The ranking of a study or its bundle leaves out simulated people, void
    sessions, and people whose answers look careless; --everyone includes the
    careless.
    """
    path = Path(source)
    if path.suffix.lower() == ".zip":
        ranking = _ranking_of_bundle(path, items, coordinates, everyone=everyone)
    elif path.suffix:
        if everyone:
            raise InvalidParameter(
                f"--everyone with the file {source!r}: this option applies only to studies and bundles; leave it out"
            )
        ranking = _ranking_of_choices(path, items, coordinates)
    else:
        if items is not None:
            raise InvalidParameter(f"--items with the study {source!r}: a study has its own items; leave it out")
        ranking = _ranking_of_study(source, database, everyone=everyone)
    if out is not None:
        out.write_text(ranking.csv(), encoding="utf-8")
    if as_json:
        record = {"people": ranking.people, "answers": ranking.answers, "notes": list(ranking.notes)}
        typer.echo(json.dumps({**record, "items": [asdict(item) for item in ranking]}))
        return
    _show(ranking, top)
    if out is not None:
        typer.echo(f"Wrote {out}")


def _ranking_of_choices(path: Path, items: Path | None, coordinates: str | None) -> Ranking:
    if items is None:
        return rank(Choices.read(path))
    catalogue = with_text_ids(read_items(items, coordinates=coordinates))
    return rank(Choices.read(path, ids=catalogue.ids), catalogue)


def _ranking_of_bundle(path: Path, items: Path | None, coordinates: str | None, *, everyone: bool) -> Ranking:
    catalogue = bundle.items(path) if items is None else with_text_ids(read_items(items, coordinates=coordinates))
    choices = Choices.read(path, ids=catalogue.ids)
    excluded = set() if everyone else bundle.flagged_sessions(path)
    people = [number for number, session in enumerate(choices.people) if session not in excluded]
    if not people:
        raise InvalidChoices(
            f"the answers of all {len(choices.people)} people of {path} look careless: see the column flags of "
            f"participants.csv, or include them with --everyone"
        )
    return rank(choices.only(people), catalogue)


def _ranking_of_study(slug: str, database: str | None, *, everyone: bool) -> Ranking:
    with open_database(database, create=False) as opened:
        from pairseek.web.results.findings import ranking_of

        return ranking_of(opened, find_study(opened, slug), everyone=everyone)


def _show(ranking: Ranking, top: int) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("", "item", "chosen", "rank", "90 %", "best", "top 3", "top 5", "answers"):
        table.add_column(name, justify="left" if name == "item" else "right")
    tier = 1
    for item in ranking.items[:top]:
        if item.tier != tier:
            table.add_section()
            tier = item.tier
        table.add_row(
            str(item.place),
            item.label,
            f"{item.share:.0%}",
            f"{item.rank:.1f}",
            f"{item.rank_low}-{item.rank_high}",
            *(f"{probability:.0%}" for probability in (item.top_1, item.top_3, item.top_5)),
            str(item.answers),
        )
    console = Console(highlight=False, markup=False)
    console.print(table)
    if top < len(ranking):
        typer.echo(f"... and {plural(len(ranking) - top, 'more item')}")
    typer.echo(f"From {plural(ranking.answers, 'answer')} of {ranking.people} people.")
    for note in ranking.notes:
        typer.echo(f"Note: {note}.")
