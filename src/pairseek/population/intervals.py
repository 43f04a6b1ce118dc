"""Bootstrap confidence intervals of the identifiable parameters of a population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from pairseek.core.types import FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.population.choices import Choices
from pairseek.population.model import fit_model
from pairseek.population.population import Population, options_of

# EM iterations of each bootstrap fit, which starts from the fit of all people.
_ROUNDS = 25


@dataclass(frozen=True, eq=False)
class PopulationIntervals:
    """Identifiable parameters of a population, with bootstrap standard errors over people.

    Attributes
    ----------
    utility, utility_error
        (n,) utilities of the items for a person at the mean, centred over the items, and their standard errors.
    spread, spread_error
        (n, n) covariance of the centred utilities between people, and its standard errors.
    replicates
        Number of bootstrap replicates.
    """

    utility: FloatArray
    utility_error: FloatArray
    spread: FloatArray
    spread_error: FloatArray
    replicates: int

    def utility_interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return the (n,) lower and (n,) upper limits of the confidence intervals of the utilities."""
        reach = self._reach(level) * self.utility_error
        return self.utility - reach, self.utility + reach

    def spread_interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return the (n, n) lower and (n, n) upper limits of the confidence intervals of the covariances.

        The intervals of the variances, on the diagonal, are symmetric on the logarithmic scale, because the error of a
        variance is proportional to it.
        """
        reach = self._reach(level) * self.spread_error
        low, high = self.spread - reach, self.spread + reach
        variance = np.maximum(np.diag(self.spread), np.finfo(float).tiny)
        factor = np.exp(np.diag(reach) / variance)
        np.fill_diagonal(low, variance / factor)
        np.fill_diagonal(high, variance * factor)
        return low, high

    def _reach(self, level: float) -> float:
        """Return the half-width in standard errors, from Student's t because the errors are estimates themselves."""
        if not 0.0 < level < 1.0:
            raise InvalidParameter(f"level is {level}: give a probability between 0 and 1, such as 0.9")
        return float(stdtrit(self.replicates - 1, 0.5 + 0.5 * level))


def identifiable(population: Population) -> tuple[FloatArray, FloatArray]:
    """Return the (n,) utilities and their (n, n) covariance between people, both centred over the items."""
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
    """Estimate standard errors by a bootstrap over people.

    Parameters
    ----------
    population
        A population that was fitted to these choices.
    choices, items
        The arguments of `Population.fit`.
    replicates
        Number of bootstrap replicates, at least 2.
    rng
        A seed or a generator for the replicates.
    """
    if replicates < 2:
        raise InvalidParameter(f"replicates is {replicates}: give at least 2")
    generator = np.random.default_rng(rng)
    usable = (choices if items is None else choices.of_items(items.ids)).usable()
    learned = options_of(population)
    model, state, _ = fit_model(usable, items, learned, cautious=False)
    estimate = Population.of(model, state, usable, items, population.provenance)
    count = len(usable.people)
    drawn = []
    for _ in range(replicates):
        counts = generator.multinomial(count, np.full(count, 1.0 / count)).astype(np.float64)
        model, found, _ = fit_model(usable, items, learned, people=counts, state=state, rounds=_ROUNDS, cautious=False)
        drawn.append(identifiable(Population.of(model, found, usable, items, population.provenance)))
    utility, spread = identifiable(estimate)
    errors = [np.std([one[part] for one in drawn], axis=0, ddof=1) for part in (0, 1)]
    return PopulationIntervals(utility, np.asarray(errors[0]), spread, np.asarray(errors[1]), replicates)
