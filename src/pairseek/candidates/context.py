"""What a source of pairs is given to choose from, and what it gives back."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pairseek.candidates.rest import Resting
from pairseek.core.types import Belief, FloatArray, IntArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.responses import Response
from pairseek.numerics.moments import sample_moments
from pairseek.strategies.base import Utility
from pairseek.strategies.features import Candidates
from pairseek.strategies.random import Random
from pairseek.strategies.shape import surface_of


@dataclass(frozen=True, eq=False)
class Scene:
    """All that the choice of a pair depends on.

    Attributes
    ----------
    points
        (n, d) coordinates of the items.
    appeal
        (n,) appeal of the items.
    belief, response, strategy
        What is believed, how people answer, and what makes a pair good.
    resting
        What may not be asked now.
    """

    points: FloatArray
    appeal: FloatArray
    belief: Belief
    response: Response
    strategy: Utility
    resting: Resting

    @classmethod
    def of(
        cls,
        items: Items,
        belief: Belief,
        response: Response,
        strategy: Utility | None = None,
        resting: Resting | None = None,
    ) -> Scene:
        """The scene of items; without a strategy, one that can only describe pairs."""
        nothing = Resting.of(items.n, [], [])
        return cls(items.coordinates, items.appeal, belief, response, strategy or Random(), resting or nothing)

    def candidates(self, first: IntArray, second: IntArray, belief: Belief | None = None) -> Candidates:
        """Describe pairs of rows."""
        return Candidates.of(
            self.points,
            first,
            second,
            belief=self.belief if belief is None else belief,
            response=self.response,
            appeal=self.appeal,
        )

    def scores(self, candidates: Candidates) -> FloatArray:
        """(m,) utilities, checked; -inf where the two points coincide."""
        scores = np.asarray(self.strategy.score(candidates, self.belief), dtype=np.float64)
        name = type(self.strategy).__name__
        if scores.shape != (len(candidates),):
            raise InvalidParameter(f"{name}.score gave shape {scores.shape} for {len(candidates)} candidates")
        usable = candidates.length > 0
        if np.any(np.isnan(scores[usable])):
            if not np.all(np.isfinite(candidates.logit_deviation[usable])):
                raise InvalidParameter(
                    "the belief, or the distances of the items times k, are beyond what a double can hold: scale the "
                    "items, or use a tighter prior"
                )
            raise InvalidParameter(f"{name}.score gave NaN for a usable candidate: fix its formula")
        return np.where(usable, scores, -np.inf)

    @cached_property
    def plain(self) -> Belief:
        """The belief with the moments that the samples have themselves over which `Candidates.sampled` goes."""
        samples, weights, known = self.belief.samples, self.belief.weights, self.belief.reliability
        if known is not None:
            samples, weights = np.ascontiguousarray(samples[known.rows]), weights[known.rows]
            weights = weights / weights.sum()
        mean, covariance = sample_moments(samples, weights)
        return replace(self.belief, mean=mean, covariance=covariance)

    def generator(self, purpose: str) -> np.random.Generator:
        """Return a generator for draws that nobody asked to be random: keyed by all that the choice depends on."""
        resting = self.resting
        return keyed_generator(
            self.belief, (purpose, self.strategy, self.response, self.points.shape), resting.pairs, resting.items
        )

    @property
    def drawn(self) -> bool:
        """Whether the strategy takes any pair for as good as any other, so that one is to be drawn."""
        surface = surface_of(self.strategy)
        return surface is not None and surface.shape == "even"

    @property
    def caveat(self) -> str:
        """What must be said beside a gap: for which scores it is certain."""
        unknown = self.belief.reliability is not None
        return "; by a score that takes k and lapse for independent of the point" if unknown else ""

    @property
    def rescores(self) -> bool:
        """Whether a second score by samples serves the strategy."""
        return hasattr(self.strategy, "exact") and getattr(self.strategy, "rescored", True)

    def rescored(self, candidates: Candidates) -> FloatArray:
        """(m,) utilities by all samples, with the noise of their first two moments taken out.

        The score at the belief's moments, which hold little noise, plus what the samples say beyond their own
        moments: exact(samples) - score(moments of the samples). Strategies without `exact` are exact already.
        """
        scores = self.scores(candidates)
        exact = getattr(self.strategy, "exact", None)
        if exact is None:
            return scores
        same = self.candidates(candidates.first, candidates.second, self.plain)
        again = np.asarray(scores + exact(candidates, self.plain) - self.strategy.score(same, self.plain))
        # Where samples say nothing, as for logits beyond their range, the first score stands.
        return np.where(np.isnan(again), scores, again)


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen pair.

    Attributes
    ----------
    first, second
        Rows.
    utility
        By the strategy.
    considered
        How many pairs were looked at.
    words
        What it was chosen from.
    bound
        No pair that may be asked has a higher score; None where that is not known.
    gap
        How far the score of the best found may be below the best of all: a share of the best or, where scores may be
        negative, of the difference between the best and the median pair. None where that is not known.
    """

    first: int
    second: int
    utility: float
    considered: int
    words: str
    bound: float | None = None
    gap: float | None = None


class Source(Protocol):
    """A source of pairs.

    ``choose`` is a pure function of the scene and the generator. The generator follows from the search's seed, for
    sources that are random by name; a source that samples only to save time takes `Scene.generator` instead, so that
    equal answers lead to equal questions.
    """

    @property
    def name(self) -> str:
        """Its name at the edges: files, commands, HTTP."""
        ...

    def choose(self, scene: Scene, rng: np.random.Generator) -> Choice | None:
        """The best pair it found; None if the rules leave none."""
        ...


def keyed_generator(belief: Belief, settings: tuple[object, ...], *arrays: npt.NDArray[Any]) -> np.random.Generator:
    """Return a generator keyed by a belief, by settings, whose `repr` tells them apart, and by arrays."""
    digest = hashlib.sha256(repr(settings).encode())
    for array in (belief.mean, belief.covariance, *arrays):
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.random.default_rng(np.frombuffer(digest.digest(), dtype="<u4"))


def best_of(
    scene: Scene, first: IntArray, second: IntArray, rng: np.random.Generator, *, rescore: int, words: str
) -> Choice | None:
    """Return the best of listed pairs: by score, the `rescore` best again by samples.

    Equal scores are told apart by the order of the items; for a strategy that takes all pairs for equal, one is drawn.
    """
    free = np.flatnonzero(scene.resting.allows(first, second))
    if len(free) < len(first):
        first, second = first[free], second[free]
    if not len(first):
        return None
    candidates = scene.candidates(first, second)
    scores = scene.scores(candidates)
    if not np.any(scores > -np.inf):
        return None
    considered = len(candidates)
    if rescore and scene.rescores:
        rows = np.arange(considered) if considered <= rescore else np.argpartition(-scores, rescore)[:rescore]
        rows = rows[scores[rows] > -np.inf]
        candidates = candidates.take(rows)
        scores = scene.rescored(candidates)
    ties = np.flatnonzero(scores == scores.max())
    if scene.drawn:
        row = int(rng.choice(ties))
    else:
        one, other = candidates.first[ties], candidates.second[ties]
        row = int(ties[np.lexsort((np.maximum(one, other), np.minimum(one, other)))[0]])
    return Choice(int(candidates.first[row]), int(candidates.second[row]), float(scores[row]), considered, words)
