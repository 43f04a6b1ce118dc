"""GaussCloud-Q: Massimino and Davenport, "As you like it" (arXiv 1802.10489), as run in the paper.

T answers are collected in Q stages. Each stage draws pairs of points from a Gaussian around the estimate, replaces them
by the nearest items and asks about those; the spread is halved from stage to stage. After every answer, an extended
nu-SVM with nu = 0.5 estimates the user point from all answers. Appeal is not used.

The SVM depends on the origin and unit of the coordinates, which the paper takes from the box [-1, 1]^d. Here the box is
centred and scaled so that its corners have norm sqrt(d), which leaves that box unchanged. Ties and skips count as asked
but are not used in the estimate. Answers to pairs that were not asked enter the estimate but do not count towards T. No
pair is asked twice unless the cloud contains no other.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from pairseek.core.lazy import cached_property
from pairseek.core.limits import COORDINATE, Limit
from pairseek.core.types import Event, FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.priors import Prior
from pairseek.model.responses import hyperplanes
from pairseek.model.spaces import Space
from pairseek.pairs.strategies.base import BaseProcedure
from pairseek.pairs.strategies.baselines.box import BoxLimits, box_bounds, checked_box, prior_box
from pairseek.pairs.strategies.baselines.cache import LRUCache
from pairseek.pairs.strategies.baselines.nearest import nearest_pairs
from pairseek.pairs.strategies.baselines.nusvm import extended_nu_svm

NU = 0.5
"""Parameter nu of the nu-SVM."""
DRAWN_PER_NEEDED = 3
"""Number of pairs drawn for each pair needed."""
MAX_FRUITLESS_DRAWS = 20
"""Number of draws without a new pair after which the cloud counts as exhausted."""


@dataclass(frozen=True)
class GaussCloud(BaseProcedure):
    """Pairs drawn from a Gaussian cloud around the estimate, which shrinks from stage to stage.

    Parameters
    ----------
    stages
        Q, the number of stages.
    answers
        T, the number of queries: floor(T/Q) per stage, and the remainder in the last.
    box
        (low, high): bounds to which the estimate is clipped, one number for all dimensions or one for each. None: a
        search uses the prior's box (four standard deviations of a Gaussian); outside a search, the items' bounding box.

    Examples
    --------
    >>> import pairseek as ps
    >>> cloud = ps.GaussCloud(stages=2, answers=20)
    >>> box = ps.UniformBox(-1.0, 1.0)
    >>> search = ps.Search(ps.datasets.colours(), prior=box, strategy=cloud, rng=7)
    >>> search.ask().info.strategy
    'gausscloud'
    """

    stages: Annotated[int, Limit(1, 1000)]
    answers: Annotated[int, Limit(1, 1000)]
    box: Annotated[BoxLimits | None, COORDINATE] = None
    name: ClassVar[str] = "gausscloud"

    def __post_init__(self) -> None:
        for field in ("stages", "answers"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InvalidParameter(
                    f"{field} of GaussCloud is {value!r}: give a whole number, at least 1", field=field
                )
            object.__setattr__(self, field, int(value))
        if self.answers < self.stages:
            raise InvalidParameter(
                f"GaussCloud has {self.stages} stages but only {self.answers} answers: give at least one per stage",
                field="answers",
            )
        object.__setattr__(self, "box", checked_box(self.box, "GaussCloud"))

    @cached_property
    def _points(self) -> LRUCache[FloatArray | None]:
        return LRUCache(64)

    @cached_property
    def _clouds(self) -> LRUCache[list[tuple[int, int]]]:
        return LRUCache(MAX_FRUITLESS_DRAWS + 4)

    @property
    def label_number(self) -> int:  # type: ignore[override]
        """Q, the number of stages."""
        return self.stages

    def resolved(self, items: Items | Space, prior: Prior) -> Self:
        """Return the strategy with the prior's box filled in, if none was given."""
        return self if self.box is not None else dataclasses.replace(self, box=prior_box(prior, items.d))

    def size(self, stage: int) -> int:
        """Return the number of queries in a stage, counted from 0."""
        per_stage = self.answers // self.stages
        return per_stage if stage < self.stages - 1 else self.answers - per_stage * (self.stages - 1)

    def spread(self, items: Items, stage: int) -> float:
        """Return the standard deviation of the cloud: the largest of any item coordinate, halved at every stage."""
        return float(np.max(np.std(items.coordinates, axis=0, ddof=1))) / 2.0**stage

    def next(self, items: Items, history: Sequence[Event], rng: np.random.Generator) -> tuple[int, int] | None:
        """Return the first pair of the stage's cloud that has not been asked; None after T queries."""
        asked = [position for position, event in enumerate(history) if event.query is not None]
        if len(asked) >= self.answers:
            return None
        per_stage = self.answers // self.stages
        stage = min(len(asked) // per_stage, self.stages - 1)
        began = asked[stage * per_stage] if stage * per_stage < len(asked) else len(history)
        centre = self.estimate(items, history[:began])
        pairs = [frozenset((items.index(history[p].left), items.index(history[p].right))) for p in asked]
        times = Counter(pairs)
        seed = (*rng.integers(2**63, size=2).tolist(), stage)
        drawn: list[tuple[int, int]] = []
        for draw in range(MAX_FRUITLESS_DRAWS):
            for pair in self._cloud(items, centre, (*seed, draw)):
                if frozenset(pair) not in times:
                    return pair
                drawn.append(pair)
        repeatable = [pair for pair in drawn if frozenset(pair) != pairs[-1]]
        if repeatable:
            return min(repeatable, key=lambda pair: times[frozenset(pair)])
        return None if history[asked[-1]].outcome == "skip" else drawn[0]

    def estimate(self, items: Items, history: Sequence[Event]) -> FloatArray:
        """Return the (d,) point of the nu-SVM; if it is at infinity, the latest finite one or the centre of the box."""
        answers = _answers(items, history)
        for count in range(len(answers), 0, -1):
            point = self._point(items, answers[:count])
            if point is not None:
                return point.copy()
        low, high = box_bounds(self.box, items, "GaussCloud")
        return (low + high) / 2

    def status(self, items: Items, history: Sequence[Event]) -> str | None:
        """Return a note for the user, or None."""
        answers = _answers(items, history)
        if answers and self._point(items, answers) is None:
            return "the estimate lies at infinity: the previous one is kept"
        if sum(event.query is not None for event in history) >= self.answers:
            return f"all {self.answers} queries were asked"
        return None

    def _cloud(self, items: Items, centre: FloatArray, seed: tuple[int, ...]) -> list[tuple[int, int]]:
        """Draw `DRAWN_PER_NEEDED` times the pairs that the stage needs, in order; the seed ends with stage and draw."""

        def draw() -> list[tuple[int, int]]:
            stage = seed[-2]
            rng = np.random.default_rng(seed)
            noise = rng.standard_normal((2, DRAWN_PER_NEEDED * self.size(stage), items.d))
            first, second = centre + self.spread(items, stage) * noise
            return nearest_pairs(items, first, second)

        return self._clouds.recall((items.hash, centre.tobytes(), seed), draw)

    def _point(self, items: Items, answers: tuple[tuple[int, int], ...]) -> FloatArray | None:
        """Return the (d,) estimate from the rows of winners and losers; None if it is at infinity."""

        def solve() -> FloatArray | None:
            low, high = box_bounds(self.box, items, "GaussCloud")
            middle, unit = (low + high) / 2, float(np.linalg.norm(high - low)) / (2.0 * np.sqrt(items.d))
            winners, losers = np.array(answers).T
            point = separating_point(
                (items.coordinates[winners] - middle) / unit, (items.coordinates[losers] - middle) / unit
            )
            return None if point is None else np.clip(middle + unit * point, low, high)

        return self._points.recall((items.hash, answers), solve)


def _answers(items: Items, history: Sequence[Event]) -> tuple[tuple[int, int], ...]:
    """Return the rows of winner and loser of every answer between distinct points."""
    answers = [(items.index(event.winner), items.index(event.loser)) for event in history if event.winner is not None]
    if not answers:
        return ()
    winners, losers = np.array(answers).T
    distinct = np.any(items.coordinates[winners] != items.coordinates[losers], axis=1)
    return tuple(pair for pair, apart in zip(answers, distinct.tolist(), strict=True) if apart)


def separating_point(winners: FloatArray, losers: FloatArray) -> FloatArray | None:
    """Return the (d,) point closer to the (m, d) winners, by the extended nu-SVM; None if it is at infinity."""
    normals, thresholds = hyperplanes(winners, losers)
    separator, extended = extended_nu_svm(np.column_stack([normals, -thresholds]) / 2.0, NU)
    if separator is None or separator.weights[-1] <= 0.0:
        return None
    point = separator.weights[:-1] / separator.weights[-1]
    radius = np.sqrt(len(point))
    length = float(np.linalg.norm(point))
    return np.asarray(point * (radius / length) if extended and length > radius else point)
