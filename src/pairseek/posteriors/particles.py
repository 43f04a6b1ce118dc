"""Weighted particles: reweighted by every answer, moved when the weights have grown uneven."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek._moments import CHUNK, sample_moments
from pairseek._parallel import for_ranges
from pairseek._types import Belief, BeliefInfo, Evidence, FloatArray
from pairseek.errors import InvalidParameter
from pairseek.posteriors._control import controlled_moments
from pairseek.posteriors._reliable import MOST_STAGES, STAGE, WIDTH, Settings, reliable_start, reliable_update
from pairseek.posteriors._slice import log_newest, slice_sweep
from pairseek.posteriors._weights import resampled, reweighted, stage_power
from pairseek.posteriors.base import effective_samples, frozen_belief
from pairseek.priors import Prior
from pairseek.responses import Response


@dataclass(frozen=True)
class Particles:
    """A sequential Monte Carlo sampler.

    One answer carries less than a bit, so reweighting is enough most of the time. When the effective sample size
    falls under ``threshold`` times n, particles are resampled (systematically) and each is moved by slice steps
    along a random orthonormal frame of the whitened space: for a Gaussian posterior one sweep over the frame
    would make it independent of where it was. An answer that would leave too few particles alive enters in
    stages, as a power between 0 and 1 of its likelihood, chosen so that each stage keeps half of them. An answer
    that contradicts a narrow belief would drag it far; where it takes more than a few stages all answers enter
    together, from the prior.

    Where k or the lapse is unknown, a particle has a k and a lapse too, and moves in all of them. Such a posterior need
    not be log-concave: with lapses, answers that contradict earlier ones may be right about a place that all particles
    have left. So when the chances of the latest answers were thirty times worse than even, all answers enter together,
    from the prior.

    Mean and covariance of the belief come from the samples with most of their noise taken out by control variates.

    Time grows linearly with n, with the number of answers, and with d (directions in a sweep).

    Parameters
    ----------
    n
        Number of particles.
    threshold
        Share of n under which the effective sample size must not fall.
    sweeps
        Sweeps over a frame in each move.
    """

    n: int = 4000
    threshold: float = 0.8
    sweeps: int = 2
    name: ClassVar[str] = "particles"
    infers_reliability: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.n < 2:
            raise InvalidParameter(f"Particles(n={self.n}): give at least 2 particles, some hundreds to be useful")
        if not 0 < self.threshold <= 1:
            raise InvalidParameter(f"Particles(threshold={self.threshold}): give a share, above 0 and up to 1")
        if self.sweeps < 1:
            raise InvalidParameter(f"Particles(sweeps={self.sweeps}): give at least 1")

    def start(self, prior: Prior, d: int, rng: np.random.Generator, response: Response | None = None) -> Belief:
        """Samples of the prior; of the priors of k and lapse too where the response has them."""
        if response is not None and not response.plain:
            return reliable_start(self.n, prior, d, response, rng)
        weights = np.full(self.n, 1 / self.n)
        return frozen_belief(prior.sample(self.n, d, rng), weights, prior.moments(d), BeliefInfo(float(self.n)))

    def update(
        self, belief: Belief, evidence: Evidence, prior: Prior, response: Response, rng: np.random.Generator
    ) -> Belief:
        """The belief after the newest answer, the last row of the evidence."""
        if not response.plain:
            settings = Settings(self.n, self.threshold, self.sweeps)
            return reliable_update(settings, belief, evidence, prior, response, rng)
        began = time.perf_counter()
        samples, weights = belief.samples, belief.weights
        power, stages = 0.0, 0
        while True:
            gain = np.empty(self.n)
            newest = (evidence.slopes[-1], evidence.offsets[-1], evidence.decided[-1])
            log_newest(0, self.n, samples, *newest, response.link, gain)
            full = reweighted(weights, gain, 1.0 - power)
            if effective_samples(full) >= self.threshold * self.n:
                weights = full
                break
            if effective_samples(full) >= STAGE * self.n:
                step, weights = 1.0 - power, full
            else:
                step = stage_power(weights, gain, 1.0 - power, effective_samples(weights) / 2)
                weights = reweighted(weights, gain, step)
            power = min(power + step, 1.0)
            samples = _moved(samples, weights, evidence, prior, response, (1.0, power), self.sweeps, rng)
            weights = np.full(self.n, 1 / self.n)
            stages += 1
            if power >= 1.0:
                break
            if stages >= MOST_STAGES:
                samples, more = _afresh(self.n, evidence, prior, response, self.sweeps, rng)
                stages += more
                break
        moments = controlled_moments(samples, weights, evidence, prior, response)
        moves = stages * self.sweeps * samples.shape[1]
        info = BeliefInfo(effective_samples(weights), moves, stages, time.perf_counter() - began)
        return frozen_belief(samples, weights, moments, info)


def _afresh(
    n: int, evidence: Evidence, prior: Prior, response: Response, sweeps: int, rng: np.random.Generator
) -> tuple[FloatArray, int]:
    """Samples of the posterior from samples of the prior, by a growing power of the whole likelihood; and the stages.

    On this path the belief narrows around one place: the stages grow with the logarithm of how narrow it gets. On
    the path of a single answer that contradicts earlier ones it travels, by about a deviation a stage, and particles
    that lag behind are left where only the earlier answers would tell that they do not belong.
    """
    d = evidence.slopes.shape[1]
    samples = prior.sample(n, d, rng)
    weights = np.full(n, 1 / n)
    power, stages = 0.0, 0
    while power < 1.0:
        gain, part = np.zeros(n), np.empty(n)
        for answer in zip(evidence.slopes, evidence.offsets, evidence.decided, strict=True):
            log_newest(0, n, samples, *answer, response.link, part)
            gain += part
        step = stage_power(weights, gain, 1.0 - power, n / 2)
        power = min(power + step, 1.0)
        uneven = reweighted(weights, gain, step)
        samples = _moved(samples, uneven, evidence, prior, response, (power, power), sweeps, rng)
        stages += 1
    return samples, stages


def _moved(
    samples: FloatArray,
    weights: FloatArray,
    evidence: Evidence,
    prior: Prior,
    response: Response,
    powers: tuple[float, float],
    sweeps: int,
    rng: np.random.Generator,
) -> FloatArray:
    n, d = samples.shape
    _, covariance = sample_moments(samples, weights)
    # A square root by eigenvectors exists for a flat covariance too; the floor keeps every direction movable.
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 1e-20 * max(values[-1], 1e-300)))
    points = np.ascontiguousarray(samples[resampled(weights, rng)])
    low, high = prior.box(d)
    centre, precision = prior.quadratic(d)
    for _ in range(sweeps):
        frame, _ = np.linalg.qr(rng.standard_normal((d, d)))
        directions = np.ascontiguousarray((root @ frame).T)
        lines = np.einsum("kd,md->km", directions, evidence.slopes)
        for_ranges(
            slice_sweep,
            n,
            CHUNK,
            points,
            rng.integers(0, 2**64, size=n, dtype=np.uint64),
            (directions, lines),
            (evidence.slopes, evidence.offsets, evidence.decided),
            (low, high, centre, precision),
            powers,
            WIDTH,
            response.link,
        )
    return points
