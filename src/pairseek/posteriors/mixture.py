"""Inference of unknown parameters of the response: a mixture over the nodes of a grid, weighted by their evidence.

With θ = (noise kind, log r, lapse), p(w, θ | answers) ∝ p(θ) p(answers | θ) p(w | answers, θ). For each node θ_i, the
posterior of the user point and the evidence p(answers | θ_i) are computed as for known parameters, by EP by default.
The belief is the mixture of these posteriors, with the weights p(θ_i) p(answers | θ_i).

Nodes of log r are evenly spaced, from the mode outwards to where the density is negligible: for a smooth density
the trapezoidal rule converges exponentially. Nodes of the lapse are those of Gauss and Jacobi for its Beta prior: the
evidence is a polynomial of the lapse.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from scipy.special import roots_sh_jacobi

from pairseek.core.types import Belief, BeliefInfo, Evidence, FloatArray, IntArray, Reliability, SampleReliability
from pairseek.core.validation import whole
from pairseek.model.priors import Prior, WithResiduals
from pairseek.model.responses import Response
from pairseek.model.unknowns import Beta, LogNormal
from pairseek.numerics.moments import CHUNK, sample_moments
from pairseek.numerics.parallel import for_ranges
from pairseek.posteriors.base import effective_samples
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.gaussian import PointBelief, log_prior_mass, standard_points
from pairseek.posteriors.mixture_kernels import log_likelihood_grid
from pairseek.posteriors.smc import square_root

# Step of the nodes of log r, at most and in deviations of its prior. The relative error of the trapezoidal rule for a
# Gaussian of deviation s is 2 e^(-2π²s²/h²): 0.2 % at h = 1.7 s.
_STEP = 0.9
_STEP_TO_DEVIATION = 1.7
_MOST_HALVINGS = 6
# Nodes whose log density is this far below that of the best are left out: e^-6.5 = 0.0015.
_NEGLIGIBLE = 6.5
# Most deviations of the prior of log r from its median.
_FARTHEST = 6.0
# Nodes of an unknown lapse, beside an unknown r and alone.
_LAPSES = 4
_LAPSES_ALONE = 8
# Every second lapse is enough for the proposal of joint importance samples.
_SKIPPED = 2
# Nodes of less weight are not checked. If those that fail the check have together more than _WRONG, joint importance
# samples of all nodes replace them.
_CHECKED = 0.02
_WRONG = 0.1
# Factor on the covariances from which joint importance samples come, and their least effective sample size: as a share,
# and for each dimension and one more. With fewer, the nodes that failed are inferred by particles one by one.
_WIDENING = 1.5
_COUNTED = 0.1
_SAMPLES_PER_DIMENSION = 50.0
# Joint importance samples for each dimension and one more, at least: the error of a covariance grows with d.
_POINTS_PER_DIMENSION = 512
# Least share of the points that come from the prior where there are lapses.
_OF_PRIOR = 0.15
# Nodes of less weight do not enter the mixture.
_DROPPED = 1e-4
_COLUMNS = ("slopes", "offsets", "decided")
# Samples with a conditional distribution of the parameters.
_ROWS = 256
# Points of the reported distribution between two nodes of log r, and of the lapse.
_FINE = 6
_FINE_LAPSES = 48
# Multiples of the golden ratio, modulo 1, are spread evenly.
_GOLDEN = 0.6180339887498949


class NodeInference(Protocol):
    """Inference of the user point for known parameters of the response, with the evidence."""

    @property
    def exact(self) -> bool:
        """Whether beliefs need no check, because a sampler finds every mode."""
        ...

    def infer(self, factors: Factors, prior: Prior, start: FloatArray | None) -> PointBelief:
        """Return the belief and its evidence; `start` are the EP sites of a neighbouring node."""
        ...

    def is_accurate(self, point: PointBelief, factors: Factors, prior: Prior) -> bool:
        """Return whether the belief is accurate."""
        ...

    def refined(self, point: PointBelief, factors: Factors, prior: Prior) -> PointBelief:
        """Return a more accurate belief, in more time."""
        ...


@dataclass(frozen=True, eq=False)
class Node:
    """One value of the unknown parameters.

    Attributes
    ----------
    kind
        Index of the noise kind among the possible ones.
    log_factor
        Log of the factor on the logits of the evidence.
    lapse
        The lapse.
    log_prior
        Log of the prior probability that the node stands for.
    point
        Posterior of the user point at the node.
    factors
        The answers at the node.
    """

    kind: int
    log_factor: float
    lapse: float
    log_prior: float
    point: PointBelief
    factors: Factors

    @property
    def log_weight(self) -> float:
        """Log of the posterior weight, not normalized."""
        return self.log_prior + self.point.log_evidence


@dataclass(frozen=True, eq=False)
class Kind:
    """One possible noise kind: its response, the log of its prior probability, and the evidence under it."""

    response: Response
    log_prior: float
    evidence: Evidence


def mixture_belief(
    evidence: Evidence, prior: Prior, response: Response, inference: NodeInference, points: int
) -> Belief:
    """Return the belief with the unknown parameters of the response integrated out.

    With lapses the posterior of the point can have several modes, of which EP finds one. Its Gaussians are then only
    the proposal of joint importance samples, beside the prior itself, from which every mode can be reached.
    """
    began = time.perf_counter()
    kinds = [Kind(one, math.log(share), _evidence_of(evidence, response, one)) for one, share in response.kinds]
    # Importance samples of as many dimensions as there are residual utilities would be too uneven.
    sampled = not inference.exact and len(evidence.offsets) > 0 and not isinstance(prior, WithResiduals)
    lapsing = sampled and not (response.lapse_prior is None and response.share == 0.0)

    def inferred(*, all_lapses: bool) -> list[Node]:
        return [
            node
            for index, kind in enumerate(kinds)
            for node in _nodes(index, kind, prior, inference, all_lapses=all_lapses)
        ]

    nodes = inferred(all_lapses=not lapsing)
    weights = _normalized([node.log_weight for node in nodes])

    def wrong() -> list[int]:
        return [
            i
            for i in np.flatnonzero(weights > _CHECKED).tolist()
            if not inference.is_accurate(nodes[i].point, nodes[i].factors, prior)
        ]

    source: GaussianMixture | JointSamples = GaussianMixture(tuple(nodes), weights, points)
    counted = None
    if lapsing or (sampled and float(np.sum(weights[wrong()])) > _WRONG):
        most = max(points, _POINTS_PER_DIMENSION * (evidence.slopes.shape[1] + 1))
        joint = JointSamples(tuple(nodes), weights, tuple(kinds), prior, most)
        counted = effective_samples(joint.drawn.weights)
        if counted >= max(_COUNTED * most, _SAMPLES_PER_DIMENSION * (evidence.slopes.shape[1] + 1.0)):
            source = joint
        else:
            counted = None
            if lapsing:
                nodes = inferred(all_lapses=True)
                weights = _normalized([node.log_weight for node in nodes])
            for i in np.flatnonzero(weights > _CHECKED).tolist() if lapsing else wrong():
                nodes[i] = replace(nodes[i], point=inference.refined(nodes[i].point, nodes[i].factors, prior))
            source = GaussianMixture(tuple(nodes), _normalized([node.log_weight for node in nodes]), points)
    mean, covariance = source.moments() if len(evidence.offsets) else prior.moments(evidence.slopes.shape[1])
    for array in (mean, covariance):
        array.flags.writeable = False
    info = BeliefInfo(
        "mixture" if response.unknown else "weighted" if counted is not None else "particles",
        effective_samples=counted,
        logit_deviation=max(node.point.belief.info.logit_deviation for node in nodes),
        sweeps=max(node.point.belief.info.sweeps for node in nodes),
        nodes=len(nodes),
        seconds=time.perf_counter() - began,
    )
    return Belief(mean, covariance, info, source, _reliability(source, tuple(kinds)) if response.unknown else None)


def _normalized(logs: list[float] | FloatArray) -> FloatArray:
    weights = np.exp(np.asarray(logs) - np.max(logs))
    return np.asarray(weights / np.sum(weights))


def _evidence_of(evidence: Evidence, response: Response, one: Response) -> Evidence:
    """Return the evidence under one noise kind."""
    if response.noise_prior is None:
        return evidence
    constant = one.pair_constant(np.linalg.norm(evidence.slopes, axis=1))
    return replace(evidence, slopes=constant[:, None] * evidence.slopes, offsets=constant * evidence.offsets)


def _nodes(index: int, kind: Kind, prior: Prior, inference: NodeInference, *, all_lapses: bool) -> list[Node]:
    """Return the nodes of one noise kind that are not negligible; without `all_lapses` of every second lapse."""
    response, evidence = kind.response, kind.evidence
    factor_prior = response.factor_prior
    if not len(evidence.offsets):
        alone = Factors.of(evidence, response, lapse=0.0)
        known = inference.infer(alone, prior, None)

    def node(log_factor: float, lapse: float, log_share: float, near: Node | None) -> Node:
        if not len(evidence.offsets):
            return Node(index, log_factor, lapse, kind.log_prior + log_share, known, alone)
        factors = Factors.of(evidence, response, factor=math.exp(log_factor), lapse=lapse)
        start = None if near is None else _start(near, factors, log_factor)
        point = inference.infer(factors, prior, start)
        return Node(index, log_factor, lapse, kind.log_prior + log_share, point, factors)

    lapses, shares = _lapse_nodes(response)
    if not all_lapses:
        lapses, shares = lapses[::_SKIPPED], shares[::_SKIPPED]
    always = [_random_node(index, kind, prior, inference)] if lapses[0] > 0.0 else []
    if factor_prior is None:
        return [node(0.0, lapse, math.log(share), None) for lapse, share in zip(lapses, shares, strict=True)] + always
    step = _STEP * min(factor_prior.spread, 1.0)
    rows: list[list[Node]] = []
    for lapse, share in zip(lapses, shares, strict=True):
        around = max(rows[-1], key=lambda one: one.log_weight) if rows else None
        row, step = _row(factor_prior, step, lapse, math.log(share), around, node, adapt=not rows)
        rows.append(row)
    return [one for row in rows for one in row] + always


def _random_node(index: int, kind: Kind, prior: Prior, inference: NodeInference) -> Node:
    """Return the node of a person who answers at random: the prior of the point, and 1/2 or 1/3 for every answer."""
    nothing = replace(kind.evidence, **{name: getattr(kind.evidence, name)[:0] for name in _COLUMNS})
    factors = Factors.of(nothing, kind.response, lapse=0.0)
    point = inference.infer(factors, prior, None)
    ties, answers = int(np.sum(kind.evidence.decided == 0.0)), len(kind.evidence.decided)
    # A tie that was not offered is not random.
    possible = kind.response.tie_width > 0.0 or not ties
    logs = -answers * math.log(3.0 if kind.response.tie_width > 0.0 else 2.0) if possible else -math.inf
    share = 0.0 if kind.response.lapse_prior is None else kind.response.lapse_prior.random
    log_prior = kind.log_prior + (math.log(share) if share > 0.0 else -math.inf)
    return Node(index, 0.0, 1.0, log_prior, replace(point, log_evidence=point.log_evidence + logs), factors)


def _row(
    factor_prior: LogNormal,
    step: float,
    lapse: float,
    log_share: float,
    around: Node | None,
    node: Callable[[float, float, float, Node | None], Node],
    *,
    adapt: bool,
) -> tuple[list[Node], float]:
    """Return nodes of log r at one lapse, from the best of the row before outwards, and their step.

    `adapt` allows the step to be halved until it resolves the density.
    """

    def at(place: int, near: Node | None) -> Node:
        log_factor = place * step
        density = -0.5 * (log_factor / factor_prior.spread) ** 2
        constant = math.log(step / (factor_prior.spread * math.sqrt(2.0 * math.pi)))
        return node(log_factor, lapse, log_share + density + constant, near)

    found: dict[int, Node] = {}
    first = 0 if around is None else round(around.log_factor / step)
    for halvings in range(_MOST_HALVINGS + 1):
        if first not in found:
            found[first] = at(first, around)
        best = max(one.log_weight for one in found.values())
        for direction in (1, -1):
            place = first
            while abs(place * step) < _FARTHEST * factor_prior.spread:
                near = found[place]
                place += direction
                if place not in found:
                    found[place] = at(place, near)
                best = max(best, found[place].log_weight)
                if found[place].log_weight < best - _NEGLIGIBLE:
                    break
        # Without holes: after the step was halved, a node of negligible weight may lie beyond one.
        inside = [place for place in found if all(between in found for between in range(*sorted((place, first))))]
        row = [found[place] for place in sorted(inside)]
        weights = _normalized([one.log_weight for one in row])
        places = np.array([one.log_factor for one in row])
        deviation = math.sqrt(float(np.sum(weights * (places - np.sum(weights * places)) ** 2)))
        if not adapt or step <= _STEP_TO_DEVIATION * deviation or halvings == _MOST_HALVINGS:
            break
        step *= 0.5
        halved = {2 * place: replace(one, log_prior=one.log_prior - math.log(2.0)) for place, one in found.items()}
        found = halved
        first = max(found, key=lambda place: found[place].log_weight)
    return row, step


def _start(near: Node, factors: Factors, log_factor: float) -> FloatArray | None:
    """Return the EP sites of a neighbour, for logits of another scale."""
    fit = near.point.fit
    if fit is None or len(near.factors.offsets) != len(factors.offsets) or not fit.converged:
        return None
    ratio = math.exp(near.log_factor - log_factor)
    sites = fit.sites.copy()
    m = len(factors.offsets)
    sites[:m, 0] *= ratio**2
    sites[:m, 1] *= ratio
    return sites


def _lapse_nodes(response: Response) -> tuple[list[float], list[float]]:
    """Return the nodes of the lapse and their prior probabilities."""
    prior = response.lapse_prior
    if prior is None:
        return [response.share], [1.0]
    nodes, shares = _jacobi(prior, _LAPSES if response.factor_prior is not None else _LAPSES_ALONE)
    return nodes, [(1.0 - prior.random) * share for share in shares]


@lru_cache(maxsize=16)
def _jacobi(prior: Beta, count: int) -> tuple[list[float], list[float]]:
    # The weight of the shifted Jacobi polynomials is (1 - x)^(p - q) x^(q - 1).
    nodes, weights = roots_sh_jacobi(count, prior.a + prior.b - 1.0, prior.a)
    return nodes.tolist(), (weights / np.sum(weights)).tolist()


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
            share = max(2, math.ceil(n * weight))
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
            nodes, shares = _lapse_nodes(response)
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
        counts = np.ceil(n * self._proposal).astype(np.int64)
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
        weights = _normalized(total + log_prior - proposed)
        chance = np.exp(joint - total[:, None])
        share = np.einsum("s,sn->n", weights, chance)
        kinds, u, lapse, log_shares = (np.concatenate(part) for part in zip(*rows, strict=True))
        with np.errstate(divide="ignore"):
            parameters = Parameters(kinds, u, lapse, share, np.log(share) - log_shares)
        # One node for each sample, by its probability, at evenly spread quantiles.
        level = (_GOLDEN * np.arange(1, len(points) + 1)) % 1.0
        node = np.minimum(np.sum(np.cumsum(chance, axis=1) < level[:, None], axis=1), chance.shape[1] - 1)
        return Drawn(points, weights, node), chance, parameters


def _reliability(source: GaussianMixture | JointSamples, kinds: tuple[Kind, ...]) -> Reliability:
    """Return the posterior of the parameters; k and lapse under the likeliest noise kind."""
    found = source.parameters
    share = np.bincount(found.kind, found.weight, minlength=len(kinds))
    likeliest = int(np.argmax(share))
    response = kinds[likeliest].response
    own = found.kind == likeliest
    looks = own & (found.lapse < 1.0)
    weights, logs = found.weight[looks] / max(float(np.sum(found.weight[looks])), 1e-300), found.log_factor[looks]
    mean = float(np.sum(weights * logs))
    reference = response.typical_reliability * response.reference
    return Reliability(
        typical_k=reference * math.exp(mean),
        spread=math.sqrt(max(float(np.sum(weights * (logs - mean) ** 2)), 0.0)),
        typical_lapse=float(np.sum(found.weight[own] * found.lapse[own]) / share[likeliest]),
        noise={str(kind.response.noise): float(part) for kind, part in zip(kinds, share, strict=True)},
        distribution=lambda: _distribution(found, own, response, reference),
        of_samples=lambda: _of_samples(source, found, own, reference),
    )


def _of_samples(
    source: GaussianMixture | JointSamples, found: Parameters, own: np.ndarray, reference: float
) -> SampleReliability:
    """Return the parameters of each sample, and their conditional distribution at some of the points."""
    node = source.drawn.node
    count = min(len(node), _ROWS)
    # Evenly strided points of a Halton sequence are not evenly spread.
    rows = np.unique((_GOLDEN * np.arange(1, count + 1) % 1.0 * len(node)).astype(np.int64))
    count = len(rows)
    chance = source.conditional(rows)
    values, group = np.unique(found.log_factor[own], return_inverse=True)
    chances, lapses = np.zeros((count, len(values))), np.zeros((count, len(values)))
    for place, column in zip(group.tolist(), np.flatnonzero(own).tolist(), strict=True):
        chances[:, place] += chance[:, column]
        lapses[:, place] += chance[:, column] * found.lapse[column]
    lapses /= np.maximum(chances, 1e-300)
    chances /= np.maximum(np.sum(chances, axis=1, keepdims=True), 1e-300)
    k = reference * np.exp(found.log_factor[node])
    arrays = (k, found.lapse[node], rows, reference * np.exp(values), chances, lapses)
    for array in arrays:
        array.flags.writeable = False
    return SampleReliability(*arrays)


def _distribution(
    found: Parameters, own: np.ndarray, response: Response, reference: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return values of k, lapses and their probabilities: the log evidence is interpolated between the nodes."""
    looks = own & (found.lapse < 1.0)
    usable = looks & np.isfinite(found.log_evidence)
    lapses, places = np.unique(found.lapse[usable]), np.unique(found.log_factor[usable])
    fine, log_prior = places, np.zeros(1)
    if len(places) > 1:
        assert response.factor_prior is not None
        fine = np.linspace(places[0], places[-1], _FINE * (len(places) - 1) + 1)
        log_prior = -0.5 * (fine / response.factor_prior.spread) ** 2
    levels = np.stack([_interpolated(found, usable & (found.lapse == lapse), fine) for lapse in lapses])
    shown, shares = lapses, np.ones(1)
    prior = response.lapse_prior
    if prior is not None:
        # More places in the tails of the prior, where the posterior of somebody who answers at random is.
        edges = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, _FINE_LAPSES + 1))
        shown, shares = prior.quantiles(0.5 * (edges[1:] + edges[:-1])), np.diff(edges)
        levels = np.where(
            (shown > lapses[-1])[:, None],
            _between(lapses, levels, shown),
            _polynomial(lapses, levels, shown),
        )
    logs = log_prior + levels + np.log(shares)[:, None]
    k, lapse = np.broadcast_arrays(reference * np.exp(fine), shown[:, None])
    random = float(np.sum(found.weight[own & ~looks]) / np.sum(found.weight[own]))
    chance = np.append((1.0 - random) * _normalized(logs.ravel()), random)
    # Nothing is known of the k of somebody who answers at random; the typical one leaves the median as it is.
    typical = math.exp(float(np.sum(found.weight[looks] * found.log_factor[looks]) / np.sum(found.weight[looks])))
    return np.append(k.ravel(), reference * typical), np.append(lapse.ravel(), 1.0), chance


def _interpolated(found: Parameters, rows: np.ndarray, fine: FloatArray) -> FloatArray:
    """Return the log evidence of one lapse at values of log r, by cubic interpolation; lines beyond the nodes."""
    order = np.argsort(found.log_factor[rows])
    x, y = found.log_factor[rows][order], found.log_evidence[rows][order]
    beyond = _between(x, y[:, None], fine)[:, 0]
    if len(x) < 4:
        return beyond
    step = (x[-1] - x[0]) / (len(x) - 1)
    first = np.clip(np.floor((fine - x[0]) / step).astype(np.int64) - 1, 0, len(x) - 4)
    t = (fine - x[first]) / step
    basis = np.stack(
        [
            -(t - 1.0) * (t - 2.0) * (t - 3.0) / 6.0,
            t * (t - 2.0) * (t - 3.0) / 2.0,
            -t * (t - 1.0) * (t - 3.0) / 2.0,
            t * (t - 1.0) * (t - 2.0) / 6.0,
        ]
    )
    inside = np.sum(basis * y[first + np.arange(4)[:, None]], axis=0)
    return np.where((fine < x[0]) | (fine > x[-1]), beyond, inside)


def _polynomial(x: FloatArray, y: FloatArray, fine: FloatArray) -> FloatArray:
    """Return (len(fine), columns) values of the polynomial through (len(x), columns) values: Lagrange's formula."""
    out = np.zeros((len(fine), y.shape[1]))
    for i in range(len(x)):
        others = np.delete(x, i)
        out += np.prod((fine[:, None] - others) / (x[i] - others), axis=1)[:, None] * y[i]
    return out


def _between(x: FloatArray, y: FloatArray, fine: FloatArray) -> FloatArray:
    """Return (len(fine), columns) linear interpolations of (len(x), columns), extended by the outermost lines."""
    if len(x) == 1:
        return np.repeat(y, len(fine), axis=0)
    i = np.clip(np.searchsorted(x, fine) - 1, 0, len(x) - 2)
    share = ((fine - x[i]) / (x[i + 1] - x[i]))[:, None]
    return np.asarray((1.0 - share) * y[i] + share * y[i + 1])
