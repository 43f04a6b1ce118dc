"""Trials shared by two experiments, which need to run only once.

A trial is a pure function of its setting, strategy and user. Its first answers do not depend on how many follow, so a
longer trial contains the shorter ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from pairseek._version import MODEL_VERSION, __version__
from pairseek.core.types import JSON
from pairseek.experiments.data import load_items
from pairseek.experiments.runs.journal import JOURNAL, RUN, read_journal
from pairseek.experiments.runs.plan import Outcome, Task
from pairseek.experiments.specification import Specification
from pairseek.model.items import Items
from pairseek.model.spaces import Space
from pairseek.pairs.strategies.base import Procedure


def trial_keys(specification: Specification, items: tuple[Items | Space, ...]) -> dict[tuple[int, int], str]:
    """Return a hash, for each (setting, strategy), of everything its trials depend on except user and length."""
    record = specification.record()
    shared = {"model": MODEL_VERSION, **{name: record[name] for name in ("samples", "every", "seed")}}
    shared["posterior"] = record.get("posterior")
    keys = {}
    for group, (setting, content) in enumerate(zip(record["settings"], items, strict=True)):
        for arm, (contender, part) in enumerate(zip(specification.strategies, record["strategies"], strict=True)):
            own: JSON = {
                **shared,
                "setting": {**setting, "data": content._fingerprint, "label": ""},
                "strategy": {**part, "label": ""},
            }
            if isinstance(contender.strategy, Procedure):
                own["inferred"] = specification.procedure_posterior
            else:
                own["repeats"] = specification.repeats
                own["strategy"]["rate"] = specification.rate if contender.rate is None else contender.rate
            text = json.dumps(own, sort_keys=True, separators=(",", ":"))
            keys[group, arm] = hashlib.sha256(text.encode()).hexdigest()
    return keys


def common_trial_indices(specification: Specification, other: Specification) -> dict[tuple[int, int], tuple[int, int]]:
    """Map each (setting, strategy) that another experiment shares to its indices there."""
    includes_metrics = set(specification.metrics) <= set(other.metrics)
    if not includes_metrics or specification.queries > other.queries or specification.every != other.every:
        return {}
    if specification.queries not in other.counts:
        return {}
    other_place_of = {key: place for place, key in trial_keys(other, load_items(other)).items()}
    keys = trial_keys(specification, load_items(specification))
    return {place: other_place_of[key] for place, key in keys.items() if key in other_place_of}


def finished_elsewhere(specification: Specification, other: Specification, folder: Path) -> dict[Task, Outcome]:
    """Return the outcomes in another experiment's folder for the trials that both experiments share."""
    places = common_trial_indices(specification, other) if _holds_results_of(other, folder) else {}
    if not places:
        return {}
    outcomes = read_journal(folder / JOURNAL)
    return dict(_shared_outcomes(specification, other, places, outcomes))


def _shared_outcomes(
    specification: Specification,
    other: Specification,
    places: dict[tuple[int, int], tuple[int, int]],
    outcomes: dict[Task, Outcome],
) -> Iterator[tuple[Task, Outcome]]:
    rows = len(specification.counts)
    columns = [other.metrics.index(name) for name in specification.metrics]
    for (group, arm), place in places.items():
        for unit in range(specification.trials):
            outcome = outcomes.get(Task(*place, unit))
            if outcome is not None:
                values = tuple(tuple(row[column] for column in columns) for row in outcome.values[:rows])
                task = Task(group, arm, unit)
                yield task, Outcome(task, values, outcome.seconds[:rows], min(outcome.asked, specification.queries))


def _holds_results_of(specification: Specification, folder: Path) -> bool:
    """Return whether a folder holds results of this experiment from this version of pairseek."""
    try:
        run = json.loads((folder / RUN).read_text(encoding="utf-8"))
        identity, version = run["identity"], run["pairseek"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(version == __version__ and identity == specification.identity(load_items(specification)))
