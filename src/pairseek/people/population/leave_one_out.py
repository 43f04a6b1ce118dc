"""Leave-one-out fits of a population."""

from __future__ import annotations

import numpy as np

from pairseek.model.items import Items
from pairseek.people.choices import Choices
from pairseek.people.population.fit_state import FitState
from pairseek.people.population.model import FitOptions, fit_model
from pairseek.people.population.population import Population

# With at most this many people, each leave-one-out fit runs from scratch.
_MAX_PEOPLE_FROM_SCRATCH = 60
# With more people, this many iterations from the fit of all people suffice.
_WARM_ITERATIONS = 10


def without(population: Population, choices: Choices, items: Items | None, person: int, state: FitState) -> Population:
    """Fit the population without one person, given by row. With many people the fit of all people is a warm start."""
    learned = _options_of(population)
    counts = np.ones(len(choices.people))
    counts[person] = 0.0
    if len(counts) <= _MAX_PEOPLE_FROM_SCRATCH:
        others = choices.only(np.flatnonzero(counts))
        model, refitted, _ = fit_model(others, items, learned)
    else:
        model, refitted, _ = fit_model(choices, items, learned, people=counts, state=state, rounds=_WARM_ITERATIONS)
    scale = np.exp(population.provenance.get("calibration", {}).get("log_scale", 0.0))
    fitted = Population.of(model.scaled(float(scale)), refitted, choices, items, population.provenance)
    return fitted.with_residual(population.residual)


def state_of(population: Population, choices: Choices, items: Items | None) -> FitState:
    """Repeat the fit of a population, and return its state."""
    return fit_model(choices, items, _options_of(population))[1]


def _options_of(population: Population) -> FitOptions:
    """Return the options of a population's fit, from its provenance."""
    configuration = population.provenance["configuration"]
    return FitOptions(**{name: configuration[name] for name in ("dimension", "appeal", "rescale", "curvature")})
