"""Running all trials of a specification: on this machine's processes, or on a dask cluster."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pairseek.core.types import JSON
from pairseek.core.validation import one_of, whole
from pairseek.errors import InvalidParameter
from pairseek.experiments.data import Parcel, load_items
from pairseek.experiments.folder import RUN, ResultsFolder
from pairseek.experiments.results import Results, TableFormat, require_parquet
from pairseek.experiments.spec import Specification
from pairseek.experiments.trial import Outcome, Task
from pairseek.experiments.work import Plan, Work, tasks

_NOTE_EVERY = 5.0
"""Seconds after which the time spent is written down again."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    specification
        What is run.
    done
        Finished trials of each strategy, those of earlier sessions included.
    total
        Trials of each strategy.
    """

    specification: Plan
    done: tuple[int, ...]
    total: int


def run(
    specification: Specification,
    folder: str | Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    table: TableFormat = "csv",
    progress: Callable[[Progress], None] | None = None,
) -> Results:
    """Run what is not there yet, and write the table.

    Parameters
    ----------
    specification
        What to run.
    folder
        Where results go. A folder of the same specification is gone on with; another one is refused.
    jobs
        Worker processes on this machine, each on one thread.
    scheduler
        Address of a dask scheduler to use instead, such as ``tcp://10.0.0.1:8786``.
    table
        ``"csv"`` or ``"parquet"``.
    progress
        Called at the start and after every trial.
    """
    if one_of(table, "table", ("csv", "parquet")) == "parquet":
        require_parquet()
    items = load_items(specification)
    identity = specification.identity(items)
    outcomes, record = carry_out(
        lambda: Parcel.of(specification, items),
        specification,
        folder,
        identity=identity,
        jobs=jobs,
        scheduler=scheduler,
        progress=progress,
    )
    results = Results.of(specification, outcomes, record)
    results.write(Path(folder), table)
    return results


def carry_out(
    made: Callable[[], Work],
    plan: Plan,
    folder: str | Path,
    *,
    identity: str,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[dict[Task, Outcome], JSON]:
    """Do what is not in the folder yet: all outcomes, and what is known of the run.

    Parameters
    ----------
    made
        Makes what does a trial. Called once the folder is this run's own, if there is something left to do.
    plan
        Which trials there are.
    identity
        Of all that an outcome depends on. A folder with another one is refused.
    folder, jobs, scheduler, progress
        See `run`.
    """
    whole(jobs, "jobs", 1)
    if scheduler is not None and jobs != 1:
        raise InvalidParameter(
            f"jobs is {jobs} and a scheduler is given: the cluster has its own workers, leave it out"
        )
    with ResultsFolder.opened(Path(folder), plan, identity) as kept:
        began = noted = time.perf_counter()
        pending = [task for task in tasks(plan) if task not in kept.outcomes]
        done = Counter(task.strategy for task in kept.outcomes)

        def tell() -> None:
            if progress is not None:
                counts = tuple(done[i] for i in range(len(plan.labels)))
                progress(Progress(plan, counts, plan.trials * len(plan.settings)))

        def take(outcome: Outcome) -> None:
            nonlocal noted
            kept.add(outcome)
            done[outcome.task.strategy] += 1
            tell()
            if time.perf_counter() - noted > _NOTE_EVERY:
                # so that a session that is killed is counted in the time that all took
                noted = time.perf_counter()
                kept.note(seconds=round(noted - began, 3), jobs=jobs, scheduler=scheduler)

        tell()
        if pending:
            _carry_out(made(), pending, take, jobs, scheduler)
        kept.note(
            trials_run=len(pending), seconds=round(time.perf_counter() - began, 3), jobs=jobs, scheduler=scheduler
        )
        record = json.loads((kept.path / RUN).read_text(encoding="utf-8"))
        return dict(kept.outcomes), record


def _carry_out(
    work: Work, pending: list[Task], take: Callable[[Outcome], None], jobs: int, scheduler: str | None
) -> None:
    if scheduler is None:
        from pairseek.experiments._processes import on_processes

        on_processes(work, pending, take, jobs=min(jobs, len(pending)))
        return
    from pairseek.experiments._cluster import on_cluster

    on_cluster(work, pending, take, address=scheduler)
