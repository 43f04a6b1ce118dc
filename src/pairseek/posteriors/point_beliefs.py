"""Beliefs about the user point given known response parameters: by EP, importance samples, or particles.

Importance samples and particles are imported where they are used, because EP is enough for most searches.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairseek.core.types import Belief, BeliefInfo, FloatArray
from pairseek.model.priors import Prior
from pairseek.numerics.covariances import square_root
from pairseek.posteriors.base import effective_samples, generator_for
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.gaussian import GaussianFit, log_prior_mass
from pairseek.posteriors.gaussian_samples import GaussianSamples

# Importance samples are used if their effective size is at least _MIN_EFFECTIVE_FRACTION of their number, and at least
# the smaller of _SAMPLES_PER_CONTROL per control variate and _SAMPLES_PER_DIMENSION * (d + 1); otherwise more of them
# are drawn, or particles. Without control variates the relative error of a covariance is about sqrt((d + 1)/samples).
_MIN_EFFECTIVE_FRACTION = 0.4
_SAMPLES_PER_CONTROL = 10.0
_SAMPLES_PER_DIMENSION = 100
# At least this many importance samples are drawn for each of d + 1: 0.4 * 256 is about the 100 effective samples
# required above.
_MIN_SAMPLES_PER_DIMENSION = 256
# If too few samples are effective, more are drawn, to reach an effective size of this fraction of the requested number.
_TARGET_EFFECTIVE_FRACTION = 0.8
# The number of samples that the target needs is only estimated, so this fraction of the target is accepted.
_ACCEPTED_FRACTION_OF_TARGET = 0.75
# In up to this many dimensions, moments use every importance sample; in more, only points resampled from them, because
# control variates take time proportional to d⁴.
_FULL_MOMENT_DIMENSIONS = 4
# While the weighted moments differ from the Gaussian's by more than this, relative to its variances, importance
# sampling is repeated from a Gaussian with the new moments.
_MAX_MOMENT_DISTANCE = 0.3
# Largest number of such rounds.
_MAX_ROUNDS = 3
# Number of particles: max(_PARTICLES, _PARTICLES_TIMES_DIMENSION // d). Few dimensions get more: nearly noiseless
# answers leave narrow wedges there, in which chains mix slowly, and particles are cheap.
_PARTICLES = 4000
_PARTICLES_TIMES_DIMENSION = 24_000
# Sweeps of the slice sampler per move of the particles.
_SWEEPS = 2


@dataclass(frozen=True, eq=False)
class PointBelief:
    """Posterior of the user point given known response parameters, with its evidence.

    Attributes
    ----------
    belief
        The belief, without the evidence: see `with_evidence`.
    log_mass
        log p(answers) under the unnormalized prior.
    fit
        The EP fit behind the belief, if any.
    """

    belief: Belief
    log_mass: float
    fit: GaussianFit | None = None

    def with_evidence(self, prior: Prior, answers: int) -> Belief:
        """Return the belief with its evidence: log p(answers) under the normalized prior, 0 if there are none."""
        log_evidence = self.log_mass - log_prior_mass(prior, len(self.belief.mean)) if answers else 0.0
        return replace(self.belief, info=replace(self.belief.info, log_evidence=log_evidence))


def ep_point_belief(
    fit: GaussianFit, factors: Factors, prior: Prior, sample_count: int, seconds: float = 0.0
) -> PointBelief:
    """Return the belief with the moments of an EP fit."""
    for array in (fit.mean, fit.covariance):
        array.flags.writeable = False
    source = GaussianSamples(fit.mean, fit.covariance, factors, prior, sample_count)
    info = BeliefInfo(
        "ep",
        logit_deviation=fit.logit_deviation,
        sweeps=fit.sweeps,
        seconds=seconds,
    )
    return PointBelief(Belief(fit.mean, fit.covariance, info, source), fit.log_evidence, fit)


def sampled_point_belief(fit: GaussianFit, factors: Factors, prior: Prior, sample_count: int) -> PointBelief:
    """Return the belief by importance samples from the Gaussian if enough of them are effective, else by particles."""
    from pairseek.posteriors.control_variates import controlled_moments
    from pairseek.posteriors.tempering import tempered_belief

    start_time = time.perf_counter()
    d = len(fit.mean)
    diagnostics: dict[str, Any] = {"logit_deviation": fit.logit_deviation, "sweeps": fit.sweeps}
    controls = _SAMPLES_PER_CONTROL * (d + d * (d + 1) // 2)
    minimum = min(controls, _SAMPLES_PER_DIMENSION * (d + 1.0))
    sample_count = max(sample_count, _MIN_SAMPLES_PER_DIMENSION * (d + 1))
    # In few dimensions a wider proposal costs few effective samples.
    source = GaussianSamples(fit.mean, fit.covariance, factors, prior, sample_count, widening=1.0 + 4.0 / (d + 1.0))
    # With lapses there may be modes that no point of this Gaussian reaches.
    for _ in range(_MAX_ROUNDS if fit.converged and factors.is_log_concave else 0):
        effective = effective_samples(source.importance_samples(sample_count)[1])
        if effective < max(_MIN_EFFECTIVE_FRACTION * sample_count, minimum):
            target = max(_TARGET_EFFECTIVE_FRACTION * sample_count, minimum)
            oversampled = source.oversampled(target, sample_count)
            if oversampled is None:
                break
            effective = effective_samples(oversampled.importance_samples(sample_count)[1])
            if effective < _ACCEPTED_FRACTION_OF_TARGET * target:
                break
            source = oversampled
        samples, weights, log_evidence = source.importance_samples(sample_count)
        if d > _FULL_MOMENT_DIMENSIONS:
            samples, weights = source.draw(sample_count)
        mean, covariance = controlled_moments(samples, weights, factors, prior)
        if _moment_distance(source, mean, covariance) < _MAX_MOMENT_DISTANCE:
            seconds = time.perf_counter() - start_time
            info = BeliefInfo("weighted", effective, **diagnostics, seconds=seconds)
            for array in (mean, covariance):
                array.flags.writeable = False
            if source.oversampling > 1:
                source = replace(source)  # a copy drops the cached importance samples, which are many
            return PointBelief(Belief(mean, covariance, info, source), log_evidence)
        source = replace(source, mean=mean, covariance=covariance)
    n = max(_PARTICLES, _PARTICLES_TIMES_DIMENSION // d)
    belief, log_evidence = tempered_belief(factors, prior, n, _SWEEPS, generator_for(factors, n))
    info = replace(belief.info, **diagnostics, seconds=time.perf_counter() - start_time)
    return PointBelief(replace(belief, info=info), log_evidence + log_prior_mass(prior, d))


def _moment_distance(source: GaussianSamples, mean: FloatArray, covariance: FloatArray) -> float:
    """Return the distance of moments from the source's Gaussian, relative to its variances, in the worst direction."""
    root = square_root(source.covariance)
    white = np.linalg.solve(root, np.linalg.solve(root, covariance).T)
    shift = np.linalg.solve(root, mean - source.mean)
    return float(max(np.max(np.abs(np.linalg.eigvalsh(0.5 * (white + white.T)) - 1.0)), np.sum(shift**2)))
