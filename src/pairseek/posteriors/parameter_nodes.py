"""Quadrature nodes of the unknown response parameters, with the posterior of the user point at each.

Nodes of log r are evenly spaced, from the mode outwards to where the density is negligible: the trapezoidal rule
converges exponentially for a smooth density. Nodes of the lapse rate are the Gauss-Jacobi nodes of its Beta prior,
because the evidence is a polynomial in the lapse rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.linalg import eigh_tridiagonal

from pairseek.core.types import Evidence, FloatArray
from pairseek.model.priors import Prior
from pairseek.model.responses import Response
from pairseek.model.unknowns import MIN_LAPSE, Beta, LogNormal
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.point_beliefs import PointBelief

# Initial step of the nodes of log r, in units of the prior's standard deviation (at most 1).
_INITIAL_STEP = 0.9
# Largest step, in standard deviations of the posterior. For a Gaussian of standard deviation s, the relative error of
# the trapezoidal rule with step h is 2 e^(-2π²s²/h²): 0.2 % at h = 1.7 s.
_STEP_TO_DEVIATION = 1.7
# Initial and largest step, in these units, for the single lapse rate of a proposal, which need not be accurate.
_PROPOSED_STEP = 0.7
_PROPOSED_STEP_TO_DEVIATION = 2.6
# Finer than the steps of a proposal, because the density is narrower at smaller lapse rates.
GRID_STEP_TO_DEVIATION = 1.3
"""Largest step of the log r grid for importance samples, in standard deviations at the lapse rate of the proposal."""
# Largest number of times a step is halved.
_MAX_HALVINGS = 6
# Nodes whose log density is more than this below the highest are left out: e^-6.5 = 0.0015.
_LOG_DENSITY_CUTOFF = 6.5
MAX_DEVIATIONS = 6.0
"""Largest distance of log r from its prior median, in prior standard deviations."""
# Least number of nodes of an unknown lapse rate if r is unknown too.
_MIN_LAPSE_NODES = 4
# Least number of nodes of an unknown lapse rate if r is known.
_MIN_LAPSE_NODES_FIXED_R = 8
# One more node per this many answers: after 300 answers, four nodes gave a mean lapse rate that was off by 0.2 standard
# deviations.
_ANSWERS_PER_LAPSE_NODE = 20
_MAX_LAPSE_NODES = 12
# If r is known, the proposal of joint importance samples uses every second lapse node.
_PROPOSED_LAPSES_FIXED_R = slice(None, None, 2)
# If r is unknown, the proposal uses the node nearest to the initial node with this index, so that its lapse rate hardly
# changes when further answers add nodes.
_PROPOSED_LAPSE_INDEX = 1
# Arrays of `Evidence` with one entry for each answer.
_EVIDENCE_COLUMNS = ("slopes", "offsets", "decided")


class NodeInference(Protocol):
    """Inference of the user point given known response parameters, with the evidence."""

    @property
    def is_exact(self) -> bool:
        """Whether beliefs need no accuracy check, because a sampler finds every mode."""
        ...

    def infer(
        self, factors: Factors, prior: Prior, start: FloatArray | None, *, for_proposal: bool = False
    ) -> PointBelief:
        """Return the belief with its evidence; `start` holds the EP sites of a neighbouring node.

        A belief `for_proposal` only serves to draw importance samples and need not be accurate.
        """
        ...

    def is_accurate(self, point: PointBelief, factors: Factors, prior: Prior) -> bool:
        """Return whether the belief is accurate."""
        ...

    def refined(self, point: PointBelief, factors: Factors, prior: Prior) -> PointBelief:
        """Return a more accurate belief, at more cost."""
        ...


@dataclass(frozen=True, eq=False)
class Node:
    """A quadrature node: one value of the unknown parameters.

    Attributes
    ----------
    kind
        Index of the noise kind.
    log_factor
        Log of the factor on the logits of the evidence.
    lapse
        The lapse rate.
    log_prior
        Log of the prior probability that the node represents.
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
        """Log of the unnormalized posterior weight."""
        return self.log_prior + self.point.log_mass


@dataclass(frozen=True, eq=False)
class NoiseHypothesis:
    """A possible noise kind: its response, the log of its prior probability, and the evidence under it."""

    response: Response
    log_prior: float
    evidence: Evidence


def normalized_weights(logs: list[float] | FloatArray) -> FloatArray:
    """Return weights that sum to 1 from log weights."""
    weights = np.exp(np.asarray(logs) - np.max(logs))
    return np.asarray(weights / np.sum(weights))


def evidence_of(evidence: Evidence, response: Response, single: Response) -> Evidence:
    """Return the evidence under a single noise kind, given by its response."""
    if response.noise_prior is None:
        return evidence
    constant = single.pair_constant(np.linalg.norm(evidence.slopes, axis=1))
    return replace(evidence, slopes=constant[:, None] * evidence.slopes, offsets=constant * evidence.offsets)


def nodes_of(
    index: int, kind: NoiseHypothesis, prior: Prior, inference: NodeInference, *, all_lapses: bool
) -> list[Node]:
    """Return the non-negligible nodes of one noise kind; without `all_lapses`, a few lapse nodes represent all."""
    response, evidence = kind.response, kind.evidence
    factor_prior = response.factor_prior
    if not len(evidence.offsets):
        no_factors = Factors.of(evidence, response, lapse=0.0)
        prior_point = inference.infer(no_factors, prior, None)

    def node_at(log_factor: float, lapse: float, log_share: float, neighbour: Node | None) -> Node:
        if not len(evidence.offsets):
            return Node(index, log_factor, lapse, kind.log_prior + log_share, prior_point, no_factors)
        factors = Factors.of(evidence, response, factor=math.exp(log_factor), lapse=lapse)
        start = None if neighbour is None else _rescaled_sites(neighbour, factors, log_factor)
        point = inference.infer(factors, prior, start, for_proposal=not all_lapses)
        return Node(index, log_factor, lapse, kind.log_prior + log_share, point, factors)

    lapses, shares = lapse_nodes(response, len(evidence.offsets))
    if not all_lapses and len(lapses) > 1:
        initial = lapse_nodes(response, 0)[0]
        chosen = _PROPOSED_LAPSES_FIXED_R if factor_prior is None else _nearest(lapses, initial[_PROPOSED_LAPSE_INDEX])
        mass = sum(shares) / sum(shares[chosen])
        lapses, shares = lapses[chosen], [mass * share for share in shares[chosen]]
    random_nodes = [_random_node(index, kind, prior, inference)] if lapses[0] > 0.0 else []
    if factor_prior is None:
        return [
            node_at(0.0, lapse, math.log(share), None) for lapse, share in zip(lapses, shares, strict=True)
        ] + random_nodes
    relative_step, ratio = (
        (_INITIAL_STEP, _STEP_TO_DEVIATION) if all_lapses else (_PROPOSED_STEP, _PROPOSED_STEP_TO_DEVIATION)
    )
    step = relative_step * min(factor_prior.spread, 1.0)
    rows: list[list[Node]] = []
    for lapse, share in zip(lapses, shares, strict=True):
        best = max(rows[-1], key=lambda node: node.log_weight) if rows else None
        row, step = _nodes_at_lapse(factor_prior, step, lapse, math.log(share), best, node_at, None if rows else ratio)
        rows.append(row)
    return [node for row in rows for node in row] + random_nodes


def _random_node(index: int, kind: NoiseHypothesis, prior: Prior, inference: NodeInference) -> Node:
    """Return the node of answers at random: the prior of the point, and probability 1/2 or 1/3 for every answer."""
    no_evidence = replace(kind.evidence, **{name: getattr(kind.evidence, name)[:0] for name in _EVIDENCE_COLUMNS})
    factors = Factors.of(no_evidence, kind.response, lapse=0.0)
    point = inference.infer(factors, prior, None)
    ties, answers = int(np.sum(kind.evidence.decided == 0.0)), len(kind.evidence.decided)
    # A tie that was not offered cannot be a random answer.
    is_possible = kind.response.tie_width > 0.0 or not ties
    logs = -answers * math.log(3.0 if kind.response.tie_width > 0.0 else 2.0) if is_possible else -math.inf
    share = 0.0 if kind.response.lapse_prior is None else kind.response.lapse_prior.random
    log_prior = kind.log_prior + (math.log(share) if share > 0.0 else -math.inf)
    return Node(index, 0.0, 1.0, log_prior, replace(point, log_mass=point.log_mass + logs), factors)


def _nodes_at_lapse(
    factor_prior: LogNormal,
    step: float,
    lapse: float,
    log_share: float,
    start: Node | None,
    node_at: Callable[[float, float, float, Node | None], Node],
    ratio: float | None,
) -> tuple[list[Node], float]:
    """Return the nodes of log r at one lapse rate, from the log r of a `start` node outwards, and their step.

    If `ratio` is given, the step is halved until it is at most `ratio` standard deviations of the density.
    """

    def node_in(index: int, neighbour: Node | None) -> Node:
        log_factor = index * step
        density = -0.5 * (log_factor / factor_prior.spread) ** 2
        constant = math.log(step / (factor_prior.spread * math.sqrt(2.0 * math.pi)))
        return node_at(log_factor, lapse, log_share + density + constant, neighbour)

    by_index: dict[int, Node] = {}
    first = 0 if start is None else round(start.log_factor / step)
    for halvings in range(_MAX_HALVINGS + 1):
        if first not in by_index:
            by_index[first] = node_in(first, start)
        best = max(node.log_weight for node in by_index.values())
        for direction in (1, -1):
            index = first
            while abs(index * step) < MAX_DEVIATIONS * factor_prior.spread:
                neighbour = by_index[index]
                index += direction
                if index not in by_index:
                    by_index[index] = node_in(index, neighbour)
                best = max(best, by_index[index].log_weight)
                if by_index[index].log_weight < best - _LOG_DENSITY_CUTOFF:
                    break
        # Drop nodes beyond a gap: after the step was halved, a node of negligible weight may lie beyond one.
        inside = [index for index in by_index if all(i in by_index for i in range(*sorted((index, first))))]
        row = [by_index[index] for index in sorted(inside)]
        weights = normalized_weights([node.log_weight for node in row])
        log_factors = np.array([node.log_factor for node in row])
        deviation = math.sqrt(float(np.sum(weights * (log_factors - np.sum(weights * log_factors)) ** 2)))
        if ratio is None or step <= ratio * deviation or halvings == _MAX_HALVINGS:
            break
        step *= 0.5
        log_two = math.log(2.0)
        by_index = {2 * i: replace(node, log_prior=node.log_prior - log_two) for i, node in by_index.items()}
        first = max(by_index, key=lambda index: by_index[index].log_weight)
    return row, step


def _rescaled_sites(node: Node, factors: Factors, log_factor: float) -> FloatArray | None:
    """Return the EP sites of a neighbouring node, rescaled to this log factor."""
    fit = node.point.fit
    if fit is None or len(node.factors.offsets) != len(factors.offsets) or not fit.converged:
        return None
    ratio = math.exp(node.log_factor - log_factor)
    sites = fit.sites.copy()
    m = len(factors.offsets)
    sites[:m, 0] *= ratio**2
    sites[:m, 1] *= ratio
    return sites


def _nearest(values: list[float], target: float) -> slice:
    nearest = int(np.argmin(np.abs(np.array(values) - target)))
    return slice(nearest, nearest + 1)


def lapse_nodes(response: Response, answers: int) -> tuple[list[float], list[float]]:
    """Return the nodes of the lapse rate for this number of answers, and their prior probabilities."""
    prior = response.lapse_prior
    if prior is None:
        return [response.lapse_rate], [1.0]
    minimum = _MIN_LAPSE_NODES if response.factor_prior is not None else _MIN_LAPSE_NODES_FIXED_R
    nodes, shares = _jacobi(prior, max(minimum, min(_MAX_LAPSE_NODES, -(-answers // _ANSWERS_PER_LAPSE_NODE))))
    return nodes, [(1.0 - prior.random) * share for share in shares]


@lru_cache(maxsize=16)
def _jacobi(prior: Beta, count: int) -> tuple[list[float], list[float]]:
    """Return the nodes and weights of Gauss quadrature for a Beta distribution, by Golub and Welsch (1969).

    The Jacobi polynomials with α = b - 1 and β = a - 1 are orthogonal under it. `scipy.special.roots_sh_jacobi`
    overflows where a + b exceeds 1023, because it computes the integral of the weight, which is not needed here.
    """
    alpha, beta = prior.b - 1.0, prior.a - 1.0
    k = np.arange(1.0, count)
    total = 2.0 * k + alpha + beta
    diagonal = np.append((beta - alpha) / (alpha + beta + 2.0), (beta**2 - alpha**2) / (total * (total + 2.0)))
    # (k + α + β)/(2k + α + β - 1) is 1 for k = 1, even where both are 0.
    last = np.append(np.ones(min(1, len(k))), (k[1:] + alpha + beta) / (total[1:] - 1.0))
    off_diagonal = np.sqrt(4.0 * k * (k + alpha) * (k + beta) * last / (total + 1.0)) / total
    values, vectors = eigh_tridiagonal(diagonal, off_diagonal)
    nodes, weights = np.clip(0.5 * (1.0 + values), MIN_LAPSE, 1.0 - MIN_LAPSE), vectors[0] ** 2
    return nodes.tolist(), (weights / np.sum(weights)).tolist()
