"""Expectation propagation: a Gaussian approximation of the posterior, with a check of its accuracy.

With the prior N(w; c, P⁻¹) inside a box and answers whose logits are z_j = s_j·w + o_j, the posterior is
p(w) ∝ N(w; c, P⁻¹) Π_i 1[low_i <= w_i <= high_i] Π_j f(z_j). EP approximates it by a Gaussian
q(w) ∝ N(w; c, P⁻¹) Π_i t_i(w_i) Π_j t_j(z_j) whose sites t are Gaussian in one number each. A site is chosen so that
q and q with the true factor in its place have the same mean and variance of that number (Minka, UAI 2001); see
`ep_kernels` for the moments and the updates.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from pairseek.core.types import Belief, BeliefInfo, Evidence, FloatArray
from pairseek.core.validation import whole
from pairseek.errors import InvalidParameter
from pairseek.model.priors import Prior
from pairseek.model.responses import Response
from pairseek.numerics.jit import LOGISTIC, PROBIT
from pairseek.numerics.moments import sample_moments
from pairseek.posteriors.base import effective_samples, generator_for
from pairseek.posteriors.control_variates import controlled_moments
from pairseek.posteriors.ep_kernels import profile_moments, propagate
from pairseek.posteriors.particles import Particles, PointTarget, log_importance_ratios
from pairseek.posteriors.smc import square_root
from pairseek.posteriors.weights import resampled, reweighted

# Sweeps end when no site moves the mean by more than this many deviations, or a variance by more than this share.
_TOLERANCE = 1e-5
_MOST_SWEEPS = 100
# Nodes of the quadrature over an interval.
_NODES = 32
# Standard deviation of an answer's logit under all others, in deviations of the noise of an answer (π/sqrt(3) for the
# logistic function, 1 for Φ), up to which EP is accepted: 2.0 and 1.1. Beyond, the likelihood of the answer is nearly a
# step at the scale of the cavity, and a Gaussian approximates the product badly.
_SHARP = 1.1
_NOISE = {LOGISTIC: math.pi / math.sqrt(3.0), PROBIT: 1.0}
# Importance samples replace the Gaussian's moments if the effective sample size is at least _COUNTED of their number,
# and at least _SAMPLES_PER_CONTROL for each control variate. Otherwise a sampler runs.
_COUNTED = 0.4
_SAMPLES_PER_CONTROL = 10.0
# Without control variates the relative error of a covariance is about sqrt((d + 1)/samples).
_SAMPLES_PER_DIMENSION = 100
# Importance samples for each dimension, at least: with the share above, as many effective ones as that asks for.
_POINTS_PER_DIMENSION = 256
# Along lines through the mean, the mean of the posterior may differ from the approximation's by so many deviations, and
# the variance by such a share, in one dimension and for each further one. In one dimension the line is the posterior;
# in more, a line passes through the mean of all other directions and exaggerates (a posterior within 1 % of EP had 9 %
# in d = 8), while an error along one direction is a smaller part of the whole covariance.
_PROFILE_MEAN = (0.05, 0.02)
_PROFILE_VARIANCE = (0.08, 0.02)
# A box prior is looked at again in so few dimensions, where importance samples are cheap and lines say little.
_BOX_DIMENSIONS = 3
# Where the weighted moments differ from the Gaussian's by more than _FAR_MOMENTS, relative to its variances, importance
# sampling is repeated from a Gaussian with the new moments, up to _ROUNDS times.
_FAR_MOMENTS = 0.3
_ROUNDS = 3
# Particles of the sampler at least, and so many divided by d: in few dimensions, where nearly noiseless answers leave
# wedges in which chains mix slowly, more of them take no longer.
_PARTICLES = 4000
_PARTICLES_BY_DIMENSION = 24_000
_SWEEPS = 2
# Samples with an effective sample size below this share are resampled and moved before they are returned.
_EVEN = 0.25


@dataclass(frozen=True)
class EP:
    """Expectation propagation with a check of its accuracy, and samplers where it fails.

    Every call starts from the prior and sweeps over the answers until convergence: a pure function of the evidence,
    without randomness, in O(sweeps answers d²). Four to six sweeps are usual.

    EP is exact for one answer and a Gaussian prior, and accurate where each answer is little informative given all
    others. It is inaccurate for nearly noiseless answers, whose posterior is almost a polytope, where many answers make
    the posterior skewed along one direction, and in few dimensions at the faces of a box. The check has two parts: the
    largest standard deviation of an answer's logit under its cavity, and the moments of the posterior along lines
    through the mean. Where one of them fails, in a box of up to three dimensions, or with a lapse, importance samples
    from a wider Gaussian replace EP; if their effective sample size is too small, `Particles` do.
    ``Belief.info.method`` tells which of the three was used.

    Parameters
    ----------
    points
        Number of importance samples, for the check and as samples of the belief: a low-discrepancy sequence.
    """

    points: int = 2048
    name: ClassVar[str] = "ep"
    takes_lapses: ClassVar[bool] = True
    uses_kernels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", whole(self.points, "points of EP", 16, field="points"))

    def infer(self, evidence: Evidence, prior: Prior, response: Response) -> Belief:
        """Return the belief after these answers."""
        began = time.perf_counter()
        mean, covariance, facts = gaussian_posterior(evidence, prior, response)
        converged, sweeps, sharpest, profiles = bool(facts[0]), int(facts[1]), float(facts[2]), bool(facts[3])
        for array in (mean, covariance):
            array.flags.writeable = False
        cloud = GaussianCloud(mean, covariance, evidence, prior, response, self.points)
        info = BeliefInfo("ep", logit_deviation=sharpest, sweeps=sweeps, seconds=time.perf_counter() - began)
        # One answer under a Gaussian prior is exact however sharp it is.
        exact = len(evidence.offsets) <= 1 and not np.any(np.isfinite(prior.box(len(mean))))
        blunt = sharpest <= _SHARP * _NOISE[response.link] or exact
        if converged and blunt and profiles and response.plain:
            return Belief(mean, covariance, info, cloud)
        return _importance_sampled(cloud, info, began, trusted=converged)


@dataclass(frozen=True, eq=False)
class GaussianCloud:
    """Importance samples from a Gaussian, weighted by the posterior that it approximates."""

    mean: FloatArray
    covariance: FloatArray
    evidence: Evidence
    prior: Prior
    response: Response
    points: int
    widening: float = 1.0
    """Factor on the covariance from which the points come, so that they cover a posterior with longer tails."""

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        """Return points with a weight above 0, and their weights."""
        n = self.points if count is None else whole(count, "the count of samples", 2)
        if len(self.evidence.offsets) == 0:
            samples = self.prior.sample(n, len(self.mean), generator_for(self.evidence, n))
            weights = np.full(n, 1.0 / n)
            for array in (samples, weights):
                array.flags.writeable = False
            return samples, weights
        samples, weights = self.weighted if n == self.points else self._weighted(n)
        if self.response.plain and effective_samples(weights) < _EVEN * n:
            rng = generator_for(self.evidence, n)
            samples = np.ascontiguousarray(samples[resampled(weights, n, rng)])
            target = PointTarget(self.evidence, self.prior, self.response)
            samples, weights = target.move(samples, self.covariance, 1.0, _SWEEPS, rng), np.full(n, 1.0 / n)
        else:
            kept = weights > 0.0
            samples, weights = np.ascontiguousarray(samples[kept]), np.ascontiguousarray(weights[kept])
        for array in (samples, weights):
            array.flags.writeable = False
        return samples, weights

    @cached_property
    def weighted(self) -> tuple[FloatArray, FloatArray]:
        """Return (points, d) importance samples and their (points,) weights."""
        return self._weighted(self.points)

    def _weighted(self, n: int) -> tuple[FloatArray, FloatArray]:
        covariance = self.widening * self.covariance
        root = square_root(covariance)
        # The points have exactly this mean and covariance, which removes most of the sampling variance.
        samples = self.mean + np.einsum("nd,ed->ne", standard_points(n, len(self.mean)), root)
        base = self.mean, np.ascontiguousarray(np.linalg.inv(covariance))
        logs = log_importance_ratios(samples, self.evidence, self.prior, self.response, base)
        if not np.any(np.isfinite(logs)):
            return samples, np.full(n, 1.0 / n)
        return samples, reweighted(np.full(n, 1.0 / n), logs, 1.0)


def gaussian_posterior(
    evidence: Evidence, prior: Prior, response: Response
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the (d,) mean and (d, d) covariance by EP, and four facts about them.

    Whether it converged, its sweeps, the sharpest logit, and whether the posterior agrees along lines through the mean.
    """
    m, d = evidence.slopes.shape
    origin, covariance = prior.moments(d)
    if not (np.all(np.isfinite(origin)) and np.all(np.isfinite(covariance))):
        raise InvalidParameter(f"the prior {prior!r} has no finite mean and covariance: use Particles() with it")
    if m == 0:
        return origin.copy(), covariance.copy(), np.array([1.0, 0.0, 0.0, 1.0])
    # In units of the prior's standard deviations, so that no scale of the items loses precision.
    unit = np.sqrt(np.diag(covariance))
    low, high = prior.box(d)
    centre, precision = prior.quadratic(d)
    scaled = (low - origin) / unit, (high - origin) / unit, (centre - origin) / unit, precision * np.outer(unit, unit)
    slopes = np.ascontiguousarray(evidence.slopes * unit)
    offsets = evidence.offsets + np.einsum("md,d->m", evidence.slopes, origin)
    sites, facts = np.empty((m + d, 2)), np.empty(3)
    mean, out = np.empty(d), np.empty((d, d))
    data = (slopes, offsets, np.ascontiguousarray(evidence.decided))
    propagate(
        data,
        scaled,
        _rule(),
        response.link,
        0.5 * response.share,
        (_TOLERANCE, float(_MOST_SWEEPS)),
        sites,
        mean,
        out,
        facts,
    )
    if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(out))):
        return origin.copy(), covariance.copy(), np.array([0.0, facts[1], np.inf, 0.0])
    agrees = facts[0] == 1.0 and _profiles_agree(data, scaled, response, sites, mean, out)
    return origin + unit * mean, out * np.outer(unit, unit), np.append(facts, float(agrees))


def _profiles_agree(
    data: tuple[FloatArray, ...],
    prior: tuple[FloatArray, ...],
    response: Response,
    sites: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
) -> bool:
    """Return whether the posterior has the moments of EP along the lines on which it is least Gaussian.

    These are the principal directions of the answers' information, in deviations of the approximate posterior. Each of
    many answers along one direction contributes little to what is known of it, so no cavity shows that together they
    make the posterior skewed; a line does.
    """
    m, d = data[0].shape
    if np.any(np.isfinite(prior[0]) | np.isfinite(prior[1])):
        return bool(d > _BOX_DIMENSIONS)
    root = square_root(covariance)
    whitened = np.einsum("md,de->me", data[0], root)
    information = np.einsum("m,md,me->de", sites[:m, 0], whitened, whitened)
    _, vectors = np.linalg.eigh(0.5 * (information + information.T))
    lines = np.ascontiguousarray(np.einsum("de,ek->kd", root, vectors))
    found = np.empty((d, 2))
    profile_moments(data, _rule(), response.link, sites, mean, lines, found)
    shift, ratio = np.max(np.abs(found[:, 0])), np.max(np.abs(found[:, 1] - 1.0))
    most = [first + more * (d - 1) for first, more in (_PROFILE_MEAN, _PROFILE_VARIANCE)]
    return bool(shift <= most[0] and ratio <= most[1])


def _importance_sampled(cloud: GaussianCloud, info: BeliefInfo, began: float, *, trusted: bool) -> Belief:
    """Return the belief by weighted points if enough of them count, else by a sampler."""
    evidence, prior, response = cloud.evidence, cloud.prior, cloud.response
    d = len(cloud.mean)
    facts: dict[str, Any] = {"logit_deviation": info.logit_deviation, "sweeps": info.sweeps}
    controls = _SAMPLES_PER_CONTROL * (d + d * (d + 1) // 2)
    least = min(controls, _SAMPLES_PER_DIMENSION * (d + 1.0))
    # In few dimensions a wider proposal costs few effective samples.
    points = max(cloud.points, _POINTS_PER_DIMENSION * (d + 1))
    cloud = replace(cloud, widening=1.0 + 4.0 / (d + 1.0), points=points)
    for _ in range(_ROUNDS if trusted else 0):
        samples, weights = cloud.weighted
        counted = effective_samples(weights)
        if counted < max(_COUNTED * len(weights), least):
            break
        if response.plain:
            mean, covariance = controlled_moments(samples, weights, evidence, prior, response)
        else:
            mean, covariance = sample_moments(samples, weights)  # the control variates know no lapses
        if _moment_distance(cloud, mean, covariance) < _FAR_MOMENTS:
            info = BeliefInfo("weighted", counted, **facts, seconds=time.perf_counter() - began)
            for array in (mean, covariance):
                array.flags.writeable = False
            return Belief(mean, covariance, info, cloud)
        cloud = replace(cloud, mean=mean, covariance=covariance)
    belief = Particles(max(_PARTICLES, _PARTICLES_BY_DIMENSION // d), _SWEEPS).infer(evidence, prior, response)
    return replace(belief, info=replace(belief.info, **facts, seconds=time.perf_counter() - began))


def _moment_distance(cloud: GaussianCloud, mean: FloatArray, covariance: FloatArray) -> float:
    """Return how far moments are from those of the cloud's Gaussian, in its variances, in the worst direction."""
    root = square_root(cloud.covariance)
    white = np.linalg.solve(root, np.linalg.solve(root, covariance).T)
    shift = np.linalg.solve(root, mean - cloud.mean)
    return float(max(np.max(np.abs(np.linalg.eigvalsh(0.5 * (white + white.T)) - 1.0)), np.sum(shift**2)))


@lru_cache(maxsize=1)
def _rule() -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(_NODES)


@lru_cache(maxsize=32)
def standard_points(n: int, d: int) -> FloatArray:
    """Return (n, d) points whose mean is 0 and whose covariance is the identity, spread like a standard normal.

    A scrambled Halton sequence of fixed scrambling, mapped by the normal quantile function, with the mirror image of
    every point, whitened.
    """
    from scipy.stats import qmc  # takes half a second to import, and not every search needs samples

    half = max(-(-n // 2), 2 * (d + 1))
    uniform = qmc.Halton(d, scramble=True, rng=np.random.default_rng(0)).random(half)
    normal = ndtri(np.clip(uniform, 1e-12, 1.0 - 1e-12))
    # Alternating, so that the first n of them are spread as well as all.
    points = np.stack([normal, -normal], axis=1).reshape(-1, d)
    if n > 2 * d:
        points = points[:n] - points[:n].mean(axis=0)
    root = np.linalg.cholesky(np.einsum("nd,ne->de", points, points) / len(points))
    points = np.ascontiguousarray(np.linalg.solve(root, points.T).T[:n])
    points.flags.writeable = False
    return points
