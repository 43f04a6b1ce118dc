"""Execution of long runs: worker processes, interruption, and the list of written files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from pairseek.cli.signals import Stopped, orderly_stop
from pairseek.errors import InvalidParameter


def job_count(jobs: int | None, scheduler: str | None) -> int:
    """Return the number of worker processes."""
    if jobs is not None and jobs < 1:
        raise InvalidParameter(f"--jobs is {jobs}: give a whole number, at least 1")
    if scheduler is not None:
        if jobs is not None:
            raise InvalidParameter(f"--jobs {jobs} with --scheduler: the cluster has its own workers; leave --jobs out")
        return 1
    if jobs is not None:
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def interruptible(console: Console) -> Iterator[None]:
    """End the run cleanly on a signal, and print how to resume it."""
    try:
        with orderly_stop():
            yield
    except Stopped as stopped:
        console.print("Stopped. Finished trials are kept: run the same command again to resume.")
        raise typer.Exit(stopped.code) from None


def print_paths(console: Console, paths: Iterable[Path]) -> None:
    """Print the paths of written files, one per line."""
    for path in paths:
        console.print(Text(f"  {path}"), soft_wrap=True)
