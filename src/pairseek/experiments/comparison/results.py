"""Results of a comparison: scores, differences between methods, calibration, faults, and their tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairseek.core.frames import Backend, frame_of
from pairseek.core.text import plural
from pairseek.core.types import JSON, FloatArray
from pairseek.core.validation import one_of
from pairseek.experiments.comparison.datasets import HeldOutPeople
from pairseek.experiments.comparison.measures import COLUMNS, LOWER_IS_BETTER, SCORES
from pairseek.experiments.comparison.specification import Comparison
from pairseek.experiments.comparison.statistics import (
    answers_until,
    holm,
    mean_and_error,
    paired_difference,
    worst_tenth,
)
from pairseek.experiments.runs.journal import csv_text, write_result
from pairseek.experiments.runs.plan import Outcome, Task

ACCURACY_LEVELS = (0.75, 0.85)
"""Accuracies for which results say how many answers it takes to reach them."""
SIGNIFICANCE = 0.05
_MAX_NAMED = 3
"""Number of people whom a line about faults names."""


@dataclass(frozen=True)
class Fault:
    """A fault of a method: its kind, the person and the step.

    Attributes
    ----------
    data, method, person
        Data set, method and person.
    step
        Number of answers that the method had been told.
    kind
        ``"raises"``, ``"hangs"``, ``"dies"``, ``"not a number"``, ``"no probability"`` or ``"not allowed"``.
    message
        The reason.

    Examples
    --------
    >>> import pairseek as ps
    >>> people = {"name": "simulated", "people": 30, "items": 5}
    >>> methods = ["popularity", "Gaussian, information"]
    >>> plan = ps.experiments.Comparison(methods, [people], people=3, answers=(0, 2))
    >>> results = ps.experiments.compare(plan, "two methods")
    >>> results.faults
    ()
    """

    data: str
    method: str
    person: str
    step: int
    kind: str
    message: str


@dataclass(frozen=True)
class Difference:
    """Difference between a method and a reference, person by person; positive where the method is better.

    Attributes
    ----------
    data, method, reference, score, answers
        Data set, the two methods, score and answer count.
    difference, standard_error
        Mean over people with results of both methods, and its standard error.
    p, p_adjusted
        Two-sided p-value, before and after Holm's correction for all comparisons of this data set and score.
    people
        Number of people.

    Examples
    --------
    >>> import pairseek as ps
    >>> people = {"name": "simulated", "people": 30, "items": 5}
    >>> methods = ["popularity", "Gaussian, information"]
    >>> plan = ps.experiments.Comparison(methods, [people], people=3, answers=(0, 2))
    >>> results = ps.experiments.compare(plan, "two methods")
    >>> difference = results.differences()[0]
    >>> difference.method, difference.reference, difference.score, difference.answers
    ('Gaussian, information', 'popularity', 'accuracy', 0)
    """

    data: str
    method: str
    reference: str
    score: str
    answers: int
    difference: float
    standard_error: float
    p: float
    p_adjusted: float
    people: int

    @property
    def verdict(self) -> str:
        """``"ahead"``, ``"behind"`` or ``""``, after the correction."""
        if not self.p_adjusted < SIGNIFICANCE:
            return ""
        return "ahead" if self.difference > 0 else "behind"


@dataclass(frozen=True, eq=False)
class ComparisonResults:
    """Results of all replays.

    Attributes
    ----------
    comparison
        The specification.
    held
        Held-out and other people of each data set.
    values
        For each data set (methods, people, counts, columns); NaN where a person has too few pairs, or after a fault.
    seconds
        For each data set (methods, people, counts), processor time a question.
    faults
        Faults of methods, such as exceptions.
    run
        Record of the run: version, machine and sessions.

    Examples
    --------
    >>> import pairseek as ps
    >>> people = {"name": "simulated", "people": 30, "items": 5}
    >>> plan = ps.experiments.Comparison(["popularity"], [people], people=3, answers=(0, 2))
    >>> results = ps.experiments.compare(plan, "comparison")
    >>> results.scores("simulated", "popularity", "accuracy").shape   # people, answer counts
    (3, 2)
    """

    comparison: Comparison
    held: Sequence[HeldOutPeople]
    values: Sequence[FloatArray]
    seconds: Sequence[FloatArray]
    faults: tuple[Fault, ...]
    run: JSON

    @classmethod
    def of(
        cls,
        comparison: Comparison,
        held: Sequence[HeldOutPeople],
        outcomes: Mapping[Task, Outcome],
        run: JSON,
    ) -> ComparisonResults:
        """Build the arrays from the outcomes of all replays."""
        entries = comparison.entries
        values, seconds, faults = [], [], []
        for group, part in enumerate(held):
            shape, counts = (len(entries), len(part.people)), len(part.dataset.counts)
            group_outcomes = [outcomes[Task(group, *index)] for index in np.ndindex(shape)]
            values.append(np.array([o.values for o in group_outcomes]).reshape(*shape, counts, len(COLUMNS)))
            seconds.append(np.array([o.seconds for o in group_outcomes]).reshape(*shape, counts))
            faults += [
                Fault(part.dataset.label, entries[o.task.arm].label, part.people[o.task.unit], **json.loads(o.note))
                for o in group_outcomes
                if o.note
            ]
        return cls(comparison, held, values, seconds, tuple(faults), run)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the data sets."""
        return tuple(part.dataset.label for part in self.held)

    @property
    def counts(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of answers at which methods were measured, of each data set."""
        return tuple(part.dataset.counts for part in self.held)

    @property
    def methods(self) -> tuple[str, ...]:
        """Labels of the methods."""
        return tuple(entry.label for entry in self.comparison.entries)

    def scores(self, data: str, method: str, column: str) -> FloatArray:
        """Return the (people, counts) values of a column, such as ``"accuracy"``."""
        dataset_index = self.labels.index(one_of(data, "data", self.labels))
        arm = self.methods.index(one_of(method, "method", self.methods))
        return np.asarray(self.values[dataset_index][arm, :, :, COLUMNS.index(one_of(column, "column", COLUMNS))])

    def bins(self, data: str, method: str) -> FloatArray:
        """Return the (counts, bins, 3) numbers of pairs, correct predictions and sums of probabilities."""
        dataset_index, arm = self.labels.index(data), self.methods.index(method)
        sums = np.nansum(self.values[dataset_index][arm, :, :, len(SCORES) :], axis=0)
        return np.asarray(sums.reshape(len(sums), -1, 3))

    def calibration(self, data: str, method: str) -> tuple[FloatArray, FloatArray]:
        """Return the (counts,) calibration errors and overconfidences, the mean probability minus the accuracy."""
        pairs, correct, probability = np.moveaxis(self.bins(data, method), 2, 0)
        total = np.where(pairs.sum(axis=1) > 0, pairs.sum(axis=1), np.nan)
        return np.abs(probability - correct).sum(axis=1) / total, (probability - correct).sum(axis=1) / total

    def answers_until(self, data: str, method: str, level: float) -> float:
        """Return the number of answers after which the mean accuracy reaches a level; NaN if it does not."""
        scores = self.scores(data, method, "accuracy")
        means = np.array([mean_and_error(column)[0] for column in scores.T])
        return answers_until(self.counts[self.labels.index(data)], means, level)

    def differences(self) -> list[Difference]:
        """Return the paired differences of all methods from their references."""
        out: list[Difference] = []
        for data, counts in zip(self.labels, self.counts, strict=True):
            for score in SCORES:
                rows = list(self._paired(data, counts, score))
                adjusted = holm([row["p"] for row in rows])
                out += [Difference(**row, p_adjusted=p) for row, p in zip(rows, adjusted, strict=True)]
        return out

    def _paired(self, data: str, counts: Sequence[int], score: str) -> Iterator[dict[str, Any]]:
        sign = -1.0 if score in LOWER_IS_BETTER else 1.0
        for entry in self.comparison.entries:
            reference = self.comparison.reference(score, entry)
            if reference is None:
                continue
            first, second = (sign * self.scores(data, label, score) for label in (entry.label, reference))
            for column, count in enumerate(counts):
                mean, error, p, people = paired_difference(first[:, column], second[:, column])
                if people:
                    yield {
                        "data": data,
                        "method": entry.label,
                        "reference": reference,
                        "score": score,
                        "answers": count,
                        "difference": mean,
                        "standard_error": error,
                        "p": p,
                        "people": people,
                    }

    def summary(self) -> list[JSON]:
        """Return one row for each data set, method and number of answers."""
        rows = []
        for dataset_index, data in enumerate(self.labels):
            for entry in self.comparison.entries:
                errors, excess = self.calibration(data, entry.label)
                faults = len({f.person for f in self.faults if (f.data, f.method) == (data, entry.label)})
                for column, count in enumerate(self.counts[dataset_index]):
                    row: JSON = {
                        "data": data,
                        "knows": entry.knows,
                        "method": entry.label,
                        "answers": count,
                        "people": mean_and_error(self.scores(data, entry.label, "accuracy")[:, column])[2],
                        "faults": faults,
                    }
                    for score in SCORES:
                        values = self.scores(data, entry.label, score)[:, column]
                        row[score], row[f"{score}_se"], _ = mean_and_error(values)
                        row[f"{score}_worst"] = worst_tenth(values, lower_is_better=score in LOWER_IS_BETTER)
                    row["calibration_error"], row["overconfidence"] = float(errors[column]), float(excess[column])
                    rows.append(row)
        return rows

    def fault_lines(self) -> list[str]:
        """Return a line for each data set, method and kind of fault, with the first people and steps."""
        groups: dict[tuple[str, str, str], list[Fault]] = {}
        for fault in self.faults:
            groups.setdefault((fault.method, fault.data, fault.kind), []).append(fault)
        return [
            f"{method} on {data}: {kind} for {_people_and_steps(faults)}: {faults[0].message}"
            for (method, data, kind), faults in groups.items()
        ]

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the summary as a data frame of pandas, polars or pyarrow: `backend`, or the first installed."""
        rows = self.summary()
        return frame_of({name: [row[name] for row in rows] for name in rows[0]}, backend)

    def write(self, folder: Path) -> list[Path]:
        """Write ``summary.csv``, ``differences.csv``, ``people.csv``, ``faults.csv`` and ``seconds.csv``.

        Except for the last, they depend only on the specification and the data.
        """
        tables = {
            "summary": self.summary(),
            "differences": [vars(row) | {"verdict": row.verdict} for row in self.differences()],
            "people": list(self._people()),
            "faults": [vars(fault) for fault in self.faults],
            "seconds": list(self._seconds()),
        }
        paths = []
        for name, rows in tables.items():
            paths.append(folder / f"{name}.csv")
            header = list(rows[0]) if rows else list(Fault.__dataclass_fields__)
            write_result(paths[-1], csv_text(header, [list(row.values()) for row in rows]))
        return paths

    def _people(self) -> Iterator[JSON]:
        for dataset_index, part in enumerate(self.held):
            for arm, method in enumerate(self.methods):
                for unit, column in np.ndindex(len(part.people), len(self.counts[dataset_index])):
                    scores = self.values[dataset_index][arm, unit, column, : len(SCORES)].tolist()
                    where = {"data": self.labels[dataset_index], "method": method, "person": part.people[unit]}
                    yield {
                        **where,
                        "answers": self.counts[dataset_index][column],
                        **dict(zip(SCORES, scores, strict=True)),
                    }

    def _seconds(self) -> Iterator[JSON]:
        for dataset_index, data in enumerate(self.labels):
            for arm, method in enumerate(self.methods):
                yield {
                    "data": data,
                    "method": method,
                    "seconds_a_question": self.seconds_a_question(dataset_index, arm),
                }

    def seconds_a_question(self, dataset_index: int, arm: int) -> float:
        """Return the median over people of the processor time a question, at the last count that they reached."""
        last_seconds = [
            row[np.isfinite(row)][-1] for row in self.seconds[dataset_index][arm, :, 1:] if np.isfinite(row).any()
        ]
        return float(np.median(last_seconds)) if last_seconds else float("nan")


def _people_and_steps(faults: Sequence[Fault]) -> str:
    named = [f"{f.person!r} after {plural(f.step, 'answer')}" for f in faults[:_MAX_NAMED]]
    further = len(faults) - len(named)
    return ", ".join(named) + (f" and {further} more people" if further > 1 else " and 1 more person" * further)
