"""Comparison of methods: replays of all people with all methods, in a crash-safe folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pairseek.errors import InvalidParameter
from pairseek.experiments.comparison.datasets import HeldOutPeople, held_out
from pairseek.experiments.comparison.entries import Entry
from pairseek.experiments.comparison.host import Host, Send
from pairseek.experiments.comparison.measures import (
    BIN_COUNT,
    COLUMNS,
    SCORES,
    all_pairs,
    pick_scores,
    prediction_measures,
    shares_won,
    withheld_pairs,
)
from pairseek.experiments.comparison.person import Person
from pairseek.experiments.comparison.protocol import Method
from pairseek.experiments.comparison.replay import (
    MethodFault,
    Watch,
    begin,
    checked_predictions,
    checked_recommendations,
    play,
)
from pairseek.experiments.comparison.results import ComparisonResults
from pairseek.experiments.comparison.sources import dataset_of
from pairseek.experiments.comparison.specification import Comparison
from pairseek.experiments.runs.journal import JOURNAL_FILE, earlier_record, read_journal
from pairseek.experiments.runs.plan import Outcome, RunPlan, RunStatus, Task
from pairseek.experiments.runs.runner import run_plan
from pairseek.experiments.runs.toml import to_toml
from pairseek.experiments.runs.worker import pickle_work
from pairseek.people.population import Population

Row = tuple[tuple[float, ...], float]


@dataclass(frozen=True, eq=False)
class ComparisonWork:
    """Everything that a worker needs to replay a person with a method.

    Attributes
    ----------
    entries
        The methods.
    held
        Held-out and other people of each data set, with vectors.
    seed
        Seed of the withheld pairs and the order of pairs.
    limit
        Seconds for each call of a method.
    """

    entries: tuple[Entry, ...]
    held: tuple[HeldOutPeople, ...]
    seed: int
    limit: float

    def begin(self) -> Callable[[Task], Outcome]:
        """Return the function that performs a task in a process of its own."""
        host = Host(pickle_work(self), self.limit)

        def trial(task: Task) -> Outcome:
            rows: dict[tuple[int, int], Row] = {}
            note = ""
            try:
                for _, session, position, row in host.perform(task):
                    rows[session, position] = row
            except MethodFault as fault:
                note = json.dumps({"kind": fault.kind, "step": fault.step, "message": str(fault)})
            return outcome_of(task, rows, len(self.held[task.group].dataset.counts), note)

        return trial

    def describe(self, task: Task) -> str:
        """Return a description of the replay for error messages."""
        held = self.held[task.group]
        return f"{self.entries[task.arm].label} for person {held.people[task.unit]!r} of {held.dataset.label!r}"

    def perform(self, task: Task, send: Send) -> None:
        """Replay one person, and send each row as it is measured."""

        @contextlib.contextmanager
        def watch(name: str, step: int) -> Iterator[None]:
            send(("call", name, step))
            yield
            send(("rest",))

        held, entry = self.held[task.group], self.entries[task.arm]
        name = held.people[task.unit]
        for number, person in enumerate(held.dataset.sessions(name, self.seed)):
            key = held.key(name, number, self.seed)
            _seed_global_generators(key)
            method = entry.make()
            begin(method, held.shown(entry.knows), watch)
            for position, row in enumerate(replay_person(method, person, held.dataset.counts, key, watch)):
                send(("row", number, position, row))


def _seed_global_generators(key: Sequence[int]) -> None:
    """Seed what methods of other packages may draw from, so that a replay does not depend on those before it."""
    random.seed(repr(list(key)))
    np.random.seed(np.random.SeedSequence(list(key)).generate_state(4))  # noqa: NPY002


def replay_person(
    method: Method, person: Person, counts: Sequence[int], key: Sequence[int], watch: Watch
) -> Iterator[Row]:
    """Yield the columns of an outcome and the processor time a question, at each count the person has pairs for."""
    pairs, won = withheld_pairs(person)
    n = len(person.value)
    has_values = bool(np.isfinite(person.value).any())
    for moment in play(method, person, counts, key=key, watch=watch):
        started = time.process_time()
        probability = checked_predictions(method, pairs, moment.answers, watch)
        recommendation = checked_recommendations(method, n, moment.answers, watch) if has_values else []
        elapsed = time.process_time() - started
        ranking = (
            shares_won(n, checked_predictions(method, all_pairs(n), moment.answers, watch))
            if recommendation is None
            else recommendation
        )
        accuracy, loss, bins = prediction_measures(probability, won)
        values = (accuracy, loss, *pick_scores(person.value, ranking), *bins.ravel().tolist())
        yield values, elapsed + moment.seconds / max(moment.answers, 1)


def outcome_of(task: Task, rows: dict[tuple[int, int], Row], counts: int, note: str = "") -> Outcome:
    """Return the outcome of a person: scores averaged over the sessions, and bins summed over them.

    After a fault, a count that the last session did not reach is NaN.
    """
    sessions = 1 + max((session for session, _ in rows), default=0)
    values = np.full((sessions, counts, len(COLUMNS)), np.nan)
    seconds = np.full((sessions, counts), np.nan)
    for (session, count_index), (row, elapsed) in rows.items():
        values[session, count_index], seconds[session, count_index] = row, elapsed
    reached = np.isfinite(values[:, :, 0])
    is_measured = reached.all(axis=0) if note else reached.any(axis=0)
    merged = np.full((counts, len(COLUMNS) + 1), np.nan)
    for count_index in np.flatnonzero(is_measured).tolist():
        session_values = values[reached[:, count_index], count_index]
        scores, sums = session_values[:, : len(SCORES)].mean(axis=0), session_values[:, len(SCORES) :].sum(axis=0)
        merged[count_index] = [*scores, *sums, seconds[reached[:, count_index], count_index].mean()]
    rest = tuple(map(tuple, merged[:, :-1].tolist())), tuple(merged[:, -1].tolist())
    return Outcome(task, *rest, int(is_measured.sum()), note)


def compare(
    comparison: Comparison,
    folder: str | Path,
    *,
    reuse: Sequence[str | Path] = (),
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Callable[[RunStatus], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> ComparisonResults:
    """Replay people with every method of a comparison, and write the tables.

    All methods get the same answers and predict the same withheld pairs, which are fixed before the first question.
    Each is shown what it may know and nothing else. A method that raises, hangs or returns what is not permitted is
    named in the results, and the others go on.

    Parameters
    ----------
    comparison
        Methods, data sets and people.
    folder
        Folder of results. A folder of the same comparison is continued; any other is refused.
    reuse
        Folders of other comparisons. Their replays of a method and a data set that both comparisons have are copied
        instead of being run again.
    jobs
        Number of worker processes.
    scheduler
        Address of a dask scheduler to use instead.
    progress, note
        Functions that are called after every replay, and with a message before vectors are learned.

    Examples
    --------
    Worker processes import the script that calls `compare`: in a script, put the call below
    ``if __name__ == "__main__":``.

    >>> import pairseek as ps
    >>> people = {"name": "simulated", "people": 30, "items": 5}
    >>> plan = ps.experiments.Comparison(["popularity"], [people], people=3, answers=(0, 2))
    >>> results = ps.experiments.compare(plan, "comparison")
    >>> [row["method"] for row in results.summary()]
    ['popularity', 'popularity']
    """
    entries = comparison.entries
    datasets = [dataset_of(record, comparison.folder) for record in comparison.data]
    held = [
        held_out(
            replace(data, counts=comparison.answers or data.counts),
            comparison.people,
            half=comparison.half,
            seed=comparison.seed,
        )
        for data in datasets
    ]
    plan = _plan(comparison, entries, held)

    def make_work() -> ComparisonWork:
        with_vectors = tuple(_with_vectors(part, note) for part in held)
        return ComparisonWork(entries, with_vectors, comparison.seed, float(comparison.limit))

    # Every data set has as many units as the largest; the surplus units of smaller ones have nothing to replay.
    absent = {
        task: outcome_of(task, {}, len(held[task.group].dataset.counts))
        for task in plan.tasks()
        if task.unit >= len(held[task.group].people)
    }
    path = Path(folder)
    known = absent | reused(plan, reuse)
    outcomes, record = run_plan(plan, make_work, path, jobs=jobs, scheduler=scheduler, progress=progress, known=known)
    results = ComparisonResults.of(comparison, held, outcomes, record)
    results.write(path)
    return results


def _plan(comparison: Comparison, entries: Sequence[Entry], held: Sequence[HeldOutPeople]) -> RunPlan:
    groups = [
        {
            "label": people.dataset.label,
            "hash": people.dataset.hash,
            "answers": list(people.dataset.counts),
            "people": list(people.people),
        }
        for people in held
    ]
    record = {
        "half": comparison.half,
        "seed": comparison.seed,
        "limit": float(comparison.limit),
        "bins": BIN_COUNT,
        "groups": groups,
        "methods": [entry.record for entry in entries],
    }
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), default=str)
    units = max(len(people.people) for people in held)
    labels = tuple(people.dataset.label for people in held)
    arms = tuple(entry.label for entry in entries)
    return RunPlan(labels, arms, units, record, hashlib.sha256(text.encode()).hexdigest())


def reused(plan: RunPlan, folders: Sequence[str | Path]) -> dict[Task, Outcome]:
    """Return the outcomes in the folders of methods and data sets that the plan has too, as outcomes of the plan."""
    record = tomllib.loads(to_toml(plan.record))
    out: dict[Task, Outcome] = {}
    for folder in map(Path, folders):
        earlier = earlier_record(folder)
        differing = [name for name in ("half", "seed", "limit", "bins") if earlier.get(name) != record[name]]
        if differing:
            raise InvalidParameter(f"{folder} has another {differing[0]}: reuse folders with the same", field="reuse")
        groups, arms = (
            {earlier[name].index(part): index for index, part in enumerate(record[name]) if part in earlier[name]}
            for name in ("groups", "methods")
        )
        for task, outcome in read_journal(folder / JOURNAL_FILE).items():
            if task.group in groups and task.arm in arms:
                own_task = Task(groups[task.group], arms[task.arm], task.unit)
                out[own_task] = replace(outcome, task=own_task)
    return out


def _with_vectors(held: HeldOutPeople, note: Callable[[str], None] | None) -> HeldOutPeople:
    """Learn coordinates from the people who are not replayed, unless the data set has vectors."""
    data = held.dataset
    if data.vectors is not None:
        return held
    if note is not None:
        note(f"{data.label}: learning vectors from {len(held.others.people)} people")
    learned = Population.fit(held.others, dimension=data.dimension).items.coordinates
    return replace(held, dataset=replace(data, vectors=np.array(learned)))
