"""Leave-one-out fits of a population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from pairseek.model.items import Items
from pairseek.people.choices import Choices
from pairseek.people.population.fit_state import FitState
from pairseek.people.population.model import FitOptions, fit_model
from pairseek.people.population.population import Population
from pairseek.people.population.residual import LeftOutEvidence, ResidualSetting, left_out_evidence

# With at most this many people, each leave-one-out fit runs from scratch.
_MAX_PEOPLE_FROM_SCRATCH = 60
# With more people, this many iterations from the fit of all people suffice.
_WARM_ITERATIONS = 10
_MAX_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class FitOfAll:
    """The fit of a population to all people, from which one person at a time is left out.

    Attributes
    ----------
    population, choices, items
        The population, and what it was fitted to.
    state
        State of the fit.
    evidence
        Evidence about residual and scale; None if these were given or assumed.
    """

    population: Population
    choices: Choices
    items: Items | None
    state: FitState
    evidence: LeftOutEvidence | None

    @classmethod
    def of(cls, population: Population, choices: Choices, items: Items | None) -> Self:
        """Repeat the fit of a population."""
        options = _options_of(population)
        state = fit_model(choices, items, options)[1]
        calibration = population.provenance.get("calibration", {})
        if not calibration.get("people"):
            return cls(population, choices, items, state, None)
        # A residual that was given has no error but rounding.
        is_judged = calibration["share_error"] > _MAX_ROUNDING
        setting: float | ResidualSetting = "auto" if is_judged else population.residual
        seed = population.provenance["seed"]
        evidence = left_out_evidence(choices, items, options, setting, seed=seed)
        return cls(population, choices, items, state, evidence)

    def without(self, person: int) -> Population:
        """Fit the population without one person, given by row. With many people, the fit to all is a warm start.

        The person's answers do not count for residual and scale either. Options that a cross-validation over all people
        chose stay.
        """
        population, choices, items = self.population, self.choices, self.items
        fit_options = _options_of(population)
        counts = np.ones(len(choices.people))
        counts[person] = 0.0
        if len(counts) <= _MAX_PEOPLE_FROM_SCRATCH:
            model, state, _ = fit_model(choices.only(np.flatnonzero(counts)), items, fit_options)
        else:
            model, state, _ = fit_model(
                choices, items, fit_options, people=counts, state=self.state, rounds=_WARM_ITERATIONS
            )
        provenance, residual = population.provenance, population.residual
        if self.evidence is not None:
            calibration = self.evidence.without(person).calibration()
            provenance = {**provenance, "calibration": calibration.record()}
            residual = calibration.residual
        scale = float(np.exp(provenance.get("calibration", {}).get("log_scale", 0.0)))
        return Population.of(model.scaled(scale), state, choices, items, provenance).with_residual(residual)


def _options_of(population: Population) -> FitOptions:
    """Return the options of a population's fit, from its provenance."""
    configuration = population.provenance["configuration"]
    return FitOptions(**{name: configuration[name] for name in ("dimension", "appeal", "rescale", "curvature")})
