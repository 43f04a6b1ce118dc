"""Command ``pairseek serve``: the web service."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairseek.cli.database import current_user, open_database, require_web
from pairseek.cli.options import DatabaseOption

if TYPE_CHECKING:
    from pairseek.web.settings import Settings

_DEMO_DATABASE = "pairseek-demo.db"
_DEFAULT_PORT = 8421


def command(
    *,
    database: DatabaseOption = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on; 0.0.0.0 for all networks.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", help="Port to listen on; 0 for any free port.")] = _DEFAULT_PORT,
    workers: Annotated[int, typer.Option(metavar="N", help="Number of server processes.")] = 1,
    study: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Study configuration as YAML; creates the study unless it exists."),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", metavar="", help=f"Create and open a study of colours in {_DEMO_DATABASE}.")
    ] = False,
) -> None:
    """Run the web service: studies in the browser and over HTTP.

    Only the first start prints a user name and a password. To configure the
    service, set environment variables such as PAIRSEEK_DATABASE,
    PAIRSEEK_PASSWORD and PAIRSEEK_HTTPS; see docs/how-to/service.md.
    """
    require_web()
    with _shared_metrics(workers):
        _serve(database, host, port, workers, study, demo=demo)


@contextlib.contextmanager
def _shared_metrics(workers: int) -> Iterator[None]:
    """Create a folder for the workers' shared metrics, which must exist before the metrics are imported."""
    if workers <= 1:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="pairseek-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        yield


def _serve(database: str | None, host: str, port: int, workers: int, study: Path | None, *, demo: bool) -> None:
    from pairseek.web.server import serve
    from pairseek.web.settings import Settings

    settings = Settings.of(database=database)
    # The demo uses its own file unless the user names a database.
    uses_demo_file = demo and database is None and settings.database == Settings.database
    if uses_demo_file:
        settings = replace(settings, database=_DEMO_DATABASE)
    slugs = [] if study is None else [_create_study(settings, study)]
    if demo:
        slugs.append(_create_demo(settings))

    def announce(address: str) -> None:
        for slug in slugs:
            typer.echo(f"Answer at {address}/s/{slug}")
        if demo and sys.stdout.isatty():
            webbrowser.open(f"{address}/s/{slugs[-1]}")

    serve(settings, host=host, port=port, workers=workers, on_announced=announce, demo=uses_demo_file)


def _create_study(settings: Settings, path: Path) -> str:
    """Create the study described by a file unless it exists, and return its slug."""
    from pairseek.store import studies
    from pairseek.web.studies.creation import create_study, from_file

    configuration, items, is_open, files, logo = from_file(path)
    slug = configuration.slug_or_default()
    with open_database(settings.database, announce=False) as database:
        if database.read(lambda connection: studies.by_slug(connection, slug)) is None:
            who = current_user()
            create_study(database, configuration, items, is_open=is_open, who=who, files=files, logo=logo)
            if configuration.coordinates is None and items.columns_note is not None:
                typer.echo(f"Columns: {items.columns_note}; choose with the setting coordinates.", err=True)
            if items.scale_note is not None:
                typer.echo(f"Note: {items.scale_note}", err=True)
        else:
            typer.echo(
                f"The study {slug} already exists and stays as it is. If you have changed {path.name}, give the study "
                f"another slug.",
                err=True,
            )
    return slug


def _create_demo(settings: Settings) -> str:
    """Create the demo study unless it exists, and return its slug."""
    from pairseek.store import studies
    from pairseek.web.studies.creation import create_study
    from pairseek.web.studies.demo import colour_items, colour_study

    with open_database(settings.database, announce=False) as database:
        configuration = colour_study()
        slug = configuration.slug_or_default()
        if database.read(lambda connection: studies.by_slug(connection, slug)) is None:
            create_study(database, configuration, colour_items(), is_open=True, who=current_user())
    return slug
