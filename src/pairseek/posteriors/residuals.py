"""Inference with residual utilities: a joint state of the user point and the residuals of the items shown.

Let ε be the residual utilities of the S items shown, independent and normal with standard deviation σ, and C the (m, S)
matrix with +1 for the winner and -1 for the loser of each answer. The logit of answer j is s_j·w + o_j + r (Cε)_j. Only
the projection of ε onto the row space of C matters: given an orthonormal basis V of it, (S, R) with R <= min(m, S - 1),
e = V'ε/σ is standard normal, and Cε = σ C V e. The state (w, e) has d + R coordinates and a prior that is Gaussian in
e, and the answers are linear in it, so every posterior over points applies to it. The component of ε outside the row
space keeps its prior.

An unknown σ has a log-normal prior, integrated by the three-point Gauss-Hermite rule for log σ. The belief is the
mixture of the beliefs at the three values, weighted by the rule and the evidence p(answers | σ). Its samples are those
of the mixture; predictions and scores of pairs use its first two moments only, which overstates information.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pairseek.core.lazy import cached_property
from pairseek.core.types import (
    BaseSampleSource,
    Belief,
    BeliefInfo,
    Evidence,
    FloatArray,
    IntArray,
    Reliability,
    Residuals,
    SampleReliability,
    sample_source_of,
)
from pairseek.errors import Unsupported
from pairseek.model.priors import GaussianPrior, Prior, UniformBox, WithinSpan, WithResiduals
from pairseek.model.responses import Response
from pairseek.numerics.jit import kernel
from pairseek.posteriors.base import Posterior
from pairseek.posteriors.gaussian_samples import standard_normals

# A row of C is linearly dependent on the previous ones if its component orthogonal to them is shorter than this.
_MIN_LENGTH = 1e-6
# Gauss-Hermite nodes of an unknown residual deviation, in standard deviations of its log from the median, and their
# weights: exact for polynomials up to degree 5. Five nodes predicted recorded people no better, in 5/3 of the time.
_NODES = (-math.sqrt(3.0), 0.0, math.sqrt(3.0))
_WEIGHTS = (1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0)
# Nodes of less weight contribute no samples; the others at least 16.
_MIN_WEIGHT = 0.002
_MIN_SAMPLES = 16
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
    along = (basis[:, winners] - basis[:, losers]).T

    # A user's own prior may be mutable and need not be hashable, so it is not cached.
    extend = _extended if type(prior) in _IMMUTABLE_PRIORS else WithResiduals
    extended = extend(prior, d, rank)  # type: ignore[arg-type]

    def inferred(deviation: float) -> Belief:
        scale = response.typical_reliability * deviation
        slopes = np.concatenate([evidence.slopes, scale * along], axis=1)
        joint = posterior.infer(Evidence(slopes, evidence.offsets, evidence.decided), extended, response)
        return _split(joint, d, rows, basis, deviation)

    unknown = response.residual_prior
    if unknown is None:
        return inferred(response.residual_deviation)
    deviations = [response.residual_deviation * math.exp(unknown.spread * node) for node in _NODES]
    beliefs = [inferred(deviation) for deviation in deviations]
    masses = [_log_mass(belief.info) for belief in beliefs]
    logs = [mass + math.log(weight) for (mass, _), weight in zip(masses, _WEIGHTS, strict=True)]
    weights = np.exp(np.array(logs) - max(logs))
    # The three nodes share the mass of the prior.
    mass, relative = masses[int(np.argmax(logs))]
    log_evidence = max(logs) + math.log(np.sum(weights)) - (mass - relative)
    return _mixed(beliefs, weights / np.sum(weights), log_evidence)


# Searches with equal priors share one instance, because prior forms are cached by identity.
@lru_cache(maxsize=64, typed=True)
def _extended(prior: Prior, d: int, count: int) -> WithResiduals:
    return WithResiduals(prior, d, count)


def _log_mass(info: BeliefInfo) -> tuple[float, float]:
    """Return the log integral of prior times likelihood, which weights the beliefs, and the log evidence."""
    if info.log_evidence is None:
        raise Unsupported(
            "this posterior computes no evidence, which an unknown residual requires: use EP(), or give the residual "
            "as a number"
        )
    return (info.log_evidence if info.log_mass is None else info.log_mass), info.log_evidence


def _mixed(beliefs: Sequence[Belief], weights: FloatArray, log_evidence: float) -> Belief:
    """Return the mixture of the beliefs at several residual deviations."""
    parts = [belief.residuals for belief in beliefs if belief.residuals is not None]
    means = np.array([belief.mean for belief in beliefs])
    mean = np.einsum("j,ji->i", weights, means)
    apart = means - mean
    within = np.einsum("j,jik->ik", weights, np.array([belief.covariance for belief in beliefs]))
    covariance = within + np.einsum("j,ji,jk->ik", weights, apart, apart)

    def moments() -> tuple[FloatArray, FloatArray, FloatArray]:
        own = np.array([part.mean for part in parts])
        centre = np.einsum("j,ji->i", weights, own)
        away = own - centre
        own_within = np.einsum("j,jik->ik", weights, np.array([part.covariance for part in parts]))
        cross = np.einsum("j,jik->ik", weights, np.array([part.cross for part in parts]))
        return (
            centre,
            own_within + np.einsum("j,ji,jk->ik", weights, away, away),
            cross + np.einsum("j,ji,jk->ik", weights, apart, away),
        )

    samples = _MixedSamples(tuple(beliefs), weights)
    residuals = Residuals(
        deviation=math.sqrt(float(sum(w * part.deviation**2 for w, part in zip(weights, parts, strict=True)))),
        rows=parts[0].rows,
        of_moments=moments,
        of_samples=samples.residuals,
    )
    mean.flags.writeable = covariance.flags.writeable = False
    infos = [belief.info for belief in beliefs]
    info = BeliefInfo(
        "residual_mixture",
        logit_deviation=max(info.logit_deviation for info in infos),
        sweeps=max(info.sweeps for info in infos),
        stages=max(info.stages for info in infos),
        nodes=sum(max(info.nodes, 1) for info in infos),
        log_evidence=log_evidence,
        seconds=sum(info.seconds for info in infos),
    )
    return Belief(mean, covariance, info, samples, samples.reliability, residuals)


@dataclass(frozen=True, eq=False)
class _MixedSamples(BaseSampleSource):
    """Samples of a mixture of beliefs: the samples of each, weighted by its belief."""

    beliefs: tuple[Belief, ...]
    weights: FloatArray

    @cached_property
    def _kept(self) -> list[tuple[Belief, float]]:
        kept = [(b, float(w)) for b, w in zip(self.beliefs, self.weights, strict=True) if w > _MIN_WEIGHT]
        total = sum(weight for _, weight in kept)
        return [(belief, weight / total) for belief, weight in kept]

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        """Return (S, d) points and their weights."""
        # Counts are powers of two, so that few sets of standard points serve all weights.
        drawn = [
            (belief.samples, belief.weights)
            if count is None
            else belief.draw(max(_MIN_SAMPLES, 2 ** math.ceil(math.log2(weight * count))))
            for belief, weight in self._kept
        ]
        shares = [weight * own for (_, weight), (_, own) in zip(self._kept, drawn, strict=True)]
        points, weights = np.concatenate([samples for samples, _ in drawn]), np.concatenate(shares)
        points.flags.writeable = weights.flags.writeable = False
        return points, weights

    def residuals(self) -> FloatArray:
        """Return the residual utilities of each sample."""
        return np.concatenate([b.residuals.samples for b, _ in self._kept if b.residuals is not None])

    @property
    def reliability(self) -> Reliability | None:
        """The mixture of the posteriors of k and the lapse; None if both are given."""
        parts = [(belief.reliability, weight) for belief, weight in self._kept if belief.reliability is not None]
        if not parts:
            return None
        logs = np.array([math.log(max(part.typical_k, 1e-300)) for part, _ in parts])
        weights = np.array([weight for _, weight in parts])
        centre = float(np.sum(weights * logs))
        spreads = np.array([part.spread for part, _ in parts])
        return Reliability(
            typical_k=math.exp(centre),
            spread=math.sqrt(float(np.sum(weights * (spreads**2 + (logs - centre) ** 2)))),
            typical_lapse=float(sum(weight * part.typical_lapse for part, weight in parts)),
            noise=parts[0][0].noise,
            distribution=self._distribution,
            of_samples=self._sample_reliability,
        )

    def _distribution(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        parts = [(b.reliability.distribution(), weight) for b, weight in self._kept if b.reliability is not None]
        ks, lapses = (np.concatenate([part[i] for part, _ in parts]) for i in (0, 1))
        return ks, lapses, np.concatenate([weight * part[2] for part, weight in parts])

    def _sample_reliability(self) -> SampleReliability:
        """Return the reliability of each sample. Every belief has its own nodes of k, and so its own columns."""
        parts = [(b.reliability.samples, len(b.samples)) for b, _ in self._kept if b.reliability is not None]
        rows: list[IntArray] = []
        chances: list[FloatArray] = []
        lapses: list[FloatArray] = []
        values = sum(len(part.nodes) for part, _ in parts)
        start, column = 0, 0
        for part, size in parts:
            rows.append(part.rows + start)
            for blocks, own in ((chances, part.chances), (lapses, part.lapses)):
                block = np.zeros((len(part.rows), values))
                block[:, column : column + len(part.nodes)] = own
                blocks.append(block)
            start, column = start + size, column + len(part.nodes)
        return SampleReliability(
            np.concatenate([part.k for part, _ in parts]),
            np.concatenate([part.lapse for part, _ in parts]),
            np.concatenate(rows),
            np.concatenate([part.nodes for part, _ in parts]),
            np.concatenate(chances),
            np.concatenate(lapses),
        )


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
    mean, own = np.ascontiguousarray(joint.mean[:d]), np.ascontiguousarray(joint.covariance[:d, :d])
    mean.flags.writeable = own.flags.writeable = False
    return Belief(mean, own, joint.info, PointSamples(joint, d), joint.reliability, residuals)


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
                along = 0.0
                for i in range(n):
                    along += out[b, i] * row[i]
                for i in range(n):
                    row[i] -= along * out[b, i]
        square = 0.0
        for i in range(n):
            square += row[i] * row[i]
        length = np.sqrt(square)
        if length > _MIN_LENGTH and rank < len(out):
            for i in range(n):
                out[rank, i] = row[i] / length
            rank += 1
    return rank
