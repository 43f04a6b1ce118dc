"""Command ``pairseek warm``: compiled kernels, for example while a container image is built."""

from __future__ import annotations

import typer

from pairseek.errors import Unsupported
from pairseek.numerics.kernel_cache import ADVICE, own_cache_folders


def command() -> None:
    """Compile the numerical kernels, so that the first search is fast.

    Run it once where pairseek is installed, such as in a Dockerfile, as
    the user who runs pairseek or as root.
    """
    from pairseek.search.warmup import warm_up

    folder = own_cache_folders().writable
    if folder is None:
        raise Unsupported(f"compiled kernels cannot be stored: {ADVICE}")
    warm_up()
    typer.echo(f"The kernels are compiled, in {folder}")
