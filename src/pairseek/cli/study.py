"""``pairseek study``: make a study, list studies, open and close them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairseek.cli.service import DatabaseOption, me, opened
from pairseek.errors import InvalidParameter

app = typer.Typer(help="Make, list, open and close studies.", no_args_is_help=True)

Slug = Annotated[str, typer.Argument(metavar="SLUG", help="Name of the study in its link.")]


@app.command()
def create(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The study as YAML; see docs/studies.md.")],
    *,
    database: DatabaseOption = None,
) -> None:
    """Make a study from a YAML file and the items that it names."""
    found = opened(database)
    from pairseek.web.studies.creation import create as make
    from pairseek.web.studies.creation import from_file

    try:
        configuration, items, is_open, files = from_file(path)
        slug = make(found, configuration, items, is_open=is_open, who=me(), files=files)
    finally:
        found.close()
    if items.scale_note is not None:
        typer.echo(f"Note: {items.scale_note}", err=True)
    typer.echo(f"Made the study {slug} with {items.n:,} items, {'open' if is_open else 'closed'}.")
    typer.echo(f"Run pairseek serve and send people to /s/{slug}")


@app.command("list")
def show(*, database: DatabaseOption = None) -> None:
    """List the studies."""
    found = opened(database)
    from pairseek.store import studies

    try:
        rows = found.read(studies.every)
    finally:
        found.close()
    for row in rows:
        typer.echo(f"{row.slug}\t{'open' if row.is_open else 'closed'}\t{row.configuration['title']}")
    if not rows:
        typer.echo("There are no studies yet: make one with pairseek study create FILE.yaml")


@app.command("open")
def open_study(slug: Slug, *, database: DatabaseOption = None) -> None:
    """Take answers."""
    _set(slug, database, is_open=True)


@app.command("close")
def close_study(slug: Slug, *, database: DatabaseOption = None) -> None:
    """Take no more answers."""
    _set(slug, database, is_open=False)


def _set(slug: str, database: str | None, *, is_open: bool) -> None:
    found = opened(database, new=False)
    from pairseek.store import studies
    from pairseek.web.studies.creation import set_open

    try:
        row = found.read(lambda connection: studies.by_slug(connection, slug))
        if row is None:
            raise InvalidParameter(f"there is no study {slug!r}: see pairseek study list")
        set_open(found, row, is_open=is_open, who=me())
    finally:
        found.close()
    typer.echo(f"The study {slug} is {'open' if is_open else 'closed'}.")
