"""Samples of the user point under unknown response parameters: from a Gaussian mixture, or jointly weighted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import logsumexp, softmax

from pairseek.core.lazy import cached_property
from pairseek.core.types import BaseSampleSource, FloatArray, IntArray
from pairseek.core.validation import whole
from pairseek.model.priors import Prior
from pairseek.numerics.constants import GOLDEN_FRACTION
from pairseek.numerics.covariances import square_root
from pairseek.numerics.moments import SAMPLE_CHUNK, sample_moments
from pairseek.numerics.parallel import for_ranges
from pairseek.posteriors.base import effective_samples
from pairseek.posteriors.gaussian import log_prior_mass
from pairseek.posteriors.gaussian_samples import standard_points
from pairseek.posteriors.mixture_kernels import likelihood_grid, mixture_densities
from pairseek.posteriors.parameter_nodes import (
    GRID_STEP_TO_DEVIATION,
    MAX_DEVIATIONS,
    Node,
    NoiseHypothesis,
    lapse_nodes,
    normalized_weights,
)

# Factor on the proposal covariances of joint importance samples.
_WIDENING = 1.5
# With lapses, least fraction of the points drawn from the prior.
_PRIOR_FRACTION = 0.15
# Nodes of less weight do not enter the mixture.
_MIN_NODE_WEIGHT = 1e-4
# The number of samples of each node is rounded up to a multiple of this.
_SAMPLE_MULTIPLE = 16
# A log r grid is extended if one of its ends has more than this fraction of its highest weight.
_MAX_END_WEIGHT = 0.01
# Number of steps by which an end of the log r grid is extended.
_EXTENSION_STEPS = 4

ParameterGrid: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
"""(U,) log factors, (L,) lapses, and (U, L) log prior probabilities."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """Posterior of the unknown parameters on the nodes of their grid.

    Attributes
    ----------
    kind, log_factor, lapse
        (N,) noise kind, log of the factor on the logits, and lapse of each node.
    weight
        (N,) posterior probabilities.
    log_evidence
        (N,) log p(answers | node), up to a constant.
    """

    kind: IntArray
    log_factor: FloatArray
    lapse: FloatArray
    weight: FloatArray
    log_evidence: FloatArray


@dataclass(frozen=True, eq=False)
class ParameterSamples:
    """Samples of the user point, with (S,) weights and the (S,) index of the parameter node of each."""

    samples: FloatArray
    weights: FloatArray
    node: IntArray

    def __post_init__(self) -> None:
        for array in (self.samples, self.weights, self.node):
            array.flags.writeable = False


@dataclass(frozen=True, eq=False)
class GaussianMixture(BaseSampleSource):
    """The mixture of the posteriors at the nodes, as the sample source of a belief.

    Attributes
    ----------
    nodes, weights
        The nodes and their (N,) posterior probabilities.
    points
        Default number of samples.
    """

    nodes: tuple[Node, ...]
    weights: FloatArray
    points: int

    @property
    def log_evidence(self) -> float:
        """Log p(answers), with the prior not normalized."""
        return float(logsumexp([node.log_weight for node in self.nodes]))

    @property
    def parameters(self) -> Parameters:
        """The posterior of the parameters."""
        columns = np.array([(node.kind, node.log_factor, node.lapse, node.point.log_mass) for node in self.nodes])
        return Parameters(columns[:, 0].astype(np.int64), columns[:, 1], columns[:, 2], self.weights, columns[:, 3])

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return the (d,) mean and (d, d) covariance."""
        means = np.array([node.point.belief.mean for node in self.nodes])
        covariances = np.array([node.point.belief.covariance for node in self.nodes])
        mean = np.einsum("n,nd->d", self.weights, means)
        offsets = means - mean
        between = np.einsum("n,nd,ne->de", self.weights, offsets, offsets)
        return mean, np.einsum("n,nde->de", self.weights, covariances) + between

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        """Return about `count` points and their weights, allocated to the nodes by weight."""
        drawn = self.default_samples if count is None else self._draw(whole(count, "the count of samples", 2))
        return drawn.samples, drawn.weights

    @cached_property
    def default_samples(self) -> ParameterSamples:
        """The default number of samples."""
        return self._draw(self.points)

    def _draw(self, n: int) -> ParameterSamples:
        parts: list[tuple[FloatArray, FloatArray, IntArray]] = []
        for index in np.flatnonzero(self.weights > _MIN_NODE_WEIGHT).tolist():
            weight = float(self.weights[index])
            count = _SAMPLE_MULTIPLE * math.ceil(n * weight / _SAMPLE_MULTIPLE)
            samples, weights = self.nodes[index].point.belief.draw(count)
            if len(weights) > 2 * count:
                # A sampler returns all its particles; thin them.
                rows = np.arange(count) * len(weights) // count
                samples, weights = samples[rows], weights[rows] / np.sum(weights[rows])
            parts.append((samples, weight * weights, np.full(len(weights), index)))
        samples, weights, node = (np.ascontiguousarray(np.concatenate(part)) for part in zip(*parts, strict=True))
        return ParameterSamples(samples, weights / np.sum(weights), node)

    def node_probabilities(self, rows: IntArray) -> FloatArray:
        """Return the (rows, N) node probabilities given the user point of each sample: p(θ | w) ∝ p(θ) p(w | θ)."""
        points = self.default_samples.samples[rows]
        logs = np.full((len(self.nodes), len(points)), -np.inf)
        for i in np.flatnonzero(self.weights > _MIN_NODE_WEIGHT).tolist():
            belief = self.nodes[i].point.belief
            root = square_root(belief.covariance)
            white = np.einsum("de,ne->nd", np.linalg.inv(root), points - belief.mean)
            square = np.einsum("nd,nd->n", white, white)
            logs[i] = math.log(self.weights[i]) - 0.5 * square - np.linalg.slogdet(root)[1]
        return np.asarray(softmax(logs.T, axis=1))


@dataclass(frozen=True, eq=False)
class JointSamples(BaseSampleSource):
    """Importance samples of the user point, proposed by the Gaussian mixture and weighted by the exact likelihood.

    Attributes
    ----------
    nodes, weights
        The nodes, whose Gaussians form the proposal, and their (N,) probabilities by EP.
    kinds
        The noise kinds.
    prior
        Prior of the user point.
    points
        Default number of samples.
    """

    nodes: tuple[Node, ...]
    weights: FloatArray
    kinds: tuple[NoiseHypothesis, ...]
    prior: Prior
    points: int
    for_proposal: bool = False
    """Whether the nodes only serve as a proposal; the grid must then be finer than the nodes."""

    @cached_property
    def _proposal(self) -> FloatArray:
        # Every node gets some of the points, because EP can misjudge the weights of the nodes.
        shares = np.where(
            self.weights > _MIN_NODE_WEIGHT, self.weights + 0.5 / np.sum(self.weights > _MIN_NODE_WEIGHT), 0.0
        )
        shares /= np.sum(shares)
        is_random = np.array([node.lapse == 1.0 for node in self.nodes])
        if np.any(is_random):
            # The posterior at a node of random answers is the prior, which reaches every mode that lapses can create.
            shares[is_random] = np.maximum(shares[is_random], _PRIOR_FRACTION / np.sum(is_random))
        return np.asarray(shares / np.sum(shares))

    @cached_property
    def _grids(self) -> list[ParameterGrid]:
        """The parameter grid of each noise kind."""
        out: list[ParameterGrid] = []
        for index in range(len(self.kinds)):
            response = self.kinds[index].response
            is_of_kind = np.array([node.kind == index and node.lapse < 1.0 for node in self.nodes])
            proposed = np.array([node.log_factor for node in self.nodes])[is_of_kind]
            log_factors = np.unique(proposed)
            nodes, shares = lapse_nodes(response, len(self.kinds[index].evidence.offsets))
            if response.factor_prior is not None and self.for_proposal:
                log_factors = _refined(log_factors, _deviation(proposed, self.weights[is_of_kind]))
            out.append((log_factors, np.array(nodes), self._log_prior(index, log_factors, shares)))
        return out

    def _log_prior(self, index: int, log_factors: FloatArray, shares: list[float]) -> FloatArray:
        """Return the (U, L) log prior of evenly spaced log factors and of lapses with these probabilities."""
        factor_prior = self.kinds[index].response.factor_prior
        density = np.zeros(len(log_factors))
        if factor_prior is not None:
            spread, step = factor_prior.spread, float(np.min(np.diff(log_factors)))
            density = -0.5 * (log_factors / spread) ** 2 + math.log(step / (spread * math.sqrt(2.0 * math.pi)))
        return np.asarray(self.kinds[index].log_prior + density[:, None] + np.log(shares))

    def _extended(self, grids: list[ParameterGrid], parameters: Parameters) -> list[ParameterGrid] | None:
        """Return grids extended where they cut off the posterior of log r; None if they cut off nothing.

        The initial range comes from the proposal, at a single lapse rate; with more lapse rates, a larger r explains
        the answers equally well.
        """
        out, is_extended = list(grids), False
        for index, (log_factors, lapses, _) in enumerate(grids):
            response = self.kinds[index].response
            if response.factor_prior is None:
                continue
            on_grid = parameters.weight[(parameters.kind == index) & (parameters.lapse < 1.0)]
            marginal = on_grid.reshape(len(log_factors), -1).sum(axis=1)
            step, threshold = float(np.min(np.diff(log_factors))), _MAX_END_WEIGHT * float(np.max(marginal))
            limit = MAX_DEVIATIONS * response.factor_prior.spread
            steps = step * np.arange(1, _EXTENSION_STEPS + 1)
            low = log_factors[0] - steps[::-1] if marginal[0] > threshold else np.empty(0)
            high = log_factors[-1] + steps if marginal[-1] > threshold else np.empty(0)
            extended = np.concatenate([low[low >= -limit], log_factors, high[high <= limit]])
            if len(extended) > len(log_factors):
                _, shares = lapse_nodes(response, len(self.kinds[index].evidence.offsets))
                out[index], is_extended = (extended, lapses, self._log_prior(index, extended, shares)), True
        return out if is_extended else None

    @cached_property
    def _result(self) -> _WeightedSamples:
        return self._weighted(self.points)

    @cached_property
    def default_samples(self) -> ParameterSamples:
        """The default number of samples."""
        return self._result.with_nodes()

    @property
    def effective_samples(self) -> float:
        """Effective sample size."""
        return effective_samples(self._result.weights)

    @property
    def log_evidence(self) -> float:
        """Log p(answers), with the prior not normalized."""
        return self._result.log_evidence

    @property
    def parameters(self) -> Parameters:
        """The posterior of the parameters."""
        return self._result.parameters

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return the (d,) mean and (d, d) covariance."""
        return sample_moments(self._result.samples, self._result.weights)

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        """Return about `count` points and their weights."""
        weighted = self._result if count is None else self._weighted(whole(count, "the count of samples", 2))
        return weighted.samples, weighted.weights

    def node_probabilities(self, rows: IntArray) -> FloatArray:
        """Return the (rows, N) probabilities of all grid nodes given the user point of each sample."""
        return self._result.node_probabilities(rows)

    def _draw_proposal(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return about n points from the Gaussians of the nodes, and their log densities under the mixture."""
        # Counts are rounded to multiples, so that few different sets of standard points are needed.
        counts = _SAMPLE_MULTIPLE * np.ceil(n * self._proposal / _SAMPLE_MULTIPLE).astype(np.int64)
        used = np.flatnonzero(counts)
        beliefs = [self.nodes[index].point.belief for index in used.tolist()]
        means = np.array([belief.mean for belief in beliefs])
        roots = square_root(_WIDENING * np.array([belief.covariance for belief in beliefs]))
        parts = [
            mean + np.einsum("nd,ed->ne", standard_points(count, len(mean)), root)
            for mean, root, count in zip(means, roots, counts[used].tolist(), strict=True)
        ]
        points = np.ascontiguousarray(np.concatenate(parts))
        logs = np.log(counts[used] / np.sum(counts)) - np.linalg.slogdet(roots)[1]
        densities = np.empty(len(points))
        whitening = np.ascontiguousarray(np.linalg.inv(roots))
        top = float(np.max(logs))
        for_ranges(
            mixture_densities, len(points), SAMPLE_CHUNK, points, means, whitening, np.exp(logs - top), densities
        )
        return points, top + np.log(densities)

    def _weighted(self, n: int) -> _WeightedSamples:
        """Return about n importance samples, with their node probabilities and the posterior of the parameters."""
        points, proposed = self._draw_proposal(n)
        grids: list[ParameterGrid] | None = self._grids
        while grids is not None:
            weighted = self._weigh_on(grids, points, proposed)
            grids = self._extended(grids, weighted.parameters) if self.for_proposal else None
        return weighted

    def _weigh_on(self, grids: list[ParameterGrid], points: FloatArray, proposed: FloatArray) -> _WeightedSamples:
        d = points.shape[1]
        low, high = self.prior.box(d)
        centre, precision = self.prior.quadratic(d)
        log_prior = -0.5 * np.einsum("nd,de,ne->n", points - centre, precision, points - centre)
        log_prior[np.any((points < low) | (points > high), axis=1)] = -np.inf
        values, scales, rows = [], [], []
        for index, (kind, grid) in enumerate(zip(self.kinds, grids, strict=True)):
            log_factors, lapses, log_priors = grid
            out = np.empty((len(points), len(log_factors), len(lapses)))
            data = (kind.evidence.slopes, kind.evidence.offsets, kind.evidence.decided)
            settings = np.exp(log_factors), lapses, kind.response.tie_width, kind.response.link
            scale = np.empty(len(points))
            for_ranges(likelihood_grid, len(points), SAMPLE_CHUNK, points, data, *settings, out, scale)
            out *= np.exp(log_priors)
            values.append(out.reshape(len(points), -1))
            scales.append(scale)
            u, lapse = (part.ravel() for part in np.meshgrid(log_factors, lapses, indexing="ij"))
            rows.append((np.full(len(u), index), u, lapse, log_priors.ravel()))
            for node in self.nodes:
                if node.kind == index and node.lapse == 1.0 and node.log_weight > -np.inf:
                    values.append(np.ones((len(points), 1)))
                    scales.append(np.full(len(points), node.log_weight - log_prior_mass(self.prior, d)))
                    rows.append((np.array([index]), np.zeros(1), np.ones(1), np.array([node.log_prior])))
        top = np.max(scales, axis=0)
        shares = [np.exp(scale - top) for scale in scales]
        total = np.sum([part * np.sum(value, axis=1) for part, value in zip(shares, values, strict=True)], axis=0)
        logs = top + np.log(total) + log_prior - proposed
        weights = normalized_weights(logs)
        nodes = tuple((value, part / total) for part, value in zip(shares, values, strict=True))
        share = np.concatenate([np.einsum("s,sn->n", weights * part, value) for value, part in nodes])
        kinds, u, lapse, log_shares = (np.concatenate(part) for part in zip(*rows, strict=True))
        with np.errstate(divide="ignore"):
            parameters = Parameters(kinds, u, lapse, share, np.log(share) - log_shares)
        for array in (points, weights):
            array.flags.writeable = False
        return _WeightedSamples(points, weights, nodes, parameters, float(logsumexp(logs)) - math.log(len(logs)))


def _deviation(values: FloatArray, weights: FloatArray) -> float:
    total = max(float(np.sum(weights)), np.finfo(float).tiny)
    mean = np.sum(weights * values) / total
    return math.sqrt(float(np.sum(weights * (values - mean) ** 2)) / total)


def _refined(nodes: FloatArray, deviation: float) -> FloatArray:
    """Return evenly spaced nodes, refined up to twofold if a density of this standard deviation needs it."""
    steps, width = len(nodes) - 1, float(nodes[-1] - nodes[0])
    needed = math.ceil(min(width / (GRID_STEP_TO_DEVIATION * max(deviation, 1e-9)), 2.0 * steps))
    return nodes if needed <= steps else np.linspace(nodes[0], nodes[-1], needed + 1)


@dataclass(frozen=True, eq=False)
class _WeightedSamples:
    """Weighted importance samples, with the posterior of the parameters.

    Attributes
    ----------
    nodes
        For each group of nodes, (S, N) unnormalized probabilities given each sample, and the (S,) factors that
        normalize them.
    """

    samples: FloatArray
    weights: FloatArray
    nodes: tuple[tuple[FloatArray, FloatArray], ...]
    parameters: Parameters
    log_evidence: float

    def node_probabilities(self, rows: IntArray | slice) -> FloatArray:
        """Return the (rows, N) probabilities of all nodes given each sample in these rows."""
        return np.concatenate([value[rows] * factor[rows, None] for value, factor in self.nodes], axis=1)

    def with_nodes(self) -> ParameterSamples:
        """Return the samples with one node each, chosen by its conditional probability at evenly spread quantiles."""
        level = (GOLDEN_FRACTION * np.arange(1, len(self.samples) + 1)) % 1.0
        node_probabilities = self.node_probabilities(slice(None))
        node = np.minimum(
            np.sum(np.cumsum(node_probabilities, axis=1) < level[:, None], axis=1), node_probabilities.shape[1] - 1
        )
        return ParameterSamples(self.samples, self.weights, node)
