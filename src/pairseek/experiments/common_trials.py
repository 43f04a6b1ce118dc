"""Trials that two experiments share, and that need to run only once.

A trial is a pure function of its setting, strategy and user. Its first answers do not depend on how many follow, so a
longer trial contains the shorter ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pairseek._version import MODEL_VERSION, __version__
from pairseek.core.types import JSON
from pairseek.experiments.runs.journal import JOURNAL_FILE, RUN_FILE, read_journal
from pairseek.experiments.runs.plan import Outcome, Task
from pairseek.experiments.simulation import load_items
from pairseek.experiments.specification import Specification
from pairseek.model.items import Items
from pairseek.model.spaces import Space
from pairseek.pairs.strategies.base import Procedure
from pairseek.search.serialization import digest


def trial_keys(specification: Specification, items: tuple[Items | Space, ...]) -> dict[tuple[int, int], str]:
    """Hash, for each (setting, strategy), everything that its trials depend on except the user and their length."""
    record = specification.record()
    shared = {"model": MODEL_VERSION, **{name: record[name] for name in ("samples", "every", "seed")}}
    shared["posterior"] = record.get("posterior")
    keys = {}
    for group, (setting, setting_items) in enumerate(zip(record["settings"], items, strict=True)):
        for arm, (contender, strategy_record) in enumerate(
            zip(specification.strategies, record["strategies"], strict=True)
        ):
            dependencies: JSON = {
                **shared,
                "setting": {**setting, "data": setting_items._fingerprint, "label": ""},
                "strategy": {**strategy_record, "label": ""},
            }
            if isinstance(contender.strategy, Procedure):
                dependencies["inferred"] = specification.procedure_posterior
            else:
                dependencies["repeats"] = specification.repeats
                dependencies["strategy"]["rate"] = specification.rate if contender.rate is None else contender.rate
            keys[group, arm] = digest(dependencies)
    return keys


def common_trial_indices(specification: Specification, other: Specification) -> dict[tuple[int, int], tuple[int, int]]:
    """Map each (setting, strategy) that another experiment shares to its indices there."""
    includes_metrics = set(specification.metrics) <= set(other.metrics)
    if not includes_metrics or specification.queries > other.queries or specification.every != other.every:
        return {}
    if specification.queries not in other.counts:
        return {}
    other_indices_by_key = {key: indices for indices, key in trial_keys(other, load_items(other)).items()}
    keys = trial_keys(specification, load_items(specification))
    return {indices: other_indices_by_key[key] for indices, key in keys.items() if key in other_indices_by_key}


def outcomes_of_shared_trials(specification: Specification, other: Specification, folder: Path) -> dict[Task, Outcome]:
    """Read the outcomes of the trials that both experiments share from the folder of the other experiment."""
    shared_trials = common_trial_indices(specification, other) if _holds_results_of(other, folder) else {}
    if not shared_trials:
        return {}
    outcomes = read_journal(folder / JOURNAL_FILE)
    return dict(_shared_outcomes(specification, other, shared_trials, outcomes))


def _shared_outcomes(
    specification: Specification,
    other: Specification,
    shared_trials: dict[tuple[int, int], tuple[int, int]],
    outcomes: dict[Task, Outcome],
) -> Iterator[tuple[Task, Outcome]]:
    count_number = len(specification.counts)
    metric_columns = [other.metrics.index(name) for name in specification.metrics]
    for (group, arm), other_indices in shared_trials.items():
        for unit in range(specification.trials):
            outcome = outcomes.get(Task(*other_indices, unit))
            if outcome is not None:
                values = tuple(tuple(row[column] for column in metric_columns) for row in outcome.values[:count_number])
                task = Task(group, arm, unit)
                yield (
                    task,
                    Outcome(task, values, outcome.seconds[:count_number], min(outcome.asked, specification.queries)),
                )


def _holds_results_of(specification: Specification, folder: Path) -> bool:
    """Return whether a folder holds results of this experiment from this version of pairseek."""
    try:
        run = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
        identity, version = run["identity"], run["pairseek"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(version == __version__ and identity == specification.identity(load_items(specification)))
