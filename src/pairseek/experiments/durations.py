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

CALIBRATION_SECONDS = 0.18
"""Processor seconds of `calibration` on the machine that recorded `TRIAL_SECONDS`."""

TRIAL_SECONDS: dict[str, dict[str, float]] = {
    "figure2": {
        "InfoGain": 0.96, "EPMV": 0.64, "MCMV": 0.53, "Random": 0.24, "GaussCloud-1": 0.44, "GaussCloud-2": 0.45,
        "GaussCloud-4": 0.49, "ActRank-1": 0.33, "ActRank-3": 0.25, "ActRank-5": 0.20,
    },
    "dimensions": {
        "InfoGain": 1.18, "EPMV": 0.74, "MCMV": 0.68, "Random": 0.22, "GaussCloud-1": 0.28, "GaussCloud-2": 0.27,
        "GaussCloud-4": 0.32, "ActRank-1": 0.26, "ActRank-3": 0.18, "ActRank-5": 0.14,
    },
    "speed": {
        "InfoGain 1e-3": 1.30, "InfoGain 1e-3.5": 1.18, "InfoGain 1e-4": 1.20, "InfoGain all": 0.34,
        "EPMV 1e-3": 0.66, "EPMV 1e-3.5": 0.24, "EPMV 1e-4": 0.20, "EPMV all": 0.42,
        "MCMV 1e-3": 0.67, "MCMV 1e-3.5": 0.25, "MCMV 1e-4": 0.20, "MCMV all": 0.36,
    },
    "supplement": {
        "InfoGain": 1.58, "EPMV": 0.99, "MCMV": 0.91, "Random": 0.29, "GaussCloud-1": 0.37, "GaussCloud-2": 0.36,
        "GaussCloud-4": 0.43, "ActRank-1": 0.35, "ActRank-3": 0.24, "ActRank-5": 0.18,
    },
    "bounds": {"EPMV": 1.48, "Random": 1.09},
    "rivals": {
        "InfoGain": 0.96, "EPMV": 0.64, "MCMV": 0.53, "Random": 0.24, "GreedyMSE": 2.19, "GreedyVolume": 1.61,
        "GaussSearch": 0.39,
    },
    "particles": {
        "InfoGain": 0.96, "EPMV": 0.64, "MCMV": 0.53, "Random": 0.24, "InfoGain particles": 3.67,
        "EPMV particles": 2.62, "MCMV particles": 2.54, "Random particles": 1.67,
    },
    "epmv-samples": {"EPMV": 0.72, "EPMV particles": 3.24, "EPMV samples": 5.35},
    "fitted": {
        "InfoGain": 1.30, "EPMV": 0.90, "MCMV": 0.75, "Random": 0.31, "GaussCloud-1": 0.35, "GaussCloud-2": 0.32,
        "GaussCloud-4": 0.46, "ActRank-1": 0.37, "ActRank-3": 0.26, "ActRank-5": 0.20,
    },
}  # fmt: skip
"""Mean processor seconds of a trial over all settings of the preset ``paper``, by figure and strategy.

Recorded on two shared cores: `figure2` and `epmv-samples` from whole runs, `supplement` from one user in nine of its
settings, from which `dimensions` and `fitted` are scaled; the others from the first users of earlier runs.
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
