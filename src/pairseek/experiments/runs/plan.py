"""Plan of a batch of runs: groups, arms and units, with their tasks and outcomes.

Every arm runs on every unit of every group. In a simulation, a group is a setting, an arm is a strategy and a unit is a
simulated user. In an evaluation, a group is a split, an arm is a way to ask and predict, and a unit is a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from pairseek.core.types import JSON
from pairseek.core.validation import whole
from pairseek.errors import InvalidParameter


@dataclass(frozen=True)
class RunPlan:
    """The tasks of a batch of runs, and the record that identifies them.

    Attributes
    ----------
    groups, arms
        Labels of the groups and arms.
    units
        Number of units in each group.
    record
        The specification as plain data; it is stored next to the results.
    identity
        Hash of everything that an outcome depends on, except the number of units.
    """

    groups: tuple[str, ...]
    arms: tuple[str, ...]
    units: int
    record: JSON
    identity: str

    def tasks(self) -> list[Task]:
        """Return all tasks, ordered by unit."""
        return [
            Task(group, arm, unit)
            for unit in range(self.units)
            for group in range(len(self.groups))
            for arm in range(len(self.arms))
        ]


@dataclass(frozen=True, slots=True, order=True)
class Task:
    """One run: the indices of its group, arm and unit, each counted from 0.

    Attributes
    ----------
    group
        Index of the setting or split.
    arm
        Index of the strategy or arm.
    unit
        Index of the simulated user or person.

    Examples
    --------
    >>> from pairseek.experiments import Task
    >>> Task(group=0, arm=1, unit=7)
    Task(group=0, arm=1, unit=7)
    """

    group: int
    arm: int
    unit: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a task.

    Attributes
    ----------
    task
        The task.
    values
        (counts, measures): a row for each answer count at which the plan measures.
    seconds
        Cumulative time spent on asking and estimating, at each of these answer counts.
    asked
        Number of questions asked; fewer than planned if a procedure ran out of questions. The remaining rows then
        repeat its last estimate.
    note
        A remark about the task, such as a fault of a method; usually empty.

    Examples
    --------
    >>> from pairseek.experiments import Outcome, Task
    >>> values = ((1.9, 2.4), (0.3, 1.7))
    >>> outcome = Outcome(Task(0, 0, 0), values, seconds=(0.001, 0.005), asked=1)
    >>> [row[0] for row in outcome.values]   # the first measure before and after the answer
    [1.9, 0.3]
    """

    task: Task
    values: tuple[tuple[float, ...], ...]
    seconds: tuple[float, ...]
    asked: int
    note: str = ""


Result_co = TypeVar("Result_co", covariant=True)


class WorkOf(Protocol[Result_co]):
    """Everything a worker needs to perform tasks; it is pickled and sent to each worker once."""

    def begin(self) -> Callable[[Task], Result_co]:
        """Unpack and warm up in the worker; return the function that performs one task."""
        ...

    def describe(self, task: Task) -> str:
        """Return a description of the task for error messages."""
        ...


Work: TypeAlias = WorkOf[Outcome]
"""The work of a batch of runs."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Progress of a batch of runs.

    Attributes
    ----------
    arms
        Labels of the arms.
    done
        Finished tasks of each arm, including those of earlier sessions.
    total
        Number of tasks of each arm.

    Examples
    --------
    Pass such a function as ``progress`` to `pairseek.experiments.run` or `pairseek.evaluate.evaluate`.

    >>> from pairseek.experiments import Progress
    >>> def show(progress):
    ...     print(f"{sum(progress.done)} of {len(progress.arms) * progress.total} trials")
    >>> show(Progress(arms=("InfoGain", "Random"), done=(3, 2), total=50))
    5 of 100 trials
    """

    arms: tuple[str, ...]
    done: tuple[int, ...]
    total: int


def answer_counts(counts: Iterable[object]) -> tuple[int, ...]:
    """Return the answer counts at which a plan measures, after checking that they increase."""
    increasing = tuple(whole(count, "answers", 0, field="answers") for count in counts)
    if not increasing or list(increasing) != sorted(set(increasing)):
        raise InvalidParameter(
            f"answers is {counts!r}: give increasing numbers of answers, such as 0, 5, 10, 20", field="answers"
        )
    return increasing
