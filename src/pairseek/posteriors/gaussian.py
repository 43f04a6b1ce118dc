"""Gaussian approximations of the posterior by expectation propagation, and the check of their accuracy.

With the prior N(w; c, P⁻¹) inside a box and answers whose logits are z_j = s_j·w + o_j, the posterior is
p(w) ∝ N(w; c, P⁻¹) Π_i 1[low_i <= w_i <= high_i] Π_j f(z_j). EP approximates it by a Gaussian
q(w) ∝ N(w; c, P⁻¹) Π_i t_i(w_i) Π_j t_j(z_j), where each site t is Gaussian in a single number. A site is chosen such
that q, and q with the true factor in place of the site, agree on the mean and variance of that number (Minka, UAI
2001); see `ep_kernels` for the moments and the updates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pairseek.core.lazy import cached_property
from pairseek.core.types import FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.priors import Prior, WithinSpan, WithResiduals, is_density
from pairseek.numerics.covariances import square_root
from pairseek.numerics.jit import LOGISTIC, PROBIT, PriorArrays, read_only
from pairseek.posteriors.ep_kernels import (
    join_private,
    log_inverse_determinant,
    profile_moments,
    propagate,
    without_private,
)
from pairseek.posteriors.factors import Factors

CONVERGENCE = (1e-5, 100.0)
"""Tolerance of the sweeps, and their largest number. Sweeps end when no site moves the mean by more than this many
standard deviations, or a variance by more than this fraction."""

# Nodes of the quadrature over an interval.
_QUADRATURE_NODES = 32
# EP is accepted while the standard deviation of every answer's logit, given all other answers, is at most this multiple
# of the standard deviation of an answer's noise (π/sqrt(3) for the logistic function, 1 for Φ), that is 2.0 and 1.1.
# Beyond it, the likelihood of the answer is nearly a step on the scale of the cavity, and a Gaussian fits it badly.
_MAX_DEVIATION_RATIO = 1.1
_NOISE_DEVIATION = {LOGISTIC: math.pi / math.sqrt(3.0), PROBIT: 1.0}
# Line check: largest accepted error of the mean (in posterior standard deviations) and of the variance (relative).
# First value for d = 1, second added for each further dimension. In one dimension the line is the posterior; in more, a
# line passes through the mean of all other directions and exaggerates the error (a posterior within 1 % of EP showed
# 9 % in d = 8), while an error along one direction matters less for the whole covariance.
_LINE_MEAN_TOLERANCE = (0.05, 0.02)
_LINE_VARIANCE_TOLERANCE = (0.08, 0.02)
# If the variances along two directions differ by more than this ratio, rounding errors of the mean are not negligible
# along the narrower one.
_MIN_DIRECTION_RATIO = 1e-9
# EP is never trusted under a box prior in at most this many dimensions: importance samples are cheap there, and the
# line check says little.
_BOX_DIMENSIONS = 3


@dataclass(frozen=True, eq=False)
class GaussianFit:
    """Result of expectation propagation.

    Attributes
    ----------
    mean, covariance
        (d,) and (d, d).
    converged
        Whether the sweeps reached the tolerance.
    sweeps
        Number of sweeps over the answers.
    logit_deviation
        Largest standard deviation of an answer's logit given all other answers.
    log_evidence
        log p(answers) under the unnormalized prior: see `log_prior_mass`.
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
class PriorForm:
    """A prior in the form that EP's kernels take, in units of its standard deviations, which preserves precision.

    Attributes
    ----------
    origin, unit
        (d,) mean and standard deviations.
    covariance
        (d, d) covariance.
    scaled
        Box, centre and precision in these units.
    is_boxed
        Whether a coordinate is bounded.
    """

    origin: FloatArray
    unit: FloatArray
    covariance: FloatArray
    scaled: PriorArrays
    is_boxed: bool
    residuals: int = 0
    """Number of residual utilities, the last coordinates of the state."""
    is_within_span: bool = False
    """Whether the point's coordinates are those within the span of the answers."""

    @classmethod
    def of(cls, prior: Prior, d: int) -> PriorForm:
        """Return the form of a prior in d dimensions."""
        # Cached, because every inference needs it twice, and all searches with as many residual utilities share it.
        return _form_with_residuals(prior, d) if isinstance(prior, WithResiduals) else cls._of(prior, d)

    @classmethod
    def _of(cls, prior: Prior, d: int) -> PriorForm:
        origin, covariance = prior.moments(d)
        if not (np.all(np.isfinite(origin)) and np.all(np.isfinite(covariance))):
            raise InvalidParameter(
                f"the prior {prior!r} has no finite mean and covariance, which EP requires: use Particles()"
            )
        unit = np.sqrt(np.diag(covariance))
        low, high = prior.box(d)
        centre, precision = prior.quadratic(d)
        scaled = (
            (low - origin) / unit,
            (high - origin) / unit,
            (centre - origin) / unit,
            np.ascontiguousarray(precision * np.outer(unit, unit)),
        )
        is_boxed = bool(np.any(np.isfinite(low) | np.isfinite(high)))
        residuals = prior.count if isinstance(prior, WithResiduals) else 0
        return cls(origin, unit, covariance, scaled, is_boxed, residuals, isinstance(prior, WithinSpan))

    @cached_property
    def units(self) -> FloatArray:
        """(d, d) products of the units of each two coordinates."""
        return np.outer(self.unit, self.unit)

    @cached_property
    def log_unit_volume(self) -> float:
        """Sum of the logs of the units."""
        return float(np.sum(np.log(self.unit)))

    @cached_property
    def log_mass(self) -> float:
        """Log integral of the prior density without its normalizing constant."""
        d = len(self.unit)
        if not self.is_boxed:
            # Residual utilities are independent and have unit variance.
            size = d - self.residuals
            return 0.5 * log_inverse_determinant(self.leading(size)[3].copy()) + self.log_unit_volume
        empty = Factors(np.empty((0, d)), np.empty(0), np.empty(0), LOGISTIC, (0.0, 1.0, 0.0))
        return gaussian_fit(empty, self).log_evidence

    def leading(self, size: int) -> PriorArrays:
        """Return the arrays of the leading coordinates, dropping residual utilities, which are i.i.d."""
        low, high, centre, precision = self.scaled
        return low[:size], high[:size], centre[:size], np.ascontiguousarray(precision[:size, :size])

    def scaled_answers(self, factors: Factors) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the answers in units of the prior."""
        slopes = np.ascontiguousarray(factors.slopes * self.unit)
        return slopes, factors.offsets + np.einsum("md,d->m", factors.slopes, self.origin), factors.decided


# A small cache, because after hundreds of answers each form takes megabytes.
@lru_cache(maxsize=8)
def _form_with_residuals(prior: WithResiduals, d: int) -> PriorForm:
    return PriorForm._of(prior, d)


def gaussian_fit(
    factors: Factors,
    prior: Prior | PriorForm,
    start: FloatArray | None = None,
    convergence: tuple[float, float] = CONVERGENCE,
) -> GaussianFit:
    """Return the approximation by EP, starting from the prior or from the sites of a similar fit.

    ``convergence`` is the tolerance at which sweeps end, and their largest number. A residual utility that occurs in
    only one answer is integrated out of that answer's likelihood and inferred afterwards: the result is identical, and
    the cost of a sweep is quadratic only in the number of the other coordinates.
    """
    m, d = factors.slopes.shape
    form = prior if isinstance(prior, PriorForm) else PriorForm.of(prior, d)
    if m == 0 and not form.is_boxed:
        # Return the prior itself: the first question of a search must not wait for the kernel to compile.
        return _prior_as_fit(form, form.log_mass + factors.constant, np.zeros((d, 2)))
    sites = np.zeros((m + d, 2)) if start is None else start.copy()
    diagnostics = np.empty(4)
    offsets, decided = factors.offsets + np.einsum("md,d->m", factors.slopes, form.origin), read_only(factors.decided)
    settings, warm = (_quadrature_rule(), factors.link, factors.model, convergence), start is not None
    if form.residuals:
        first = d - form.residuals
        slopes = read_only(factors.slopes)
        private, kept, slopes, private_variances, kept_sites = without_private(slopes, form.unit, first, sites)
        answers = slopes, offsets, decided
        kept_moments = propagate(
            answers, private_variances, form.leading(len(kept)), *settings, warm, kept_sites, diagnostics
        )
        mean, covariance = np.empty(d), np.empty((d, d))
        join_private(private, kept, answers, kept_sites, kept_moments, sites, mean, covariance)
    else:
        answers = np.ascontiguousarray(factors.slopes * form.unit), offsets, decided
        mean, covariance = propagate(answers, np.zeros(m), form.scaled, *settings, warm, sites, diagnostics)
    log_evidence = float(diagnostics[3] + form.log_unit_volume + factors.constant)
    if m == 0:
        return _prior_as_fit(form, log_evidence, sites)
    if not (math.isfinite(log_evidence) and np.isfinite(mean).all() and np.isfinite(covariance).all()):
        moments = form.origin.copy(), form.covariance.copy()
        sweeps = int(diagnostics[1])
        return GaussianFit(
            *moments, converged=False, sweeps=sweeps, logit_deviation=np.inf, log_evidence=-np.inf, sites=sites
        )
    moments = form.origin + form.unit * mean, covariance * form.units
    converged, sweeps, logit_deviation = bool(diagnostics[0] == 1.0), int(diagnostics[1]), float(diagnostics[2])
    return GaussianFit(*moments, converged, sweeps, logit_deviation, log_evidence, sites)


def _prior_as_fit(form: PriorForm, log_evidence: float, sites: FloatArray) -> GaussianFit:
    """Return the prior as a fit to no answers."""
    moments = form.origin.copy(), form.covariance.copy()
    return GaussianFit(*moments, converged=True, sweeps=0, logit_deviation=0.0, log_evidence=log_evidence, sites=sites)


def log_prior_mass(prior: Prior, d: int) -> float:
    """Return the log integral of the unnormalized prior density that EP and importance samples use."""
    return 0.0 if is_density(prior) else PriorForm.of(prior, d).log_mass


def is_trusted(
    fit: GaussianFit, factors: Factors, prior: Prior | PriorForm, *, accept_near_steps: bool = False
) -> bool:
    """Return whether EP is accurate: it converged, no answer is nearly a step, and the line check passes.

    `accept_near_steps` skips the check of single answers, for mixtures and other uses that tolerate nearly noiseless
    ones.
    """
    d = len(fit.mean)
    form = prior if isinstance(prior, PriorForm) else PriorForm.of(prior, d)
    if form.residuals or (form.is_within_span and factors.is_log_concave):
        # Each answer has a separate direction, as in a Gaussian process, where EP is accurate however sharp the answers
        # are. In that many dimensions the line check would be uninformative.
        return fit.converged
    # EP is exact for one answer under a Gaussian prior, however sharp the answer, unless it may be a lapse.
    if len(factors.offsets) <= 1 and factors.is_log_concave and not form.is_boxed:
        return True
    values = np.linalg.eigvalsh(fit.covariance / form.units)
    if values[0] < _MIN_DIRECTION_RATIO * values[-1]:
        return False
    is_smooth = accept_near_steps or fit.logit_deviation <= _MAX_DEVIATION_RATIO * _NOISE_DEVIATION[factors.link]
    if not (fit.converged and is_smooth):
        return False
    return d > _BOX_DIMENSIONS if form.is_boxed else _profiles_agree(fit, factors, form)


def _profiles_agree(fit: GaussianFit, factors: Factors, form: PriorForm) -> bool:
    """Return whether posterior and approximation have nearly the same moments along the least Gaussian lines.

    The lines follow the principal directions of the answers' information, in standard deviations of the approximate
    posterior. When many answers share a direction, each adds little information, so no cavity shows that together they
    skew the posterior; a line does.
    """
    m, d = factors.slopes.shape
    data = form.scaled_answers(factors)
    root = square_root(fit.covariance / form.units)
    whitened = np.einsum("md,de->me", data[0], root)
    information = np.einsum("m,md,me->de", fit.sites[:m, 0], whitened, whitened)
    _, vectors = np.linalg.eigh(0.5 * (information + information.T))
    lines = np.ascontiguousarray(np.einsum("de,ek->kd", root, vectors))
    moments = np.empty((d, 2))
    centre = (fit.mean - form.origin) / form.unit
    profile_moments(data, _quadrature_rule(), factors.link, factors.model, fit.sites, centre, lines, moments)
    mean_error, variance_error = np.max(np.abs(moments[:, 0])), np.max(np.abs(moments[:, 1] - 1.0))
    mean_tolerance, variance_tolerance = (
        base + slope * (d - 1) for base, slope in (_LINE_MEAN_TOLERANCE, _LINE_VARIANCE_TOLERANCE)
    )
    return bool(mean_error <= mean_tolerance and variance_error <= variance_tolerance)


@lru_cache(maxsize=1)
def _quadrature_rule() -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(_QUADRATURE_NODES)
