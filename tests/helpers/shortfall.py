"""Shortfall of the best pair by table, and by table and samples, from the best candidate.

Used by test_selection.py on a small catalogue and by benchmarks/fidelity.py in the setting of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from helpers.situations import belief_of
from pairseek.core.types import Evidence
from pairseek.model.priors import UniformBox
from pairseek.pairs.context import SelectionContext, best_of
from pairseek.pairs.rest import Resting
from pairseek.pairs.sources.sampled import sampled_pairs
from pairseek.posteriors import Particles


@dataclass(frozen=True)
class Shortfall:
    """Judged (best - chosen)/(best - median), with the pair chosen by table, or by samples among the table's best."""

    strategy: str
    answers: int
    by_table: float
    rescored: float


def along_a_search(items, response, strategies, *, at, candidates, samples, judged, seed, rescore=512):
    """Yield the shortfalls after the given numbers of answers to questions of the first strategy.

    The judge is a belief from the same answers with ten times as many samples of its own. It judges the `judged`
    candidates with the highest scores, and a random tenth of all, whose median is the median candidate.
    """
    rng = np.random.default_rng(seed)
    user = rng.uniform(-1, 1, size=items.d)
    prior = UniformBox()
    judge = _mirrored(prior, 10 * samples, items.d, np.random.default_rng([seed, 1]))
    slopes, offsets = np.empty((0, items.d)), np.empty(0)
    evidence = Evidence(slopes, offsets, offsets)
    for answers in range(max(at) + 1):
        first, second = sampled_pairs(items.n, candidates, rng)
        belief = Particles(samples, seed=seed).infer(evidence, prior, response)
        if answers in at:
            if answers:
                judge = Particles(10 * samples, seed=seed + 1).infer(evidence, prior, response)
            for strategy in strategies:
                yield _shortfall(
                    items, response, strategy, (belief, judge), first, second, answers, judged, rescore, rng
                )
        scene = _scene(items, response, strategies[0], belief)
        chosen = best_of(scene, first, second, rng, rescore=0, words="")
        p, q = items.coordinates[[chosen.first]], items.coordinates[[chosen.second]]
        slope, offset = response.planes(p, q)
        side = 1.0 if rng.random() < expit(slope[0] @ user + offset[0]) else -1.0
        slopes, offsets = np.vstack([slopes, side * slope]), np.append(offsets, side * offset)
        evidence = Evidence(slopes, offsets, np.ones(len(offsets)))


def _mirrored(prior, n, d, rng):
    """Sample the prior with mirror images, which makes it exactly symmetric, as EPMV needs."""
    half = prior.sample(n // 2, d, rng)
    return belief_of(np.concatenate([half, -half]), np.full(n, 1 / n), *prior.moments(d))


def _scene(items, response, strategy, belief):
    return SelectionContext(items.coordinates, items.appeal, belief, response, strategy, Resting.of(items.n, [], []))


def _shortfall(items, response, strategy, beliefs, first, second, answers, judged, rescore, rng):
    scene, judge = (_scene(items, response, strategy, belief) for belief in beliefs)
    described = scene.features(first, second)
    scores = scene.scores(described)
    order = np.argsort(-scores)
    others = rng.choice(order, size=max(1, len(order) // 10), replace=False)
    rows = np.unique(np.append(order[:judged], others))
    truth = np.full(len(order), -np.inf)
    truth[rows] = judge.rescored(judge.features(first[rows], second[rows]))
    finalists = order[:rescore]
    picked = finalists[np.argmax(scene.rescored(described.take(finalists)))]
    top = truth.max()
    spread = top - np.median(truth[others])
    return Shortfall(strategy.name, answers, (top - truth[order[0]]) / spread, (top - truth[picked]) / spread)
