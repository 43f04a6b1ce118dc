"""Trials in processes, with a journal to resume interrupted runs."""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any


def outcomes(
    trial: Callable[[Any], Any], tasks: Sequence[Sequence[Any]], jobs: int, journal: Path | None = None
) -> Iterator[list[Any]]:
    """Yield the outcome of each task, a list that begins with the task itself, in any order.

    Outcomes are appended to the journal, one JSON list per line; tasks in the journal do not run again.
    """
    known = {}
    if journal is not None and journal.exists():
        known = {json.dumps(out[0]): out for out in map(json.loads, journal.read_text().splitlines())}
    yield from (known[json.dumps(task)] for task in tasks if json.dumps(task) in known)
    left = [task for task in tasks if json.dumps(task) not in known]
    if not left:
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for done, out in enumerate(pool.imap_unordered(trial, left), 1):
            if sys.stderr.isatty():
                print(f"\r{done} of {len(left)} trials", end="", file=sys.stderr)
            line = json.dumps(out)
            if journal is not None:
                with journal.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
            yield json.loads(line)
