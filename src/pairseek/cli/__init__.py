"""Command-line interface ``pairseek``, with one module per command.

Running a command requires the extra ``cli``; importing this package does not.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from pairseek.errors import MissingExtra, PairseekError

__all__ = ["main"]

ERROR_CODE = 2
INTERRUPTED_CODE = 130
_EXTRA_PACKAGES = ("typer", "rich")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    An error prints one line on standard error and sets the exit code to 2.

    Parameters
    ----------
    arguments
        Arguments after ``pairseek``; None for the arguments of this process.
    """
    try:
        from pairseek.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA_PACKAGES:
            raise
        _fail(MissingExtra("the command line", "cli"))
    try:
        sys.exit(run(arguments))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED_CODE)
    except BrokenPipeError:
        # The reader closed the pipe, as in `pairseek ... | head`, so nothing more can be printed.
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
    sys.exit(ERROR_CODE)
