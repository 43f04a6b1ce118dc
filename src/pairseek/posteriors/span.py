"""Inference within the span of the answers, for more dimensions than answers under a Gaussian prior.

The likelihood depends on w only by the logits s_j·w + o_j. With the prior N(c, LL') and w = c + Lu, u is standard
normal, and the logits depend on the projection of u on the span of the m vectors L's_j alone. With an orthonormal basis
Q of the span, z = Q'u is inferred in m dimensions, and the rest of u keeps its prior: the mean of w is c + LQ E[z], its
covariance LL' + LQ (Cov[z] - I) (LQ)'. This is exact, and takes O(d m) where inference in d dimensions takes O(d³).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from pairseek.core.types import BaseSampleSource, Belief, Evidence, FloatArray, Residuals, SampleSource
from pairseek.model.priors import GaussianPrior, Prior, WithinSpan

MANY_DIMENSIONS = 16
"""Dimensions from which answers are inferred within their span."""


def infer_within_span(infer: Callable[[Evidence, Prior], Belief], evidence: Evidence, prior: Prior) -> Belief:
    """Return the belief after the answers: by ``infer(evidence, prior)`` within their span, where that is smaller."""
    m, d = evidence.slopes.shape
    if not isinstance(prior, GaussianPrior) or d < MANY_DIMENSIONS or not 0 < m < d:
        return infer(evidence, prior)
    centre, covariance = prior.moments(d)
    root = _root(prior, d)
    # einsum, because the last digits of matrix products depend on the number of threads.
    whitened = np.einsum("md,de->me", evidence.slopes, root)
    basis = np.ascontiguousarray(np.linalg.qr(whitened.T)[0])
    slopes = np.einsum("md,dk->mk", whitened, basis)
    offsets = evidence.offsets + np.einsum("md,d->m", evidence.slopes, centre)
    within = infer(Evidence(np.ascontiguousarray(slopes), offsets, evidence.decided), WithinSpan())
    axes = np.einsum("de,em->dm", root, basis)
    mean = centre + np.einsum("dm,m->d", axes, within.mean)
    narrower = np.einsum("dm,mk->dk", axes, within.covariance - np.eye(m))
    whole = covariance + np.einsum("dk,ek->de", narrower, axes)
    whole = 0.5 * (whole + whole.T)
    residuals = within.residuals
    if residuals is not None:
        residuals = replace(residuals, of_moments=_lifted_moments(residuals, axes))
    for array in (mean, whole):
        array.flags.writeable = False
    return replace(
        within,
        mean=mean,
        covariance=whole,
        sample_source=_Lifted(within.sample_source, prior, basis, axes),
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
    """Return (count, d) standard normal points, and the points of the prior that they stand for."""
    standard = np.random.default_rng([count, d]).standard_normal((count, d))
    return standard, prior.moments(d)[0] + np.einsum("nd,ed->ne", standard, _root(prior, d))


@dataclass(frozen=True, eq=False)
class _Lifted(BaseSampleSource):
    """Samples within the span, with the rest of the coordinates drawn from the prior.

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
