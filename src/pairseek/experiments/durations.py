"""Expected duration of a reproduction: recorded costs of trials, scaled by the measured speed of this machine."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pairseek.datasets import synthetic
from pairseek.experiments.spec import Answering, Contender, Setting, Specification
from pairseek.experiments.trial import run_trial
from pairseek.numerics.parallel import set_thread_count
from pairseek.runs.journal import JOURNAL, read_journal
from pairseek.runs.plan import Task
from pairseek.strategies import EPMV

CALIBRATION_SECONDS = 0.16
"""Processor seconds of `calibration` on the machine that recorded `TRIAL_SECONDS`."""

TRIAL_SECONDS: dict[str, dict[str, float]] = {
    "figure2": {
        "InfoGain": 0.96, "EPMV": 0.64, "MCMV": 0.53, "Random": 0.24, "GaussCloud-1": 0.44, "GaussCloud-2": 0.45,
        "GaussCloud-4": 0.49, "ActRank-1": 0.33, "ActRank-3": 0.25, "ActRank-5": 0.20,
    },
    "dimensions": {
        "InfoGain": 0.88, "EPMV": 0.49, "MCMV": 0.47, "Random": 0.18, "GaussCloud-1": 0.23, "GaussCloud-2": 0.25,
        "GaussCloud-4": 0.27, "ActRank-1": 0.31, "ActRank-3": 0.17, "ActRank-5": 0.13,
    },
    "speed": {
        "InfoGain 1e-3": 1.06, "InfoGain 1e-3.5": 0.81, "InfoGain 1e-4": 0.75, "InfoGain all": 0.23,
        "EPMV 1e-3": 0.39, "EPMV 1e-3.5": 0.16, "EPMV 1e-4": 0.11, "EPMV all": 0.26,
        "MCMV 1e-3": 0.34, "MCMV 1e-3.5": 0.15, "MCMV 1e-4": 0.11, "MCMV all": 0.24,
    },
    "supplement": {
        "InfoGain": 1.31, "EPMV": 0.72, "MCMV": 0.73, "Random": 0.27, "GaussCloud-1": 0.42, "GaussCloud-2": 0.43,
        "GaussCloud-4": 0.46, "ActRank-1": 0.36, "ActRank-3": 0.23, "ActRank-5": 0.17,
    },
    "bounds": {"EPMV": 0.37, "Random": 0.24},
    "rivals": {
        "InfoGain": 0.90, "EPMV": 0.60, "MCMV": 0.51, "Random": 0.24, "GreedyMSE": 1.64, "GreedyVolume": 0.90,
        "GaussSearch": 0.15,
    },
    "particles": {
        "InfoGain": 0.90, "EPMV": 0.60, "MCMV": 0.51, "Random": 0.24, "InfoGain particles": 2.94,
        "EPMV particles": 2.49, "MCMV particles": 2.41, "Random particles": 1.85,
    },
    "epmv-samples": {"EPMV": 0.73, "EPMV particles": 3.25, "EPMV samples": 5.37},
    "fitted": {
        "InfoGain": 1.13, "EPMV": 0.55, "MCMV": 0.50, "Random": 0.30, "GaussCloud-1": 0.34, "GaussCloud-2": 0.39,
        "GaussCloud-4": 0.44, "ActRank-1": 0.32, "ActRank-3": 0.25, "ActRank-5": 0.19,
    },
}  # fmt: skip
"""Mean processor seconds of a trial over all settings of the preset ``paper``, by figure and strategy.

Recorded from whole runs on two shared cores.
"""


@dataclass(frozen=True)
class Remaining:
    """Trials of a figure that are still to be run.

    Attributes
    ----------
    trials
        Their number.
    seconds
        Expected processor time of all of them.
    """

    trials: int
    seconds: float


def remaining(
    name: str,
    specification: Specification,
    folder: Path,
    *,
    factor: float = 1.0,
    elsewhere: Mapping[int, int] | None = None,
) -> Remaining:
    """Return the trials of a figure that its folder does not hold yet.

    Parameters
    ----------
    name
        Name of the figure.
    factor
        Processor time on this machine as a multiple of the recorded one, see `relative_cost`.
    elsewhere
        Number of trials of each strategy that other figures of the same run provide.
    """
    journal = folder / JOURNAL
    finished = read_journal(journal) if journal.exists() else {}
    done = Counter(task.arm for task in finished if task.unit < specification.trials)
    each = specification.trials * len(specification.settings)
    costs = TRIAL_SECONDS.get(name, {})
    trials, seconds = 0, 0.0
    for arm, label in enumerate(specification.labels):
        pending = max(each - max(done[arm], (elsewhere or {}).get(arm, 0)), 0)
        trials += pending
        seconds += pending * costs.get(label, 0.0) * factor
    return Remaining(trials, seconds)


def relative_cost() -> float:
    """Return the processor time of the calibration on this machine, over that of the machine of the recorded costs."""
    return calibration() / CALIBRATION_SECONDS


def calibration(repeats: int = 3) -> float:
    """Return the least processor seconds of a short trial of EPMV on one thread, after one to warm up."""
    items = synthetic(4).scaled()
    setting = Setting("calibration", items, scaled=False, response=Answering(k=1.5))
    specification = Specification("calibration", (setting,), (Contender(EPMV()),), queries=20, every=20, repeats=True)
    times = []
    set_thread_count(1)
    try:
        for _ in range(repeats + 1):
            began = time.process_time()
            run_trial(specification, Task(0, 0, 0), items)
            times.append(time.process_time() - began)
    finally:
        set_thread_count(None)
    return min(times[1:])
