"""GaussSearch: Chumbalov, Maystre and Grossglauser, ICML 2020 (arXiv 1905.05049), with known coordinates.

The belief is a Gaussian N(μ, Σ). The best plane passes through μ, normal to the direction of largest variance. The next
pair is a point drawn from the belief and its mirror image in that plane, each replaced by the nearest item. Answers are
correct with probability Φ(h/σ), where h is the distance of the user point from the plane, and the belief after an
answer is the Gaussian with the exact posterior mean and covariance (assumed density filtering), in closed form. The
estimate is μ. Appeal is not used.

Cases the paper leaves open: a tie counts as half an answer each way, Φ(h/σ)^½ Φ(-h/σ)^½, which has no closed form and
is replaced by the Gaussian with equal curvature at the plane, N(h; 0, πσ²/2). A skip leaves the belief unchanged, and
its pair is not asked again. No pair is asked twice in a row unless there is no other.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np
from scipy.special import expit, ndtri

from pairseek.core.lazy import cached_property
from pairseek.core.limits import COORDINATE, COVARIANCE, Limit
from pairseek.core.types import Event, FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.model.priors import Prior, moments_of
from pairseek.model.response_parameters import TYPICAL_LOGIT
from pairseek.model.spaces import Space
from pairseek.pairs.strategies.base import BaseProcedure
from pairseek.pairs.strategies.baselines.cache import FoldCache
from pairseek.pairs.strategies.baselines.gaussian import Gaussian
from pairseek.pairs.strategies.baselines.nearest import distinct_points, nearest_pairs
from pairseek.pairs.strategies.baselines.planes import bisector

DRAWN_POINTS = 64
"""Number of points drawn for a query; the first whose pair may be asked is used."""


@dataclass(frozen=True)
class GaussSearch(BaseProcedure):
    """Pairs that bisect a Gaussian belief across its direction of largest variance.

    Parameters
    ----------
    noise
        σ of the answers, above 0. None: chosen such that an answer about a plane one standard deviation of the initial
        belief away is correct as often as under the default response, 88 %.
    mean
        (d,) mean of the belief before the first answer. None: a search uses the prior's mean; outside a search, the
        items' mean.
    covariance
        (d, d) covariance of the belief before the first answer. None: as for `mean`.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), strategy=ps.GaussSearch(), rng=7)
    >>> search.ask().info.strategy
    'gausssearch'
    """

    noise: Annotated[float | None, Limit(0, 1e12)] = None
    mean: Annotated[tuple[float, ...] | None, COORDINATE] = None
    covariance: Annotated[tuple[tuple[float, ...], ...] | None, COVARIANCE] = None
    name: ClassVar[str] = "gausssearch"

    def __post_init__(self) -> None:
        if self.noise is not None:
            is_number = isinstance(self.noise, int | float | np.number) and not isinstance(self.noise, bool)
            if not is_number or not (np.isfinite(self.noise) and self.noise > 0):
                raise InvalidParameter(
                    f"noise of GaussSearch is {self.noise!r}: give a finite number above 0", field="noise"
                )
            object.__setattr__(self, "noise", float(self.noise))
        if self.mean is not None:
            mean = _numbers(self.mean, "mean", 1)
            object.__setattr__(self, "mean", tuple(mean.tolist()))
        if self.covariance is not None:
            matrix = _numbers(self.covariance, "covariance", 2)
            square = matrix.shape[0] == matrix.shape[1] and np.allclose(matrix, matrix.T)
            if not square or np.linalg.eigvalsh(matrix)[0] < -1e-12 * np.trace(matrix) or np.trace(matrix) <= 0:
                raise InvalidParameter(
                    f"covariance of GaussSearch is {matrix.tolist()}: give a symmetric matrix without negative "
                    f"eigenvalues",
                    field="covariance",
                )
            object.__setattr__(self, "covariance", tuple(map(tuple, matrix.tolist())))

    @cached_property
    def _beliefs(self) -> FoldCache[Gaussian]:
        return FoldCache()

    def resolved(self, items: Items | Space, prior: Prior) -> Self:
        """Return the strategy with the prior's moments and a matching noise filled in where none were given."""
        mean, covariance = moments_of(prior, items.d)
        filled = dataclasses.replace(
            self,
            mean=self.mean or tuple(mean.tolist()),
            covariance=self.covariance or tuple(map(tuple, covariance.tolist())),
        )
        return dataclasses.replace(filled, noise=filled._noise_deviation(filled._first(items)))

    def next(self, items: Items, history: Sequence[Event], rng: np.random.Generator) -> tuple[int, int] | None:
        """Return the items nearest to a draw from the belief and its mirror image; None if every pair was skipped."""
        belief = self.belief(items, history)
        draw_rng = np.random.default_rng([*rng.integers(2**63, size=2).tolist(), len(history)])
        skipped = _skipped(items, history)
        last = {frozenset((items.index(history[-1].left), items.index(history[-1].right)))} if history else set()
        drawn = nearest_pairs(items, *belief.mirrored(DRAWN_POINTS, draw_rng))
        near = _pairs_around(items, belief.mean, 3 + math.isqrt(2 * len(skipped)))
        for avoided in (skipped | last, skipped):
            for pair in itertools.chain(drawn, near):
                if frozenset(pair) not in avoided:
                    return pair
        return None

    def estimate(self, items: Items, history: Sequence[Event]) -> FloatArray:
        """Return the (d,) mean of the belief."""
        return self.belief(items, history).mean.copy()

    def belief(self, items: Items, history: Sequence[Event]) -> Gaussian:
        """Return the Gaussian belief after this history."""
        first = self._first(items)
        noise = self._noise_deviation(first)

        def step(belief: Gaussian, event: Event, position: int) -> Gaussian:  # noqa: ARG001
            return _updated(belief, event, items, noise)

        return self._beliefs.fold(items.hash, history, lambda: first, step)

    def status(self, items: Items, history: Sequence[Event]) -> str | None:
        """Return a note for the user, or None."""
        count = len(distinct_points(items).rows)
        if len(_skipped(items, history)) < count * (count - 1) // 2:
            return None
        return "every pair was skipped: no pair is left to ask"

    def _first(self, items: Items | Space) -> Gaussian:
        """Return the belief before the first answer."""
        mean = items.coordinates.mean(axis=0) if self.mean is None else np.array(self.mean)
        covariance = (
            np.atleast_2d(np.cov(items.coordinates, rowvar=False))
            if self.covariance is None
            else np.array(self.covariance)
        )
        if len(mean) != items.d or len(covariance) != items.d:
            raise InvalidParameter(
                f"mean and covariance of GaussSearch have {len(mean)} and {len(covariance)} dimensions, but the "
                f"items have {items.d}: give {items.d} for both",
                field="mean",
            )
        return Gaussian(mean, covariance)

    def _noise_deviation(self, first: Gaussian) -> float:
        """Return σ of the answers: the given noise, or the one that matches the default response."""
        if self.noise is not None:
            return self.noise
        spread = float(np.sqrt(np.trace(first.covariance) / len(first.mean)))
        return spread / float(ndtri(expit(TYPICAL_LOGIT)))


def _numbers(values: object, what: str, axes: int) -> FloatArray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim != axes or not array.size or not np.all(np.isfinite(array)):
        shape = "d" if axes == 1 else "d rows of d"
        raise InvalidParameter(f"{what} of GaussSearch is {values!r}: give {shape} finite numbers", field=what)
    return array


def _updated(belief: Gaussian, event: Event, items: Items, noise: float) -> Gaussian:
    """Return the belief after one event; skips and answers about coincident items leave it unchanged."""
    if event.outcome == "skip":
        return belief
    winner = event.left if event.winner is None else event.winner
    loser = event.right if event.winner is None else event.loser
    plane = bisector(items.coordinates[items.index(winner)], items.coordinates[items.index(loser)])
    if plane is None:
        return belief
    return belief.after_tie(*plane, noise) if event.winner is None else belief.after_answer(*plane, noise)


def _skipped(items: Items, history: Sequence[Event]) -> set[frozenset[int]]:
    return {
        frozenset((items.index(event.left), items.index(event.right))) for event in history if event.outcome == "skip"
    }


def _pairs_around(items: Items, centre: FloatArray, count: int) -> list[tuple[int, int]]:
    """Return all pairs of the `count` distinct items nearest to a point."""
    tree, rows = distinct_points(items)
    _, nearest = tree.query(centre, k=np.arange(1, min(count, len(rows)) + 1))
    return list(itertools.combinations(rows[nearest].tolist(), 2))
