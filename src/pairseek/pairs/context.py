"""Inputs and result of a pair selection: `SelectionContext` and `Selection`, and the `Source` protocol between them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pairseek.core.lazy import cached_property
from pairseek.core.types import Belief, Event, FloatArray, IntArray, Query
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.numerics.moments import sample_moments
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.rest import Resting
from pairseek.pairs.strategies.base import BaseUtility, Utility, utility_of
from pairseek.pairs.strategies.random import Random
from pairseek.pairs.strategies.shape import UtilityShape


@dataclass(frozen=True, eq=False)
class SelectionContext:
    """Everything the selection of a pair depends on, apart from randomness.

    Attributes
    ----------
    points
        (n, d) coordinates of the items; (0, d) in a continuous space.
    appeal
        (n,) appeal of the items.
    belief, response, strategy
        The belief, the response model with typical values of k and lapse, and the strategy.
    resting
        Pairs and items that must not be asked now.
    history, pending
        Events so far, and pending queries.
    draws
        Seed for a strategy whose score draws at random.
    """

    points: FloatArray
    appeal: FloatArray
    belief: Belief
    response: Response
    strategy: BaseUtility
    resting: Resting
    history: Sequence[Event] = ()
    pending: Sequence[Query] = ()
    draws: np.random.SeedSequence = field(default_factory=partial(np.random.SeedSequence, 0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "strategy", utility_of(self.strategy))

    @classmethod
    def of(
        cls,
        items: Items | Space,
        belief: Belief,
        response: Response,
        strategy: Utility | None = None,
        resting: Resting | None = None,
    ) -> SelectionContext:
        """Return the context for these items; without a strategy, it can only compute features."""
        points, appeal = items.coordinates, items.appeal
        unrestricted = Resting.of(len(points), [], [])
        utility = Random() if strategy is None else utility_of(strategy)
        return cls(points, appeal, belief, response, utility, resting or unrestricted)

    def features(self, first: IntArray, second: IntArray, belief: Belief | None = None) -> PairFeatures:
        """Compute the features of pairs of rows."""
        return PairFeatures.of(
            self.points,
            first,
            second,
            belief=self.belief if belief is None else belief,
            response=self.response,
            appeal=self.appeal,
        )

    def scores(self, features: PairFeatures) -> FloatArray:
        """Return validated (m,) utilities; -inf where the two points coincide."""
        scores = np.asarray(self._score(features, self.belief), dtype=np.float64)
        if scores.shape != (len(features),):
            name = type(self.strategy.original).__name__
            raise InvalidParameter(
                f"{name}.score returned shape {scores.shape}: return one score per pair, shape ({len(features)},)"
            )
        usable = features.distinct
        if np.any(np.isnan(scores) & usable):
            if not np.all(np.isfinite(features.logit_deviation[usable])):
                raise InvalidParameter(
                    "the belief, or k times the distances between items, overflows double precision: rescale the items "
                    "or use a tighter prior"
                )
            name = type(self.strategy.original).__name__
            raise InvalidParameter(f"{name}.score returned NaN for a valid pair: return a finite score or -inf")
        return np.where(usable, scores, -np.inf)

    def _score(self, features: PairFeatures, belief: Belief) -> FloatArray:
        if not self.strategy.takes_generator:
            return self.strategy.score(features, belief)
        return self.strategy.score(features, belief, rng=np.random.default_rng(self.draws))

    @cached_property
    def sample_belief(self) -> Belief:
        """The belief with its moments recomputed from the samples that `PairFeatures.sampled` uses."""
        samples, weights, reliability = self.belief.samples, self.belief.weights, self.belief.reliability
        if reliability is not None:
            samples, weights = np.ascontiguousarray(samples[reliability.rows]), weights[reliability.rows]
            weights = weights / weights.sum()
        mean, covariance = sample_moments(samples, weights)
        return replace(self.belief, mean=mean, covariance=covariance)

    def generator(self, purpose: str) -> np.random.Generator:
        """Return a generator for draws that only save time, keyed by everything the choice depends on."""
        resting = self.resting
        return keyed_generator(
            self.belief, (purpose, self.strategy, self.response, self.points.shape), resting.pairs, resting.items
        )

    @property
    def shape(self) -> UtilityShape | None:
        """The shape of the score, if branch and bound can use it; else None."""
        return self.strategy.usable_shape(self.response)

    @property
    def drawn(self) -> bool:
        """Whether the utility is constant, so that a pair is drawn uniformly."""
        return self.shape is not None and self.shape.kind == "even"

    @property
    def caveat(self) -> str:
        """Clause for `Selection.words` that says what a certified gap does not cover; empty if it covers everything."""
        known = self.belief.reliability is None
        return "" if known else "; by a score that treats k and lapse as independent of the point"

    @property
    def rescores(self) -> bool:
        """Whether the best pairs are rescored by samples."""
        if self.belief.residuals is not None:
            return False  # samples of the point lack the residual utilities
        return self.strategy.exact is not None and self.strategy.rescored

    def rescored(self, features: PairFeatures) -> FloatArray:
        """Return (m,) utilities averaged over all samples, free of the noise in the samples' first two moments.

        The result is the score at the belief's moments, which have little noise, plus what the samples add beyond their
        own moments: exact(samples) - score(moments of the samples). A strategy without `exact` keeps its scores.
        """
        scores = self.scores(features)
        if self.strategy.exact is None:
            return scores
        at_samples = self.features(features.first, features.second, self.sample_belief)
        rescored = np.asarray(
            scores + self.strategy.exact(features, self.sample_belief) - self._score(at_samples, self.sample_belief)
        )
        # The correction is undefined for logits beyond the range of the samples, so the plain score is kept there.
        return np.where(np.isnan(rescored), scores, rescored)


@dataclass(frozen=True, slots=True)
class Selection:
    """A chosen pair.

    Attributes
    ----------
    first, second
        Item rows.
    utility
        The strategy's score.
    considered
        Number of pairs scored.
    words
        Description of the set of candidates, in words.
    bound
        Upper bound on the score of any permitted pair; None if unknown.
    gap
        Certified optimality gap: relative to the best score or, where scores may be negative, to the difference
        between the best and the median pair. None if unknown.
    chance
        Probability with which this pair was drawn; None if nothing was drawn, or if it is unknown.
    """

    first: int
    second: int
    utility: float
    considered: int
    words: str
    bound: float | None = None
    gap: float | None = None
    chance: float | None = None


class Source(Protocol):
    """A source of pairs.

    ``choose`` is a pure function of the context and the generator. The generator follows from the search's seed and is
    meant for sources that are random by design. A source that samples only to save time uses
    `SelectionContext.generator` instead, so that identical answers lead to identical questions.
    """

    @property
    def name(self) -> str:
        """Name used in files, commands and HTTP."""
        ...

    def choose(self, context: SelectionContext, rng: np.random.Generator) -> Selection | None:
        """Return the best pair found; None if the rest rules leave none."""
        ...


def keyed_generator(belief: Belief, settings: tuple[object, ...], *arrays: npt.NDArray[Any]) -> np.random.Generator:
    """Return a generator seeded by a belief, the `repr` of the settings, and arrays."""
    digest = hashlib.sha256(repr(settings).encode())
    for array in (belief.mean, belief.covariance, *arrays):
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.random.default_rng(np.frombuffer(digest.digest(), dtype="<u4"))


def best_of(
    context: SelectionContext, first: IntArray, second: IntArray, rng: np.random.Generator, *, rescore: int, words: str
) -> Selection | None:
    """Return the listed pair of highest score, after rescoring the `rescore` best by samples.

    Ties are broken by the order of the items. For a constant utility, and among items without coordinates, one of the
    best pairs is drawn uniformly.
    """
    permitted = np.flatnonzero(context.resting.allows(first, second))
    if len(permitted) < len(first):
        first, second = first[permitted], second[permitted]
    if not len(first):
        return None
    if context.drawn and context.belief.residuals is None:
        return _draw_uniformly(context, first, second, rng, words)
    features = context.features(first, second)
    scores = context.scores(features)
    if not np.any(scores > -np.inf):
        return None
    considered = len(features)
    if rescore and context.rescores:
        rows = np.arange(considered) if considered <= rescore else np.argpartition(-scores, rescore)[:rescore]
        rows = rows[scores[rows] > -np.inf]
        features = features.take(rows)
        scores = context.rescored(features)
    ties = np.flatnonzero(scores == scores.max())
    if context.drawn or (len(ties) > 1 and not context.points.shape[1]):
        # Items without coordinates tie until they are shown. In the items' order, everybody in a group would be asked
        # about the same disjoint pairs, and their answers would not connect the items.
        row = int(rng.choice(ties))
    else:
        first, second = features.first[ties], features.second[ties]
        row = int(ties[np.lexsort((np.maximum(first, second), np.minimum(first, second)))[0]])
    return Selection(int(features.first[row]), int(features.second[row]), float(scores[row]), considered, words)


def _draw_uniformly(
    context: SelectionContext, first: IntArray, second: IntArray, rng: np.random.Generator, words: str
) -> Selection | None:
    """Draw one of the pairs whose points differ, without computing features that a constant utility ignores."""
    # Few pairs agree in the first coordinate; only those are compared in all coordinates.
    distinct = context.points[first, 0] != context.points[second, 0]
    alike = np.flatnonzero(~distinct)
    distinct[alike] = np.any(context.points[first[alike]] != context.points[second[alike]], axis=1)
    rows = np.flatnonzero(distinct)
    if not len(rows):
        return None
    row = int(rng.choice(rows))
    chosen = context.features(first[row : row + 1], second[row : row + 1])
    return Selection(int(first[row]), int(second[row]), float(context.scores(chosen)[0]), len(first), words)
