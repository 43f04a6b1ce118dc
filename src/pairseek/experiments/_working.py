"""What happens inside a worker: unpack once, warm up once, run trials."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from pairseek._parallel import set_thread_count
from pairseek.experiments.data import Parcel
from pairseek.experiments.spec import Specification
from pairseek.experiments.trial import Outcome, Task, run_trial
from pairseek.items import Items, Space

_WARM_UP = 6
"""Answers after which the particles have moved at least once."""
_unpacked: dict[str, tuple[Specification, tuple[Items | Space, ...]]] = {}


def prepare(parcel: Parcel, name: str = "") -> None:
    """Unpack a parcel, and go once through what a trial does, so that no trial is timed while kernels are loaded."""
    set_thread_count(1)
    items = parcel.items()
    queries = min(_WARM_UP, parcel.specification.queries)
    short = replace(parcel.specification, queries=queries, every=queries)
    for strategy in range(len(short.strategies)):
        # What goes wrong here goes wrong in the trial too, and is told there with its name.
        with contextlib.suppress(Exception):
            run_trial(short, Task(0, strategy, 0), items[0])
    _unpacked[name] = (parcel.specification, items)


def perform(task: Task, name: str = "") -> Outcome:
    """Run a trial of a parcel that was prepared."""
    specification, items = _unpacked[name]
    return run_trial(specification, task, items[task.setting])


def perform_parcel(parcel: Parcel, task: Task, name: str) -> Outcome:
    """Run a trial, preparing the parcel if this process has not seen it."""
    if name not in _unpacked:
        prepare(parcel, name)
    return perform(task, name)


def describe(specification: Specification, task: Task, error: BaseException) -> str:
    """Which trial failed, and how."""
    return (
        f"trial {task.trial} of {specification.strategies[task.strategy].label} in setting "
        f"{specification.settings[task.setting].label!r} failed: {type(error).__name__}: {error}; trials that had "
        f"finished are kept"
    )
