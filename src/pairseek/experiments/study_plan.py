"""The number of questions a study needs, estimated with simulated users on its items."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy

from pairseek.core.types import JSON, FloatArray
from pairseek.errors import InvalidParameter
from pairseek.experiments.results import Results, TableFormat
from pairseek.experiments.runs.part_records import strategy_from_record
from pairseek.experiments.runs.plan import RunStatus
from pairseek.experiments.simulation import run
from pairseek.experiments.specification import Contender, ResponseSpec, Setting, Specification
from pairseek.model.bounds import mse_lower_bound, stopping_time_bounds
from pairseek.model.defaults import default_prior
from pairseek.model.items import Items
from pairseek.model.noise import Noise
from pairseek.model.priors import UniformBox
from pairseek.model.responses import Response

CREDIBLE_LEVEL = 0.95
DEFAULT_STRATEGIES = ("infogain", "epmv", "mcmv", "random")


@dataclass(frozen=True)
class RequiredAnswers:
    """The number of questions that a strategy needs.

    Attributes
    ----------
    strategy
        Label of the strategy.
    half, nine_in_ten
        Number of questions after which half, or nine in ten, of the users have a credible radius below the target; None
        if that takes more questions than were simulated.
    reached
        Fraction of the users who reached the target.
    radius
        (counts,) mean credible radius.
    error
        (counts,) root mean squared error.
    """

    strategy: str
    half: int | None
    nine_in_ten: int | None
    reached: float
    radius: FloatArray
    error: FloatArray


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """The result of a planning simulation.

    Attributes
    ----------
    items
        The items of the simulation.
    response
        Response model of the users, with k resolved.
    target
        Target of the credible radius.
    results
        Results of all trials.
    required_answers
        Required answers of each strategy.
    lower_bound
        Lower bound, for any strategy, on the number of answers until the mean squared error matches the target
        (Theorem 3.2).
    upper_bound
        Upper bound on the mean number of answers that EPMV needs if it can choose any plane (Theorem 3.4); very large
        unless answers have little noise. None where the theorem does not apply.
    """

    items: Items
    response: Response
    target: float
    results: Results
    required_answers: tuple[RequiredAnswers, ...]
    lower_bound: int
    upper_bound: float | None

    def record(self) -> JSON:
        """Return the plan as plain data."""
        counts = self.results.counts.tolist()
        return {
            "items": {"n": self.items.n, "d": self.items.d, "hash": self.items.hash},
            "response": {"name": self.response.name, "k": self.response.k, "noise": self.response.noise},
            "target_radius": self.target,
            "level": CREDIBLE_LEVEL,
            "users": self.results.specification.trials,
            "questions": self.results.specification.queries,
            "seed": self.results.specification.seed,
            "bounds": {"fewest": self.lower_bound, "enough": self.upper_bound},
            "strategies": [
                {
                    "strategy": required.strategy,
                    "half": required.half,
                    "nine_in_ten": required.nine_in_ten,
                    "reached": required.reached,
                    "answers": counts,
                    "mean_radius": required.radius.tolist(),
                    "root_mean_squared_error": required.error.tolist(),
                }
                for required in self.required_answers
            ],
        }


@dataclass(frozen=True)
class PlanningInputs:
    """The inputs of a planning simulation.

    Parameters
    ----------
    k, noise
        Logistic response model of the users. None for k: the default of a search over these items.
    target
        Target of the 95 % credible radius, in units of the items. None: half the radius before the first answer.
    strategies
        Names of strategies.
    questions, users
        Number of questions per user, and number of users.
    scaled
        Whether to centre and scale the items by the paper's rule, with a uniform prior on [-1, 1]^d.
    seed
        Seed of the simulation.
    """

    k: float | None = None
    noise: Noise = "normalized"
    target: float | None = None
    strategies: tuple[str, ...] = DEFAULT_STRATEGIES
    questions: int = 60
    users: int = 40
    scaled: bool = False
    seed: int = 2019

    def __post_init__(self) -> None:
        if self.target is not None and not (math.isfinite(self.target) and self.target > 0):
            raise InvalidParameter(f"target radius is {self.target!r}: give a finite number above 0", field="target")

    def specification(self, items: Items) -> Specification:
        """Return the specification of the simulation."""
        setting = Setting("plan", items, scaled=self.scaled, response=ResponseSpec("logistic", self.noise, self.k))
        if not self.scaled:
            setting = Setting(
                "plan", items, scaled=False, prior=None, response=ResponseSpec("logistic", self.noise, self.k)
            )
        return Specification(
            name="plan",
            title="How many questions",
            settings=(setting,),
            strategies=tuple(
                Contender(strategy_from_record({"name": name}, self.questions)) for name in self.strategies
            ),
            rate=None,
            queries=self.questions,
            trials=self.users,
            metrics=("squared_error", "credible_radius", "posterior_volume"),
            seed=self.seed,
        )


def plan(
    items: Items,
    inputs: PlanningInputs,
    folder: Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    table: TableFormat = "csv",
    progress: Callable[[RunStatus], None] | None = None,
) -> StudyPlan:
    """Estimate the number of questions that each strategy needs, with simulated users."""
    specification = inputs.specification(items)
    results = run(specification, folder, jobs=jobs, scheduler=scheduler, table=table, progress=progress)
    searched_items = items.scaled() if inputs.scaled else items
    setting = specification.settings[0]
    prior = default_prior(searched_items) if setting.prior is None else setting.prior
    _, covariance = prior.moments(searched_items.d)
    response = setting.response_model(searched_items.d).for_spread(
        float(np.sqrt(np.trace(covariance) / searched_items.d))
    )
    initial_radius = float(results.trials("plan", specification.labels[0], "credible_radius")[:, 0].mean())
    target = initial_radius / 2 if inputs.target is None else inputs.target
    required_answers = tuple(_required_answers(results, label, target) for label in specification.labels)
    # Variance per coordinate of an isotropic normal belief with this 95 % radius.
    variance = target**2 / float(scipy.stats.chi2.ppf(CREDIBLE_LEVEL, searched_items.d))
    answer_counts = (
        i for i in range(100_000) if mse_lower_bound(i, prior, searched_items.d) <= searched_items.d * variance
    )
    upper_bound = None
    # Theorem 3.4 assumes a uniform prior.
    if (
        isinstance(prior, UniformBox)
        and searched_items.d >= 2
        and response.noise == "normalized"
        and response.constant > 0
    ):
        upper_bound = stopping_time_bounds(variance, response.constant, prior, searched_items.d).upper
    return StudyPlan(searched_items, response, target, results, required_answers, next(answer_counts), upper_bound)


def _required_answers(results: Results, label: str, target: float) -> RequiredAnswers:
    radius = results.trials("plan", label, "credible_radius")
    below = radius < target
    first = np.where(below.any(axis=1), results.counts[below.argmax(axis=1)], np.inf)

    def count_for(fraction: float) -> int | None:
        """Return the smallest count at which this fraction of the users had reached the target."""
        value = float(np.sort(first)[math.ceil(fraction * len(first)) - 1])
        return int(value) if math.isfinite(value) else None

    error = np.sqrt(results.trials("plan", label, "squared_error").mean(axis=0))
    return RequiredAnswers(
        label, count_for(0.5), count_for(0.9), float(np.isfinite(first).mean()), radius.mean(axis=0), error
    )
