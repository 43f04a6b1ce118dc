"""Particles over (w, log k, lapse), for an unknown k or lapse."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from pairseek.core.types import Belief, BeliefInfo, Evidence, FloatArray, Reliability
from pairseek.model.priors import Prior, stratified
from pairseek.model.responses import Response
from pairseek.model.unknowns import LEAST_LAPSE
from pairseek.numerics.moments import CHUNK
from pairseek.numerics.parallel import for_ranges
from pairseek.posteriors.base import sampled_belief
from pairseek.posteriors.control_variates import lapsing_moments
from pairseek.posteriors.lapse_kernels import conditionals, lapsing_sweep, log_answers
from pairseek.posteriors.smc import WIDTH, square_root, tempered_samples

# Number of samples with a conditional distribution of k and the lapse, and of the nodes of k and of the lapse.
_ROWS = 256
_K_NODES = 6
_LAPSE_NODES = 4
# Half width of the nodes of k in standard deviations of log k.
_REACH = 2.5

# Slopes by coordinate, offsets without appeal, decided, appeal: as in `lapse_kernels`.
Data: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def reliable_belief(
    n: int, sweeps: int, evidence: Evidence, prior: Prior, response: Response, rng: np.random.Generator
) -> Belief:
    """Return the belief of n particles after these answers: as `Particles.infer`, with k and lapse."""
    began = time.perf_counter()
    data, weights = _data(evidence), np.full(n, 1 / n)
    m, d = evidence.slopes.shape
    target = ReliableTarget(data, prior, response)
    if m == 0:
        states, stages, moments = target.start(n, rng), 0, prior.moments(d)
    else:
        states, stages = tempered_samples(target, n, sweeps, rng)
        moments = lapsing_moments(states, weights, data, prior, response)
    info = BeliefInfo("particles", stages=stages)
    belief = _belief(states, weights, moments, data, response, info)
    return replace(belief, info=replace(belief.info, seconds=time.perf_counter() - began))


def _data(evidence: Evidence) -> Data:
    appeal = np.zeros_like(evidence.offsets) if evidence.appeal is None else evidence.appeal
    return np.ascontiguousarray(evidence.slopes.T), evidence.offsets - appeal, evidence.decided, appeal


@dataclass(frozen=True, eq=False)
class ReliableTarget:
    """The posterior of (w, u, lapse), u = log(k/reference), as target of sequential Monte Carlo."""

    data: Data
    prior: Prior
    response: Response

    def start(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw (n, d + 2) states from the priors."""
        response = self.response
        points, uniform = self.prior.sample(n, len(self.data[0]), rng), stratified(n, 2, rng)
        k_prior, lapse_prior = response.k_prior, response.lapse_prior
        ratios = np.zeros(n) if k_prior is None else k_prior.log_ratios(uniform[:, 0])
        lapses = np.full(n, response.share) if lapse_prior is None else lapse_prior.quantiles(uniform[:, 1])
        return np.ascontiguousarray(np.column_stack([points, ratios, lapses]))

    def log_likelihood(self, states: FloatArray) -> FloatArray:
        """Return the log-likelihood of all answers."""
        out = np.empty(len(states))
        for_ranges(log_answers, len(states), CHUNK, states, self.data, self.response.link, out)
        return out

    def move(
        self, states: FloatArray, covariance: FloatArray, power: float, sweeps: int, rng: np.random.Generator
    ) -> FloatArray:
        """Move every state by slice steps along random frames of (w, u), then along the lapse."""
        n, d = len(states), states.shape[1] - 2
        k_prior, lapse_prior = self.response.k_prior, self.response.lapse_prior
        free = d if k_prior is None else d + 1
        root = square_root(covariance[:free, :free])
        precision_u = 0.0 if k_prior is None else k_prior.spread**-2
        unknown = (0.0, precision_u, 0.0, 0.0, 0.0)
        if lapse_prior is not None:
            width = min(1.0, max(WIDTH * math.sqrt(max(covariance[d + 1, d + 1], 0.0)), 0.01))
            unknown = (0.0, precision_u, lapse_prior.a - 1.0, lapse_prior.b - 1.0, width)
        for _ in range(sweeps):
            frame, _ = np.linalg.qr(rng.standard_normal((free, free)))
            directions = np.zeros((free, d + 1))
            directions[:, :free] = (root @ frame).T
            for_ranges(
                lapsing_sweep,
                n,
                CHUNK,
                states,
                rng.integers(0, 2**64, size=n, dtype=np.uint64),
                (directions, np.einsum("kd,dm->km", directions[:, :d], self.data[0])),
                self.data,
                (*self.prior.box(d), *self.prior.quadratic(d)),
                unknown,
                power,
                WIDTH,
                self.response.link,
            )
        return states


def _belief(
    states: FloatArray,
    weights: FloatArray,
    moments: tuple[FloatArray, FloatArray],
    data: Data,
    response: Response,
    info: BeliefInfo,
) -> Belief:
    n = len(states)
    ratio, spread = _moments_of(states[:, -2], weights)
    lapse, deviation = _moments_of(states[:, -1], weights)
    nodes, node_logs = _k_nodes(ratio, spread, response)
    lapses, lapse_logs = _lapse_nodes(lapse, deviation, response)
    count = n if len(nodes) * len(lapses) == 1 else min(n, _ROWS)
    rows = np.arange(count) * n // count
    out = np.empty((count, len(nodes))), np.empty((count, len(nodes)))
    grid = (nodes, node_logs, lapses, lapse_logs)
    for_ranges(conditionals, count, _ROWS // 8, states[rows], data, grid, response.link, out)
    reliability = Reliability(
        k=response.reference * np.exp(states[:, -2]),
        lapse=states[:, -1].copy(),
        typical_k=float(response.reference * math.exp(ratio)),
        spread=spread,
        typical_lapse=lapse,
        rows=rows,
        nodes=response.reference * np.exp(nodes),
        chances=out[0],
        lapses=out[1],
    )
    return sampled_belief(np.ascontiguousarray(states[:, :-2]), weights, moments, info, reliability)


def _moments_of(values: FloatArray, weights: FloatArray) -> tuple[float, float]:
    mean = float(np.sum(weights * values))
    return mean, math.sqrt(max(float(np.sum(weights * (values - mean) ** 2)), 0.0))


def _k_nodes(mean: float, deviation: float, response: Response) -> tuple[FloatArray, FloatArray]:
    """Return evenly spaced values of log(k/reference) that cover the belief, and their log prior weights."""
    prior = response.k_prior
    if prior is None:
        return np.zeros(1), np.zeros(1)
    nodes = mean + max(deviation, 1e-6) * np.linspace(-_REACH, _REACH, _K_NODES)
    return nodes, -0.5 * (nodes / prior.spread) ** 2


def _lapse_nodes(mean: float, deviation: float, response: Response) -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes of the lapse that cover the belief, denser near 0, and their log prior weights."""
    prior = response.lapse_prior
    if prior is None:
        return np.array([response.share]), np.zeros(1)
    x, weights = np.polynomial.legendre.leggauss(_LAPSE_NODES)
    x, weights = (x + 1) / 2, weights / 2
    low, high = mean - 3.0 * deviation, min(mean + 4.0 * deviation + 1e-6, 1.0)
    if low > 0.0:
        nodes, weights = low + (high - low) * x, (high - low) * weights
    else:
        nodes, weights = high * x**2, 2.0 * high * x * weights
    nodes = np.clip(nodes, LEAST_LAPSE, 1.0 - LEAST_LAPSE)
    return nodes, np.log(weights) + prior.log_density(nodes)
