"""Results of a simulation: means with standard errors, paired differences, and tables."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from pairseek.core import notebook
from pairseek.core.frames import Backend, frame_of
from pairseek.core.lazy import cached_property
from pairseek.core.text import plural
from pairseek.core.types import JSON, FloatArray, IntArray
from pairseek.core.validation import one_of
from pairseek.errors import InvalidFile, InvalidParameter, MissingExtra
from pairseek.experiments.runs.journal import (
    JOURNAL_FILE,
    RUN_FILE,
    SPECIFICATION_FILE,
    csv_text,
    read_journal,
    write_result,
)
from pairseek.experiments.runs.plan import Outcome, Task
from pairseek.experiments.specification import Specification
from pairseek.experiments.specification_files import read_specification

TableFormat: TypeAlias = Literal["csv", "parquet"]


@dataclass(frozen=True)
class Paired:
    """Mean paired difference between two strategies, over the same users.

    Attributes
    ----------
    difference
        Mean of the first strategy minus the second.
    standard_error
        Standard error of the mean difference.
    trials
        Number of users.

    Examples
    --------
    >>> from pairseek.experiments import Paired
    >>> paired = Paired(difference=-0.12, standard_error=0.03, trials=50)
    >>> abs(paired.difference) > 2 * paired.standard_error
    True
    """

    difference: float
    standard_error: float
    trials: int


@dataclass(frozen=True, eq=False)
class Results:
    """All trials of a specification.

    Attributes
    ----------
    specification
        The experiment.
    values
        (settings, strategies, trials, counts, metrics) metrics after each answer count.
    seconds
        (settings, strategies, trials, counts) cumulative time spent in the search.
    asked
        (settings, strategies, trials) number of questions asked.
    run
        Record of the run, with version, machine and sessions.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.experiments import Contender, Results, Setting, Specification, run_trial
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((20, 2)))
    >>> strategies = (Contender(ps.InfoGain()), Contender(ps.Random()))
    >>> settings = (Setting(data=items, scaled=False, prior=None),)
    >>> specification = Specification(
    ...     "tiny", settings, strategies, rate=None, queries=3, trials=2
    ... )
    >>> tasks = specification.plan((items,)).tasks()
    >>> outcomes = {task: run_trial(specification, task, items) for task in tasks}
    >>> results = Results.of(specification, outcomes, {})
    >>> results.values.shape   # settings, strategies, trials, answer counts, metrics
    (1, 2, 2, 4, 2)
    >>> mean, error = results.curve("simulation", "InfoGain", "posterior_trace")
    >>> bool(mean[-1] < mean[0])
    True
    >>> pair = ("InfoGain", "Random")
    >>> results.paired("simulation", pair, "posterior_trace", answers=3).trials
    2
    """

    specification: Specification
    values: FloatArray
    seconds: FloatArray
    asked: IntArray
    run: JSON

    @classmethod
    def of(cls, specification: Specification, outcomes: Mapping[Task, Outcome], run: JSON) -> Results:
        """Arrange the outcomes of all trials in arrays."""
        shape = (len(specification.settings), len(specification.strategies), specification.trials)
        counts, metrics = len(specification.counts), len(specification.metrics)
        values, seconds = np.full((*shape, counts, metrics), np.nan), np.full((*shape, counts), np.nan)
        asked = np.zeros(shape, dtype=np.int64)
        missing = 0
        for index in np.ndindex(shape):
            outcome = outcomes.get(Task(*index))
            if outcome is None:
                missing += 1
                continue
            values[index], seconds[index], asked[index] = outcome.values, outcome.seconds, outcome.asked
        if missing:
            raise InvalidFile(
                f"{missing} of {np.prod(shape)} trials are missing: run the same command again to finish them"
            )
        return cls(specification, values, seconds, asked, run)

    @classmethod
    def read(cls, folder: str | Path, *, finished: bool = False) -> Results:
        """Read a folder of results.

        Parameters
        ----------
        folder
            The folder.
        finished
            Whether to accept an incomplete run, and read only the users before the first one with an unfinished trial.
        """
        folder = Path(folder)
        try:
            run = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidFile(f"{folder} does not hold readable results: {error}") from None
        specification, outcomes = read_specification(folder / SPECIFICATION_FILE), read_journal(folder / JOURNAL_FILE)
        return cls.of(_keep_finished_users(specification, outcomes) if finished else specification, outcomes, run)

    def _repr_html_(self) -> str:
        metric = self.specification.metrics[0]
        last, parts = int(self.counts[-1]), []
        for setting in (shown_setting.label for shown_setting in self.specification.settings[:4]):
            by_strategy = {name: self.curve(setting, name, metric) for name in self.specification.labels}
            series = {name: (self.counts.tolist(), mean.tolist()) for name, (mean, _) in by_strategy.items()}
            rows = [(name, f"{mean[-1]:.3g} ± {error[-1]:.1g}") for name, (mean, error) in by_strategy.items()]
            values = notebook.table([setting or "strategy", f"{metric} after {last} answers"], rows)
            parts += [notebook.Html(notebook.curves(series, x_label="answers", y_label=metric) + values)]
        users = plural(self.specification.trials, "simulated user")
        note = "± is one standard error over users. results.draw(FOLDER) writes the figures."
        return notebook.panel(f"Results of {users}", *parts, note=note)

    @cached_property
    def counts(self) -> IntArray:
        """(counts,) answer counts at which metrics were computed."""
        return np.array(self.specification.counts)

    def trials(self, setting: str, strategy: str, metric: str) -> FloatArray:
        """Return the (trials, counts) values of a metric."""
        index = self.specification.metrics.index(one_of(metric, "metric", self.specification.metrics))
        return np.asarray(self.values[self._indices_of(setting, strategy)][..., index])

    def curve(self, setting: str, strategy: str, metric: str, *, lag: int = 0) -> tuple[FloatArray, FloatArray]:
        """Return the (counts,) mean and the standard error over trials.

        Parameters
        ----------
        setting, strategy, metric
            Labels of the setting and the strategy, and name of the metric.
        lag
            Number of answers by which estimates are shifted; the authors' program has a lag of 1.
        """
        values = self._with_lag(self.trials(setting, strategy, metric), lag)
        return values.mean(axis=0), standard_error(values)

    def time(self, setting: str, strategy: str) -> FloatArray:
        """Return the (counts,) mean cumulative time in seconds."""
        return np.asarray(self.seconds[self._indices_of(setting, strategy)].mean(axis=0))

    def paired(self, setting: str, pair: tuple[str, str], metric: str, answers: int, *, lag: int = 0) -> Paired:
        """Compare the first strategy with the second, user by user, after a number of answers."""
        first, second = (self._with_lag(self.trials(setting, name, metric), lag) for name in pair)
        differences = (first - second)[:, self.column(answers)]
        return Paired(float(differences.mean()), float(standard_error(differences)), len(differences))

    def column(self, answers: int) -> int:
        """Return the index of an answer count."""
        columns = np.flatnonzero(self.counts == answers)
        if not len(columns):
            raise InvalidParameter(f"nothing was measured after {answers} answers: use one of {self.counts.tolist()}")
        return int(columns[0])

    def marks(self, preferred: tuple[int, ...] = (20, 40, 60, 80)) -> list[int]:
        """Return the wanted answer counts that were measured; if there are none, the last count."""
        return [count for count in preferred if count in self.counts] or [int(self.counts[-1])]

    def _with_lag(self, values: FloatArray, lag: int) -> FloatArray:
        if lag == 0:
            return values
        lagged_counts = np.maximum(self.counts - lag, 0)
        missing = np.setdiff1d(lagged_counts, self.counts)
        if len(missing):
            raise InvalidParameter(
                f"a lag of {lag} needs the estimate after {missing[0]} answers, which was not measured: use every = 1"
            )
        return np.asarray(values[..., np.searchsorted(self.counts, lagged_counts)])

    def _indices_of(self, setting: str, strategy: str) -> tuple[int, int]:
        settings = [part.label for part in self.specification.settings]
        one_of(setting, "setting", settings)
        one_of(strategy, "strategy", self.specification.labels)
        return settings.index(setting), self.specification.labels.index(strategy)

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns of the table, which has a row for each trial and answer count."""
        return self._table({name: self.values[..., i] for i, name in enumerate(self.specification.metrics)})

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the table as a data frame of pandas, polars or pyarrow: `backend`, or the first that is installed."""
        return frame_of(self.columns(), backend)

    def durations(self) -> dict[str, list[Any]]:
        """Return the columns of a table of cumulative times, which differ from run to run."""
        return self._table({"seconds": self.seconds})

    def _table(self, numbers: dict[str, FloatArray]) -> dict[str, list[Any]]:
        settings = np.array([setting.label for setting in self.specification.settings], dtype=object)
        strategies = np.array(self.specification.labels, dtype=object)
        shape = self.seconds.shape
        indices = np.indices(shape).reshape(4, -1)
        return {
            "setting": settings[indices[0]].tolist(),
            "strategy": strategies[indices[1]].tolist(),
            "trial": indices[2].tolist(),
            "answers": self.counts[indices[3]].tolist(),
            **{name: values.reshape(-1).tolist() for name, values in numbers.items()},
        }

    def draw(self, folder: str | Path, *, lag: int = 0) -> list[Path]:
        """Write a figure for each setting as PNG and SVG, and return their paths.

        Lines are means over users, and bands one standard error. Requires the extra ``plots``.
        """
        from pairseek.experiments.reproduction import draw_any

        return [path for picture in draw_any(self, Path(folder), lag=lag) for path in picture.paths]

    def write(self, folder: Path, table: TableFormat = "csv") -> list[Path]:
        """Write the tables of metrics and durations, and return their paths."""
        paths = []
        for name, columns in (("table", self.columns()), ("durations", self.durations())):
            path = folder / f"{name}.{table}"
            rows = zip(*columns.values(), strict=True)
            write_result(path, _parquet(columns) if table == "parquet" else csv_text(list(columns), rows))
            paths.append(path)
        return paths


def _keep_finished_users(specification: Specification, outcomes: Mapping[Task, Outcome]) -> Specification:
    """Return the specification with only the users before the first one with an unfinished trial."""
    finished_by_user = Counter(task.unit for task in outcomes)
    per_user = len(specification.settings) * len(specification.strategies)
    users = next(
        (unit for unit in range(specification.trials) if finished_by_user[unit] < per_user), specification.trials
    )
    if users == 0:
        raise InvalidFile(
            f"{finished_by_user[0]} of {per_user} trials of the first user are finished: wait until all are"
        )
    return replace(specification, trials=users)


def standard_error(values: FloatArray) -> FloatArray:
    """Return the standard error of the mean over the first axis; 0 for a single trial."""
    n = len(values)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(values.shape[1:]))


def require_parquet() -> None:
    """Raise `MissingExtra` if Parquet cannot be written; call it before the first trial."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra("a Parquet table", "data") from None


def _parquet(columns: dict[str, list[Any]]) -> bytes:
    require_parquet()
    import pyarrow
    import pyarrow.parquet

    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()
