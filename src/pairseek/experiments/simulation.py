"""Simulation of all trials of a specification: items of its settings, work of the processes, and tables."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pairseek.core.columns import ColumnRules
from pairseek.core.validation import one_of
from pairseek.datasets import colours, food10k, synthetic
from pairseek.errors import InvalidParameter
from pairseek.experiments.results import Results, TableFormat, require_parquet
from pairseek.experiments.runs.plan import Outcome, RunStatus, Task
from pairseek.experiments.runs.runner import run_plan
from pairseek.experiments.specification import Setting, Specification
from pairseek.experiments.trial import run_trial
from pairseek.model.items import Items
from pairseek.model.priors import UniformBox
from pairseek.model.spaces import Space


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


_WARM_UP_QUERIES = 6
"""Number of answers after which the particles have moved at least once."""


def load_items(specification: Specification) -> tuple[Items | Space, ...]:
    """Load the items of each setting; settings with equal data share one object."""
    return tuple(_load_setting_items(setting) for setting in specification.settings)


def _load_setting_items(setting: Setting) -> Items | Space:
    if not isinstance(setting.data, str):
        return _scaled(setting.data) if setting.scaled else setting.data
    if setting.data == "space":
        return _space_from_prior(setting)
    items = _load_named_data(setting.data, setting.dimension)
    if setting.dimension is not None and items.d != setting.dimension:
        raise InvalidParameter(
            f"dimension of setting {setting.label!r} is {setting.dimension}, but {setting.data} has {items.d}: leave "
            f"it out"
        )
    if setting.subsample is not None and setting.subsample > items.n:
        raise InvalidParameter(
            f"subsample of setting {setting.label!r} is {setting.subsample}, but there are only {items.n} items: give "
            f"a smaller number"
        )
    return _scaled(items) if setting.scaled else items


@lru_cache(maxsize=16)
def _load_named_data(data: str, dimension: int | None) -> Items:
    if data == "food10k" and dimension is not None:
        return food10k(dimension)
    if data == "synthetic" and dimension is not None:
        return synthetic(dimension)
    if data == "colours":
        return colours()
    if data.startswith("items:"):
        raise InvalidParameter(
            f"data is {data!r}: the items came from a Python program; run that program again", field="data"
        )
    return Items._of_file(data, ColumnRules(media=True))._with_warnings()


@lru_cache(maxsize=16)
def _scaled(items: Items | Space) -> Items | Space:
    return items.scaled()


def _space_from_prior(setting: Setting) -> Space:
    if not isinstance(setting.prior, UniformBox) or setting.dimension is None:
        raise InvalidParameter(f"data of setting {setting.label!r} is 'space': give a uniform_box as its prior")
    low, high = setting.prior.box(setting.dimension)
    return Space(tuple(low.tolist()), tuple(high.tolist()))


@dataclass(frozen=True, eq=False)
class SimulationWork:
    """A specification with its items: everything a worker needs, without reading files.

    Attributes
    ----------
    specification
        The specification, with items replaced by their keys.
    contents
        The distinct items and spaces.
    content_indices
        Index into ``contents`` for each setting.
    """

    specification: Specification
    contents: tuple[Items | Space, ...]
    content_indices: tuple[int, ...]

    @classmethod
    def of(cls, specification: Specification, items: tuple[Items | Space, ...]) -> SimulationWork:
        """Pack a specification and the items of its settings, each distinct object once."""
        distinct = tuple(dict.fromkeys(items))
        # Items left in the specification would be sent twice.
        return cls(_without_items(specification), distinct, tuple(distinct.index(part) for part in items))

    def items(self) -> tuple[Items | Space, ...]:
        """Return the items of each setting."""
        return tuple(self.contents[index] for index in self.content_indices)

    def begin(self) -> Callable[[Task], Outcome]:
        """Unpack, and run a short trial of each strategy so that no timed trial includes loading kernels."""
        specification, items = self.specification, self.items()
        queries = min(_WARM_UP_QUERIES, specification.queries)
        short = replace(specification, queries=queries, every=queries)
        for strategy in range(len(short.strategies)):
            # The same exception will occur in a trial, where it is reported with the name of the trial.
            with contextlib.suppress(Exception):
                run_trial(short, Task(0, strategy, 0), items[0])
        return lambda task: run_trial(specification, task, items[task.group])

    def describe(self, task: Task) -> str:
        """Return a description of the trial for error messages."""
        strategy, setting = self.specification.strategies[task.arm], self.specification.settings[task.group]
        return f"trial {task.unit} of {strategy.label} in setting {setting.label!r}"


def _without_items(specification: Specification) -> Specification:
    settings = tuple(
        setting if isinstance(setting.data, str | Space) else replace(setting, data=setting.data._key)
        for setting in specification.settings
    )
    return replace(specification, settings=settings)
