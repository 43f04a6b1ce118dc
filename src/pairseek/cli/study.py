"""Command group ``pairseek study``: creation, listing, opening, closing, copies and deletion of studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairseek.cli.database import confirm, current_user, find_study, open_database, place_of, require_web
from pairseek.cli.options import DatabaseOption, Yes
from pairseek.core.text import plural
from pairseek.errors import InvalidParameter

app = typer.Typer(help="Create, list, open, close, duplicate and delete studies.", no_args_is_help=True)

SlugArgument = Annotated[str, typer.Argument(metavar="SLUG", help="Name of the study in its link.")]


@app.command("create")
def create(
    path: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Study configuration as YAML; see docs/how-to/studies.md.")
    ] = None,
    *,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="STUDY", help="Create a preference study from this similarity study's map."),
    ] = None,
    slug: Annotated[
        str | None, typer.Option(metavar="SLUG", help="With --from: name of the new study in its link.")
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Create a study from a YAML file and its items, or from the map of a similarity study."""
    if (path is None) == (source is None) or (slug is not None and source is None):
        raise InvalidParameter("give either FILE, or --from STUDY with an optional --slug")
    if source is not None:
        _create_from(source, slug, database)
        return
    assert path is not None
    require_web()
    from pairseek.web.studies.checks import check
    from pairseek.web.studies.creation import create_study, from_file

    # Read the file first, so that a mistake in it does not leave an empty database behind.
    configuration, items, is_open, files, logo = from_file(path)
    check(configuration, items)
    with open_database(database) as opened:
        slug = create_study(opened, configuration, items, is_open=is_open, who=current_user(), files=files, logo=logo)
        location = place_of(opened)
    if configuration.coordinates is None and items.columns_note is not None:
        typer.echo(f"Columns: {items.columns_note}; choose with the setting coordinates.")
    if items.scale_note is not None:
        typer.echo(f"Note: {items.scale_note}", err=True)
    typer.echo(f"Created the study {slug} with {items.n:,} items, {'open' if is_open else 'closed'}.")
    typer.echo(f"Database: {location}")
    typer.echo(f"Run pairseek serve and send people to /s/{slug}")


def _create_from(source: str, slug: str | None, database: str | None) -> None:
    with open_database(database, create=False) as opened:
        from pairseek.web.learning import similarity

        study = find_study(opened, source)
        new_slug = similarity.create_preference_study(opened, study, current_user(), slug=slug)
    typer.echo(f"Created the study {new_slug} with {study.items.n:,} items from the map of {source}, open.")
    typer.echo(f"Run pairseek serve and send people to /s/{new_slug}")


@app.command("list")
def show(*, database: DatabaseOption = None) -> None:
    """List the studies with their slug, state and title."""
    with open_database(database, create=False) as opened:
        from pairseek.store import studies

        rows = opened.read(studies.all_studies)
    for row in rows:
        typer.echo(f"{row.slug}\t{'open' if row.is_open else 'closed'}\t{row.configuration['title']}")
    if not rows:
        typer.echo("There are no studies yet: create one with pairseek study create FILE.yaml")


@app.command("open")
def open_study(slug: SlugArgument, *, database: DatabaseOption = None) -> None:
    """Open a study, so that it accepts answers."""
    _set_open(slug, database, is_open=True)


@app.command("close")
def close_study(slug: SlugArgument, *, database: DatabaseOption = None) -> None:
    """Close a study, so that it accepts no more answers."""
    _set_open(slug, database, is_open=False)


@app.command("add")
def add(
    slug: SlugArgument,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="CSV of the new items, or a folder of media files.")],
    *,
    database: DatabaseOption = None,
) -> None:
    """Add items to a study whose items have no coordinates.

    New items appear in random pairs at first, and get coordinates when the study
    next learns. Sessions that have begun keep their items.
    """
    with open_database(database, create=False) as opened:
        from pairseek.web.studies.creation import add_items, items_in

        study = find_study(opened, slug)
        items, files = items_in(path, study.configuration)
        count = add_items(opened, study, items, who=current_user(), files=files)
    typer.echo(f"Added {plural(items.n, 'item')}: the study {slug} has {count:,}.")


@app.command("duplicate")
def duplicate(
    slug: SlugArgument,
    *,
    name: Annotated[
        str | None, typer.Option("--slug", metavar="SLUG", help="Name of the copy in its link; by default a free one.")
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Copy a study with its settings, items and pictures, but without people. The copy is closed."""
    with open_database(database, create=False) as opened:
        from pairseek.web.studies import duplication

        study = find_study(opened, slug)
        copy = duplication.duplicate(opened, study, who=current_user(), slug=name)
    typer.echo(f"Created the study {copy} with {plural(study.items.n, 'item')} from {slug}, closed.")


@app.command("delete")
def delete(slug: SlugArgument, *, yes: Yes = False, database: DatabaseOption = None) -> None:
    """Delete a study with its items, answers, populations and tokens.

    Earlier exports and backups still contain it.
    """
    with open_database(database, create=False) as opened:
        from pairseek.store.counts import counts
        from pairseek.web.sessions import forgetting

        study = find_study(opened, slug)
        numbers = opened.read(lambda connection: counts(connection, study.row.id))
        contents = f"{plural(numbers.started, 'participant')} and {plural(numbers.answers, 'answer')}"
        confirm(slug, f"The study {slug} with {contents} will be deleted.", yes=yes)
        typer.echo(forgetting.deletion_summary(forgetting.delete_study(opened, study, current_user())))
        if not forgetting.scrub(opened):
            typer.echo("The database is in use: the service or the next deletion will clean up its files.", err=True)
    typer.echo(f"The study {slug} was deleted.")


def _set_open(slug: str, database: str | None, *, is_open: bool) -> None:
    with open_database(database, create=False) as opened:
        from pairseek.store import studies
        from pairseek.web.studies.creation import set_open

        row = opened.read(lambda connection: studies.by_slug(connection, slug))
        if row is None:
            raise InvalidParameter(f"there is no study {slug!r}: see pairseek study list")
        set_open(opened, row, is_open=is_open, who=current_user())
    typer.echo(f"The study {slug} is {'open' if is_open else 'closed'}.")
