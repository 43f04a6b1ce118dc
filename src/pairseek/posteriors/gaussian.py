"""Expectation propagation: a Gaussian approximation of the posterior, with a check of its accuracy.

With the prior N(w; c, P⁻¹) inside a box and answers whose logits are z_j = s_j·w + o_j, the posterior is
p(w) ∝ N(w; c, P⁻¹) Π_i 1[low_i <= w_i <= high_i] Π_j f(z_j). EP approximates it by a Gaussian
q(w) ∝ N(w; c, P⁻¹) Π_i t_i(w_i) Π_j t_j(z_j) whose sites t are Gaussian in one number each. A site is chosen so that
q and q with the true factor in its place have the same mean and variance of that number (Minka, UAI 2001); see
`ep_kernels` for the moments and the updates.

Importance samples and particles are imported where they begin: most searches never leave the Gaussian.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtri

from pairseek.core.lazy import cached_property
from pairseek.core.types import BaseSampleSource, Belief, BeliefInfo, FloatArray
from pairseek.core.validation import whole
from pairseek.errors import InvalidParameter
from pairseek.model.priors import GaussianPrior, Prior, WithinSpan, WithResiduals, is_density
from pairseek.numerics.covariances import square_root
from pairseek.numerics.jit import LOGISTIC, PROBIT, PriorArrays, read_only
from pairseek.numerics.parallel import for_ranges
from pairseek.posteriors.base import effective_samples, generator_for
from pairseek.posteriors.ep_kernels import (
    gaussian_points,
    join_private,
    log_inverse_determinant,
    profile_moments,
    propagate,
    reduced,
)
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.weights import resampled

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
# Where the variances of two directions differ by more, rounding moves the mean by a part of the smaller deviation.
_THINNEST = 1e-9
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
# Samples with an effective sample size below this share are resampled from more points, or moved, before they are
# returned.
_EVEN = 0.25
# Where too few importance samples count, their number is multiplied by a power of two up to this one. A point costs one
# likelihood, and a move of a particle some dozens.
_MOST_OVERSAMPLING = 32
# Effective samples for each point where more importance samples are drawn, since the weights are then uneven.
_COUNTED_OF_MORE = 0.8
# Share of the wanted effective samples that suffices: the number of samples was chosen by an estimate of it.
_NEARLY = 0.75
# Dimensions up to which moments are computed from all importance samples, and not from points resampled from them: the
# time of control variates grows with d⁴.
_FEW_DIMENSIONS = 4
# Points that one thread places at a time.
_POINTS_CHUNK = 4096

GOAL = (_TOLERANCE, float(_MOST_SWEEPS))
"""Tolerance at which the sweeps of EP end, and their largest number."""


@dataclass(frozen=True, eq=False)
class GaussianFit:
    """Result of expectation propagation.

    Attributes
    ----------
    mean, covariance
        (d,) and (d, d).
    converged
        Whether the sweeps ended by themselves.
    sweeps
        Sweeps over the answers.
    logit_deviation
        Largest standard deviation of an answer's logit under all others.
    log_evidence
        log p(answers), with the prior not normalized: see `log_prior_mass`.
    sites
        (m + d, 2) precision and shift of each site, in units of the prior.
    """

    mean: FloatArray
    covariance: FloatArray
    converged: bool
    sweeps: int
    logit_deviation: float
    log_evidence: float
    sites: FloatArray


@dataclass(frozen=True, eq=False)
class GaussianSamples(BaseSampleSource):
    """Importance samples from a Gaussian, weighted by the posterior that it approximates."""

    mean: FloatArray
    covariance: FloatArray
    factors: Factors
    prior: Prior
    points: int
    widening: float = 1.0
    """Factor on the covariance from which the points come, so that they cover a posterior with longer tails."""
    oversampling: int = 1
    """Importance samples for each of the points, which are resampled from them."""

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        """Return points with a weight above 0, and their weights."""
        n = self.points if count is None else whole(count, "the count of samples", 2)
        if isinstance(self.prior, WithResiduals) and len(self.factors.offsets):
            return self._unweighted(n, self.prior)
        if len(self.factors.offsets) == 0:
            samples = self.prior.sample(n, len(self.mean), generator_for(self.factors, n))
            weights = np.full(n, 1.0 / n)
            for array in (samples, weights):
                array.flags.writeable = False
            return samples, weights
        return self._even(n)

    def _even(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return n points of like weights: weighted as they are, resampled from more of them, or moved."""
        samples, weights, _ = self.importance_samples(n)
        counted = effective_samples(weights)
        more = self.oversampled(2.0 * _EVEN * n, n) if counted < _EVEN * n else None
        if more is not None:
            samples, weights, _ = more.importance_samples(n)
            counted = effective_samples(weights)
        if len(weights) > n or counted < _EVEN * n:
            rng = generator_for(self.factors, n)
            samples = np.ascontiguousarray(samples[resampled(weights, n, rng)])
            weights = np.full(n, 1.0 / n)
            if counted < _EVEN * n:
                from pairseek.posteriors.tempering import PointTarget

                samples = PointTarget(self.factors, self.prior).move(samples, self.covariance, 1.0, _SWEEPS, rng)
        else:
            kept = weights > 0.0
            samples, weights = np.ascontiguousarray(samples[kept]), np.ascontiguousarray(weights[kept])
        for array in (samples, weights):
            array.flags.writeable = False
        return samples, weights

    def leading(self, count: int | None, d: int) -> tuple[FloatArray, FloatArray]:
        """Return the d leading coordinates of the points, and the weights, without the others if they are residuals."""
        n = self.points if count is None else whole(count, "the count of samples", 2)
        if isinstance(self.prior, WithResiduals) and len(self.factors.offsets) and d == self.prior.d and d:
            return self._unweighted(n, WithResiduals(self.prior.point, d, 0))
        samples, weights = self.draw(count)
        return np.ascontiguousarray(samples[:, :d]), weights

    def _unweighted(self, n: int, prior: WithResiduals) -> tuple[FloatArray, FloatArray]:
        """Return points of the Gaussian itself: in so many dimensions importance weights are too uneven.

        The root of the covariance is triangular, so that leading coordinates do not depend on the others.
        """
        d, size = prior.d, prior.d + prior.count
        root = np.asarray(np.linalg.cholesky(self.covariance[:size, :size]), dtype=np.float64)
        parts = [standard_points(n, d)] if d else []
        if prior.count or not d:
            parts.append(standard_normals(n, prior.count))
        standard = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        samples = _points(standard, root, self.mean)
        if type(prior.point) is not GaussianPrior:
            samples = _within(samples, *prior.box(d))
        weights = np.full(len(samples), 1.0 / len(samples))
        for array in (samples, weights):
            array.flags.writeable = False
        return samples, weights

    def oversampled(self, least: float, n: int) -> GaussianSamples | None:
        """Return this source with enough importance samples for `least` effective ones; None if that takes too many."""
        counted = effective_samples(self.importance_samples(n)[1])
        factor = self.oversampling
        while counted * factor < least * self.oversampling:
            factor *= 2
        if factor == self.oversampling:
            return self
        return replace(self, oversampling=factor) if factor <= _MOST_OVERSAMPLING else None

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
        # The points have exactly this mean and covariance, which removes most of the sampling variance.
        samples = _points(standard_points(n, len(self.mean)), root, self.mean)
        base = self.mean, np.ascontiguousarray(np.linalg.inv(covariance))
        logs = log_importance_ratios(samples, self.factors, self.prior, base)
        top = float(np.max(logs))
        if not top > -np.inf:
            return samples, np.full(n, 1.0 / n), -np.inf
        ratios = np.exp(logs - top)
        log_evidence = top + np.log(np.mean(ratios)) + 0.5 * np.linalg.slogdet(covariance)[1] + self.factors.constant
        return samples, np.asarray(ratios / np.sum(ratios)), float(log_evidence)


def _within(samples: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the points inside of a box or, if there are none, all of them moved to its faces."""
    if not np.any(np.isfinite(low) | np.isfinite(high)):
        return samples
    inside = np.all((samples >= low) & (samples <= high), axis=1)
    return np.ascontiguousarray(samples[inside]) if np.any(inside) else np.clip(samples, low, high)


def _points(standard: FloatArray, root: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the (n, d) points of a Gaussian that belong to standard points, with a (d, d) root of its covariance."""
    n, d = standard.shape
    samples = np.empty((n, d))
    roots = read_only(np.ascontiguousarray(root))
    for_ranges(gaussian_points, n, _POINTS_CHUNK, read_only(standard), roots, read_only(mean), samples)
    return samples


@lru_cache(maxsize=8)
def standard_normals(n: int, count: int) -> FloatArray:
    """Return (n, count) fixed draws from the standard normal distribution."""
    drawn = np.random.default_rng([n, count]).standard_normal((n, count))
    drawn.flags.writeable = False
    return drawn


@dataclass(frozen=True, eq=False)
class PriorForm:
    """A prior as the kernels of EP take it, in units of its own standard deviations so that no scale loses precision.

    Attributes
    ----------
    origin, unit
        (d,) mean and standard deviations.
    covariance
        (d, d) covariance.
    scaled
        Box, centre and precision in these units.
    boxed
        Whether a coordinate is bounded.
    """

    origin: FloatArray
    unit: FloatArray
    covariance: FloatArray
    scaled: PriorArrays
    boxed: bool
    residuals: int = 0
    """Number of residual utilities, which are the last coordinates of the state."""
    spanned: bool = False
    """Whether the coordinates of the point are those of the span of the answers."""

    @classmethod
    def of(cls, prior: Prior, d: int) -> PriorForm:
        """Return the form of a prior in d dimensions."""
        # A search with an unknown residual infers several times under one prior.
        return _form_with_residuals(prior, d) if isinstance(prior, WithResiduals) else cls._of(prior, d)

    @classmethod
    def _of(cls, prior: Prior, d: int) -> PriorForm:
        origin, covariance = prior.moments(d)
        if not (np.all(np.isfinite(origin)) and np.all(np.isfinite(covariance))):
            raise InvalidParameter(f"the prior {prior!r} has no finite mean and covariance: use Particles() with it")
        unit = np.sqrt(np.diag(covariance))
        low, high = prior.box(d)
        centre, precision = prior.quadratic(d)
        scaled = (
            (low - origin) / unit,
            (high - origin) / unit,
            (centre - origin) / unit,
            np.ascontiguousarray(precision * np.outer(unit, unit)),
        )
        boxed = bool(np.any(np.isfinite(low) | np.isfinite(high)))
        residuals = prior.count if isinstance(prior, WithResiduals) else 0
        return cls(origin, unit, covariance, scaled, boxed, residuals, isinstance(prior, WithinSpan))

    @cached_property
    def units(self) -> FloatArray:
        """(d, d) products of two units."""
        return np.outer(self.unit, self.unit)

    @cached_property
    def log_volume(self) -> float:
        """Sum of the logs of the units."""
        return float(np.sum(np.log(self.unit)))

    @cached_property
    def log_mass(self) -> float:
        """Log integral of the prior, without its constants."""
        d = len(self.unit)
        if not self.boxed:
            # Residual utilities are independent and have unit variance.
            size = d - self.residuals
            return 0.5 * log_inverse_determinant(self.leading(size)[3].copy()) + self.log_volume
        empty = Factors(np.empty((0, d)), np.empty(0), np.empty(0), LOGISTIC, (0.0, 1.0, 0.0))
        return gaussian_fit(empty, self).log_evidence

    def leading(self, size: int) -> PriorArrays:
        """Return the form of the leading coordinates, for residual utilities, which are independent and alike."""
        low, high, centre, precision = self.scaled
        return low[:size], high[:size], centre[:size], np.ascontiguousarray(precision[:size, :size])

    def data(self, factors: Factors) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the answers in units of the prior."""
        slopes = np.ascontiguousarray(factors.slopes * self.unit)
        return slopes, factors.offsets + np.einsum("md,d->m", factors.slopes, self.origin), factors.decided


# Few, because after hundreds of answers each takes megabytes.
@lru_cache(maxsize=8)
def _form_with_residuals(prior: WithResiduals, d: int) -> PriorForm:
    return PriorForm._of(prior, d)


def gaussian_fit(
    factors: Factors,
    prior: Prior | PriorForm,
    start: FloatArray | None = None,
    goal: tuple[float, float] = GOAL,
) -> GaussianFit:
    """Return the approximation by EP, from the prior or from the sites of a similar fit.

    ``goal`` is the tolerance at which sweeps end, and their largest number. A residual utility that occurs in one
    answer alone is integrated out of that answer's likelihood, and inferred afterwards: so a sweep is quadratic in the
    other coordinates alone, and the result is the same.
    """
    m, d = factors.slopes.shape
    form = prior if isinstance(prior, PriorForm) else PriorForm.of(prior, d)
    if m == 0 and not form.boxed:
        # The prior itself. The first question of a search comes here, and would wait for the kernel's compilation.
        return _unanswered(form, form.log_mass + factors.constant, np.zeros((d, 2)))
    sites = np.zeros((m + d, 2)) if start is None else start.copy()
    facts = np.empty(4)
    offsets, decided = factors.offsets + np.einsum("md,d->m", factors.slopes, form.origin), read_only(factors.decided)
    response, warm = (_rule(), factors.link, factors.model, goal), start is not None
    if form.residuals:
        first = d - form.residuals
        private, kept, slopes, own, inner_sites = reduced(read_only(factors.slopes), form.unit, first, sites)
        answers = slopes, offsets, decided
        known = propagate(answers, own, form.leading(len(kept)), *response, warm, inner_sites, facts)
        mean, out = np.empty(d), np.empty((d, d))
        join_private(private, kept, answers, inner_sites, known, sites, mean, out)
    else:
        answers = np.ascontiguousarray(factors.slopes * form.unit), offsets, decided
        mean, out = propagate(answers, np.zeros(m), form.scaled, *response, warm, sites, facts)
    log_evidence = float(facts[3] + form.log_volume + factors.constant)
    if m == 0:
        return _unanswered(form, log_evidence, sites)
    if not (math.isfinite(log_evidence) and np.isfinite(mean).all() and np.isfinite(out).all()):
        lost = form.origin.copy(), form.covariance.copy()
        sweeps = int(facts[1])
        return GaussianFit(
            *lost, converged=False, sweeps=sweeps, logit_deviation=np.inf, log_evidence=-np.inf, sites=sites
        )
    found = form.origin + form.unit * mean, out * form.units
    return GaussianFit(*found, bool(facts[0] == 1.0), int(facts[1]), float(facts[2]), log_evidence, sites)


def _unanswered(form: PriorForm, log_evidence: float, sites: FloatArray) -> GaussianFit:
    """Return the moments of the prior."""
    found = form.origin.copy(), form.covariance.copy()
    return GaussianFit(*found, converged=True, sweeps=0, logit_deviation=0.0, log_evidence=log_evidence, sites=sites)


def log_prior_mass(prior: Prior, d: int) -> float:
    """Return the log integral of the prior as EP and importance samples take it: without its constants."""
    return 0.0 if is_density(prior) else PriorForm.of(prior, d).log_mass


def is_trusted(fit: GaussianFit, factors: Factors, prior: Prior | PriorForm, *, sharp: bool = False) -> bool:
    """Return whether EP is accurate: it converged, no answer is nearly a step, and the posterior agrees along lines.

    `sharp` accepts answers that are nearly steps.
    """
    d = len(fit.mean)
    form = prior if isinstance(prior, PriorForm) else PriorForm.of(prior, d)
    if form.residuals or (form.spanned and factors.is_log_concave):
        # Every answer has a direction of its own, as in a Gaussian process, where EP is accurate however sharp the
        # answers are; lines through so many dimensions would say nothing.
        return fit.converged
    # One answer under a Gaussian prior is exact however sharp it is, unless it may be a lapse.
    if len(factors.offsets) <= 1 and factors.is_log_concave and not form.boxed:
        return True
    values = np.linalg.eigvalsh(fit.covariance / form.units)
    if values[0] < _THINNEST * values[-1]:
        return False
    blunt = sharp or fit.logit_deviation <= _SHARP * _NOISE[factors.link]
    return fit.converged and blunt and (d > _BOX_DIMENSIONS if form.boxed else _profiles_agree(fit, factors, form))


def _profiles_agree(fit: GaussianFit, factors: Factors, form: PriorForm) -> bool:
    """Return whether the posterior has the moments of EP along the lines on which it is least Gaussian.

    These are the principal directions of the answers' information, in deviations of the approximate posterior. Each of
    many answers along one direction contributes little to what is known of it, so no cavity shows that together they
    make the posterior skewed; a line does.
    """
    m, d = factors.slopes.shape
    data = form.data(factors)
    root = square_root(fit.covariance / form.units)
    whitened = np.einsum("md,de->me", data[0], root)
    information = np.einsum("m,md,me->de", fit.sites[:m, 0], whitened, whitened)
    _, vectors = np.linalg.eigh(0.5 * (information + information.T))
    lines = np.ascontiguousarray(np.einsum("de,ek->kd", root, vectors))
    found = np.empty((d, 2))
    profile_moments(
        data, _rule(), factors.link, factors.model, fit.sites, (fit.mean - form.origin) / form.unit, lines, found
    )
    shift, ratio = np.max(np.abs(found[:, 0])), np.max(np.abs(found[:, 1] - 1.0))
    most = [first + more * (d - 1) for first, more in (_PROFILE_MEAN, _PROFILE_VARIANCE)]
    return bool(shift <= most[0] and ratio <= most[1])


@dataclass(frozen=True, eq=False)
class PointBelief:
    """Posterior of the user point for known parameters of the response, with its evidence.

    Attributes
    ----------
    belief
        The belief, without the evidence: see `evident`.
    log_evidence
        log p(answers), with the prior not normalized.
    fit
        The result of EP that it rests on, if any.
    """

    belief: Belief
    log_evidence: float
    fit: GaussianFit | None = None

    def evident(self, prior: Prior, answers: int) -> Belief:
        """Return the belief with log p(answers), which is 0 for none."""
        log_evidence = self.log_evidence - log_prior_mass(prior, len(self.belief.mean)) if answers else 0.0
        info = replace(self.belief.info, log_evidence=log_evidence, log_mass=self.log_evidence)
        return replace(self.belief, info=info)


def propagated(fit: GaussianFit, factors: Factors, prior: Prior, points: int, seconds: float = 0.0) -> PointBelief:
    """Return the belief with the moments of EP."""
    for array in (fit.mean, fit.covariance):
        array.flags.writeable = False
    source = GaussianSamples(fit.mean, fit.covariance, factors, prior, points)
    info = BeliefInfo(
        "ep",
        logit_deviation=fit.logit_deviation,
        sweeps=fit.sweeps,
        seconds=seconds,
    )
    return PointBelief(Belief(fit.mean, fit.covariance, info, source), fit.log_evidence, fit)


def importance_sampled(fit: GaussianFit, factors: Factors, prior: Prior, points: int) -> PointBelief:
    """Return the belief by weighted points from the Gaussian if enough of them count, else by a sampler."""
    from pairseek.posteriors.control_variates import controlled_moments
    from pairseek.posteriors.tempering import tempered_belief

    began = time.perf_counter()
    d = len(fit.mean)
    facts: dict[str, Any] = {"logit_deviation": fit.logit_deviation, "sweeps": fit.sweeps}
    controls = _SAMPLES_PER_CONTROL * (d + d * (d + 1) // 2)
    least = min(controls, _SAMPLES_PER_DIMENSION * (d + 1.0))
    # In few dimensions a wider proposal costs few effective samples.
    points = max(points, _POINTS_PER_DIMENSION * (d + 1))
    source = GaussianSamples(fit.mean, fit.covariance, factors, prior, points, widening=1.0 + 4.0 / (d + 1.0))
    # With lapses there may be modes that no point from this Gaussian reaches.
    for _ in range(_ROUNDS if fit.converged and factors.is_log_concave else 0):
        counted = effective_samples(source.importance_samples(points)[1])
        if counted < max(_COUNTED * points, least):
            enough = max(_COUNTED_OF_MORE * points, least)
            more = source.oversampled(enough, points)
            if more is None:
                break
            counted = effective_samples(more.importance_samples(points)[1])
            if counted < _NEARLY * enough:
                break
            source = more
        samples, weights, log_evidence = source.importance_samples(points)
        if d > _FEW_DIMENSIONS:
            samples, weights = source.draw(points)
        mean, covariance = controlled_moments(samples, weights, factors, prior)
        if _moment_distance(source, mean, covariance) < _FAR_MOMENTS:
            seconds = time.perf_counter() - began
            info = BeliefInfo("weighted", counted, **facts, seconds=seconds)
            for array in (mean, covariance):
                array.flags.writeable = False
            # A copy is without the importance samples, which are many.
            kept = source if source.oversampling == 1 else replace(source)
            return PointBelief(Belief(mean, covariance, info, kept), log_evidence)
        source = replace(source, mean=mean, covariance=covariance)
    n = max(_PARTICLES, _PARTICLES_BY_DIMENSION // d)
    belief, gained = tempered_belief(factors, prior, n, _SWEEPS, generator_for(factors, n))
    info = replace(belief.info, **facts, seconds=time.perf_counter() - began)
    return PointBelief(replace(belief, info=info), gained + log_prior_mass(prior, d))


def _moment_distance(source: GaussianSamples, mean: FloatArray, covariance: FloatArray) -> float:
    """Return how far moments are from those of the source's Gaussian, in its variances, in the worst direction."""
    root = square_root(source.covariance)
    white = np.linalg.solve(root, np.linalg.solve(root, covariance).T)
    shift = np.linalg.solve(root, mean - source.mean)
    return float(max(np.max(np.abs(np.linalg.eigvalsh(0.5 * (white + white.T)) - 1.0)), np.sum(shift**2)))


@lru_cache(maxsize=1)
def _rule() -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(_NODES)


@lru_cache(maxsize=128)
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
