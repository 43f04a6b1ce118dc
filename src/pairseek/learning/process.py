"""Learning in a process of low priority, so that nobody who is answering waits for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection

from pairseek import serialization
from pairseek.core.types import JSON
from pairseek.errors import InvalidChoices, PairseekError
from pairseek.learning.lesson import Lesson, learn
from pairseek.model.items import Items
from pairseek.population import Choices, Population

# Seconds after which learning is given up, and the priority of its process.
_MOST_SECONDS = 3600.0
_NICE = 10


class LearningFailed(PairseekError):
    """Learning ended with an error that is not about the answers."""


def learn_apart(
    choices: Choices, items: Items, *, previous: Population | None = None, since: Collection[str] | None = None
) -> Lesson:
    """Learn as `learn` does, in another process with one thread and low priority."""
    task = {
        "choices": choices_record(choices),
        "items": serialization.items_record(items),
        "previous": None if previous is None else previous.record(),
        "since": None if since is None else sorted(since),
    }
    answer = run_apart("pairseek.learning", task)
    if "error" in answer:
        raise InvalidChoices(answer["error"])
    return Lesson.from_record(Population.from_record(answer["population"]), answer["facts"])


def run_apart(module: str, task: JSON) -> JSON:
    """Give a task to a module's process, which has one thread, and return its answer; it lowers its own priority."""
    one = dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            [sys.executable, "-m", module],
            input=json.dumps(task).encode(),
            capture_output=True,
            env={**os.environ, **one},
            timeout=_MOST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LearningFailed(f"learning did not end: {error}") from None
    try:
        answer: JSON = json.loads(done.stdout)
    except ValueError:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["nothing was said"]
        raise LearningFailed(f"learning ended with code {done.returncode}: {last[0][:300]}") from None
    return answer


def read_task() -> JSON:
    """Lower the priority of this process, and read its task from standard input."""
    os.nice(_NICE)
    task: JSON = json.load(sys.stdin)
    return task


def main() -> None:
    """Read a task from standard input, learn, and write the result to standard output."""
    task = read_task()
    items = serialization.items_from(task["items"])
    assert isinstance(items, Items)
    previous = None if task["previous"] is None else Population.from_record(task["previous"])
    try:
        lesson = learn(choices_from(task["choices"]), items, previous=previous, since=task["since"])
        answer: JSON = {"population": lesson.population.record(), "facts": lesson.record()}
    except InvalidChoices as error:
        answer = {"error": str(error)}
    json.dump(answer, sys.stdout, allow_nan=False)


def choices_record(choices: Choices) -> JSON:
    """Return paired choices as JSON data."""
    ids, people = choices.ids, choices.people
    rows = zip(choices.person.tolist(), choices.winner.tolist(), choices.loser.tolist(), strict=True)
    return {
        "ids": list(ids),
        "rows": [[people[person], ids[winner], ids[loser]] for person, winner, loser in rows],
        "tied": [[people[person], ids[first], ids[second]] for person, first, second in choices.outcomes.tolist()],
    }


def choices_from(record: JSON) -> Choices:
    """Build choices from the data of `choices_record`."""
    rows, tied = ([tuple(row) for row in record[name]] for name in ("rows", "tied"))
    return Choices.from_pairs(rows, ids=record["ids"], tied=tied)
