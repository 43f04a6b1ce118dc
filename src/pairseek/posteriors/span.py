"""Inference within the span of the answers, for Gaussian priors with more dimensions than answers.

The likelihood depends on w only through the logits s_j·w + o_j. With the prior N(c, LL') and w = c + Lu, u is standard
normal, and the logits depend only on the projection of u onto the span of the m vectors L's_j. Given an orthonormal
basis Q of the span, z = Q'u is inferred in m dimensions, and the rest of u keeps its prior: w has mean c + LQ E[z] and
covariance LL' + LQ (Cov[z] - I) (LQ)'. This is exact, and costs O(d m) where inference in d dimensions costs O(d³).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from pairseek.core.types import BaseSampleSource, Belief, Evidence, FloatArray, Residuals, SampleSource
from pairseek.model.priors import GaussianPrior, Prior, WithinSpan

MIN_DIMENSIONS = 16
"""Number of dimensions from which inference runs within the span of the answers."""


def infer_within_span(infer: Callable[[Evidence, Prior], Belief], evidence: Evidence, prior: Prior) -> Belief:
    """Return the belief after the answers, by ``infer(evidence, prior)`` within their span if that saves dimensions."""
    m, d = evidence.slopes.shape
    if not isinstance(prior, GaussianPrior) or d < MIN_DIMENSIONS or not 0 < m < d:
        return infer(evidence, prior)
    centre, covariance = prior.moments(d)
    root = _root(prior, d)
    # einsum, because the last digits of BLAS products depend on the number of threads.
    whitened = np.einsum("md,de->me", evidence.slopes, root)
    basis = np.ascontiguousarray(np.linalg.qr(whitened.T)[0])
    slopes = np.einsum("md,dk->mk", whitened, basis)
    offsets = evidence.offsets + np.einsum("md,d->m", evidence.slopes, centre)
    span_belief = infer(Evidence(np.ascontiguousarray(slopes), offsets, evidence.decided), WithinSpan())
    axes = np.einsum("de,em->dm", root, basis)
    mean = centre + np.einsum("dm,m->d", axes, span_belief.mean)
    reduction = np.einsum("dm,mk->dk", axes, span_belief.covariance - np.eye(m))
    lifted = covariance + np.einsum("dk,ek->de", reduction, axes)
    lifted = 0.5 * (lifted + lifted.T)
    residuals = span_belief.residuals
    if residuals is not None:
        residuals = replace(residuals, compute_moments=_lifted_moments(residuals, axes))
    for array in (mean, lifted):
        array.flags.writeable = False
    return replace(
        span_belief,
        mean=mean,
        covariance=lifted,
        sample_source=_LiftedSamples(span_belief.sample_source, prior, basis, axes),
        residuals=residuals,
    )


def _lifted_moments(residuals: Residuals, axes: FloatArray) -> Callable[[], tuple[FloatArray, FloatArray, FloatArray]]:
    def moments() -> tuple[FloatArray, FloatArray, FloatArray]:
        return residuals.mean, residuals.covariance, np.einsum("dm,ms->ds", axes, residuals.cross)

    return moments


@lru_cache(maxsize=4)
def _root(prior: GaussianPrior, d: int) -> FloatArray:
    root = np.asarray(np.linalg.cholesky(prior.moments(d)[1]), dtype=np.float64)
    root.flags.writeable = False
    return root


@lru_cache(maxsize=4)
def _prior_points(prior: GaussianPrior, d: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Return (count, d) standard normal points, and the prior points they map to."""
    standard = np.random.default_rng([count, d]).standard_normal((count, d))
    return standard, prior.moments(d)[0] + np.einsum("nd,ed->ne", standard, _root(prior, d))


@dataclass(frozen=True, eq=False)
class _LiftedSamples(BaseSampleSource):
    """Samples within the span, extended to all d coordinates by draws from the prior.

    Attributes
    ----------
    within
        The samples of z.
    basis, axes
        (d, m) Q and LQ.
    """

    within: SampleSource
    prior: GaussianPrior
    basis: FloatArray
    axes: FloatArray

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        """Return (S, d) points and (S,) weights."""
        inside, weights = self.within.draw(count)
        standard, points = _prior_points(self.prior, len(self.basis), len(weights))
        moved = inside - np.einsum("nd,dm->nm", standard, self.basis)
        samples = np.ascontiguousarray(points + np.einsum("nm,dm->nd", moved, self.axes))
        samples.flags.writeable = False
        return samples, weights
