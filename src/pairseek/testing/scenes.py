"""Random answers, evidence, beliefs and pairs for the contract tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Literal, TypeAlias

import numpy as np

from pairseek.core.types import Belief, BeliefInfo, Evidence, FloatArray
from pairseek.model.items import Items
from pairseek.model.noise import NOISES
from pairseek.model.responses import RESPONSES, Response
from pairseek.pairs.features import PairFeatures
from pairseek.posteriors.base import sampled_belief

Answer: TypeAlias = tuple[FloatArray, FloatArray, Literal["first", "second", "tie"]]
"""Two points, and the outcome of comparing them."""

ITEM_COUNT = 12
ITEMS = Items(np.random.default_rng(0).uniform(-1, 1, size=(ITEM_COUNT, 3)))
"""Twelve items in three dimensions."""


def random_answers(rng: np.random.Generator, user: Sequence[float], count: int, response: Response) -> list[Answer]:
    """Simulate the answers of a user at this point to random pairs of points in [-1, 1]^d."""
    answers: list[Answer] = []
    for _ in range(count):
        p, q = rng.uniform(-1, 1, size=(2, len(user)))
        slopes, offsets = response.planes(p[None], q[None])
        wins_first = rng.random() < response.probability(slopes @ np.asarray(user, dtype=np.float64) + offsets)[0]
        answers.append((p, q, "first" if wins_first else "second"))
    return answers


def evidence_of(response: Response, answers: Sequence[Answer]) -> Evidence:
    """Convert answers to evidence, with logits oriented towards the winner."""
    sides = [(q, p) if outcome == "second" else (p, q) for p, q, outcome in answers]
    winners, losers = (np.array([side[i] for side in sides]) for i in (0, 1))
    slopes, offsets = response.planes(winners, losers)
    decided = np.array([float(outcome != "tie") for _, _, outcome in answers])
    return Evidence(np.ascontiguousarray(slopes), offsets, decided)


def first_of(evidence: Evidence, count: int) -> Evidence:
    """Return the first `count` answers of the evidence."""
    return Evidence(evidence.slopes[:count], evidence.offsets[:count], evidence.decided[:count])


def belief_of(samples: FloatArray, weights: FloatArray) -> Belief:
    """Return a belief with the moments of its samples."""
    mean = weights @ samples
    centred = samples - mean
    covariance = (centred * weights[:, None]).T @ centred
    return sampled_belief(samples, weights, (mean, covariance), BeliefInfo("particles"))


def random_belief(rng: np.random.Generator, count: int, d: int) -> Belief:
    """Return a belief of equally weighted normal samples."""
    samples = rng.normal(scale=0.4, size=(count, d)) + rng.uniform(-0.3, 0.3, size=d)
    return belief_of(samples, np.full(count, 1.0 / count))


def random_features(seed: int, response: Response) -> tuple[PairFeatures, Belief]:
    """Return the features of four random pairs of points with appeal, and their belief."""
    rng = np.random.default_rng(seed)
    points, appeal = rng.uniform(-1, 1, size=(8, 3)), rng.normal(scale=0.5, size=8)
    belief, rows = random_belief(rng, 300, 3), np.arange(4)
    return PairFeatures.of(points, rows, rows + 4, belief=belief, response=response, appeal=appeal), belief


def random_scenes(repeats: int = 4) -> Iterator[tuple[int, PairFeatures, Belief]]:
    """Yield seeds, features and beliefs for every response, every noise kind and several noise constants."""
    models = product(range(repeats), RESPONSES.values(), NOISES)
    for seed, (repeat, response_type, noise) in enumerate(models):
        yield seed, *random_features(seed, response_type((0.3, 2.0, 8.0)[repeat % 3], noise))


def standardized(belief: Belief, mean: FloatArray, covariance: FloatArray) -> tuple[float, float, float]:
    """Return the distance between the means in standard deviations, and the extreme variance ratios over directions."""
    values, vectors = np.linalg.eigh(covariance)
    whitener = vectors / np.sqrt(values)
    ratios = np.linalg.eigvalsh(whitener.T @ belief.covariance @ whitener)
    return float(np.linalg.norm((belief.mean - mean) @ whitener)), float(ratios[0]), float(ratios[-1])


def moments_by_quadrature(response: Response, evidence: Evidence, cells: int = 301) -> tuple[FloatArray, FloatArray]:
    """Return the posterior mean and covariance for a uniform prior on [-1, 1]^d, by the midpoint rule; d <= 2."""
    d = evidence.slopes.shape[1]
    axis = (np.arange(cells) + 0.5) * (2.0 / cells) - 1.0
    points = np.stack([x.ravel() for x in np.meshgrid(*[axis] * d, indexing="ij")], axis=1)
    logs = response.log_likelihood(evidence, points)
    weights = np.exp(logs - logs.max())
    belief = belief_of(points, weights / weights.sum())
    return belief.mean, belief.covariance
