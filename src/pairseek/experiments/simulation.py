"""Simulation of all trials of a specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pairseek.core.validation import one_of
from pairseek.experiments.data import SimulationWork, load_items
from pairseek.experiments.results import Results, TableFormat, require_parquet
from pairseek.experiments.runs.plan import Outcome, RunStatus, Task
from pairseek.experiments.runs.runner import run_plan
from pairseek.experiments.specification import Specification


def run(
    specification: Specification,
    folder: str | Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    table: TableFormat = "csv",
    progress: Callable[[RunStatus], None] | None = None,
    known: Mapping[Task, Outcome] | None = None,
) -> Results:
    """Run the trials that the folder lacks, and write the table. `Results.draw` writes the figures.

    Parameters
    ----------
    specification
        The experiment.
    folder
        Folder of results. A folder of the same specification is resumed; any other is refused.
    jobs
        Number of worker processes on this machine, each with one thread.
    scheduler
        Address of a dask scheduler to use instead of local processes, such as ``tcp://10.0.0.1:8786``.
    table
        ``"csv"`` or ``"parquet"``.
    progress
        Called at the start and after every trial.
    known
        Outcomes of trials shared with another experiment; see `common_trials`.

    Examples
    --------
    Worker processes import the script that calls `run`. In a script, put the call below ``if __name__ == "__main__":``.

    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.experiments import Contender, Setting, Specification, run
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((20, 2)))
    >>> strategies = (Contender(ps.InfoGain()), Contender(ps.Random()))
    >>> settings = (Setting(data=items, scaled=False, prior=None),)
    >>> specification = Specification(
    ...     "tiny", settings, strategies, rate=None, queries=3, trials=2
    ... )
    >>> results = run(specification, "results")
    >>> len(results.columns()["squared_error"])   # strategies, trials, answer counts
    16
    """
    if one_of(table, "table", ("csv", "parquet")) == "parquet":
        require_parquet()
    items = load_items(specification)
    outcomes, record = run_plan(
        specification.plan(items),
        lambda: SimulationWork.of(specification, items),
        folder,
        jobs=jobs,
        scheduler=scheduler,
        progress=progress,
        known=known,
    )
    results = Results.of(specification, outcomes, record)
    results.write(Path(folder), table)
    return results
