"""Command-line interface ``pairseek``, with one module per command.

Importing this package requires only the core of pairseek; running a command requires the extra ``cli``.
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

    An error is printed as one line on standard error, and the exit code is 2.

    Parameters
    ----------
    arguments
        Arguments after ``pairseek``. None means the arguments of this process.
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
        # The reader closed the pipe, as in `pairseek ... | head`: nothing more can be printed.
        sys.stdout = None
        sys.exit(1)
    except (PairseekError, OSError) as error:
        _fail(error)


def _fail(error: Exception) -> NoReturn:
    line = " ".join(str(error).split())
    if sys.stderr is not None:
        # Writing fails if the terminal has been closed.
        with contextlib.suppress(OSError):
            sys.stderr.write(f"pairseek: {line}\n")
    sys.exit(USAGE_ERROR)
