"""What the machinery of a run asks of whatever is run: a plan that lists trials, and the work that does them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pairseek.core.types import JSON
from pairseek.experiments.trial import Outcome, Task


class Plan(Protocol):
    """Trials in settings by strategies, and how they are written down."""

    @property
    def trials(self) -> int:
        """In each setting, by each strategy."""
        ...

    @property
    def settings(self) -> Sequence[object]:
        """Where trials happen."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the strategies."""
        ...

    def record(self) -> JSON:
        """As plain data, with the lists ``settings`` and ``strategies``."""
        ...


class Work(Protocol):
    """All that a worker needs; it is pickled and sent once to each."""

    def begin(self) -> Callable[[Task], Outcome]:
        """Unpack and warm up, in the worker: what runs a trial from then on."""
        ...

    def describe(self, task: Task) -> str:
        """Which trial, in words."""
        ...


def tasks(plan: Plan) -> list[Task]:
    """All trials, those of the first user first."""
    return [
        Task(setting, strategy, trial)
        for trial in range(plan.trials)
        for setting in range(len(plan.settings))
        for strategy in range(len(plan.labels))
    ]
