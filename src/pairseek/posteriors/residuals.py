"""Inference with residual utilities: the state is the user point and what the answers say of the items shown.

Let ε be the residual utilities of the S items that were shown, independent and normal with deviation σ, and C the
(m, S) matrix with +1 for the winner and -1 for the loser of each answer. The logit of answer j is
s_j·w + o_j + r (Cε)_j. Only the projection of ε on the row space of C matters: with an orthonormal basis V of it,
(S, R) with R <= min(m, S - 1), e = V'ε/σ is standard normal, and Cε = σ C V e. The state (w, e) has d + R coordinates,
a prior that is Gaussian in e, and answers that are linear in it, so that every posterior over points applies to it. The
part of ε outside of the space keeps its prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from pairseek.core.types import Belief, Evidence, FloatArray, IntArray, Residuals
from pairseek.model.priors import Prior, WithResiduals
from pairseek.model.responses import Response
from pairseek.numerics.jit import kernel
from pairseek.posteriors.base import Posterior

# A row of C whose part outside of the others is shorter depends on them.
_DEPENDENT = 1e-6


def infer_with_residuals(
    posterior: Posterior, evidence: Evidence, pairs: IntArray, prior: Prior, response: Response
) -> Belief:
    """Return the belief of the user point and of the residual utilities.

    Parameters
    ----------
    evidence
        The answers, as planes of the user point.
    pairs
        (m, 2) rows of the items of each answer, in the orientation of the evidence.
    """
    d = evidence.slopes.shape[1]
    rows, place = np.unique(pairs, return_inverse=True)
    place = place.reshape(pairs.shape)
    signs = np.zeros((len(pairs), len(rows)))
    np.put_along_axis(signs, place[:, :1], 1.0, axis=1)
    np.put_along_axis(signs, place[:, 1:], -1.0, axis=1)
    basis = np.zeros((min(signs.shape), signs.shape[1]))
    rank = int(_orthonormal(signs, basis))
    basis = np.ascontiguousarray(basis[:rank])
    scale = response.typical_reliability * response.residual_deviation
    slopes = np.concatenate([evidence.slopes, scale * np.einsum("ms,rs->mr", signs, basis)], axis=1)
    joint = posterior.infer(
        replace(evidence, slopes=np.ascontiguousarray(slopes)), WithResiduals(prior, d, rank), response
    )
    return _divided(joint, d, rows, basis, response.residual_deviation)


def _divided(joint: Belief, d: int, rows: IntArray, basis: FloatArray, deviation: float) -> Belief:
    """Return the belief of the user point, with that of the residual utilities beside it."""
    rank = len(basis)
    inner = joint.covariance[d:, d:] - np.eye(rank)
    half = np.einsum("rs,rt->st", basis, inner)
    covariance = deviation**2 * (np.eye(len(rows)) + np.einsum("st,tu->su", half, basis))
    residuals = Residuals(
        deviation=deviation,
        rows=rows,
        mean=deviation * np.einsum("rs,r->s", basis, joint.mean[d:]),
        covariance=0.5 * (covariance + covariance.T),
        cross=deviation * np.einsum("dr,rs->ds", joint.covariance[:d, d:], basis),
        of_samples=lambda: _drawn(joint, d, basis, deviation),
    )
    mean, own = np.ascontiguousarray(joint.mean[:d]), np.ascontiguousarray(joint.covariance[:d, :d])
    for array in (mean, own, residuals.mean, residuals.covariance, residuals.cross):
        array.flags.writeable = False
    return replace(joint, mean=mean, covariance=own, cloud=PointCloud(joint, d), residuals=residuals)


def _drawn(joint: Belief, d: int, basis: FloatArray, deviation: float) -> FloatArray:
    """Return the residual utilities of each sample: the inferred part, and a draw from the prior outside of it."""
    outside = standard_normals(len(joint.samples), basis.shape[1])
    outside = outside - np.einsum("nr,rs->ns", np.einsum("ns,rs->nr", outside, basis), basis)
    return np.asarray(deviation * (np.einsum("nr,rs->ns", joint.samples[:, d:], basis) + outside))


@lru_cache(maxsize=8)
def standard_normals(n: int, count: int) -> FloatArray:
    """Return (n, count) fixed draws from the standard normal distribution."""
    drawn = np.random.default_rng([n, count]).standard_normal((n, count))
    drawn.flags.writeable = False
    return drawn


@dataclass(frozen=True, eq=False)
class PointCloud:
    """The samples of the user point, the leading coordinates of a joint belief."""

    joint: Belief
    d: int

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        """Return (S, d) points and their weights."""
        samples, weights = (self.joint.samples, self.joint.weights) if count is None else self.joint.draw(count)
        points = np.ascontiguousarray(samples[:, : self.d])
        points.flags.writeable = False
        return points, weights


@kernel
def _orthonormal(rows: FloatArray, out: FloatArray) -> int:
    """Write an orthonormal basis of the space of the rows, by the method of Gram and Schmidt, and return its size."""
    m, n = rows.shape
    rank = 0
    row = np.empty(n)
    for j in range(m):
        for i in range(n):
            row[i] = rows[j, i]
        # Twice, because one pass leaves rounding errors along the earlier vectors.
        for _ in range(2):
            for b in range(rank):
                along = 0.0
                for i in range(n):
                    along += out[b, i] * row[i]
                for i in range(n):
                    row[i] -= along * out[b, i]
        square = 0.0
        for i in range(n):
            square += row[i] * row[i]
        length = np.sqrt(square)
        if length > _DEPENDENT and rank < len(out):
            for i in range(n):
                out[rank, i] = row[i] / length
            rank += 1
    return rank
