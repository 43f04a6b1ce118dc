"""Kernels of expectation propagation: tilted moments of one site, and the sweeps over all sites.

A site is a factor of the posterior that depends on a single number z = s·w + o. For an answer, z is its logit and the
factor its likelihood; for a coordinate of a box prior, z is the coordinate and the factor is 1 inside the box. EP
replaces each factor by a Gaussian in z, chosen so that putting the factor back leaves the mean and variance of z
unchanged (Minka, UAI 2001; Kuss and Rasmussen, JMLR 2005). A site approximation has precision τ and shift ν; the cavity
is the approximate posterior without that site.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.numerics.constants import HALF_LOG_TWO_PI, LOGISTIC_VARIANCE
from pairseek.numerics.jit import (
    LOGISTIC,
    AnswerArrays,
    LinkModel,
    PriorArrays,
    exp_minus,
    inner,
    kernel,
    log_answer,
    log_ndtr,
    log_slope,
    log_tie,
)

QuadratureRule: TypeAlias = tuple[FloatArray, FloatArray]
"""Nodes and weights of Gauss-Legendre quadrature on [-1, 1]."""
PrivateResiduals: TypeAlias = tuple[IntArray, IntArray, FloatArray]
"""Answers with a private residual utility, which occurs in no other answer; its coordinate, and its factor in the
logit."""
ReducedState: TypeAlias = tuple[PrivateResiduals, IntArray, FloatArray, FloatArray, FloatArray]
"""Private residual utilities; the other coordinates; and for these, slopes, private logit variances and sites."""

# Half width of the quadrature in cavity standard deviations. The tilted density of a log-concave factor falls at least
# as fast as the cavity, so only e^(-7²/2) = 2e-11 is left out.
_HALF_WIDTH = 7.0
# Step of the trapezoidal rule in cavity standard deviations, and largest step in z. Shifted by y into the complex
# plane, the integrand grows by e^(y²/2v) and the error falls by e^(-2πy/step). The poles of the logistic function allow
# y up to π, so the relative error is about e^(π²/2v - 2π²/step); measured errors are at most 5e-8 in the mass and 5e-7
# in the variance.
_STEP_IN_DEVIATIONS = 0.75
_MAX_STEP = 0.9
# Largest step in z for ties of the probit model, whose likelihood is narrower.
_MAX_PROBIT_STEP = 0.6
# Once |z| exceeds the tie width by this much, the likelihood of a tie, e^-|z| or e^(-z²/2), is negligible.
_TIE_HALF_WIDTH = 40.0
_PROBIT_TIE_HALF_WIDTH = 8.0
# From this standard deviation of the logit, Φ(z sqrt(3)/π) replaces the logistic function: the step at 0 is then narrow
# relative to the cavity, and only its first two moments matter (the next cumulant contributes 1.2 (π²/3)²/(24 s⁴),
# 1e-5).
_PROBIT_DEVIATION = 16.0

# `exp_minus` stays at 2e-16 beyond 36. It is accurate enough for the quadrature of an answer if, at the centre,
# (z - m)²/2v is below _MAX_FAST_SQUARE and z above _MIN_FAST_LOGIT: the variance then matches the exact exponential to
# 1e-9.
_MAX_FAST_SQUARE = 4.0
_MIN_FAST_LOGIT = -8.0
# With lapses, updates are halved after this many sweeps, because full updates can alternate between two states.
_UNDAMPED_SWEEPS = 6
# Half length of the lines of the line check, in standard deviations.
_LINE_HALF_LENGTH = 5.0
# If a cavity variance or an updated variance is below this fraction of the current one, it is a rounding error, and the
# update is skipped.
_MIN_VARIANCE_RATIO = 1e-10


@inner
def _probit_moments(m: float, v: float, noise: float) -> tuple[float, float, float]:
    """Return log Z, mean and variance of N(z; m, v) Φ(z/sqrt(noise))."""
    total = noise + v
    root = math.sqrt(total)
    t = m / root
    if t < -30.0:
        # Asymptotic series of φ/Φ: a difference of two large numbers would lose all digits.
        q = 1.0 / (t * t)
        excess = (1.0 - q * (2.0 - 10.0 * q)) / -t
        ratio = -t + excess
    else:
        ratio = math.exp(-0.5 * t * t - HALF_LOG_TWO_PI - log_ndtr(t))
        excess = ratio + t
    return log_ndtr(t), m + v * ratio / root, v * (1.0 - v / total * min(ratio * excess, 1.0))


@inner
def _log_factor(z: float, decided: float, link: int, width: float) -> float:
    """Return the log-likelihood of an answer or a tie without lapses."""
    if decided == 0.0:
        return log_tie(z, width, link)
    return min(z, 0.0) - math.log1p(math.exp(-abs(z))) if link == LOGISTIC else log_ndtr(z)


@inner
def _tilted_mode(m: float, v: float, decided: float, link: int, width: float) -> float:
    """Return the mode of N(z; m, v) times the likelihood, to within a cavity standard deviation.

    Bisects (z - m)/v - slope(z), which increases with z, between m and m + v slope(m).
    """
    s = math.sqrt(v)
    first = log_slope(m, decided, link, width)
    low, high = (m, m + v * first) if first > 0.0 else (m + v * first, m)
    z = m
    for _ in range(60):
        if high - low < 0.5 * s:
            break
        z = 0.5 * (low + high)
        if (z - m) / v < log_slope(z, decided, link, width):
            low = z
        else:
            high = z
    return 0.5 * (low + high)


@inner
def _fast_quadrature(m: float, v: float, centre: float, step: float, count: int) -> tuple[float, float, float]:
    """Return log Z, mean and variance of N(z; m, v) f(z) for the logistic f, in a loop without branches or calls."""
    mass = 0.0
    first = 0.0
    second = 0.0
    half = 0.5 / v
    for i in range(2 * count + 1):
        x = (i - count) * step
        z = centre + x
        tail = exp_minus(abs(z))
        weight = exp_minus(half * (z - m) * (z - m)) * (1.0 if z > 0.0 else tail) / (1.0 + tail)
        mass += weight
        first += weight * x
        second += weight * x * x
    shift = first / mass
    log_mass = math.log(mass * step / math.sqrt(v)) - HALF_LOG_TWO_PI
    return log_mass, centre + shift, max(second / mass - shift * shift, 0.0)


@inner
def _quadrature(m: float, v: float, decided: float, link: int, width: float) -> tuple[float, float, float]:
    """Return log Z, mean and variance of N(z; m, v) times a likelihood, by the trapezoidal rule."""
    s = math.sqrt(v)
    half_width = _HALF_WIDTH * s
    step = min(_STEP_IN_DEVIATIONS * s, _MAX_STEP)
    if decided == 0.0:
        half_width = min(half_width, width + (_TIE_HALF_WIDTH if link == LOGISTIC else _PROBIT_TIE_HALF_WIDTH))
        if link != LOGISTIC:
            step = min(_STEP_IN_DEVIATIONS * s, _MAX_PROBIT_STEP)
    centre = _tilted_mode(m, v, decided, link, width)
    count = math.ceil(half_width / step)
    if (
        link == LOGISTIC
        and decided > 0.0
        and centre > _MIN_FAST_LOGIT
        and (centre - m) ** 2 < 2.0 * _MAX_FAST_SQUARE * v
    ):
        return _fast_quadrature(m, v, centre, step, count)
    log_peak = _log_factor(centre, decided, link, width) - 0.5 * (centre - m) * (centre - m) / v
    mass = 0.0
    first = 0.0
    second = 0.0
    for i in range(-count, count + 1):
        x = i * step
        z = centre + x
        weight = math.exp(_log_factor(z, decided, link, width) - 0.5 * (z - m) * (z - m) / v - log_peak)
        mass += weight
        first += weight * x
        second += weight * x * x
    shift = first / mass
    log_mass = math.log(mass * step / s) - HALF_LOG_TWO_PI + log_peak
    return log_mass, centre + shift, max(second / mass - shift * shift, 0.0)


@inner
def tilted_answer(m: float, v: float, decided: float, link: int, model: LinkModel) -> tuple[float, float, float]:
    """Return log Z, mean and variance of the logit under N(m, v) times the likelihood of an answer or a tie.

    With lapses, P = floor + scale f(z): the floor leaves the cavity unchanged, so the tilted density is a mixture of
    the cavity and the tilted density without lapses. ``model`` is (floor, scale, width) as in `log_answer`.
    """
    floor, scale, width = model
    if decided > 0.0 and (link != LOGISTIC or v > _PROBIT_DEVIATION * _PROBIT_DEVIATION):
        log_z, mean, variance = _probit_moments(m, v, LOGISTIC_VARIANCE if link == LOGISTIC else 1.0)
    else:
        log_z, mean, variance = _quadrature(m, v, decided, link, width)
    if floor == 0.0 or (decided == 0.0 and width == 0.0):
        return log_z + math.log(scale), mean, variance
    attentive_mass = math.exp(log_z) * scale
    mass = floor + attentive_mass
    share = attentive_mass / mass
    mixed_mean = (1.0 - share) * m + share * mean
    mixed_variance = (1.0 - share) * (v + (m - mixed_mean) ** 2) + share * (variance + (mean - mixed_mean) ** 2)
    return math.log(mass), mixed_mean, mixed_variance


@inner
def tilted_interval(m: float, v: float, low: float, high: float, rule: QuadratureRule) -> tuple[float, float, float]:
    """Return log ∫ exp(-(z - m)²/2v) over [low, high], and mean and variance of N(m, v) truncated to it.

    The variance v may be infinite.
    Uses Gauss-Legendre quadrature (``rule`` holds nodes and weights on [-1, 1]) over the part of the interval that has
    mass, because closed forms lose all digits far in a tail.
    """
    if not v < 1e18 * (high - low) ** 2:
        return math.log(high - low), 0.5 * (low + high), (high - low) ** 2 / 12.0
    s = math.sqrt(v)
    peak = min(max(m, low), high)
    # Away from the peak the density falls as exp(-(|t| u + u²/2)), u in standard deviations: 36 nats suffice.
    t = abs(peak - m) / s
    span = s * 72.0 / (t + math.sqrt(t * t + 72.0))
    a, b = max(low, peak - span), min(high, peak + span)
    nodes, weights = rule
    middle, radius = 0.5 * (a + b), 0.5 * (b - a)
    mass = 0.0
    first = 0.0
    second = 0.0
    for i in range(len(nodes)):
        x = radius * nodes[i]
        u = (middle + x - peak) / s
        # ((z - m)² - (peak - m)²)/2v, without subtracting large squares.
        weight = weights[i] * math.exp(-0.5 * u * u - u * (peak - m) / s)
        mass += weight
        first += weight * x
        second += weight * x * x
    shift = first / mass
    log_mass = math.log(mass * radius) - 0.5 * ((peak - m) / s) ** 2
    return log_mass, middle + shift, max(second / mass - shift * shift, 1e-300)


@inner
def _factorize(matrix: FloatArray) -> tuple[bool, float]:
    """Overwrite the lower triangle of a positive definite matrix with its Cholesky factor.

    Returns whether the matrix is positive definite, and the log determinant of its inverse.
    """
    log_determinant = 0.0
    for i in range(len(matrix)):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                if not total > 0.0:
                    return False, 0.0
                matrix[i, i] = math.sqrt(total)
                log_determinant -= math.log(total)
            else:
                matrix[i, j] = total / matrix[j, j]
    return True, log_determinant


@inner
def invert(matrix: FloatArray, out: FloatArray) -> tuple[bool, float]:
    """Write the inverse of a positive definite matrix, by Cholesky.

    Returns whether the matrix is positive definite, and the log determinant of its inverse.
    """
    is_proper, log_determinant = _factorize(matrix)
    if not is_proper:
        return False, 0.0
    n = len(matrix)
    # Invert the factor in the lower triangle, then form the product of its transpose with itself.
    for j in range(n):
        matrix[j, j] = 1.0 / matrix[j, j]
        for i in range(j + 1, n):
            total = 0.0
            for k in range(j, i):
                total -= matrix[i, k] * matrix[k, j]
            matrix[i, j] = total / matrix[i, i]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, n):
                total += matrix[k, i] * matrix[k, j]
            out[i, j] = out[j, i] = total
    return True, log_determinant


@kernel
def log_inverse_determinant(matrix: FloatArray) -> float:
    """Return the log determinant of a matrix's inverse, or 0 if not positive definite; overwrites the matrix."""
    return _factorize(matrix)[1]


@inner
def _recompute_moments(
    evidence: AnswerArrays,
    prior: PriorArrays,
    sites: FloatArray,
    work: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
) -> tuple[bool, float]:
    """Compute mean and covariance from all sites, which clears the rounding errors of rank-one updates.

    Returns whether they exist, and the log determinant of the covariance.
    """
    slopes, offsets, _ = evidence
    _, _, centre, precision = prior
    m, d = slopes.shape
    shift = np.empty(d)
    for i in range(d):
        total = 0.0
        for h in range(d):
            work[i, h] = precision[i, h]
            total += precision[i, h] * centre[h]
        shift[i] = total + sites[m + i, 1]
        work[i, i] += sites[m + i, 0]
    for j in range(m):
        site_shift = sites[j, 1] - sites[j, 0] * offsets[j]
        for i in range(d):
            shift[i] += slopes[j, i] * site_shift
            weighted = sites[j, 0] * slopes[j, i]
            for h in range(d):
                work[i, h] += weighted * slopes[j, h]
    is_proper, log_determinant = invert(work, covariance)
    if not is_proper:
        return False, 0.0
    for i in range(d):
        total = 0.0
        for h in range(d):
            total += covariance[i, h] * shift[h]
        mean[i] = total
    return True, log_determinant


@inner
def _replace_site(
    site: FloatArray,
    tau: float,
    nu: float,
    moments: tuple[float, float],
    column: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
) -> float:
    """Set the parameters of a site, and update mean and covariance.

    Returns the larger of the change of z in standard deviations and the relative change of its variance, or infinity if
    the step was shortened or skipped. ``moments`` is the current mean and variance of the site's z, ``column`` the
    covariance of w with z.
    """
    z, v = moments
    tau_change, nu_change = tau - site[0], nu - site[1]
    scale = 1.0 + tau_change * v
    # A larger step would make the covariance indefinite, so halve the step until it does not.
    is_full_step = scale > 0.05
    for _ in range(40):
        if scale > 0.05:
            break
        tau_change, nu_change = 0.5 * tau_change, 0.5 * nu_change
        scale = 1.0 + tau_change * v
    if not (scale > 0.05 and abs(nu_change) < 1e300):
        return math.inf
    step = (nu_change - tau_change * z) / scale
    shrinkage = tau_change / scale
    d = len(mean)
    for i in range(d):
        mean[i] += column[i] * step
        for h in range(i + 1):
            covariance[i, h] -= shrinkage * column[i] * column[h]
            covariance[h, i] = covariance[i, h]
    site[0] += tau_change
    site[1] += nu_change
    return max(abs(step) * math.sqrt(v), abs(tau_change) * v) if is_full_step else math.inf


@inner
def _project(
    slope: FloatArray, offset: float, mean: FloatArray, covariance: FloatArray, column: FloatArray
) -> tuple[float, float]:
    """Return mean and variance of slope·w + offset, and write its covariance with w."""
    z = offset
    v = 0.0
    d = len(mean)
    for i in range(d):
        total = 0.0
        for h in range(d):
            total += covariance[i, h] * slope[h]
        column[i] = total
        v += slope[i] * total
        z += slope[i] * mean[i]
    return z, v


@inner
def _log_site_constant(site: FloatArray, cavity: FloatArray) -> float:
    """Return the log constant of a site: the log mass of the factor minus the log mass of the site, under the cavity.

    ``cavity`` holds the precision and shift of exp(-precision z²/2 + shift z), and the log integral of the factor.
    """
    precision: float = cavity[0] + site[0]
    shift: float = cavity[1] + site[1]
    log_mass: float = cavity[2]
    return log_mass - 0.5 * (math.log(2.0 * math.pi / precision) + shift * shift / precision)


@inner
def _log_evidence(
    evidence: AnswerArrays,
    prior: PriorArrays,
    link: int,
    model: LinkModel,
    sites: FloatArray,
    cavities: FloatArray,
    mean: FloatArray,
    log_determinant: float,
) -> float:
    """Return log ∫ prior Π factors by EP, up to a constant that depends only on the dimension (Minka, UAI 2001).

    Every factor is replaced by its site, scaled to have the factor's mass under the cavity of the last update.
    ``log_determinant`` is the log determinant of the covariance.
    """
    slopes, offsets, decided = evidence
    low, high, centre, precision = prior
    m, d = slopes.shape
    total = 0.5 * log_determinant
    for i in range(d):
        for h in range(d):
            total -= 0.5 * (mean[i] - centre[i]) * precision[i, h] * (mean[h] - centre[h])
    for j in range(m):
        z = offsets[j]
        for i in range(d):
            z += slopes[j, i] * mean[i]
        if cavities[j, 0] > 0.0:
            total += (sites[j, 1] - 0.5 * sites[j, 0] * z) * z + _log_site_constant(sites[j], cavities[j])
        else:
            total += log_answer(z, decided[j], link, model)  # the logit is known exactly, so there is no site
    for i in range(d):
        if low[i] > -math.inf or high[i] < math.inf:
            z = mean[i]
            total += (sites[m + i, 1] - 0.5 * sites[m + i, 0] * z) * z + _log_site_constant(
                sites[m + i], cavities[m + i]
            )
    return total


@kernel
def propagate(  # noqa: C901
    evidence: AnswerArrays,
    private_variances: FloatArray,
    prior: PriorArrays,
    rule: QuadratureRule,
    link: int,
    model: LinkModel,
    convergence: tuple[float, float],
    warm: bool,  # noqa: FBT001
    sites: FloatArray,
    diagnostics: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Run sweeps of EP until no site changes the belief by more than a tolerance.

    ``evidence`` is (slopes (m, d), offsets (m,), decided (m,)); ``private_variances`` (m,) the variances of independent
    normal terms of the logits, over which each answer's likelihood is averaged; ``prior`` (low, high, centre,
    precision); ``rule`` Gauss-Legendre nodes and weights; ``model`` (floor, scale, width) as in `log_answer`;
    ``convergence`` (tolerance, largest number of sweeps); ``warm`` whether to start from the given sites. Returns mean
    and covariance, and writes ``sites`` (m + d, 2), the precision and shift of the answers and of the box's
    coordinates, and ``diagnostics``: whether EP converged, the number of sweeps, the largest cavity standard deviation
    of a logit, and the log evidence. O(sweeps m (d² + nodes)).
    """
    slopes, offsets, decided = evidence
    low, high, _, _ = prior
    m, d = slopes.shape
    mean, covariance = np.empty(d), np.empty((d, d))
    work, column, cavities = np.empty((d, d)), np.empty(d), np.zeros((m + d, 3))
    diagnostics[:] = 0.0
    is_proper, log_determinant = (
        _recompute_moments(evidence, prior, sites, work, mean, covariance) if warm else (False, 0.0)
    )
    if not is_proper:
        sites[:] = 0.0
        for i in range(d):
            width = high[i] - low[i]
            # isfinite(width) compiles to width - width == 0, which fast math simplifies to True.
            if low[i] > -math.inf and high[i] < math.inf:
                # Start from the moments of the uniform distribution, so that the first cavities are proper.
                sites[m + i, 0] = 12.0 / (width * width)
                sites[m + i, 1] = sites[m + i, 0] * 0.5 * (low[i] + high[i])
        is_proper, log_determinant = _recompute_moments(evidence, prior, sites, work, mean, covariance)
        if not is_proper:
            return mean, covariance
    tolerance, max_sweeps = convergence
    for sweep in range(int(max_sweeps)):
        change = 0.0
        max_deviation = 0.0
        # Only factors with lapses, which are not log-concave, need damping.
        is_damped = model[0] > 0.0 and sweep >= _UNDAMPED_SWEEPS
        for j in range(m):
            z, v = _project(slopes[j], offsets[j], mean, covariance, column)
            if not v > 0.0:
                continue  # the answer is uninformative
            # Precision of the cavity, relative to the current precision of z.
            ratio = 1.0 - sites[j, 0] * v
            if not ratio > _MIN_VARIANCE_RATIO:
                change = math.inf  # without this site the logit is undetermined, so there is no proper cavity
                continue
            cavity_variance = v / ratio
            cavity_mean = (z - sites[j, 1] * v) / ratio
            logit_variance = cavity_variance + private_variances[j]
            max_deviation = max(max_deviation, math.sqrt(logit_variance))
            log_z, tilted, variance = tilted_answer(cavity_mean, logit_variance, decided[j], link, model)
            if private_variances[j] > 0.0:
                # Convert moments of the logit to moments of the part that the state explains.
                share = cavity_variance / logit_variance
                tilted = cavity_mean + share * (tilted - cavity_mean)
                variance = cavity_variance - share * share * (logit_variance - variance)
            cavities[j, 0], cavities[j, 1] = 1.0 / cavity_variance, cavity_mean / cavity_variance
            log_scale = math.log(2.0 * math.pi * cavity_variance)
            cavities[j, 2] = log_z + 0.5 * (log_scale + cavity_mean * cavity_mean / cavity_variance)
            variance = max(variance, _MIN_VARIANCE_RATIO * cavity_variance)
            tau = 1.0 / variance - 1.0 / cavity_variance
            nu = tilted / variance - cavity_mean / cavity_variance
            if tau < 0.0 and model[0] > 0.0:
                # A possible lapse can widen the density. Sites of negative precision make the sweeps diverge, so such
                # a site matches only the mean.
                tau = 0.0
                nu = (tilted - cavity_mean) / cavity_variance
            if is_damped:
                tau = 0.5 * (tau + sites[j, 0])
                nu = 0.5 * (nu + sites[j, 1])
            change = max(change, _replace_site(sites[j], tau, nu, (z, v), column, mean, covariance))
        for i in range(d):
            if low[i] == -math.inf and high[i] == math.inf:
                continue
            v = covariance[i, i]
            ratio = 1.0 - sites[m + i, 0] * v
            cavity_variance = v / ratio if ratio > _MIN_VARIANCE_RATIO else math.inf
            cavity_mean = (mean[i] - sites[m + i, 1] * v) / ratio if ratio > _MIN_VARIANCE_RATIO else mean[i]
            log_mass, tilted, variance = tilted_interval(cavity_mean, cavity_variance, low[i], high[i], rule)
            cavity_precision = 1.0 / cavity_variance if ratio > _MIN_VARIANCE_RATIO else 0.0
            cavities[m + i, 0], cavities[m + i, 1] = cavity_precision, cavity_precision * cavity_mean
            cavities[m + i, 2] = log_mass + 0.5 * cavity_precision * cavity_mean * cavity_mean
            tau = 1.0 / variance - cavity_precision
            nu = tilted / variance - cavity_precision * cavity_mean
            for h in range(d):
                column[h] = covariance[h, i]
            change = max(change, _replace_site(sites[m + i], tau, nu, (mean[i], v), column, mean, covariance))
        diagnostics[1], diagnostics[2] = sweep + 1.0, max_deviation
        is_proper, log_determinant = _recompute_moments(evidence, prior, sites, work, mean, covariance)
        if not is_proper:
            return mean, covariance
        if change < tolerance:
            diagnostics[0] = 1.0
            break
    diagnostics[3] = _log_evidence(evidence, prior, link, model, sites, cavities, mean, log_determinant)
    return mean, covariance


@inner
def _private_residuals(slopes: FloatArray, first: int, answers: IntArray, columns: IntArray) -> int:
    """Write, in order, the answers with a coordinate from `first` on that no other answer uses, and that coordinate.

    Answers that do not depend on the coordinates before `first` are skipped. Returns the number of answers written.
    """
    m, d = slopes.shape
    uses = np.zeros(d, dtype=np.int64)
    for j in range(m):
        for i in range(first, d):
            if slopes[j, i] != 0.0:
                uses[i] += 1
    count = 0
    for j in range(m):
        depends_on_point = False
        for i in range(first):
            depends_on_point |= slopes[j, i] != 0.0
        i = first
        while depends_on_point and i < d and not (uses[i] == 1 and slopes[j, i] != 0.0):
            i += 1
        if depends_on_point and i < d:
            answers[count], columns[count] = j, i
            count += 1
    return count


@kernel
def without_private(slopes: FloatArray, unit: FloatArray, first: int, sites: FloatArray) -> ReducedState:
    """Integrate each residual utility that occurs in only one answer out of that answer's likelihood.

    ``first`` is the index of the first residual utility. The given slopes are unscaled; the returned slopes are in
    units of the prior.
    """
    m, d = slopes.shape
    answers, columns = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    count = _private_residuals(slopes, first, answers, columns)
    answers, columns = answers[:count], columns[:count]
    private_variances, factors, is_private = np.zeros(m), np.empty(count), np.zeros(d)
    for p in range(count):
        factors[p] = slopes[answers[p], columns[p]]
        private_variances[answers[p]] = factors[p] * factors[p]
        is_private[columns[p]] = 1.0
    kept_coordinates = np.empty(d, dtype=np.int64)
    size = 0
    for i in range(d):
        if is_private[i] == 0.0:
            kept_coordinates[size] = i
            size += 1
    kept_coordinates = kept_coordinates[:size]
    # Loops, because array assignments take longer to compile than the sweeps.
    kept_slopes, kept_sites = np.empty((m, size)), np.empty((m + size, 2))
    for j in range(m):
        kept_sites[j, 0], kept_sites[j, 1] = sites[j, 0], sites[j, 1]
        for i in range(size):
            kept_slopes[j, i] = slopes[j, kept_coordinates[i]] * unit[kept_coordinates[i]]
    for i in range(size):
        kept_sites[m + i, 0], kept_sites[m + i, 1] = (
            sites[m + kept_coordinates[i], 0],
            sites[m + kept_coordinates[i], 1],
        )
    return (answers, columns, factors), kept_coordinates, kept_slopes, private_variances, kept_sites


@kernel
def join_private(
    private: PrivateResiduals,
    kept_coordinates: IntArray,
    evidence: AnswerArrays,
    kept_sites: FloatArray,
    kept_moments: tuple[FloatArray, FloatArray],
    sites: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
) -> None:
    """Write sites, mean and covariance of the full state, given ``kept_moments`` of the kept coordinates.

    Let t = s·x + o be the part of a logit explained by the kept coordinates, with the site exp(-τt²/2 + νt). Given t,
    the private residual utility e, with factor a in the logit, is normal with mean a(ν - τt) and variance 1 - τa².
    """
    answers, columns, factors = private
    slopes, offsets, _ = evidence
    centre, kept_covariance = kept_moments
    size, count, m = len(kept_coordinates), len(answers), len(slopes)
    # Covariances of the logits of these answers with the kept coordinates.
    logit_covariances = np.zeros((count, size))
    sites[:] = 0.0
    for j in range(m):
        sites[j, 0], sites[j, 1] = kept_sites[j, 0], kept_sites[j, 1]
    for k in range(size):
        sites[m + kept_coordinates[k], 0], sites[m + kept_coordinates[k], 1] = (
            kept_sites[m + k, 0],
            kept_sites[m + k, 1],
        )
        mean[kept_coordinates[k]] = centre[k]
        for h in range(size):
            covariance[kept_coordinates[k], kept_coordinates[h]] = kept_covariance[k, h]
    for p in range(count):
        j, column = answers[p], columns[p]
        gain = kept_sites[j, 0] * factors[p]
        explained = offsets[j]
        for k in range(size):
            explained += slopes[j, k] * centre[k]
            for h in range(size):
                logit_covariances[p, h] += slopes[j, k] * kept_covariance[k, h]
        mean[column] = factors[p] * kept_sites[j, 1] - gain * explained
        for h in range(size):
            covariance[column, kept_coordinates[h]] = covariance[kept_coordinates[h], column] = (
                -gain * logit_covariances[p, h]
            )
        for q in range(p + 1):
            cross = 0.0
            for k in range(size):
                cross += logit_covariances[p, k] * slopes[answers[q], k]
            cross *= gain * kept_sites[answers[q], 0] * factors[q]
            covariance[column, columns[q]] = covariance[columns[q], column] = cross
        covariance[column, column] += 1.0 - gain * factors[p]


@kernel
def profile_moments(
    evidence: AnswerArrays,
    rule: QuadratureRule,
    link: int,
    model: LinkModel,
    sites: FloatArray,
    mean: FloatArray,
    directions: FloatArray,
    out: FloatArray,
) -> None:
    """Write mean and variance of the posterior along lines through the mean, in units of the approximation.

    Row i of ``directions`` is a step of one standard deviation of the approximate posterior along line i. On the line,
    the posterior is the approximation times the ratio of each likelihood to its site; mean 0 and variance 1 mean that
    the two agree. ``rule`` holds Gauss-Legendre nodes and weights. O(lines nodes m).
    """
    slopes, offsets, decided = evidence
    nodes, weights = rule
    m, d = slopes.shape
    logs = np.empty(len(nodes))
    for i in range(len(directions)):
        for q in range(len(nodes)):
            logs[q] = -0.5 * (_LINE_HALF_LENGTH * nodes[q]) ** 2
        for j in range(m):
            z0 = offsets[j]
            slope = 0.0
            for h in range(d):
                z0 += slopes[j, h] * mean[h]
                slope += slopes[j, h] * directions[i, h]
            tau, nu = sites[j, 0], sites[j, 1]
            for q in range(len(nodes)):
                z = z0 + slope * _LINE_HALF_LENGTH * nodes[q]
                logs[q] += log_answer(z, decided[j], link, model) + 0.5 * tau * z * z - nu * z
        log_peak = np.max(logs)
        mass = 0.0
        first = 0.0
        second = 0.0
        for q in range(len(nodes)):
            t = _LINE_HALF_LENGTH * nodes[q]
            weight = weights[q] * math.exp(logs[q] - log_peak)
            mass += weight
            first += weight * t
            second += weight * t * t
        out[i, 0] = first / mass
        out[i, 1] = second / mass - (first / mass) ** 2


@kernel
def gaussian_points(
    start: int, stop: int, standard: FloatArray, root: FloatArray, mean: FloatArray, out: FloatArray
) -> None:
    """Write mean + root z for the standard normal points z from start to stop."""
    d = standard.shape[1]
    for n in range(start, stop):
        for i in range(d):
            total = mean[i]
            for h in range(d):
                total += root[i, h] * standard[n, h]
            out[n, i] = total
