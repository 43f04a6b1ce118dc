"""Particles over (w, log k, lapse), for a person whose k or lapse is not known."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pairseek._moments import CHUNK, sample_moments
from pairseek._parallel import for_ranges
from pairseek._types import Belief, BeliefInfo, Evidence, FloatArray, Reliability
from pairseek.posteriors._control import lapsing_moments
from pairseek.posteriors._lapsing import conditionals, lapsing_sweep, log_answers
from pairseek.posteriors._weights import resampled, reweighted, stage_power
from pairseek.posteriors.base import effective_samples, frozen_belief
from pairseek.priors import Prior, stratified
from pairseek.responses import Response
from pairseek.unknowns import LEAST_LAPSE

WIDTH = 5.0
"""Slice interval in standard deviations along the direction."""
STAGE = 0.25
"""When an answer would leave a smaller share of effective samples than this, it enters in stages."""
MOST_STAGES = 4
"""When it takes more stages than this (most answers take one or none), all answers enter together instead."""

# Answers whose chances were so much worse than even, in nats, may be right about a place that was left.
_SURPRISED = math.log(30.0)
# Samples at whose points the distribution of k and lapse is worked out, values of k, and of the lapse.
_ROWS = 256
_K_NODES = 6
_LAPSE_NODES = 4
# The values of k reach so many deviations of log k to either side.
_REACH = 2.5

# Slopes by coordinate, offsets without appeal, decided, appeal: as in `_lapsing`.
Data: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True)
class Settings:
    """Those of `Particles`."""

    n: int
    threshold: float
    sweeps: int


def reliable_start(n: int, prior: Prior, d: int, response: Response, rng: np.random.Generator) -> Belief:
    """Samples of the priors."""
    states, weights = _drawn(n, prior, d, response, rng), np.full(n, 1 / n)
    nothing = _data(Evidence(np.empty((0, d)), np.empty(0), np.empty(0)))
    return _belief(states, weights, prior.moments(d), nothing, response, BeliefInfo(float(n)), 0.0)


def reliable_update(
    settings: Settings,
    belief: Belief,
    evidence: Evidence,
    prior: Prior,
    response: Response,
    rng: np.random.Generator,
) -> Belief:
    """The belief after the newest answer: as `Particles.update`, with k and lapse."""
    began = time.perf_counter()
    assert belief.reliability is not None
    n, data = settings.n, _data(evidence)
    states, weights = _states(belief, belief.reliability, response), belief.weights
    power, stages, fresh = 0.0, 0, False
    gain = _gain(states, data, len(data[1]) - 1, response)
    surprise = belief.reliability.surprise
    # Without lapses the posterior of the point is log-concave at every k, and there is one place.
    if evidence.decided[-1] > 0.0 and (response.lapse_prior is not None or response.share > 0.0):
        surprise = max(0.0, surprise - math.log(2.0) - math.log(max(float(np.exp(gain) @ weights), 1e-300)))
        fresh = surprise > _SURPRISED
    while not fresh:
        full = reweighted(weights, gain, 1.0 - power)
        if effective_samples(full) >= settings.threshold * n:
            weights = full
            break
        if effective_samples(full) >= STAGE * n:
            step, weights = 1.0 - power, full
        else:
            step = stage_power(weights, gain, 1.0 - power, effective_samples(weights) / 2)
            weights = reweighted(weights, gain, step)
        power = min(power + step, 1.0)
        states = _moved(states, weights, data, prior, response, (1.0, power), settings.sweeps, rng)
        weights = np.full(n, 1 / n)
        stages += 1
        if power >= 1.0:
            break
        fresh = stages >= MOST_STAGES
        gain = _gain(states, data, len(data[1]) - 1, response)
    if fresh:
        states, more = _afresh(settings, data, prior, response, rng)
        stages, surprise, weights = stages + more, 0.0, np.full(n, 1 / n)
    moments = lapsing_moments(states, weights, data, prior, response)
    moves = stages * settings.sweeps * (states.shape[1] - 1)
    info = BeliefInfo(effective_samples(weights), moves, stages, time.perf_counter() - began)
    return _belief(states, weights, moments, data, response, info, surprise)


def _data(evidence: Evidence) -> Data:
    appeal = np.zeros_like(evidence.offsets) if evidence.appeal is None else evidence.appeal
    return np.ascontiguousarray(evidence.slopes.T), evidence.offsets - appeal, evidence.decided, appeal


def _states(belief: Belief, reliability: Reliability, response: Response) -> FloatArray:
    ratios = np.log(reliability.k / response.reference)
    return np.ascontiguousarray(np.column_stack([belief.samples, ratios, reliability.lapse]))


def _drawn(n: int, prior: Prior, d: int, response: Response, rng: np.random.Generator) -> FloatArray:
    """(n, d + 2) states from the priors."""
    points, uniform = prior.sample(n, d, rng), stratified(n, 2, rng)
    k_prior, lapse_prior = response.k_prior, response.lapse_prior
    ratios = np.zeros(n) if k_prior is None else k_prior.log_ratios(uniform[:, 0])
    lapses = np.full(n, response.share) if lapse_prior is None else lapse_prior.quantiles(uniform[:, 1])
    return np.ascontiguousarray(np.column_stack([points, ratios, lapses]))


def _gain(states: FloatArray, data: Data, first: int, response: Response) -> FloatArray:
    """Log-likelihood of the answers from `first` on."""
    out = np.empty(len(states))
    for_ranges(log_answers, len(states), CHUNK, first, states, data, response.link, out)
    return out


def _afresh(
    settings: Settings, data: Data, prior: Prior, response: Response, rng: np.random.Generator
) -> tuple[FloatArray, int]:
    """Samples of the posterior from those of the priors, by a growing power of the whole likelihood; and the stages."""
    n = settings.n
    states = _drawn(n, prior, len(data[0]), response, rng)
    weights = np.full(n, 1 / n)
    power, stages = 0.0, 0
    while power < 1.0:
        gain = _gain(states, data, 0, response)
        step = stage_power(weights, gain, 1.0 - power, n / 2)
        power = min(power + step, 1.0)
        uneven = reweighted(weights, gain, step)
        states = _moved(states, uneven, data, prior, response, (power, power), settings.sweeps, rng)
        stages += 1
    return states, stages


def _moved(
    states: FloatArray,
    weights: FloatArray,
    data: Data,
    prior: Prior,
    response: Response,
    powers: tuple[float, float],
    sweeps: int,
    rng: np.random.Generator,
) -> FloatArray:
    n, d = len(states), states.shape[1] - 2
    _, covariance = sample_moments(states, weights)
    free = d if response.k_prior is None else d + 1
    root = _root(covariance[:free, :free])
    k_prior, lapse_prior = response.k_prior, response.lapse_prior
    precision_u = 0.0 if k_prior is None else k_prior.spread**-2
    unknown = (0.0, precision_u, 0.0, 0.0, 0.0)
    if lapse_prior is not None:
        width = min(1.0, max(WIDTH * math.sqrt(max(covariance[d + 1, d + 1], 0.0)), 0.01))
        unknown = (0.0, precision_u, lapse_prior.a - 1.0, lapse_prior.b - 1.0, width)
    moving = np.ascontiguousarray(states[resampled(weights, rng)])
    for _ in range(sweeps):
        frame, _ = np.linalg.qr(rng.standard_normal((free, free)))
        directions = np.zeros((free, d + 1))
        directions[:, :free] = (root @ frame).T
        lines = np.einsum("kd,dm->km", directions[:, :d], data[0])
        for_ranges(
            lapsing_sweep,
            n,
            CHUNK,
            moving,
            rng.integers(0, 2**64, size=n, dtype=np.uint64),
            (directions, lines),
            data,
            (*prior.box(d), *prior.quadratic(d)),
            unknown,
            powers,
            WIDTH,
            response.link,
        )
    return moving


def _root(covariance: FloatArray) -> FloatArray:
    """A root by the eigenvectors of the correlations: points and log k have units of their own."""
    deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    values, vectors = np.linalg.eigh(covariance / np.multiply.outer(deviations, deviations))
    return np.asarray(deviations[:, None] * vectors * np.sqrt(np.maximum(values, 1e-20)))


def _belief(
    states: FloatArray,
    weights: FloatArray,
    moments: tuple[FloatArray, FloatArray],
    data: Data,
    response: Response,
    info: BeliefInfo,
    surprise: float,
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
        surprise=surprise,
    )
    return frozen_belief(np.ascontiguousarray(states[:, :-2]), weights, moments, info, reliability)


def _moments_of(values: FloatArray, weights: FloatArray) -> tuple[float, float]:
    mean = float(np.sum(weights * values))
    return mean, math.sqrt(max(float(np.sum(weights * (values - mean) ** 2)), 0.0))


def _k_nodes(mean: float, deviation: float, response: Response) -> tuple[FloatArray, FloatArray]:
    """Values of log(k/reference), evenly spaced over the belief, and the logarithms of their prior weights."""
    prior = response.k_prior
    if prior is None:
        return np.zeros(1), np.zeros(1)
    nodes = mean + max(deviation, 1e-6) * np.linspace(-_REACH, _REACH, _K_NODES)
    return nodes, -0.5 * (nodes / prior.spread) ** 2


def _lapse_nodes(mean: float, deviation: float, response: Response) -> tuple[FloatArray, FloatArray]:
    """Lapses by Gauss and Legendre over the belief, dense at 0 where it reaches so far, and their log prior weights."""
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
