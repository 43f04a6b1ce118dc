"""Command group ``pairseek study``: creation, listing, opening and closing of studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairseek.cli.database import current_user, open_database
from pairseek.cli.options import DatabaseOption
from pairseek.errors import InvalidParameter

app = typer.Typer(help="Create, list, open and close studies.", no_args_is_help=True)

Slug = Annotated[str, typer.Argument(metavar="SLUG", help="Name of the study in its link.")]


@app.command("create")
def create(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Study configuration as YAML; see docs/studies.md.")],
    *,
    database: DatabaseOption = None,
) -> None:
    """Create a study from a YAML file and the items file that it names."""
    with open_database(database) as opened:
        from pairseek.web.studies.creation import create_study, from_file

        configuration, items, is_open, files = from_file(path)
        slug = create_study(opened, configuration, items, is_open=is_open, who=current_user(), files=files)
    if items.scale_note is not None:
        typer.echo(f"Note: {items.scale_note}", err=True)
    typer.echo(f"Created the study {slug} with {items.n:,} items, {'open' if is_open else 'closed'}.")
    typer.echo(f"Run pairseek serve and send people to /s/{slug}")


@app.command("list")
def show(*, database: DatabaseOption = None) -> None:
    """List the studies with their slug, state and title."""
    with open_database(database) as opened:
        from pairseek.store import studies

        rows = opened.read(studies.every)
    for row in rows:
        typer.echo(f"{row.slug}\t{'open' if row.is_open else 'closed'}\t{row.configuration['title']}")
    if not rows:
        typer.echo("There are no studies yet: create one with pairseek study create FILE.yaml")


@app.command("open")
def open_study(slug: Slug, *, database: DatabaseOption = None) -> None:
    """Open a study: it accepts answers."""
    _set_open(slug, database, is_open=True)


@app.command("close")
def close_study(slug: Slug, *, database: DatabaseOption = None) -> None:
    """Close a study: it accepts no more answers."""
    _set_open(slug, database, is_open=False)


def _set_open(slug: str, database: str | None, *, is_open: bool) -> None:
    with open_database(database, create=False) as opened:
        from pairseek.store import studies
        from pairseek.web.studies.creation import set_open

        row = opened.read(lambda connection: studies.by_slug(connection, slug))
        if row is None:
            raise InvalidParameter(f"there is no study {slug!r}: see pairseek study list")
        set_open(opened, row, is_open=is_open, who=current_user())
    typer.echo(f"The study {slug} is {'open' if is_open else 'closed'}.")
