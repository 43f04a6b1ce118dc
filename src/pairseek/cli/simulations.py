"""What the commands that simulate have in common: options, defaults, an orderly end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from pairseek.cli.terminal.tty import Stopped, orderly_stop
from pairseek.errors import InvalidParameter

Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="N", help="Worker processes, one thread each.  [dim]\\[all cores][/]"),
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Run on the cluster of this dask scheduler, tcp://host:8786.")
]
Table = Annotated[str, typer.Option(metavar="FORMAT", help="Write the table as csv or parquet.")]
LagOne = Annotated[
    bool,
    typer.Option("--lag-one", metavar="", help="Show each estimate one answer later, as the authors' program does."),
]


def job_count(jobs: int | None, scheduler: str | None) -> int:
    """The number of worker processes."""
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
    """An interruption ends the run in order, and says how to go on."""
    try:
        with orderly_stop():
            yield
    except Stopped as stopped:
        console.print("Stopped. Finished trials are kept: run the same command again to go on.")
        raise typer.Exit(stopped.code) from None


def made(console: Console, paths: list[Path]) -> None:
    """Say where things are."""
    for path in paths:
        console.print(Text(f"  {path}"), soft_wrap=True)
