"""The command line: ``pairseek``, one command a file.

Importing this package needs nothing beyond pairseek's core; the commands need the extra ``cli``.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from pairseek.errors import MissingExtra, PairseekError

__all__ = ["main"]

USAGE_ERROR = 2
INTERRUPTED = 130
_EXTRA = ("typer", "rich")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    What goes wrong becomes one line on standard error and exit code 2.

    Parameters
    ----------
    arguments
        What follows ``pairseek``; None: what this process was started with.
    """
    try:
        from pairseek.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        _fail(MissingExtra("the command line", "cli"))
    try:
        sys.exit(run(arguments))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader has gone, as in `pairseek ... | head`: there is nobody left to tell.
        sys.stdout = None
        sys.exit(1)
    except (PairseekError, OSError) as error:
        _fail(error)


def _fail(error: Exception) -> NoReturn:
    line = " ".join(str(error).split())
    if sys.stderr is not None:
        # The error may be that the terminal is gone.
        with contextlib.suppress(OSError):
            sys.stderr.write(f"pairseek: {line}\n")
    sys.exit(USAGE_ERROR)
