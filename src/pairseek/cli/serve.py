"""``pairseek serve``: the service."""

from __future__ import annotations

from typing import Annotated

import typer

from pairseek.cli._web import DatabaseOption, need_web


def command(
    *,
    database: DatabaseOption = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on; 0.0.0.0 for the network.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", help="Port to listen on.")] = 8421,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes that serve.")] = 1,
) -> None:
    """Serve studies in the browser and over HTTP."""
    need_web()
    from pairseek.web.serving import serve
    from pairseek.web.settings import Settings

    serve(Settings.of(database=database), host=host, port=port, workers=workers)
