"""Specification of an evaluation as immutable data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pairseek.core.types import JSON
from pairseek.core.validation import is_number, one_of, whole
from pairseek.errors import InvalidParameter
from pairseek.experiments.comparison.picks import TOP_LIST_LENGTHS
from pairseek.experiments.runs.part_records import default_label, strategy_record
from pairseek.experiments.runs.plan import RunPlan, answer_counts
from pairseek.pairs.strategies import UTILITIES, InfoGain, Random
from pairseek.pairs.strategies.base import Utility
from pairseek.search.goals import Goal
from pairseek.search.serialization import digest

HoldOut: TypeAlias = Literal["people", "leave-one-out"]
Ties: TypeAlias = Literal["coin", "tie"]
POPULARITY = "popularity"
PLAIN = "plain model"
CALIBRATION_BINS = 5

PREDICTIONS = ("accuracy", "log_loss", "kendall_tau", "gain", "popular", "alone", "predicted")
"""Measures of the predictions for one person: accuracy; log loss in nats; Kendall's tau between the predicted choices
and the ranking by expected utility; 1 if the log loss is lower than before any answer on the same pairs; accuracy of
popularity, and of the same arm before any answer, on the same pairs; number of predicted pairs."""
PICK_MEASURES = ("regret", *(f"top_{count}" for count in TOP_LIST_LENGTHS), "liked")
"""Measures of the items themselves: value of the person's best item minus the value of the item of highest expected
utility; mean value of the 3 and the 5 items of highest expected utility; share of the items shown in questions that the
person likes. See `pairseek.experiments.comparison.picks`."""
MEASURES = (*PREDICTIONS, *PICK_MEASURES)
"""All measures of one person."""
FIRST_MEASURES: dict[Goal, tuple[str, ...]] = {
    "taste": ("accuracy", "log_loss", "gain", "regret", *PICK_MEASURES[1:]),
    "best": (*PICK_MEASURES, "accuracy", "log_loss", "gain"),
    "list": (*PICK_MEASURES[1:], "regret", "accuracy", "log_loss", "gain"),
}
"""Measures in the order in which they are shown, by the goal of a search: to learn a taste, to find the best item, or
to find a list of good items."""
CALIBRATION = tuple(f"{quantity}_{bin}" for bin in range(CALIBRATION_BINS) for quantity in ("pairs", "right", "chance"))
"""Calibration bins by the probability of the likelier outcome, 0.5 to 0.6, 0.6 to 0.7 and so on: number of pairs,
number of correct predictions, and sum of the probabilities."""


@dataclass(frozen=True)
class Arm:
    """An arm to ask and predict: a strategy with or without the population, or popularity, which asks nothing."""

    label: str
    strategy: Utility | None = None
    population: bool = True


def arms(strategies: Sequence[Utility]) -> tuple[Arm, ...]:
    """Return the strategies and their baselines: random questions, the plain model, popularity."""
    all_arms = [Arm(default_label(strategy), strategy) for strategy in strategies]
    if not any(isinstance(arm.strategy, Random) for arm in all_arms):
        all_arms.append(Arm(default_label(Random()), Random()))
    active = next((s for s in strategies if not isinstance(s, Random)), InfoGain())
    return (*all_arms, Arm(PLAIN, active, population=False), Arm(POPULARITY))


def strategies_from(text: str) -> list[Utility]:
    """Parse strategies by name, such as ``infogain,random``; procedures cannot be restricted to recorded pairs.

    Parameters
    ----------
    text
        Names of strategies, separated by commas. A repeated name counts once.

    Examples
    --------
    >>> from pairseek.evaluate import strategies_from
    >>> strategies_from("infogain, epmv, infogain")
    [InfoGain(checks=None), EPMV(penalty=None)]
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise InvalidParameter(f"strategies is {text!r}: name some, such as infogain,random", field="strategies")
    return [UTILITIES[one_of(name, "strategies", UTILITIES)]() for name in dict.fromkeys(names)]


@dataclass(frozen=True)
class Evaluation:
    """A replay of recorded people.

    Parameters
    ----------
    arms
        Ways to ask and predict.
    people, splits
        Number of held-out people in each split, and number of splits.
    answers, hold_out, withhold, ties, samples, seed
        As for `evaluate`.
    data
        Hash of the choices, the items and the options of the fit.

    Examples
    --------
    `evaluate` builds the specification and returns it with the results.

    >>> from pairseek.evaluate import Evaluation
    >>> plan = Evaluation(
    ...     (), (0, 2), "people",
    ...     people=2, splits=1, withhold=0.3, ties="coin", samples=None, seed=0, data="",
    ... )
    >>> plan.predicted
    "30 % of each person's pairs were never asked, and are predicted"
    """

    arms: tuple[Arm, ...]
    answers: tuple[int, ...]
    hold_out: HoldOut
    people: int
    splits: int
    withhold: float
    ties: Ties
    samples: int | None
    seed: int
    data: str

    def __post_init__(self) -> None:
        least_values = {"people": 1, "splits": 1, "seed": 0} | ({} if self.samples is None else {"samples": 2})
        for name, least in least_values.items():
            whole(getattr(self, name), name, least)
        one_of(self.hold_out, "hold_out", ("people", "leave-one-out"))
        one_of(self.ties, "ties", ("coin", "tie"))
        if not is_number(self.withhold) or not 0 <= self.withhold < 1:
            raise InvalidParameter(
                f"withhold is {self.withhold!r}: give a share of the pairs, at least 0 and below 1, such as 0.3"
            )
        answer_counts(self.answers)

    @property
    def groups(self) -> tuple[str, ...]:
        """Labels of the splits."""
        return tuple(f"split {number + 1}" for number in range(self.splits))

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the arms."""
        return tuple(arm.label for arm in self.arms)

    @property
    def predicted(self) -> str:
        """Description of the predicted pairs."""
        if self.withhold:
            return f"{100 * self.withhold:g} % of each person's pairs were never asked, and are predicted"
        return "pairs that were not asked are predicted, which flatters active questions"

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the columns of an outcome."""
        return (*PREDICTIONS, *CALIBRATION, *PICK_MEASURES)

    def record(self) -> JSON:
        """Return the evaluation as plain data."""
        return {
            "answers": list(self.answers),
            "hold_out": self.hold_out,
            "people": self.people,
            "withhold": float(self.withhold),
            "ties": self.ties,
            "samples": self.samples,
            "seed": self.seed,
            "data": self.data,
            "measures": list(MEASURES),
            "groups": [{"label": label} for label in self.groups],
            "arms": [
                {
                    "label": arm.label,
                    "population": arm.population,
                    **({} if arm.strategy is None else {"strategy": strategy_record(arm.strategy)}),
                }
                for arm in self.arms
            ],
        }

    def plan(self) -> RunPlan:
        """Return the plan of all replays."""
        return RunPlan(self.groups, self.labels, self.people, self.record(), self.identity())

    def identity(self) -> str:
        """Return the SHA-256 of everything that the outcomes depend on."""
        return digest(self.record())
