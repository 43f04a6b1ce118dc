"""Results of an evaluation: means over people with standard errors, calibration, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairseek.core import notebook
from pairseek.core.frames import Backend, frame_of
from pairseek.core.text import plural
from pairseek.core.types import JSON, FloatArray
from pairseek.core.validation import one_of
from pairseek.experiments.evaluation.specification import CALIBRATION, MEASURES, Evaluation
from pairseek.experiments.runs.journal import csv_text, write_result
from pairseek.experiments.runs.plan import Outcome, Task
from pairseek.people.population import Choices


@dataclass(frozen=True)
class Agreement:
    """Share of equal answers of people who were asked the same pair twice.

    Attributes
    ----------
    share, standard_error
        Mean over people, and its standard error.
    people
        Number of people who answered a pair twice.

    Examples
    --------
    How often people agree with themselves limits how well their answers can be predicted.

    >>> from pairseek.evaluate import Agreement
    >>> agreement = Agreement(share=0.9, standard_error=0.02, people=40)
    >>> agreement.share < 1.0
    True
    """

    share: float
    standard_error: float
    people: int


def agreement_of(choices: Choices) -> Agreement | None:
    """Compute the self-agreement of people who answered a pair twice; None if nobody did."""
    n = len(choices.ids)
    low, high = np.minimum(choices.winner, choices.loser), np.maximum(choices.winner, choices.loser)
    keys = (choices.person * n + low) * n + high
    order = np.argsort(keys, kind="stable")
    keys, up, person = keys[order], (choices.winner == low)[order], choices.person[order]
    repeated = np.flatnonzero(keys[1:] == keys[:-1])
    if not len(repeated):
        return None
    same = (up[repeated] == up[repeated + 1]).astype(np.float64)
    answered_twice, position = np.unique(person[repeated], return_inverse=True)
    shares = np.bincount(position, same) / np.bincount(position)
    return Agreement(float(shares.mean()), float(_error(shares[:, None])[0]), len(answered_twice))


@dataclass(frozen=True, eq=False)
class EvaluationResults:
    """Results of all replays.

    Attributes
    ----------
    plan
        The evaluation.
    values
        (splits, arms, people, answers, measures); NaN where a person had no pair left to ask or to predict.
    people
        Names of the held-out people, split by split.
    agreement
        Self-agreement of people, if some pairs were asked twice.
    run
        Record of the run: version, machine and sessions.

    Examples
    --------
    >>> import itertools
    >>> import pairseek as ps
    >>> from pairseek.evaluate import evaluate
    >>> teas = ps.Items([[0.0], [1.0], [2.0], [3.0]], ids=["white", "green", "oolong", "black"])
    >>> orders = dict(zip("abcdef", itertools.permutations(teas.ids)))
    >>> rows = [
    ...     (person, winner, loser)
    ...     for person, order in orders.items()
    ...     for winner, loser in itertools.combinations(order, 2)
    ... ]
    >>> choices = ps.Choices.from_pairs(rows + rows[:12])   # a and b answered everything twice
    >>> model = {"items": teas, "appeal": False, "residual": 0.0}
    >>> results = evaluate(choices, "evaluation", **model, answers=(0, 2), people=2, splits=1)
    >>> mean, error = results.curve("InfoGain", "accuracy")
    >>> mean.shape   # answer counts
    (2,)
    >>> results.each("Random", "log_loss").shape   # replays, answer counts
    (2, 2)
    >>> [row["arm"] for row in results.summary()][::2]
    ['InfoGain', 'Random', 'plain model', 'popularity']
    """

    plan: Evaluation
    values: FloatArray
    people: Sequence[Sequence[str]]
    agreement: Agreement | None
    run: JSON

    @classmethod
    def of(
        cls,
        plan: Evaluation,
        outcomes: Mapping[Task, Outcome],
        people: Sequence[Sequence[str]],
        agreement: Agreement | None,
        run: JSON,
    ) -> EvaluationResults:
        """Build the arrays from the outcomes of all replays."""
        shape = (plan.splits, len(plan.arms), plan.people)
        values = np.array([outcomes[Task(*index)].values for index in np.ndindex(shape)])
        return cls(plan, values.reshape(*shape, len(plan.answers), len(plan.measures)), people, agreement, run)

    def each(self, arm: str, measure: str) -> FloatArray:
        """Return the (replays, answers) values, ordered by split."""
        one_of(arm, "arm", self.plan.labels)
        one_of(measure, "measure", self.plan.measures)
        chosen = self.values[:, self.plan.labels.index(arm), :, :, self.plan.measures.index(measure)]
        return np.asarray(chosen.reshape(-1, len(self.plan.answers)))

    def curve(self, arm: str, measure: str) -> tuple[FloatArray, FloatArray]:
        """Return the (answers,) mean and standard error over people.

        The values of a person who is held out in several splits are averaged first.
        """
        values = self._by_person(self.each(arm, measure))
        return _mean(values), _error(values)

    def pooled(self, arm: str) -> tuple[FloatArray, FloatArray]:
        """Return the (answers,) accuracy over all predicted pairs of all people, and its standard error.

        People are weighted by their number of pairs, unlike in the mean over people.
        """
        right, pairs = (self._by_person(self.each(arm, name)) for name in ("accuracy", "predicted"))
        right, pairs = np.nan_to_num(right), np.nan_to_num(pairs)
        total = np.maximum(pairs.sum(axis=0), 1.0)
        share = (right * pairs).sum(axis=0) / total
        count = np.maximum((pairs > 0).sum(axis=0), 2)
        away = ((right - share) * pairs) ** 2
        return np.asarray(share), np.asarray(np.sqrt(away.sum(axis=0) * count / (count - 1)) / total)

    def difference(self, arms: tuple[str, str], measure: str, answers: tuple[int, int]) -> tuple[float, float]:
        """Return mean and standard error of the paired difference between two arms, each at its answer count."""
        columns = [self.plan.answers.index(count) for count in answers]
        first, second = (self.each(arm, measure)[:, column] for arm, column in zip(arms, columns, strict=True))
        values = self._by_person((first - second)[:, None])
        return float(_mean(values)[0]), float(_error(values)[0])

    def calibration(self, arm: str, answers: int) -> list[tuple[float, float, int]]:
        """Return mean predicted probability, observed share and number of pairs for each non-empty bin."""
        column = self.plan.answers.index(answers)
        sums = [float(np.nansum(self.each(arm, name)[:, column])) for name in CALIBRATION]
        bins = zip(sums[::3], sums[1::3], sums[2::3], strict=True)
        return [(chance / pairs, right / pairs, int(pairs)) for pairs, right, chance in bins if pairs]

    def calibration_error(self, arm: str, answers: int) -> float:
        """Return the expected calibration error: mean absolute gap of the bins, weighted by pairs."""
        bins = self.calibration(arm, answers)
        return float(np.average([abs(a - b) for a, b, _ in bins], weights=[n for *_, n in bins])) if bins else np.nan

    def _by_person(self, values: FloatArray) -> FloatArray:
        names = [name for split in self.people for name in split]
        _, position = np.unique(names, return_inverse=True)
        there = np.isfinite(values)
        total, count = (np.zeros((position.max() + 1, values.shape[1])) for _ in range(2))
        np.add.at(total, position, np.where(there, values, 0.0))
        np.add.at(count, position, there)
        return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)

    def _repr_html_(self) -> str:
        curves = {arm: self.curve(arm, "accuracy") for arm in self.plan.labels}
        series = {arm: (list(self.plan.answers), mean.tolist()) for arm, (mean, _) in curves.items()}
        rows = [(arm, f"{mean[-1]:.1%} ± {error[-1]:.1%}") for arm, (mean, error) in curves.items()]
        header = ("arm", f"accuracy after {self.plan.answers[-1]} answers")
        drawing = notebook.curves(series, x_label="answers", y_label="accuracy")
        people = plural(len({name for split in self.people for name in split}), "recorded person")
        title = f"Evaluation on {people.replace('persons', 'people')}"
        return notebook.panel(title, drawing, notebook.table(header, rows), note="± is the standard error over people.")

    @property
    def valued(self) -> bool:
        """Whether the choices give values of items, from which regret and the like follow: see `values_of`."""
        return bool(np.isfinite(self.values[..., self.plan.measures.index("regret")]).any())

    def summary(self) -> list[JSON]:
        """Return one row for each arm and answer count."""
        rows = []
        for arm in self.plan.labels:
            curves = {name: self.curve(arm, name) for name in MEASURES} | {"pooled_accuracy": self.pooled(arm)}
            present = np.isfinite(self.each(arm, "accuracy"))
            people = np.isfinite(self._by_person(self.each(arm, "accuracy"))).sum(axis=0)
            for column, count in enumerate(self.plan.answers):
                rows.append(
                    {
                        "arm": arm,
                        "answers": count,
                        "people": int(people[column]),
                        "replays": int(present[:, column].sum()),
                        "withhold": self.plan.withhold,
                        "ties": self.plan.ties,
                        **{
                            key: float(value)
                            for name, (mean, error) in curves.items()
                            for key, value in ((name, mean[column]), (f"{name}_se", error[column]))
                        },
                        "calibration_error": self.calibration_error(arm, count),
                    }
                )
        return rows

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the summary as a data frame of pandas, polars or pyarrow: `backend`, or the first that is there."""
        rows = self.summary()
        return frame_of({name: [row[name] for row in rows] for name in rows[0]}, backend)

    def write(self, folder: Path) -> list[Path]:
        """Write ``summary.csv`` and ``people.csv``, one row for each replay and number of answers."""
        summary = self.summary()
        paths = [folder / "summary.csv", folder / "people.csv"]
        write_result(paths[0], csv_text(list(summary[0]), [list(row.values()) for row in summary]))
        rows = []
        columns = [self.plan.measures.index(name) for name in MEASURES]
        for index in np.ndindex(self.values.shape[:4]):
            split, arm, person, column = index
            where = [split + 1, self.people[split][person], self.plan.labels[arm], self.plan.answers[column]]
            rows.append([*where, *self.values[index][columns].tolist()])
        write_result(paths[1], csv_text(["split", "person", "arm", "answers", *MEASURES], rows))
        return paths


def _mean(values: FloatArray) -> FloatArray:
    there = np.isfinite(values)
    return np.asarray(np.where(there, values, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)) + np.where(
        there.any(axis=0), 0.0, np.nan
    )


def _error(values: FloatArray) -> FloatArray:
    """Return the standard error of the mean over the first axis, ignoring NaN."""
    there = np.isfinite(values)
    count = there.sum(axis=0)
    away = np.where(there, values - _mean(values), 0.0)
    return np.asarray(np.sqrt((away**2).sum(axis=0) / np.maximum(count - 1, 1) / np.maximum(count, 1)))
