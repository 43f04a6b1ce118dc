"""Particles: samples of the posterior by sequential Monte Carlo."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.core.types import Belief, BeliefInfo, Evidence, FloatArray
from pairseek.core.validation import whole
from pairseek.model.priors import Prior
from pairseek.model.responses import Response
from pairseek.numerics.moments import CHUNK
from pairseek.numerics.parallel import for_ranges
from pairseek.posteriors.base import generator_for, sampled_belief
from pairseek.posteriors.control_variates import controlled_moments
from pairseek.posteriors.reliability import reliable_belief
from pairseek.posteriors.slice_kernels import log_densities, slice_sweep
from pairseek.posteriors.smc import WIDTH, square_root, tempered_samples


@dataclass(frozen=True)
class Particles:
    """Samples of the posterior by sequential Monte Carlo with tempering.

    All answers enter together, with a power that grows from 0 to 1 in stages; each stage keeps half of the effective
    sample size. In a stage particles are resampled (systematically) and each is moved by slice steps along a random
    orthonormal frame of the whitened space: for a Gaussian posterior one sweep over the frame would make it independent
    of where it was. A quarter of the particles is tempered, and the others are resampled
    from them at the end. Where k or the lapse is unknown, both are coordinates of a particle too.

    Control variates remove most of the sampling variance of the mean and covariance.

    Time grows linearly with n, with the number of answers, with d (directions in a sweep), and with the bits that the
    answers tell (stages).

    Parameters
    ----------
    n
        Number of particles.
    sweeps
        Sweeps over a frame in each move.
    seed
        Key of its draws, beside the evidence: another seed shows how much the result varies by chance.
    """

    n: int = 4000
    sweeps: int = 2
    seed: int = 0
    name: ClassVar[str] = "particles"
    infers_reliability: ClassVar[bool] = True
    uses_kernels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for setting, least in (("n", 2), ("sweeps", 1), ("seed", 0)):
            value = whole(getattr(self, setting), f"{setting} of Particles", least, field=setting)
            object.__setattr__(self, setting, value)

    def infer(self, evidence: Evidence, prior: Prior, response: Response) -> Belief:
        """Return the belief after these answers."""
        began = time.perf_counter()
        rng = generator_for(evidence, self)
        if not response.plain:
            return reliable_belief(self.n, self.sweeps, evidence, prior, response, rng)
        m, d = evidence.slopes.shape
        if m == 0:
            samples, weights = prior.sample(self.n, d, rng), np.full(self.n, 1 / self.n)
            info = BeliefInfo("particles", seconds=time.perf_counter() - began)
            return sampled_belief(samples, weights, prior.moments(d), info)
        samples, stages = tempered_samples(PointTarget(evidence, prior, response), self.n, self.sweeps, rng)
        weights = np.full(self.n, 1 / self.n)
        moments = controlled_moments(samples, weights, evidence, prior, response)
        info = BeliefInfo("particles", stages=stages, seconds=time.perf_counter() - began)
        return sampled_belief(samples, weights, moments, info)


@dataclass(frozen=True, eq=False)
class PointTarget:
    """The posterior of the user point, for a known response without lapses.

    Attributes
    ----------
    evidence, prior, response
        The answers, the prior and the response model that define the posterior.
    """

    evidence: Evidence
    prior: Prior
    response: Response

    def start(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw points from the prior."""
        return self.prior.sample(n, self.evidence.slopes.shape[1], rng)

    def log_likelihood(self, states: FloatArray) -> FloatArray:
        """Return the log-likelihood of all answers."""
        base = self.prior.quadratic(states.shape[1])
        return log_importance_ratios(states, self.evidence, self.prior, self.response, base)

    def move(
        self, states: FloatArray, covariance: FloatArray, power: float, sweeps: int, rng: np.random.Generator
    ) -> FloatArray:
        """Move every point by slice steps along random frames."""
        n, d = states.shape
        evidence = self.evidence
        root = square_root(covariance)
        for _ in range(sweeps):
            frame, _ = np.linalg.qr(rng.standard_normal((d, d)))
            directions = np.ascontiguousarray((root @ frame).T)
            for_ranges(
                slice_sweep,
                n,
                CHUNK,
                states,
                rng.integers(0, 2**64, size=n, dtype=np.uint64),
                (directions, np.einsum("kd,md->km", directions, evidence.slopes)),
                (evidence.slopes, evidence.offsets, evidence.decided),
                (*self.prior.box(d), *self.prior.quadratic(d)),
                power,
                WIDTH,
                self.response.link,
            )
        return states


def log_importance_ratios(
    points: FloatArray,
    evidence: Evidence,
    prior: Prior,
    response: Response,
    base: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Return (n,) log posteriors less the log densities of a Gaussian (centre, precision), up to a constant."""
    n, d = points.shape
    out = np.empty(n)
    data = (evidence.slopes, evidence.offsets, evidence.decided)
    quadratic = (*prior.box(d), *prior.quadratic(d))
    for_ranges(log_densities, n, CHUNK, points, data, quadratic, base, response.link, 0.5 * response.share, out)
    return out
