"""Progress bars: of a run, one per strategy, with the rate and the remaining time, and of learning a population."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from pairseek.experiments import Progress
from pairseek.population.fit import LearningStep


class _Rate(ProgressColumn):
    """Column with the trials per second, or the seconds per trial if they are slow."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.1f}/s" if speed >= 1 else f"{1 / speed:.1f} s each", "dim")


class RunProgress:
    """Context manager that shows the progress of a run; call it with each update.

    Parameters
    ----------
    console
        Console for the bars. Consoles that are not a terminal show nothing.
    title
        Heading above the bars.
    """

    def __init__(self, console: Console, title: str) -> None:
        self._bars = Bars(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._console = console
        self._title = title
        self._tasks: list[tuple[int, ...]] = []
        self._ids: list[object] = []
        self.began = time.perf_counter()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._console.print(Text(self._title, "bold"))
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def __call__(self, progress: Progress) -> None:
        """Update the bars."""
        if not self._ids:
            self._ids = [
                self._bars.add_task(label, total=progress.total, completed=done)
                for label, done in zip(progress.arms, progress.done, strict=True)
            ]
            return
        for name, done in zip(self._ids, progress.done, strict=True):
            self._bars.update(name, completed=done)  # type: ignore[arg-type]


class LearningProgress:
    """Context manager that shows a bar for each stage of learning a population; call it with each step.

    Parameters
    ----------
    console
        Console for the bars. Consoles that are not a terminal show nothing.
    title
        Heading above the bars.
    """

    def __init__(self, console: Console, title: str) -> None:
        columns = (TextColumn("  {task.description}"), BarColumn(bar_width=24), TaskProgressColumn())
        self._bars = Bars(
            *columns,
            TextColumn("[dim]{task.fields[line]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._console = console
        self._title = title
        self._stages: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._console.print(Text(self._title, "bold"))
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def __call__(self, step: LearningStep) -> None:
        """Update the bar of the stage."""
        if step.stage not in self._stages:
            self._stages[step.stage] = self._bars.add_task(step.stage, total=1.0, line="")
        self._bars.update(self._stages[step.stage], completed=step.done, line=escape(step.text))
