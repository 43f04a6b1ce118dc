"""How many questions a study needs: simulated users on one's own items, before the first participant comes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy

from pairseek.core.types import JSON, FloatArray
from pairseek.defaults import default_prior
from pairseek.errors import InvalidParameter
from pairseek.experiments.results import Results, TableFormat
from pairseek.experiments.simulation import run
from pairseek.experiments.spec import Answering, Contender, Setting, Specification
from pairseek.model.bounds import mse_lower_bound, stopping_time_bounds
from pairseek.model.items import Items
from pairseek.model.priors import UniformBox
from pairseek.model.responses import Noise, Response
from pairseek.runs.plan import RunStatus
from pairseek.runs.strategy_names import strategy_from

LEVEL = 0.95
STRATEGIES = ("infogain", "epmv", "mcmv", "random")


@dataclass(frozen=True)
class Need:
    """Questions that one strategy needs.

    Attributes
    ----------
    strategy
        Its label.
    half, most
        Questions after which the credible radius of half, and of nine in ten, of the users is below the target; None
        if that takes more than were simulated.
    reached
        Share of the users who came there at all.
    radius
        (counts,) mean credible radius.
    error
        (counts,) root of the mean squared error.
    """

    strategy: str
    half: int | None
    most: int | None
    reached: float
    radius: FloatArray
    error: FloatArray


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """What the simulation says.

    Attributes
    ----------
    items
        What was simulated on.
    response
        How users answer, k filled in.
    target
        Credible radius that is asked for.
    results
        All trials.
    needs
        One for each strategy.
    fewest
        No strategy has a mean squared error that fits the target after fewer answers (Theorem 3.2).
    enough
        EPMV with free choice of the plane needs at most so many on average (Theorem 3.4); astronomically many unless
        answers are nearly free of noise. None where the theorem does not apply.
    """

    items: Items
    response: Response
    target: float
    results: Results
    needs: tuple[Need, ...]
    fewest: int
    enough: float | None

    def record(self) -> JSON:
        """As plain data."""
        counts = self.results.counts.tolist()
        return {
            "items": {"n": self.items.n, "d": self.items.d, "hash": self.items.hash},
            "response": {"name": self.response.name, "k": self.response.k, "noise": self.response.noise},
            "target_radius": self.target,
            "level": LEVEL,
            "users": self.results.specification.trials,
            "questions": self.results.specification.queries,
            "seed": self.results.specification.seed,
            "bounds": {"fewest": self.fewest, "enough": self.enough},
            "strategies": [
                {
                    "strategy": need.strategy,
                    "half": need.half,
                    "nine_in_ten": need.most,
                    "reached": need.reached,
                    "answers": counts,
                    "mean_radius": need.radius.tolist(),
                    "root_mean_squared_error": need.error.tolist(),
                }
                for need in self.needs
            ],
        }


@dataclass(frozen=True)
class Question:
    """What is to be planned.

    Parameters
    ----------
    k, noise
        How users answer, by the logistic model. None for k: what a search takes for these items.
    target
        Radius that should hold the user with 95 % certainty, in units of the items. None: half of that before the
        first answer.
    strategies
        Names of strategies.
    questions, users
        Simulated at most, and how many.
    scaled
        Centre and scale the items by the paper's rule first, and look in [-1, 1]^d.
    seed
        Of the simulation.
    """

    k: float | None = None
    noise: Noise = "normalized"
    target: float | None = None
    strategies: tuple[str, ...] = STRATEGIES
    questions: int = 60
    users: int = 40
    scaled: bool = False
    seed: int = 2019

    def __post_init__(self) -> None:
        if self.target is not None and not (math.isfinite(self.target) and self.target > 0):
            raise InvalidParameter(f"target radius is {self.target!r}: give a finite number above 0")

    def specification(self, items: Items) -> Specification:
        """The simulation that answers it."""
        setting = Setting("plan", items, scaled=self.scaled, response=Answering("logistic", self.noise, self.k))
        if not self.scaled:
            setting = Setting(
                "plan", items, scaled=False, prior=None, response=Answering("logistic", self.noise, self.k)
            )
        return Specification(
            name="plan",
            title="How many questions",
            settings=(setting,),
            strategies=tuple(Contender(strategy_from({"name": name}, self.questions)) for name in self.strategies),
            rate=None,
            queries=self.questions,
            trials=self.users,
            metrics=("squared_error", "credible_radius", "posterior_volume"),
            seed=self.seed,
        )


def plan(
    items: Items,
    question: Question,
    folder: Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    table: TableFormat = "csv",
    progress: Callable[[RunStatus], None] | None = None,
) -> StudyPlan:
    """Simulate and count."""
    specification = question.specification(items)
    results = run(specification, folder, jobs=jobs, scheduler=scheduler, table=table, progress=progress)
    shown = items.scaled() if question.scaled else items
    setting = specification.settings[0]
    prior = default_prior(shown) if setting.prior is None else setting.prior
    _, covariance = prior.moments(shown.d)
    response = setting.response.response(shown.d).for_spread(float(np.sqrt(np.trace(covariance) / shown.d)))
    start = float(results.trials("plan", specification.labels[0], "credible_radius")[:, 0].mean())
    target = start / 2 if question.target is None else question.target
    needs = tuple(_need(results, label, target) for label in specification.labels)
    # A normal belief with this 95 % radius has this variance along each of its directions.
    variance = target**2 / float(scipy.stats.chi2.ppf(LEVEL, shown.d))
    least = (i for i in range(100_000) if mse_lower_bound(i, prior, shown.d) <= shown.d * variance)
    enough = None
    # The bound is proved for a uniform prior alone.
    if isinstance(prior, UniformBox) and shown.d >= 2 and response.noise == "normalized" and response.constant > 0:
        enough = stopping_time_bounds(variance, response.constant, prior, shown.d).upper
    return StudyPlan(shown, response, target, results, needs, next(least), enough)


def _need(results: Results, label: str, target: float) -> Need:
    radius = results.trials("plan", label, "credible_radius")
    below = radius < target
    first = np.where(below.any(axis=1), results.counts[below.argmax(axis=1)], np.inf)

    def share(part: float) -> int | None:
        # the smallest count by which this share of the users was there
        value = float(np.sort(first)[math.ceil(part * len(first)) - 1])
        return int(value) if math.isfinite(value) else None

    error = np.sqrt(results.trials("plan", label, "squared_error").mean(axis=0))
    return Need(label, share(0.5), share(0.9), float(np.isfinite(first).mean()), radius.mean(axis=0), error)
