"""Sample source of a Gaussian approximation: importance samples, and the standard normal points behind them.

Particles are imported where they are used, because most searches never need them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from pairseek.core.lazy import cached_property
from pairseek.core.types import BaseSampleSource, FloatArray
from pairseek.core.validation import whole
from pairseek.model.priors import GaussianPrior, Prior, WithResiduals
from pairseek.numerics.covariances import square_root
from pairseek.numerics.jit import read_only
from pairseek.numerics.parallel import for_ranges
from pairseek.posteriors.base import effective_samples, generator_for
from pairseek.posteriors.ep_kernels import gaussian_points
from pairseek.posteriors.factors import Factors

# If the effective size of the samples is below this fraction of their number, they are resampled from more points, or
# moved, before they are returned.
_MIN_EVENNESS = 0.25
# If too few importance samples are effective, their number is multiplied by a power of two, up to this one. A point
# costs one likelihood evaluation, a particle's move several dozen.
_MAX_OVERSAMPLING = 32
# Sweeps of the slice sampler that moves resampled points.
_SWEEPS = 2
# Points computed by one thread at a time.
_POINTS_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class GaussianSamples(BaseSampleSource):
    """Importance samples from a Gaussian, weighted by the posterior it approximates."""

    mean: FloatArray
    covariance: FloatArray
    factors: Factors
    prior: Prior
    points: int
    widening: float = 1.0
    """Factor on the proposal covariance, so that the points cover a posterior with longer tails."""
    oversampling: int = 1
    """Importance samples drawn for each returned point; the points are resampled from them."""

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        """Return points of positive weight, and their weights."""
        n = self.points if count is None else whole(count, "the count of samples", 2)
        if isinstance(self.prior, WithResiduals) and len(self.factors.offsets):
            return self._draw_unweighted(n, self.prior)
        if len(self.factors.offsets) == 0:
            samples = self.prior.sample(n, len(self.mean), generator_for(self.factors, n))
            weights = np.full(n, 1.0 / n)
            for array in (samples, weights):
                array.flags.writeable = False
            return samples, weights
        return self._draw_even(n)

    def _draw_even(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return n points of similar weight: the weighted points as they are, resampled from more, or moved."""
        samples, weights, _ = self.importance_samples(n)
        effective = effective_samples(weights)
        oversampled = self.oversampled(2.0 * _MIN_EVENNESS * n, n) if effective < _MIN_EVENNESS * n else None
        if oversampled is not None:
            samples, weights, _ = oversampled.importance_samples(n)
            effective = effective_samples(weights)
        if len(weights) > n or effective < _MIN_EVENNESS * n:
            rng = generator_for(self.factors, n)
            from pairseek.posteriors.weights import resampled_rows  # few beliefs need it

            samples = np.ascontiguousarray(samples[resampled_rows(weights, n, rng)])
            weights = np.full(n, 1.0 / n)
            if effective < _MIN_EVENNESS * n:
                from pairseek.posteriors.tempering import PointTarget

                samples = PointTarget(self.factors, self.prior).move(samples, self.covariance, 1.0, _SWEEPS, rng)
        else:
            is_positive = weights > 0.0
            samples, weights = np.ascontiguousarray(samples[is_positive]), np.ascontiguousarray(weights[is_positive])
        for array in (samples, weights):
            array.flags.writeable = False
        return samples, weights

    def leading(self, count: int | None, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the first d coordinates of the points and the weights, without computing residual utilities."""
        n = self.points if count is None else whole(count, "the count of samples", 2)
        if isinstance(self.prior, WithResiduals) and len(self.factors.offsets) and d == self.prior.d and d:
            return self._draw_unweighted(n, WithResiduals(self.prior.point, d, 0))
        samples, weights = self.draw(count)
        return np.ascontiguousarray(samples[:, :d]), weights

    def _draw_unweighted(self, n: int, prior: WithResiduals) -> tuple[FloatArray, FloatArray]:
        """Return unweighted points of the Gaussian: residual utilities add too many dimensions for importance weights.

        The root of the covariance is triangular, so the leading coordinates do not depend on the others.
        """
        d, size = prior.d, prior.d + prior.count
        root = np.asarray(np.linalg.cholesky(self.covariance[:size, :size]), dtype=np.float64)
        parts = [standard_points(n, d)] if d else []
        if prior.count or not d:
            parts.append(standard_normals(n, prior.count))
        standard = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        samples = _from_standard(standard, root, self.mean)
        if type(prior.point) is not GaussianPrior:
            samples = _points_inside(samples, *prior.box(d))
        weights = np.full(len(samples), 1.0 / len(samples))
        for array in (samples, weights):
            array.flags.writeable = False
        return samples, weights

    def oversampled(self, minimum: float, n: int) -> GaussianSamples | None:
        """Return a source expected to yield `minimum` effective samples from n points; None if it needs too many."""
        effective = effective_samples(self.importance_samples(n)[1])
        factor = self.oversampling
        while effective * factor < minimum * self.oversampling:
            factor *= 2
        if factor == self.oversampling:
            return self
        return replace(self, oversampling=factor) if factor <= _MAX_OVERSAMPLING else None

    def importance_samples(self, n: int) -> tuple[FloatArray, FloatArray, float]:
        """Return the importance samples for n points, their weights, and the log evidence."""
        return self._weighted if n == self.points else self._importance_samples(n * self.oversampling)

    @cached_property
    def _weighted(self) -> tuple[FloatArray, FloatArray, float]:
        return self._importance_samples(self.points * self.oversampling)

    def _importance_samples(self, n: int) -> tuple[FloatArray, FloatArray, float]:
        from pairseek.posteriors.tempering import log_importance_ratios

        covariance = self.widening * self.covariance
        root = square_root(covariance)
        # The points have exactly the proposal's mean and covariance, which removes most of the sampling variance.
        samples = _from_standard(standard_points(n, len(self.mean)), root, self.mean)
        proposal = self.mean, np.ascontiguousarray(np.linalg.inv(covariance))
        logs = log_importance_ratios(samples, self.factors, self.prior, proposal)
        top = float(np.max(logs))
        if not top > -np.inf:
            return samples, np.full(n, 1.0 / n), -np.inf
        ratios = np.exp(logs - top)
        log_evidence = top + np.log(np.mean(ratios)) + 0.5 * np.linalg.slogdet(covariance)[1] + self.factors.constant
        return samples, np.asarray(ratios / np.sum(ratios)), float(log_evidence)


def _points_inside(samples: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the points inside a box or, if there are none, all points clipped to it."""
    if not np.any(np.isfinite(low) | np.isfinite(high)):
        return samples
    inside = np.all((samples >= low) & (samples <= high), axis=1)
    return np.ascontiguousarray(samples[inside]) if np.any(inside) else np.clip(samples, low, high)


def _from_standard(standard: FloatArray, root: FloatArray, mean: FloatArray) -> FloatArray:
    """Map (n, d) standard normal points to a Gaussian, given a (d, d) root of its covariance."""
    n, d = standard.shape
    samples = np.empty((n, d))
    roots = read_only(np.ascontiguousarray(root))
    for_ranges(gaussian_points, n, _POINTS_CHUNK, read_only(standard), roots, read_only(mean), samples)
    return samples


@lru_cache(maxsize=8)
def standard_normals(n: int, count: int) -> FloatArray:
    """Return (n, count) fixed draws from the standard normal distribution."""
    draws = np.random.default_rng([n, count]).standard_normal((n, count))
    draws.flags.writeable = False
    return draws


@lru_cache(maxsize=128)
def standard_points(n: int, d: int) -> FloatArray:
    """Return (n, d) quasi-random standard normal points with mean 0 and identity covariance.

    A Halton sequence with fixed scrambling, mapped by the normal quantile function, mirrored and whitened.
    """
    from scipy.stats import qmc  # takes half a second to import, and not every search needs samples

    half = max(-(-n // 2), 2 * (d + 1))
    uniform = qmc.Halton(d, scramble=True, rng=np.random.default_rng(0)).random(half)
    normal = ndtri(np.clip(uniform, 1e-12, 1.0 - 1e-12))
    # A point and its mirror image alternate, so that the first n are spread as evenly as all of them.
    points = np.stack([normal, -normal], axis=1).reshape(-1, d)
    if n > 2 * d:
        points = points[:n] - points[:n].mean(axis=0)
    root = np.linalg.cholesky(np.einsum("nd,ne->de", points, points) / len(points))
    points = np.ascontiguousarray(np.linalg.solve(root, points.T).T[:n])
    points.flags.writeable = False
    return points
