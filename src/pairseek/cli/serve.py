"""``pairseek serve``: the service."""

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

from pairseek.cli.service import DatabaseOption, need_web

if TYPE_CHECKING:
    from pairseek.web.settings import Settings

_DEMO = "pairseek-demo.db"
_PORT = 8421


def command(
    *,
    database: DatabaseOption = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on; 0.0.0.0 for your network.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", help="Port to listen on; 0 for any that is free.")] = _PORT,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes that serve.")] = 1,
    study: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Make this study first, unless there is one of its name.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", metavar="", help=f"Serve a study of colours, ready to answer, from {_DEMO}.")
    ] = False,
) -> None:
    """Serve studies in the browser and over HTTP.

    The first time, a name and a password to sign in are said once. Settings
    can come from the environment: PAIRSEEK_DATABASE, PAIRSEEK_PASSWORD,
    PAIRSEEK_HTTPS and others, see docs/service.md.
    """
    need_web()
    with _shared_numbers(workers):
        _serve(database, host, port, workers, study, demo=demo)


@contextlib.contextmanager
def _shared_numbers(workers: int) -> Iterator[None]:
    """Create a folder in which workers share their metrics; it must be set before these are imported."""
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
    if demo and database is None and settings.database == Settings.database:
        settings = replace(settings, database=_DEMO)
    links = [] if study is None else [_made(settings, study)]
    if demo:
        links.append(_colours(settings))

    def ready(address: str) -> None:
        for slug in links:
            typer.echo(f"Answer at {address}/s/{slug}")
        if demo and sys.stdout.isatty():
            webbrowser.open(f"{address}/s/{links[-1]}")

    serve(settings, host=host, port=port, workers=workers, announced=ready, new_password=demo)


def _made(settings: Settings, path: Path) -> str:
    """Create the study of a file unless it exists, and return its slug."""
    from pairseek.cli.service import me, opened
    from pairseek.store import studies
    from pairseek.web.studies.creation import create, from_file

    database = opened(settings.database)
    try:
        configuration, items, is_open, files = from_file(path)
        slug = configuration.named()
        if database.read(lambda connection: studies.by_slug(connection, slug)) is None:
            create(database, configuration, items, is_open=is_open, who=me(), files=files)
            if items.scale_note is not None:
                typer.echo(f"Note: {items.scale_note}", err=True)
    finally:
        database.close()
    return slug


def _colours(settings: Settings) -> str:
    """Create the study of the demo unless it exists, and return its slug."""
    from pairseek.cli.service import me, opened
    from pairseek.store import studies
    from pairseek.web.studies.creation import create
    from pairseek.web.studies.demo import colour_items, colour_study

    database = opened(settings.database)
    try:
        configuration = colour_study()
        slug = configuration.named()
        if database.read(lambda connection: studies.by_slug(connection, slug)) is None:
            create(database, configuration, colour_items(), is_open=True, who=me())
    finally:
        database.close()
    return slug
