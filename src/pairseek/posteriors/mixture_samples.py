"""Samples of the user point with unknown parameters of the response: of a mixture, or jointly weighted."""

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
from pairseek.numerics.covariances import square_root
from pairseek.numerics.moments import CHUNK, sample_moments
from pairseek.numerics.parallel import for_ranges
from pairseek.posteriors.base import effective_samples
from pairseek.posteriors.gaussian import log_prior_mass, standard_points
from pairseek.posteriors.mixture_kernels import likelihood_grid, mixture_densities
from pairseek.posteriors.parameter_nodes import FARTHEST, GRID_STEP_TO_DEVIATION, Kind, Node, lapse_nodes, normalized

# Factor on the covariances from which joint importance samples come.
_WIDENING = 1.5
# Least share of the points that come from the prior where there are lapses.
_OF_PRIOR = 0.15
# Nodes of less weight do not enter the mixture.
_DROPPED = 1e-4
# The number of samples of a node is a multiple of it.
_MULTIPLE = 16
# Where the end of a grid of log r has more than this share of its highest weight, it goes on by so many steps.
_CUT, _FURTHER = 0.01, 4
GOLDEN = 0.6180339887498949
"""Multiples of the golden ratio, modulo 1, are spread evenly."""


Grid: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
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
class Drawn:
    """Samples of the user point with (S,) weights and (S,) node of the parameters of each."""

    samples: FloatArray
    weights: FloatArray
    node: IntArray

    def __post_init__(self) -> None:
        for array in (self.samples, self.weights, self.node):
            array.flags.writeable = False


@dataclass(frozen=True, eq=False)
class GaussianMixture(BaseSampleSource):
    """The mixture of the posteriors at the nodes, as the source of samples of a belief.

    Attributes
    ----------
    nodes, weights
        The nodes and their (N,) posterior probabilities.
    points
        Number of samples by default.
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
        columns = np.array([(node.kind, node.log_factor, node.lapse, node.point.log_evidence) for node in self.nodes])
        return Parameters(columns[:, 0].astype(np.int64), columns[:, 1], columns[:, 2], self.weights, columns[:, 3])

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return the (d,) mean and (d, d) covariance."""
        means = np.array([node.point.belief.mean for node in self.nodes])
        covariances = np.array([node.point.belief.covariance for node in self.nodes])
        mean = np.einsum("n,nd->d", self.weights, means)
        away = means - mean
        between = np.einsum("n,nd,ne->de", self.weights, away, away)
        return mean, np.einsum("n,nde->de", self.weights, covariances) + between

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        """Return points and their weights: about `count` of them, divided among the nodes by their weights."""
        drawn = self.drawn if count is None else self._drawn(whole(count, "the count of samples", 2))
        return drawn.samples, drawn.weights

    @cached_property
    def drawn(self) -> Drawn:
        """The default number of samples."""
        return self._drawn(self.points)

    def _drawn(self, n: int) -> Drawn:
        parts: list[tuple[FloatArray, FloatArray, IntArray]] = []
        for index in np.flatnonzero(self.weights > _DROPPED).tolist():
            weight = float(self.weights[index])
            share = _MULTIPLE * math.ceil(n * weight / _MULTIPLE)
            samples, weights = self.nodes[index].point.belief.draw(share)
            if len(weights) > 2 * share:
                # A sampler returns all its particles; some of them suffice.
                rows = np.arange(share) * len(weights) // share
                samples, weights = samples[rows], weights[rows] / np.sum(weights[rows])
            parts.append((samples, weight * weights, np.full(len(weights), index)))
        samples, weights, node = (np.ascontiguousarray(np.concatenate(part)) for part in zip(*parts, strict=True))
        return Drawn(samples, weights / np.sum(weights), node)

    def conditional(self, rows: IntArray) -> FloatArray:
        """Return (rows, N) probabilities of the nodes given the user point of a sample: p(θ | w) ∝ p(θ) p(w | θ)."""
        points = self.drawn.samples[rows]
        logs = np.full((len(self.nodes), len(points)), -np.inf)
        for i in np.flatnonzero(self.weights > _DROPPED).tolist():
            belief = self.nodes[i].point.belief
            root = square_root(belief.covariance)
            white = np.einsum("de,ne->nd", np.linalg.inv(root), points - belief.mean)
            square = np.einsum("nd,nd->n", white, white)
            logs[i] = math.log(self.weights[i]) - 0.5 * square - np.linalg.slogdet(root)[1]
        return np.asarray(softmax(logs.T, axis=1))


@dataclass(frozen=True, eq=False)
class JointSamples(BaseSampleSource):
    """Importance samples of the user point from the mixture of Gaussians, with the exact likelihood at every node.

    Attributes
    ----------
    nodes, weights
        The nodes, whose Gaussians are the proposal, and their (N,) probabilities by EP.
    kinds
        The noise kinds.
    prior
        Prior of the user point.
    points
        Number of samples by default.
    """

    nodes: tuple[Node, ...]
    weights: FloatArray
    kinds: tuple[Kind, ...]
    prior: Prior
    points: int
    rough: bool = False
    """Whether the nodes are a proposal alone, and farther apart than the grid must be."""

    @cached_property
    def _proposal(self) -> FloatArray:
        # A part of the points for every node, because EP can be wrong about the weights of the nodes.
        shares = np.where(self.weights > _DROPPED, self.weights + 0.5 / np.sum(self.weights > _DROPPED), 0.0)
        shares /= np.sum(shares)
        always = np.array([node.lapse == 1.0 for node in self.nodes])
        if np.any(always):
            # The prior reaches every mode that lapses can leave.
            shares[always] = np.maximum(shares[always], _OF_PRIOR / np.sum(always))
        return np.asarray(shares / np.sum(shares))

    @cached_property
    def _grids(self) -> list[Grid]:
        """For each kind, (U,) log factors, (L,) lapses, and (U, L) log prior probabilities."""
        out: list[Grid] = []
        for index in range(len(self.kinds)):
            response = self.kinds[index].response
            mine = np.array([node.kind == index and node.lapse < 1.0 for node in self.nodes])
            places = np.array([node.log_factor for node in self.nodes])[mine]
            log_factors = np.unique(places)
            nodes, shares = lapse_nodes(response, len(self.kinds[index].evidence.offsets))
            if response.factor_prior is not None and self.rough:
                log_factors = _refined(log_factors, _deviation(places, self.weights[mine]))
            out.append((log_factors, np.array(nodes), self._log_prior(index, log_factors, shares)))
        return out

    def _log_prior(self, index: int, log_factors: FloatArray, shares: list[float]) -> FloatArray:
        """Return the (U, L) log prior probabilities of evenly spaced factors and of lapses with these shares."""
        factor_prior = self.kinds[index].response.factor_prior
        density = np.zeros(len(log_factors))
        if factor_prior is not None:
            spread, step = factor_prior.spread, float(np.min(np.diff(log_factors)))
            density = -0.5 * (log_factors / spread) ** 2 + math.log(step / (spread * math.sqrt(2.0 * math.pi)))
        return np.asarray(self.kinds[index].log_prior + density[:, None] + np.log(shares))

    def _wider(self, grids: list[Grid], found: Parameters) -> list[Grid] | None:
        """Return grids that go on where the posterior of log r does not end with them; None if there are none.

        The range is that of the proposal, at one lapse. With a higher lapse a larger r explains the same answers.
        """
        out, more = list(grids), False
        for index, (log_factors, lapses, _) in enumerate(grids):
            response = self.kinds[index].response
            if response.factor_prior is None:
                continue
            mine = found.weight[(found.kind == index) & (found.lapse < 1.0)].reshape(len(log_factors), -1).sum(axis=1)
            step, least = float(np.min(np.diff(log_factors))), _CUT * float(np.max(mine))
            room = FARTHEST * response.factor_prior.spread
            low = log_factors[0] - step * np.arange(_FURTHER, 0, -1) if mine[0] > least else np.empty(0)
            high = log_factors[-1] + step * np.arange(1, _FURTHER + 1) if mine[-1] > least else np.empty(0)
            added = np.concatenate([low[low >= -room], log_factors, high[high <= room]])
            if len(added) > len(log_factors):
                _, shares = lapse_nodes(response, len(self.kinds[index].evidence.offsets))
                out[index], more = (added, lapses, self._log_prior(index, added, shares)), True
        return out if more else None

    @cached_property
    def _result(self) -> _Weighted:
        return self._weighted(self.points)

    @cached_property
    def drawn(self) -> Drawn:
        """The default number of samples."""
        return self._result.drawn()

    @property
    def counted(self) -> float:
        """Effective number of the samples."""
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
        found = self._result if count is None else self._weighted(whole(count, "the count of samples", 2))
        return found.samples, found.weights

    def conditional(self, rows: IntArray) -> FloatArray:
        """Return (rows, N) probabilities of the nodes of the whole grid given the user point of a sample."""
        return self._result.chances(rows)

    def _proposed(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return about n points from the Gaussians of the nodes, and the log density of all of them together."""
        # Multiples, so that few sets of standard points serve all shares.
        counts = _MULTIPLE * np.ceil(n * self._proposal / _MULTIPLE).astype(np.int64)
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
        for_ranges(mixture_densities, len(points), CHUNK, points, means, whitening, np.exp(logs - top), densities)
        return points, top + np.log(densities)

    def _weighted(self, n: int) -> _Weighted:
        """Return about n importance samples, the probability of each node at each, and the parameters' posterior."""
        points, proposed = self._proposed(n)
        grids: list[Grid] | None = self._grids
        while grids is not None:
            found = self._weighted_on(grids, points, proposed)
            grids = self._wider(grids, found.parameters) if self.rough else None
        return found

    def _weighted_on(self, grids: list[Grid], points: FloatArray, proposed: FloatArray) -> _Weighted:
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
            for_ranges(likelihood_grid, len(points), CHUNK, points, data, *settings, out, scale)
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
        weights = normalized(logs)
        nodes = tuple((value, part / total) for part, value in zip(shares, values, strict=True))
        share = np.concatenate([np.einsum("s,sn->n", weights * part, value) for value, part in nodes])
        kinds, u, lapse, log_shares = (np.concatenate(part) for part in zip(*rows, strict=True))
        with np.errstate(divide="ignore"):
            parameters = Parameters(kinds, u, lapse, share, np.log(share) - log_shares)
        for array in (points, weights):
            array.flags.writeable = False
        return _Weighted(points, weights, nodes, parameters, float(logsumexp(logs)) - math.log(len(logs)))


def _deviation(values: FloatArray, weights: FloatArray) -> float:
    total = max(float(np.sum(weights)), np.finfo(float).tiny)
    mean = np.sum(weights * values) / total
    return math.sqrt(float(np.sum(weights * (values - mean) ** 2)) / total)


def _refined(places: FloatArray, deviation: float) -> FloatArray:
    """Return evenly spaced places, or as many in their range as a density of this deviation needs, up to twice."""
    steps, width = len(places) - 1, float(places[-1] - places[0])
    needed = math.ceil(min(width / (GRID_STEP_TO_DEVIATION * max(deviation, 1e-9)), 2.0 * steps))
    return places if needed <= steps else np.linspace(places[0], places[-1], needed + 1)


@dataclass(frozen=True, eq=False)
class _Weighted:
    """Importance samples with weights, and what they say of the parameters.

    Attributes
    ----------
    nodes
        For each group of nodes, (S, N) numbers in proportion to their probabilities given each sample, and (S,) factors
        that make them probabilities.
    """

    samples: FloatArray
    weights: FloatArray
    nodes: tuple[tuple[FloatArray, FloatArray], ...]
    parameters: Parameters
    log_evidence: float

    def chances(self, rows: IntArray | slice) -> FloatArray:
        """Return the (rows, N) probabilities of all nodes given the samples in these rows."""
        return np.concatenate([value[rows] * factor[rows, None] for value, factor in self.nodes], axis=1)

    def drawn(self) -> Drawn:
        """Return the samples with one node for each, by its probability, at evenly spread quantiles."""
        level = (GOLDEN * np.arange(1, len(self.samples) + 1)) % 1.0
        chances = self.chances(slice(None))
        node = np.minimum(np.sum(np.cumsum(chances, axis=1) < level[:, None], axis=1), chances.shape[1] - 1)
        return Drawn(self.samples, self.weights, node)
