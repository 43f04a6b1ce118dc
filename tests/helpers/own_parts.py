"""User-defined parts, one of each kind, written the way the documentation tells users to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.core.types import Belief, BeliefInfo
from pairseek.model.responses import Response
from pairseek.pairs.context import Selection
from pairseek.posteriors.base import generator_for, sampled_belief


@dataclass(frozen=True)
class Laplace(Response):
    """Response whose link is the Laplace distribution function."""

    name: ClassVar[str] = "laplace"

    def link_function(self, logits):
        tail = 0.5 * np.exp(-np.abs(logits))
        return np.where(np.asarray(logits) > 0, 1.0 - tail, tail)

    def log_link(self, logits):
        z = np.asarray(logits, dtype=np.float64)
        return np.where(z > 0, np.log1p(-0.5 * np.exp(-np.abs(z))), z - np.log(2.0))

    def slope(self, logits):
        z = np.asarray(logits, dtype=np.float64)
        tail = 0.5 * np.exp(-np.abs(z))
        return np.where(z > 0, tail / (1.0 - tail), 1.0)


@dataclass(frozen=True)
class TwoHills:
    """An even mixture of two normal distributions, around (apart, 0, ...) and its mirror image."""

    apart: float = 1.0
    deviation: float = 0.4
    name: ClassVar[str] = "two_hills"

    def sample(self, n, d, rng):
        points = self.deviation * rng.standard_normal((n, d))
        points[:, 0] += np.where(rng.random(n) < 0.5, self.apart, -self.apart)
        return points

    def log_density(self, points):
        squares = np.sum(points[:, 1:] ** 2, axis=1)
        near, far = ((points[:, 0] - side) ** 2 for side in (self.apart, -self.apart))
        return np.logaddexp(*(-0.5 * (squares + square) / self.deviation**2 for square in (near, far)))


@dataclass(frozen=True)
class Weighted:
    """Importance sampling: draws from the prior, weighted by the likelihood."""

    draws: int = 400
    name: ClassVar[str] = "weighted_draws"
    takes_lapses: ClassVar[bool] = True

    def infer(self, evidence, prior, response) -> Belief:
        d = evidence.slopes.shape[1]
        samples = prior.sample(self.draws, d, generator_for(evidence, self))
        logs = response.log_likelihood(evidence, samples)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        mean = weights @ samples
        centred = samples - mean
        return sampled_belief(samples, weights, (mean, (centred.T * weights) @ centred), BeliefInfo("weighted"))


@dataclass(frozen=True)
class Closest:
    """Utility that prefers pairs of nearby items."""

    name: ClassVar[str] = "closest"

    def score(self, candidates, belief):
        return -candidates.length


@dataclass(frozen=True)
class Thompson:
    """Double Thompson sampling: the best items of two draws from the belief."""

    name: ClassVar[str] = "thompson"

    def score(self, candidates, belief, rng):
        draws = belief.samples[rng.choice(len(belief.weights), size=2, p=belief.weights)]
        left, right = (-np.sum((candidates.points - draw) ** 2, axis=1) for draw in draws)
        first, second = candidates.first, candidates.second
        return np.maximum(left[first] + right[second], right[first] + left[second])


@dataclass(frozen=True)
class InTurn:
    """Procedure that asks about neighbours in the list, and estimates the mean of the winners."""

    name: ClassVar[str] = "in_turn"

    def next(self, items, history, rng):
        place = len(history) % (items.n - 1)
        return place, place + 1

    def estimate(self, items, history):
        won = [items.index(event.winner) for event in history if event.winner is not None]
        return items.coordinates[won or slice(None)].mean(axis=0)


@dataclass(frozen=True)
class BestOfFew:
    """Source that scores a few random pairs."""

    count: int = 20
    name: ClassVar[str] = "best_of_few"

    def choose(self, context, rng):
        n = len(context.points)
        first = rng.integers(0, n, self.count)
        second = (first + rng.integers(1, n, self.count)) % n
        free = context.resting.allows(first, second)
        if not free.any():
            return None
        first, second = first[free], second[free]
        scores = context.scores(context.features(first, second))
        best = int(np.argmax(scores))
        return Selection(int(first[best]), int(second[best]), float(scores[best]), len(first), "a few pairs")
