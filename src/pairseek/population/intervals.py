"""How surely a population is known: the spread of fits to people drawn anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from pairseek.core.types import FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.population.choices import Choices
from pairseek.population.population import Population, fitted, learned_by, state_of

# Rounds of a fit to people drawn anew, from the fit of all.
_ROUNDS = 25


@dataclass(frozen=True, eq=False)
class PopulationIntervals:
    """What choices tell whatever the gauge, with standard errors over people.

    Attributes
    ----------
    utility, utility_error
        (n,) utility of each item for somebody at the mean, of mean zero.
    spread, spread_error
        (n, n) covariance between people of the utilities, each person's utilities taken around their mean.
    replicates
        Draws of people behind the errors.
    """

    utility: FloatArray
    utility_error: FloatArray
    spread: FloatArray
    spread_error: FloatArray
    replicates: int

    def utility_interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """(n,) lower and (n,) upper ends of intervals that hold each utility with this probability."""
        reach = self._reach(level) * self.utility_error
        return self.utility - reach, self.utility + reach

    def spread_interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """(n, n) lower and (n, n) upper ends of intervals that hold each covariance with this probability.

        Those of the variances, on the diagonal, are even in the logarithm: the error of a variance grows with it.
        """
        reach = self._reach(level) * self.spread_error
        low, high = self.spread - reach, self.spread + reach
        variance = np.maximum(np.diag(self.spread), np.finfo(float).tiny)
        factor = np.exp(np.diag(reach) / variance)
        np.fill_diagonal(low, variance / factor)
        np.fill_diagonal(high, variance * factor)
        return low, high

    def _reach(self, level: float) -> float:
        """Standard errors on each side; more than of a normal, because the errors themselves come from few draws."""
        if not 0.0 < level < 1.0:
            raise InvalidParameter(f"level is {level}: give a probability between 0 and 1, such as 0.9")
        return float(stdtrit(self.replicates - 1, 0.5 + 0.5 * level))


def identifiable(population: Population) -> tuple[FloatArray, FloatArray]:
    """(n,) utilities and (n, n) their covariance between people, both centred over the items."""
    base, factors = population.utilities()
    factors = factors - factors.mean(axis=0)
    return base - base.mean(), factors @ population.covariance @ factors.T


def bootstrap_intervals(
    population: Population,
    choices: Choices,
    items: Items | None = None,
    *,
    replicates: int = 40,
    rng: int | np.random.Generator = 0,
) -> PopulationIntervals:
    """The bootstrap over people.

    Parameters
    ----------
    population
        Fitted to these choices.
    choices, items
        As they were given to `Population.fit`.
    replicates
        Draws of people.
    rng
        For the draws.
    """
    if replicates < 2:
        raise InvalidParameter(f"replicates is {replicates}: give at least 2")
    generator = np.random.default_rng(rng)
    usable = (choices if items is None else choices.of_items(items.ids)).usable()
    state = state_of(population, usable, items)
    learned = learned_by(population)
    count = len(usable.people)
    drawn = []
    for _ in range(replicates):
        counts = generator.multinomial(count, np.full(count, 1.0 / count)).astype(np.float64)
        made, found, _ = fitted(usable, items, learned, people=counts, state=state, rounds=_ROUNDS)
        drawn.append(identifiable(Population.of(made, found, usable, items, population.provenance)))
    utility, spread = identifiable(population)
    errors = [np.std([one[part] for one in drawn], axis=0, ddof=1) for part in (0, 1)]
    return PopulationIntervals(utility, np.asarray(errors[0]), spread, np.asarray(errors[1]), replicates)
