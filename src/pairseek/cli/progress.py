"""Progress bars for runs, population fits and quiz compilation."""

from __future__ import annotations

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
from pairseek.people.population.fit import LearningStep


class _SpeedColumn(ProgressColumn):
    """Column with the trials per second, or with the seconds per trial if trials are slow."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.1f}/s" if speed >= 1 else f"{1 / speed:.1f} s each", "dim")


class _TitledBars:
    """Context manager for progress bars below a heading; prints nothing unless the console is a terminal."""

    def __init__(self, console: Console, title: str, *columns: ProgressColumn) -> None:
        self._bars = Bars(*columns, console=console, disable=not console.is_terminal, transient=True)
        self._console = console
        self._title = title

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._console.print(Text(self._title, "bold"))
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()


class RunProgress(_TitledBars):
    """Bars of a run, one per strategy; call it with each update."""

    def __init__(self, console: Console, title: str) -> None:
        name, bar = TextColumn("  {task.description}"), BarColumn(bar_width=24)
        super().__init__(console, title, name, bar, MofNCompleteColumn(), _SpeedColumn(), TimeRemainingColumn())
        self._ids: list[TaskID] = []

    def __call__(self, progress: Progress) -> None:
        """Update the bars."""
        if not self._ids:
            self._ids = [
                self._bars.add_task(label, total=progress.total, completed=done)
                for label, done in zip(progress.arms, progress.done, strict=True)
            ]
            return
        for task_id, done in zip(self._ids, progress.done, strict=True):
            self._bars.update(task_id, completed=done)


class PopulationFitProgress(_TitledBars):
    """Bars of a population fit, one per stage; call it with each step."""

    def __init__(self, console: Console, title: str) -> None:
        name, bar = TextColumn("  {task.description}"), BarColumn(bar_width=24)
        super().__init__(console, title, name, bar, TaskProgressColumn(), TextColumn("[dim]{task.fields[line]}"))
        self._stages: dict[str, TaskID] = {}

    def __call__(self, step: LearningStep) -> None:
        """Update the bar of the step's stage."""
        if step.stage not in self._stages:
            self._stages[step.stage] = self._bars.add_task(step.stage, total=1.0, line="")
        self._bars.update(self._stages[step.stage], completed=step.done, line=escape(step.text))


class CompilationProgress(_TitledBars):
    """Bar of a quiz compilation; call it with the number of finished results."""

    def __init__(self, console: Console, total: int) -> None:
        name, bar = TextColumn("  {task.description}"), BarColumn(bar_width=24)
        super().__init__(console, "Compiling", name, bar, MofNCompleteColumn(), TimeRemainingColumn())
        self._task_id = self._bars.add_task("results", total=total)

    def __call__(self, done: int) -> None:
        """Update the bar."""
        self._bars.update(self._task_id, completed=done)
