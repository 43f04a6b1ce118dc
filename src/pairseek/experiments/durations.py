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

CALIBRATION_SECONDS = 0.2
"""Processor seconds of `calibration` on the machine that recorded `TRIAL_SECONDS`."""

TRIAL_SECONDS: dict[str, dict[str, float]] = {
    "figure2": {
        "InfoGain": 1.42, "EPMV": 1.05, "MCMV": 1.03, "Random": 0.41, "GaussCloud-1": 0.82, "GaussCloud-2": 0.92,
        "GaussCloud-4": 0.82, "ActRank-1": 0.87, "ActRank-3": 0.60, "ActRank-5": 0.50,
    },
    "dimensions": {
        "InfoGain": 1.47, "EPMV": 1.00, "MCMV": 0.97, "Random": 0.28, "GaussCloud-1": 0.34, "GaussCloud-2": 0.35,
        "GaussCloud-4": 0.38, "ActRank-1": 0.42, "ActRank-3": 0.25, "ActRank-5": 0.19,
    },
    "speed": {
        "InfoGain 1e-3": 1.64, "InfoGain 1e-3.5": 1.18, "InfoGain 1e-4": 1.20, "InfoGain all": 0.34,
        "EPMV 1e-3": 0.66, "EPMV 1e-3.5": 0.24, "EPMV 1e-4": 0.20, "EPMV all": 0.42,
        "MCMV 1e-3": 0.67, "MCMV 1e-3.5": 0.25, "MCMV 1e-4": 0.20, "MCMV all": 0.36,
    },
    "supplement": {
        "InfoGain": 2.60, "EPMV": 1.83, "MCMV": 1.78, "Random": 0.63, "GaussCloud-1": 0.49, "GaussCloud-2": 0.48,
        "GaussCloud-4": 0.51, "ActRank-1": 0.68, "ActRank-3": 0.36, "ActRank-5": 0.28,
    },
    "bounds": {"EPMV": 1.48, "Random": 1.09},
    "rivals": {
        "InfoGain": 1.43, "EPMV": 1.05, "MCMV": 1.02, "Random": 0.56, "GreedyMSE": 2.19, "GreedyVolume": 1.61,
        "GaussSearch": 0.39,
    },
    "particles": {
        "InfoGain": 0.96, "EPMV": 0.50, "MCMV": 0.57, "Random": 0.12, "InfoGain particles": 3.67,
        "EPMV particles": 2.62, "MCMV particles": 2.54, "Random particles": 1.67,
    },
    "epmv-samples": {"EPMV": 0.98, "EPMV particles": 4.16, "EPMV samples": 5.52},
    "fitted": {
        "InfoGain": 2.79, "EPMV": 1.99, "MCMV": 2.41, "Random": 0.98, "GaussCloud-1": 0.39, "GaussCloud-2": 0.40,
        "GaussCloud-4": 0.49, "ActRank-1": 0.74, "ActRank-3": 0.36, "ActRank-5": 0.29,
    },
}  # fmt: skip
"""Mean processor seconds of a trial over all settings of the preset ``paper``, by figure and strategy.

Recorded on two shared cores from the first users. Costs of `figure2`, `supplement` and `fitted` were scaled from those
of `dimensions`, and those of Random lowered by 6.5 ms a query, which its draw has since been spared.
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
