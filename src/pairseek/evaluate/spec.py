"""What to evaluate, as frozen data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pairseek.core.types import JSON
from pairseek.core.validation import one_of, whole
from pairseek.errors import InvalidParameter
from pairseek.runs.plan import RunPlan
from pairseek.runs.strategy_names import default_label, strategy_record
from pairseek.strategies import UTILITIES, InfoGain, Random
from pairseek.strategies.base import Utility

HoldOut: TypeAlias = Literal["people", "leave-one-out"]
POPULARITY, PLAIN = "popularity", "plain model"
_BINS = 5

MEASURES = ("accuracy", "log_loss", "kendall_tau", "gain", "popular", "alone", "predicted")
"""Of one person: share of right predictions; their mean -log probability, in nats; Kendall's tau between all their
choices and the ranking by expected utility; 1 where the log loss is below that before any answer on the same pairs;
accuracy of popularity, and of the same way before any answer, on the same pairs; number of pairs."""
CALIBRATION = tuple(f"{what}_{bin}" for bin in range(_BINS) for what in ("pairs", "right", "chance"))
"""Pairs whose likelier outcome has a chance of 0.5 to 0.6, 0.6 to 0.7 and so on: how many, how many came out that way,
and the sum of the chances."""


@dataclass(frozen=True)
class Way:
    """A way to ask and to predict: a strategy, with the population or without; or popularity, which asks nothing."""

    label: str
    strategy: Utility | None = None
    population: bool = True


def ways(strategies: Sequence[Utility]) -> tuple[Way, ...]:
    """The strategies, and what stands beside them: random questions, the plain model, popularity."""
    found = [Way(default_label(strategy), strategy) for strategy in strategies]
    if not any(isinstance(way.strategy, Random) for way in found):
        found.append(Way(default_label(Random()), Random()))
    active = next((s for s in strategies if not isinstance(s, Random)), InfoGain())
    return (*found, Way(PLAIN, active, population=False), Way(POPULARITY))


def strategies_from(text: str) -> list[Utility]:
    """Strategies by name, such as ``infogain,random``; those that choose by themselves cannot be held to a list."""
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise InvalidParameter(f"strategies is {text!r}: name some, such as infogain,random")
    return [UTILITIES[one_of(name, "strategies", UTILITIES)]() for name in dict.fromkeys(names)]


@dataclass(frozen=True)
class Evaluation:
    """A replay of recorded people.

    Parameters
    ----------
    ways
        How is asked and predicted.
    answers
        Numbers of answers after which is predicted, rising.
    hold_out
        ``"people"``: a population from the others, for some people at once; ``"leave-one-out"``: for each person one
        from all others.
    people
        Held-out people, in each split.
    splits
        Groups of held-out people.
    samples
        Infer with `Particles` of this number. None: with `EP`.
    seed
        Everything random follows from it.
    data
        Identity of choices, items and what is learned.
    """

    ways: tuple[Way, ...]
    answers: tuple[int, ...]
    hold_out: HoldOut
    people: int
    splits: int
    samples: int | None
    seed: int
    data: str

    def __post_init__(self) -> None:
        least_values = {"people": 1, "splits": 1, "seed": 0} | ({} if self.samples is None else {"samples": 2})
        for name, least in least_values.items():
            whole(getattr(self, name), name, least)
        one_of(self.hold_out, "hold_out", ("people", "leave-one-out"))
        answers = tuple(whole(count, "answers", 0) for count in self.answers)
        if not answers or list(answers) != sorted(set(answers)):
            raise InvalidParameter(f"answers is {self.answers!r}: give rising numbers of answers, such as 0,5,10,20")

    @property
    def groups(self) -> tuple[str, ...]:
        """Labels of the splits."""
        return tuple(f"split {number + 1}" for number in range(self.splits))

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the ways."""
        return tuple(way.label for way in self.ways)

    @property
    def measures(self) -> tuple[str, ...]:
        """Columns of an outcome."""
        return (*MEASURES, *CALIBRATION)

    def record(self) -> JSON:
        """As plain data."""
        return {
            "answers": list(self.answers),
            "hold_out": self.hold_out,
            "people": self.people,
            "samples": self.samples,
            "seed": self.seed,
            "data": self.data,
            "groups": [{"label": label} for label in self.groups],
            "arms": [
                {
                    "label": way.label,
                    "population": way.population,
                    **({} if way.strategy is None else {"strategy": strategy_record(way.strategy)}),
                }
                for way in self.ways
            ],
        }

    def plan(self) -> RunPlan:
        """Return the plan of all replays."""
        return RunPlan(self.groups, self.labels, self.people, self.record(), self.identity())

    def identity(self) -> str:
        """SHA-256 of all that the outcomes depend on."""
        text = json.dumps(self.record(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
