"""Inference with residual utilities: a joint state of the user point and the residuals of the items shown.

Let ε be the residual utilities of the S items shown, independent and normal with standard deviation σ, and C the (m, S)
matrix with +1 for the winner and -1 for the loser of each answer. The logit of answer j is s_j·w + o_j + r (Cε)_j. Only
the projection of ε onto the row space of C matters: given an orthonormal basis V of it, (S, R) with R <= min(m, S - 1),
e = V'ε/σ is standard normal, and Cε = σ C V e. The state (w, e) has d + R coordinates and a prior that is Gaussian in
e, and the answers are linear in it, so every posterior over points applies to it. The component of ε outside the row
space keeps its prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pairseek.core.types import BaseSampleSource, Belief, Evidence, FloatArray, IntArray, Residuals, sample_source_of
from pairseek.model.priors import GaussianPrior, Prior, UniformBox, WithinSpan, WithResiduals
from pairseek.model.responses import Response
from pairseek.numerics.jit import kernel
from pairseek.posteriors.base import Posterior
from pairseek.posteriors.gaussian_samples import standard_normals

# A row of C is linearly dependent on the previous ones if its component orthogonal to them is shorter than this.
_MIN_LENGTH = 1e-6
# Priors that never change.
_IMMUTABLE_PRIORS = (GaussianPrior, UniformBox, WithinSpan)


def infer_with_residuals(
    posterior: Posterior, evidence: Evidence, pairs: IntArray, prior: Prior, response: Response
) -> Belief:
    """Return the belief about the user point and the residual utilities.

    Parameters
    ----------
    evidence
        The answers, as planes in the space of the user point.
    pairs
        (m, 2) item rows of each answer, in the orientation of the evidence.
    """
    d = evidence.slopes.shape[1]
    rows, index = np.unique(pairs, return_inverse=True)
    winners, losers = index.reshape(pairs.shape).T
    signs, answers = np.zeros((len(pairs), len(rows))), np.arange(len(pairs))
    signs[answers, winners], signs[answers, losers] = 1.0, -1.0
    basis = np.zeros((min(signs.shape), signs.shape[1]))
    # The first question of a search must not wait for the kernel to compile.
    rank = int(_orthonormal(signs, basis)) if len(pairs) else 0
    basis = basis[:rank]
    # C V, from the two nonzero entries of each row of C.
    projected = (basis[:, winners] - basis[:, losers]).T

    # A user's own prior may be mutable and need not be hashable, so it is not cached.
    extend = _extended if type(prior) in _IMMUTABLE_PRIORS else WithResiduals
    extended = extend(prior, d, rank)  # type: ignore[arg-type]

    deviation = response.residual_deviation
    scale = response.typical_reliability * deviation
    slopes = np.concatenate([evidence.slopes, scale * projected], axis=1)
    joint = posterior.infer(Evidence(slopes, evidence.offsets, evidence.decided), extended, response)
    return _split(joint, d, rows, basis, deviation)


# Searches with equal priors share one instance, because prior forms are cached by identity.
@lru_cache(maxsize=64, typed=True)
def _extended(prior: Prior, d: int, count: int) -> WithResiduals:
    return WithResiduals(prior, d, count)


def _split(joint: Belief, d: int, rows: IntArray, basis: FloatArray, deviation: float) -> Belief:
    """Split a joint belief into the user point and the residual utilities."""

    def moments() -> tuple[FloatArray, FloatArray, FloatArray]:
        inner = joint.covariance[d:, d:] - np.eye(len(basis))
        half = np.einsum("rs,rt->st", basis, inner)
        covariance = deviation**2 * (np.eye(len(rows)) + np.einsum("st,tu->su", half, basis))
        return (
            deviation * np.einsum("rs,r->s", basis, joint.mean[d:]),
            0.5 * (covariance + covariance.T),
            deviation * np.einsum("dr,rs->ds", joint.covariance[:d, d:], basis),
        )

    residuals = Residuals(deviation, rows, moments, lambda: _residual_samples(joint, d, basis, deviation))
    mean, covariance = np.ascontiguousarray(joint.mean[:d]), np.ascontiguousarray(joint.covariance[:d, :d])
    mean.flags.writeable = covariance.flags.writeable = False
    return Belief(mean, covariance, joint.info, PointSamples(joint, d), joint.reliability, residuals)


def _residual_samples(joint: Belief, d: int, basis: FloatArray, deviation: float) -> FloatArray:
    """Return the residual utilities of each sample: the inferred component plus a prior draw orthogonal to it."""
    outside = standard_normals(len(joint.samples), basis.shape[1])
    outside = outside - np.einsum("nr,rs->ns", np.einsum("ns,rs->nr", outside, basis), basis)
    return np.asarray(deviation * (np.einsum("nr,rs->ns", joint.samples[:, d:], basis) + outside))


@dataclass(frozen=True, eq=False)
class PointSamples(BaseSampleSource):
    """Samples of the user point: the leading coordinates of a joint belief."""

    joint: Belief
    d: int

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        """Return (S, d) points and their weights."""
        leading = sample_source_of(self.joint.sample_source).leading
        if leading is not None:
            points, weights = leading(count, self.d)
        else:
            samples, weights = (self.joint.samples, self.joint.weights) if count is None else self.joint.draw(count)
            points = np.ascontiguousarray(samples[:, : self.d])
        points.flags.writeable = False
        return points, weights


@kernel
def _orthonormal(rows: FloatArray, out: FloatArray) -> int:
    """Write an orthonormal basis of the row space, by Gram-Schmidt, and return its rank."""
    m, n = rows.shape
    rank = 0
    row = np.empty(n)
    for j in range(m):
        for i in range(n):
            row[i] = rows[j, i]
        # Orthogonalize twice: one pass leaves rounding errors along the earlier vectors.
        for _ in range(2):
            for b in range(rank):
                component = 0.0
                for i in range(n):
                    component += out[b, i] * row[i]
                for i in range(n):
                    row[i] -= component * out[b, i]
        square = 0.0
        for i in range(n):
            square += row[i] * row[i]
        length = np.sqrt(square)
        if length > _MIN_LENGTH and rank < len(out):
            for i in range(n):
                out[rank, i] = row[i] / length
            rank += 1
    return rank
