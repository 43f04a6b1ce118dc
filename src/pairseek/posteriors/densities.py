"""Sequential Monte Carlo for any prior and response, calling their methods instead of compiled kernels.

The prior needs ``sample`` and ``log_density``, the response ``log_likelihood``. Every step evaluates all particles at
once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import Belief, BeliefInfo, FloatArray
from pairseek.model.priors import AnyPrior, log_density_of
from pairseek.numerics.covariances import square_root
from pairseek.numerics.moments import sample_moments
from pairseek.posteriors.base import sampled_belief
from pairseek.posteriors.slice_kernels import SLICE_WIDTH
from pairseek.posteriors.smc import tempered_samples

# A particle stays put if its slice has been shrunk this many times without an accepted point.
_MAX_SHRINKS = 100


def density_belief(
    log_answers: Callable[[FloatArray], FloatArray],
    shape: tuple[int, int],
    prior: AnyPrior,
    n: int,
    sweeps: int,
    rng: np.random.Generator,
) -> tuple[Belief, float]:
    """Return the belief of n particles, and the log evidence.

    Parameters
    ----------
    log_answers
        Function that returns the (n,) log-likelihoods of all answers at (n, d) points.
    shape
        (number of answers, number of dimensions).
    """
    start_time = time.perf_counter()
    (answers, d), stages, log_evidence = shape, 0, 0.0
    if answers:
        samples, stages, log_evidence = tempered_samples(DensityTarget(prior, log_answers, d), n, sweeps, rng)
    else:
        samples = _draw_prior(prior, n, d, rng)
    weights = np.full(n, 1 / n)
    info = BeliefInfo("particles", stages=stages, seconds=time.perf_counter() - start_time)
    return sampled_belief(samples, weights, sample_moments(samples, weights), info), log_evidence


@dataclass(frozen=True, eq=False)
class DensityTarget:
    """Target of sequential Monte Carlo: any prior, and any log-likelihood of the answers."""

    prior: AnyPrior
    log_answers: Callable[[FloatArray], FloatArray]
    d: int

    def sample_prior(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw points from the prior."""
        return _draw_prior(self.prior, n, self.d, rng)

    def log_likelihood(self, states: FloatArray) -> FloatArray:
        """Return the log-likelihood of all answers."""
        return np.asarray(self.log_answers(states))

    def move(
        self, states: FloatArray, covariance: FloatArray, power: float, sweeps: int, rng: np.random.Generator
    ) -> FloatArray:
        """Move all points at once by slice steps along random frames (Neal 2003, section 4)."""
        root = square_root(covariance)
        current = self._log_density(states, power)
        for _ in range(sweeps):
            frame, _ = np.linalg.qr(rng.standard_normal((self.d, self.d)))
            for direction in np.einsum("de,ek->kd", root, frame):
                self._step(states, current, direction, power, rng)
        return states

    def _step(
        self, states: FloatArray, current: FloatArray, direction: FloatArray, power: float, rng: np.random.Generator
    ) -> None:
        """Move every point along one direction, in place; `current` holds the (n,) current log densities."""
        n = len(states)
        level = current + np.log(1.0 - rng.random(n))
        left = -SLICE_WIDTH * rng.random(n)
        right = left + SLICE_WIDTH
        moving = np.arange(n)
        for _ in range(_MAX_SHRINKS):
            t = left[moving] + (right - left)[moving] * rng.random(len(moving))
            points = states[moving] + t[:, None] * direction
            proposed = self._log_density(points, power)
            accepted = proposed >= level[moving]
            states[moving[accepted]], current[moving[accepted]] = points[accepted], proposed[accepted]
            is_left = t < 0.0
            left[moving[is_left]], right[moving[~is_left]] = t[is_left], t[~is_left]
            moving = moving[~accepted]
            if not len(moving):
                return

    def _log_density(self, points: FloatArray, power: float) -> FloatArray:
        return log_density_of(self.prior, points) + power * self.log_likelihood(points)


def _draw_prior(prior: AnyPrior, n: int, d: int, rng: np.random.Generator) -> FloatArray:
    return np.ascontiguousarray(prior.sample(n, d, rng), dtype=np.float64)
