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
        Number of questions after which the credible radius is below the target for half, and for nine in ten, of the
        users; None if that takes more questions than were simulated.
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
    needs
        Required answers of each strategy.
    lower_bound
        Lower bound, for any strategy, on the number of answers until the mean squared error matches the target
        (Theorem 3.2).
    upper_bound
        Upper bound on the mean number of answers that EPMV needs when it can choose any plane (Theorem 3.4). It is very
        large unless the answers have little noise. None where the theorem does not apply.
    """

    items: Items
    response: Response
    target: float
    results: Results
    needs: tuple[RequiredAnswers, ...]
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
                    "strategy": need.strategy,
                    "half": need.half,
                    "nine_in_ten": need.nine_in_ten,
                    "reached": need.reached,
                    "answers": counts,
                    "mean_radius": need.radius.tolist(),
                    "root_mean_squared_error": need.error.tolist(),
                }
                for need in self.needs
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
            raise InvalidParameter(f"target radius is {self.target!r}: give a finite number above 0")

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
    shown = items.scaled() if inputs.scaled else items
    setting = specification.settings[0]
    prior = default_prior(shown) if setting.prior is None else setting.prior
    _, covariance = prior.moments(shown.d)
    response = setting.response_model(shown.d).for_spread(float(np.sqrt(np.trace(covariance) / shown.d)))
    start = float(results.trials("plan", specification.labels[0], "credible_radius")[:, 0].mean())
    target = start / 2 if inputs.target is None else inputs.target
    needs = tuple(_need(results, label, target) for label in specification.labels)
    # Variance per coordinate of an isotropic normal belief with this 95 % radius.
    variance = target**2 / float(scipy.stats.chi2.ppf(CREDIBLE_LEVEL, shown.d))
    answer_counts = (i for i in range(100_000) if mse_lower_bound(i, prior, shown.d) <= shown.d * variance)
    upper = None
    # Theorem 3.4 assumes a uniform prior.
    if isinstance(prior, UniformBox) and shown.d >= 2 and response.noise == "normalized" and response.constant > 0:
        upper = stopping_time_bounds(variance, response.constant, prior, shown.d).upper
    return StudyPlan(shown, response, target, results, needs, next(answer_counts), upper)


def _need(results: Results, label: str, target: float) -> RequiredAnswers:
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
