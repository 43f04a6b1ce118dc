"""Sequential Monte Carlo with tempering, from the prior to the posterior.

The intermediate distributions are prior · likelihood^t, with t rising from 0 to 1. Each stage takes the largest step in
t that keeps the effective sample size at half the particles, resamples, and moves every particle by slice sampling (Del
Moral, Doucet and Jasra, JRSS-B 2006).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.numerics.moments import sample_moments
from pairseek.posteriors.weights import resampled_rows, reweighted, tempering_step

# Only a quarter of the particles, but at least _MIN_TEMPERED, are tempered; all n are resampled from these in the last
# stage, which takes a fraction of the time.
_PARTICLES_PER_TEMPERED = 4
_MIN_TEMPERED = 250
# Largest number of stages, to bound the time; one step then completes the path. A stage gains about one bit.
_MAX_STAGES = 200


class Target(Protocol):
    """A target of tempered sequential Monte Carlo: a prior, a likelihood, and a Markov move."""

    def sample_prior(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw (n, columns) states from the prior."""
        ...

    def log_likelihood(self, states: FloatArray) -> FloatArray:
        """Return the (n,) log-likelihood of all answers, up to a constant."""
        ...

    def move(
        self, states: FloatArray, covariance: FloatArray, power: float, sweeps: int, rng: np.random.Generator
    ) -> FloatArray:
        """Return the states after moves of a chain that leaves prior · likelihood^power invariant."""
        ...


def tempered_samples(target: Target, n: int, sweeps: int, rng: np.random.Generator) -> tuple[FloatArray, int, float]:
    """Return n equally weighted states of the posterior, the number of stages, and the log evidence."""
    tempered = min(n, max(n // _PARTICLES_PER_TEMPERED, _MIN_TEMPERED))
    states = target.sample_prior(tempered, rng)
    equal_weights = np.full(tempered, 1.0 / tempered)
    power, stages, log_evidence = 0.0, 0, 0.0
    while True:
        log_likelihood = target.log_likelihood(states)
        remaining = 1.0 - power
        step = (
            remaining
            if stages >= _MAX_STAGES
            else tempering_step(equal_weights, log_likelihood, remaining, tempered / 2)
        )
        weights = reweighted(equal_weights, log_likelihood, step)
        highest = float(np.max(log_likelihood))
        with np.errstate(under="ignore"):
            log_evidence += step * highest + float(np.log(np.mean(np.exp(step * (log_likelihood - highest)))))
        power = 1.0 if step >= remaining else power + step
        _, covariance = sample_moments(states, weights)
        count = tempered if power < 1.0 else n
        states = np.ascontiguousarray(states[resampled_rows(weights, count, rng)])
        stages += 1
        states = target.move(states, covariance, power, sweeps if power < 1.0 else sweeps + 1, rng)
        if power >= 1.0:
            return states, stages, log_evidence
