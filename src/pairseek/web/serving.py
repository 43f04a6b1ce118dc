"""Running the service: one process or several, warmed before the port opens, stopped in order."""

from __future__ import annotations

import uvicorn

from pairseek.web.app import create_app
from pairseek.web.settings import Settings


def serve(settings: Settings, *, host: str, port: int, workers: int) -> None:
    """Serve until a signal says stop."""
    if workers != 1:
        raise NotImplementedError
    uvicorn.run(create_app(settings), host=host, port=port, access_log=False, server_header=False)
