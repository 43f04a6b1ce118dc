"""Tempered particles for the user point, given known response parameters."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from pairseek.core.types import Belief, BeliefInfo, FloatArray
from pairseek.model.priors import Prior, is_density
from pairseek.numerics.covariances import square_root
from pairseek.numerics.moments import SAMPLE_CHUNK
from pairseek.numerics.parallel import for_ranges
from pairseek.posteriors.base import sampled_belief
from pairseek.posteriors.control_variates import controlled_moments
from pairseek.posteriors.densities import density_belief
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.slice_kernels import SLICE_WIDTH, log_densities, slice_sweep
from pairseek.posteriors.smc import tempered_samples


def tempered_belief(
    factors: Factors, prior: Prior, n: int, sweeps: int, rng: np.random.Generator
) -> tuple[Belief, float]:
    """Return the belief of n particles after these answers, and the log evidence."""
    start_time = time.perf_counter()
    m, d = factors.slopes.shape
    if is_density(prior):
        belief, gained = density_belief(partial(_log_answers, factors), (m, d), prior, n, sweeps, rng)
        return belief, gained + factors.constant
    if m == 0:
        samples, weights = prior.sample(n, d, rng), np.full(n, 1 / n)
        info = BeliefInfo("particles", seconds=time.perf_counter() - start_time)
        return sampled_belief(samples, weights, prior.moments(d), info), 0.0
    samples, stages, log_evidence = tempered_samples(PointTarget(factors, prior), n, sweeps, rng)
    weights = np.full(n, 1 / n)
    moments = controlled_moments(samples, weights, factors, prior)
    info = BeliefInfo("particles", stages=stages, seconds=time.perf_counter() - start_time)
    return sampled_belief(samples, weights, moments, info), log_evidence + factors.constant


@dataclass(frozen=True, eq=False)
class PointTarget:
    """The posterior of the user point given known response parameters, as a target of sequential Monte Carlo.

    Attributes
    ----------
    factors, prior
        The answers and the prior that define the posterior.
    """

    factors: Factors
    prior: Prior

    def sample_prior(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw points from the prior."""
        return self.prior.sample(n, self.factors.slopes.shape[1], rng)

    def log_likelihood(self, states: FloatArray) -> FloatArray:
        """Return the log-likelihood of all answers."""
        base = self.prior.quadratic(states.shape[1])
        return log_importance_ratios(states, self.factors, self.prior, base)

    def move(
        self, states: FloatArray, covariance: FloatArray, power: float, sweeps: int, rng: np.random.Generator
    ) -> FloatArray:
        """Move every point by slice steps along random frames."""
        n, d = states.shape
        factors = self.factors
        root = square_root(covariance)
        for _ in range(sweeps):
            frame, _ = np.linalg.qr(rng.standard_normal((d, d)))
            directions = np.ascontiguousarray((root @ frame).T)
            for_ranges(
                slice_sweep,
                n,
                SAMPLE_CHUNK,
                states,
                rng.integers(0, 2**64, size=n, dtype=np.uint64),
                (directions, np.einsum("kd,md->km", directions, factors.slopes)),
                factors.kernel_arrays,
                (*self.prior.box(d), *self.prior.quadratic(d)),
                power,
                SLICE_WIDTH,
                factors.link,
                factors.model,
            )
        return states


def _log_answers(factors: Factors, points: FloatArray) -> FloatArray:
    """Return the (n,) log-likelihoods at (n, d) points, without the constant of the factors."""
    n, d = points.shape
    infinite, flat = np.full(d, np.inf), (np.zeros(d), np.zeros((d, d)))
    out = np.empty(n)
    arguments = (factors.kernel_arrays, (-infinite, infinite, *flat), flat, factors.link, factors.model, out)
    for_ranges(log_densities, n, SAMPLE_CHUNK, points, *arguments)
    return out


def log_importance_ratios(
    points: FloatArray, factors: Factors, prior: Prior, base: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Return the (n,) log ratios of the posterior to a Gaussian (centre, precision), up to a constant."""
    n, d = points.shape
    out = np.empty(n)
    quadratic = (*prior.box(d), *prior.quadratic(d))
    for_ranges(
        log_densities, n, SAMPLE_CHUNK, points, factors.kernel_arrays, quadratic, base, factors.link, factors.model, out
    )
    return out
