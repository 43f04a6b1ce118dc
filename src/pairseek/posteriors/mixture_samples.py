"""Samples of the user point with unknown parameters of the response: of a mixture, or jointly weighted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.core.validation import whole
from pairseek.model.priors import Prior
from pairseek.numerics.moments import CHUNK, sample_moments
from pairseek.numerics.parallel import for_ranges
from pairseek.posteriors.gaussian import log_prior_mass, standard_points
from pairseek.posteriors.mixture_kernels import log_likelihood_grid
from pairseek.posteriors.parameter_nodes import Kind, Node, lapse_nodes, normalized
from pairseek.posteriors.smc import square_root

# Factor on the covariances from which joint importance samples come.
_WIDENING = 1.5
# Least share of the points that come from the prior where there are lapses.
_OF_PRIOR = 0.15
# Nodes of less weight do not enter the mixture.
_DROPPED = 1e-4
# The number of samples of a node is a multiple of it.
_MULTIPLE = 16
GOLDEN = 0.6180339887498949
"""Multiples of the golden ratio, modulo 1, are spread evenly."""


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
class GaussianMixture:
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
        return np.exp(_log_gaussians(self.nodes, self.weights, points, 1.0, normalized=True))


def _log_gaussians(
    nodes: tuple[Node, ...], weights: FloatArray, points: FloatArray, widening: float, *, normalized: bool = False
) -> FloatArray:
    """Return (points, N) log weighted densities of the Gaussians at the nodes; normalized over the nodes if asked."""
    logs = np.full((len(nodes), len(points)), -np.inf)
    for i in np.flatnonzero(weights > _DROPPED).tolist():
        belief = nodes[i].point.belief
        root = square_root(widening * belief.covariance)
        white = np.einsum("de,ne->nd", np.linalg.inv(root), points - belief.mean)
        logs[i] = math.log(weights[i]) - 0.5 * np.einsum("nd,nd->n", white, white) - np.linalg.slogdet(root)[1]
    logs = logs.T
    return logs - _log_sum(logs)[:, None] if normalized else logs


def _log_sum(logs: FloatArray) -> FloatArray:
    """Return the (n,) log of the sum of exponentials of each row."""
    top = np.max(logs, axis=1)
    return np.asarray(top + np.log(np.sum(np.exp(logs - top[:, None]), axis=1)))


@dataclass(frozen=True, eq=False)
class JointSamples:
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
    def _grids(self) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """For each kind, (U,) log factors, (L,) lapses, and (U, L) log prior probabilities."""
        out = []
        for index in range(len(self.kinds)):
            response = self.kinds[index].response
            own = {node.log_factor for node in self.nodes if node.kind == index and node.lapse < 1.0}
            log_factors = np.array(sorted(own))
            nodes, shares = lapse_nodes(response)
            density = np.zeros(len(log_factors))
            if response.factor_prior is not None:
                spread = response.factor_prior.spread
                step = float(np.min(np.diff(log_factors)))
                density = -0.5 * (log_factors / spread) ** 2 + math.log(step / (spread * math.sqrt(2.0 * math.pi)))
            out.append((log_factors, np.array(nodes), self.kinds[index].log_prior + density[:, None] + np.log(shares)))
        return out

    @cached_property
    def _result(self) -> tuple[Drawn, FloatArray, Parameters]:
        return self._sampled(self.points)

    @property
    def drawn(self) -> Drawn:
        """The default number of samples."""
        return self._result[0]

    @property
    def parameters(self) -> Parameters:
        """The posterior of the parameters."""
        return self._result[2]

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return the (d,) mean and (d, d) covariance."""
        return sample_moments(self.drawn.samples, self.drawn.weights)

    def draw(self, count: int | None) -> tuple[FloatArray, FloatArray]:
        """Return about `count` points and their weights."""
        drawn = self.drawn if count is None else self._sampled(whole(count, "the count of samples", 2))[0]
        return drawn.samples, drawn.weights

    def conditional(self, rows: IntArray) -> FloatArray:
        """Return (rows, N) probabilities of the nodes of the whole grid given the user point of a sample."""
        return np.asarray(self._result[1][rows])

    def _sampled(self, n: int) -> tuple[Drawn, FloatArray, Parameters]:
        """Return samples, the (S, N) probability of each node at each, and the posterior of the parameters."""
        d = len(self.nodes[0].point.belief.mean)
        parts = []
        # Multiples, so that few sets of standard points serve all shares.
        counts = _MULTIPLE * np.ceil(n * self._proposal / _MULTIPLE).astype(np.int64)
        for index in np.flatnonzero(counts).tolist():
            belief = self.nodes[index].point.belief
            root = square_root(_WIDENING * belief.covariance)
            parts.append(belief.mean + np.einsum("nd,ed->ne", standard_points(int(counts[index]), d), root))
        points = np.ascontiguousarray(np.concatenate(parts))
        proposed = _log_sum(_log_gaussians(self.nodes, counts / np.sum(counts), points, _WIDENING))
        low, high = self.prior.box(d)
        centre, precision = self.prior.quadratic(d)
        log_prior = -0.5 * np.einsum("nd,de,ne->n", points - centre, precision, points - centre)
        log_prior[np.any((points < low) | (points > high), axis=1)] = -np.inf
        logs, rows = [], []
        for index, (kind, grid) in enumerate(zip(self.kinds, self._grids, strict=True)):
            log_factors, lapses, shares = grid
            out = np.empty((len(points), len(log_factors), len(lapses)))
            data = (kind.evidence.slopes, kind.evidence.offsets, kind.evidence.decided)
            width, link = kind.response.tie_width, kind.response.link
            for_ranges(
                log_likelihood_grid, len(points), CHUNK, points, data, np.exp(log_factors), lapses, width, link, out
            )
            logs.append((out + shares).reshape(len(points), -1))
            u, lapse = (part.ravel() for part in np.meshgrid(log_factors, lapses, indexing="ij"))
            rows.append((np.full(len(u), index), u, lapse, shares.ravel()))
            for node in self.nodes:
                if node.kind == index and node.lapse == 1.0 and node.log_weight > -np.inf:
                    always = node.log_weight - log_prior_mass(self.prior, d)
                    logs.append(np.full((len(points), 1), always))
                    rows.append((np.array([index]), np.zeros(1), np.ones(1), np.array([node.log_prior])))
        joint = np.concatenate(logs, axis=1)
        total = _log_sum(joint)
        weights = normalized(total + log_prior - proposed)
        chance = np.exp(joint - total[:, None])
        share = np.einsum("s,sn->n", weights, chance)
        kinds, u, lapse, log_shares = (np.concatenate(part) for part in zip(*rows, strict=True))
        with np.errstate(divide="ignore"):
            parameters = Parameters(kinds, u, lapse, share, np.log(share) - log_shares)
        # One node for each sample, by its probability, at evenly spread quantiles.
        level = (GOLDEN * np.arange(1, len(points) + 1)) % 1.0
        node = np.minimum(np.sum(np.cumsum(chance, axis=1) < level[:, None], axis=1), chance.shape[1] - 1)
        return Drawn(points, weights, node), chance, parameters
