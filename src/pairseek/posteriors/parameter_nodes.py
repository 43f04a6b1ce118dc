"""Nodes of unknown parameters of the response: their places, and the posterior of the user point at each.

Nodes of log r are evenly spaced, from the mode outwards to where the density is negligible: for a smooth density
the trapezoidal rule converges exponentially. Nodes of the lapse are those of Gauss and Jacobi for its Beta prior: the
evidence is a polynomial of the lapse.
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
from pairseek.model.unknowns import LEAST_LAPSE, Beta, LogNormal
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.gaussian import PointBelief

# Step of the nodes of log r, at most and in deviations of its prior. The relative error of the trapezoidal rule for a
# Gaussian of deviation s is 2 e^(-2π²s²/h²): 0.2 % at h = 1.7 s.
_STEP, _STEP_TO_DEVIATION = 0.9, 1.7
# The same at the one lapse of a proposal, which may be rough, and for the grid of its importance samples: at smaller
# lapses the density is narrower.
_PROPOSED_STEP, _PROPOSED_STEP_TO_DEVIATION = 0.7, 2.6
GRID_STEP_TO_DEVIATION = 1.3
"""Step of the grid of log r for importance samples, in deviations at the lapse of the proposal, at most."""
_MOST_HALVINGS = 6
# Nodes whose log density is this far below that of the best are left out: e^-6.5 = 0.0015.
_NEGLIGIBLE = 6.5
FARTHEST = 6.0
"""Most deviations of the prior of log r from its median."""
# Nodes of an unknown lapse, at least: beside an unknown r and alone. More answers determine the lapse better, and so
# need one node for each 20. With four nodes after 300 answers its mean was off by 0.2 deviations.
_LAPSES = 4
_LAPSES_ALONE = 8
_MOST_LAPSES, _ANSWERS_PER_LAPSE = 12, 20
# Lapses of the proposal of joint importance samples: every second, and beside an unknown r the one that is nearest to
# the second of four, so that it does not jump when the number of nodes grows.
_PROPOSED_ALONE = slice(None, None, 2)
_PROPOSED = 1
_COLUMNS = ("slopes", "offsets", "decided")


class NodeInference(Protocol):
    """Inference of the user point for known parameters of the response, with the evidence."""

    @property
    def exact(self) -> bool:
        """Whether beliefs need no check, because a sampler finds every mode."""
        ...

    def infer(self, factors: Factors, prior: Prior, start: FloatArray | None, *, rough: bool = False) -> PointBelief:
        """Return the belief and its evidence; `start` are the EP sites of a neighbouring node.

        A `rough` belief is a proposal of importance samples.
        """
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


def normalized(logs: list[float] | FloatArray) -> FloatArray:
    """Return probabilities in proportion to the exponentials."""
    weights = np.exp(np.asarray(logs) - np.max(logs))
    return np.asarray(weights / np.sum(weights))


def evidence_of(evidence: Evidence, response: Response, one: Response) -> Evidence:
    """Return the evidence under one noise kind."""
    if response.noise_prior is None:
        return evidence
    constant = one.pair_constant(np.linalg.norm(evidence.slopes, axis=1))
    return replace(evidence, slopes=constant[:, None] * evidence.slopes, offsets=constant * evidence.offsets)


def nodes_of(index: int, kind: Kind, prior: Prior, inference: NodeInference, *, all_lapses: bool) -> list[Node]:
    """Return the nodes of one noise kind that are not negligible; without `all_lapses` of some lapses, for all."""
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
        point = inference.infer(factors, prior, start, rough=not all_lapses)
        return Node(index, log_factor, lapse, kind.log_prior + log_share, point, factors)

    lapses, shares = lapse_nodes(response, len(evidence.offsets))
    if not all_lapses and len(lapses) > 1:
        chosen = _PROPOSED_ALONE if factor_prior is None else _nearest(lapses, lapse_nodes(response, 0)[0][_PROPOSED])
        mass = sum(shares) / sum(shares[chosen])
        lapses, shares = lapses[chosen], [mass * share for share in shares[chosen]]
    always = [_random_node(index, kind, prior, inference)] if lapses[0] > 0.0 else []
    if factor_prior is None:
        return [node(0.0, lapse, math.log(share), None) for lapse, share in zip(lapses, shares, strict=True)] + always
    largest, ratio = (_STEP, _STEP_TO_DEVIATION) if all_lapses else (_PROPOSED_STEP, _PROPOSED_STEP_TO_DEVIATION)
    step = largest * min(factor_prior.spread, 1.0)
    rows: list[list[Node]] = []
    for lapse, share in zip(lapses, shares, strict=True):
        around = max(rows[-1], key=lambda one: one.log_weight) if rows else None
        row, step = _row(factor_prior, step, lapse, math.log(share), around, node, None if rows else ratio)
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
    ratio: float | None,
) -> tuple[list[Node], float]:
    """Return nodes of log r at one lapse, from the best of the row before outwards, and their step.

    The step is halved until it is at most `ratio` deviations of the density, if that is given.
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
            while abs(place * step) < FARTHEST * factor_prior.spread:
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
        weights = normalized([one.log_weight for one in row])
        places = np.array([one.log_factor for one in row])
        deviation = math.sqrt(float(np.sum(weights * (places - np.sum(weights * places)) ** 2)))
        if ratio is None or step <= ratio * deviation or halvings == _MOST_HALVINGS:
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


def _nearest(values: list[float], wanted: float) -> slice:
    place = int(np.argmin(np.abs(np.array(values) - wanted)))
    return slice(place, place + 1)


def lapse_nodes(response: Response, answers: int) -> tuple[list[float], list[float]]:
    """Return the nodes of the lapse after so many answers, and their prior probabilities."""
    prior = response.lapse_prior
    if prior is None:
        return [response.lapse_rate], [1.0]
    least = _LAPSES if response.factor_prior is not None else _LAPSES_ALONE
    nodes, shares = _jacobi(prior, max(least, min(_MOST_LAPSES, -(-answers // _ANSWERS_PER_LAPSE))))
    return nodes, [(1.0 - prior.random) * share for share in shares]


@lru_cache(maxsize=16)
def _jacobi(prior: Beta, count: int) -> tuple[list[float], list[float]]:
    """Return nodes and weights of the Gauss rule for a Beta distribution, by Golub and Welsch (1969).

    The Jacobi polynomials with α = b - 1 and β = a - 1 are orthogonal under it. `scipy.special.roots_sh_jacobi`
    overflows where a + b exceeds 1023, because it computes the integral of the weight, which is not needed here.
    """
    alpha, beta = prior.b - 1.0, prior.a - 1.0
    k = np.arange(1.0, count)
    total = 2.0 * k + alpha + beta
    middle = np.append((beta - alpha) / (alpha + beta + 2.0), (beta**2 - alpha**2) / (total * (total + 2.0)))
    # (k + α + β)/(2k + α + β - 1) is 1 for k = 1, also where both are 0.
    last = np.append(np.ones(min(1, len(k))), (k[1:] + alpha + beta) / (total[1:] - 1.0))
    beside = np.sqrt(4.0 * k * (k + alpha) * (k + beta) * last / (total + 1.0)) / total
    places, vectors = eigh_tridiagonal(middle, beside)
    nodes, weights = np.clip(0.5 * (1.0 + places), LEAST_LAPSE, 1.0 - LEAST_LAPSE), vectors[0] ** 2
    return nodes.tolist(), (weights / np.sum(weights)).tolist()
