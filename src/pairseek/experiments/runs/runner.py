"""Runner of a plan's unfinished tasks, in processes or on a dask cluster."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from pairseek.core.types import JSON
from pairseek.core.validation import whole
from pairseek.errors import InvalidParameter
from pairseek.experiments.runs.cluster import run_on_cluster
from pairseek.experiments.runs.journal import RUN_FILE, ResultsFolder
from pairseek.experiments.runs.plan import Outcome, RunPlan, RunStatus, Task, Work
from pairseek.experiments.runs.processes import require_main_guard, run_on_processes

_SAVE_INTERVAL = 5.0
"""Seconds between updates of the elapsed time on disk."""


def run_plan(
    plan: RunPlan,
    make_work: Callable[[], Work],
    folder: str | Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Callable[[RunStatus], None] | None = None,
    known: Mapping[Task, Outcome] | None = None,
) -> tuple[dict[Task, Outcome], JSON]:
    """Perform the tasks that the folder lacks, and return all outcomes and the record of the run.

    Parameters
    ----------
    plan
        The tasks.
    make_work
        Function that builds the work. It is called once the folder is locked, and only if tasks are pending.
    folder
        Folder of results. A folder of the same plan is resumed; one with another identity is refused.
    jobs
        Number of worker processes on this machine, each with one thread.
    scheduler
        Address of a dask scheduler to use instead of local processes, such as ``tcp://10.0.0.1:8786``.
    progress
        Called at the start and after every task.
    known
        Outcomes of tasks that need not run; they are stored in the folder.
    """
    whole(jobs, "jobs")
    if scheduler is not None and jobs != 1:
        raise InvalidParameter(
            f"jobs is {jobs} and a scheduler is given: leave jobs out, because the cluster has its own workers",
            field="jobs",
        )
    if scheduler is None:
        require_main_guard()  # before the folder is created
    with ResultsFolder.open_folder(Path(folder), plan) as results:
        started = last_saved = time.perf_counter()
        known = known or {}
        for task in plan.tasks():
            if task in known and task not in results.outcomes:
                results.add(known[task])
        pending = [task for task in plan.tasks() if task not in results.outcomes]
        done = Counter(task.arm for task in results.outcomes)

        def report() -> None:
            if progress is not None:
                counts = tuple(done[arm] for arm in range(len(plan.arms)))
                progress(RunStatus(plan.arms, counts, plan.units * len(plan.groups)))

        def on_outcome(outcome: Outcome) -> None:
            nonlocal last_saved
            results.add(outcome)
            done[outcome.task.arm] += 1
            report()
            if time.perf_counter() - last_saved > _SAVE_INTERVAL:
                # Saved now, so that the time counts even if the session is killed.
                last_saved = time.perf_counter()
                results.note(seconds=round(last_saved - started, 3), jobs=jobs, scheduler=scheduler)

        report()
        if pending:
            _perform(make_work(), pending, on_outcome, jobs, scheduler)
        results.note(
            trials_run=len(pending), seconds=round(time.perf_counter() - started, 3), jobs=jobs, scheduler=scheduler
        )
        record = json.loads((results.path / RUN_FILE).read_text(encoding="utf-8"))
        return dict(results.outcomes), record


def _perform(
    work: Work, pending: list[Task], on_outcome: Callable[[Outcome], None], jobs: int, scheduler: str | None
) -> None:
    if scheduler is None:
        run_on_processes(work, pending, on_outcome, jobs=min(jobs, len(pending)))
        return
    run_on_cluster(work, pending, on_outcome, address=scheduler)
