"""The posterior on a grid: exact to its step, for up to three dimensions."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek._moments import sample_moments
from pairseek._types import Belief, BeliefInfo, Evidence, FloatArray
from pairseek.errors import InvalidParameter
from pairseek.posteriors.base import effective_samples, frozen_belief
from pairseek.priors import Prior
from pairseek.responses import Response

MOST_DIMENSIONS = 3
DEFAULT_POINTS = {1: 2001, 2: 201, 3: 41}
# How far a grid reaches for a prior without a box, in standard deviations.
_REACH = 6.0


@dataclass(frozen=True)
class Grid:
    """Cells of equal size, each with the posterior density at its centre (the midpoint rule).

    Parameters
    ----------
    points
        Cells along each dimension. None: 2001, 201 and 41 for 1, 2 and 3 dimensions.
    """

    points: int | None = None
    name: ClassVar[str] = "grid"
    # Nothing is assumed of the density.
    takes_lapses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.points is not None and self.points < 2:
            raise InvalidParameter(f"Grid(points={self.points}): give at least 2 along each dimension")

    def start(self, prior: Prior, d: int, rng: np.random.Generator) -> Belief:  # noqa: ARG002
        """The prior on the grid."""
        if d > MOST_DIMENSIONS:
            raise InvalidParameter(
                f"a Grid has at most {MOST_DIMENSIONS} dimensions and the items have {d}: use Particles()"
            )
        points = self.points or DEFAULT_POINTS[d]
        low, high = prior.box(d)
        mean, covariance = prior.moments(d)
        reach = _REACH * np.sqrt(np.diag(covariance))
        low, high = np.where(np.isfinite(low), low, mean - reach), np.where(np.isfinite(high), high, mean + reach)
        axes = [a + (b - a) * (np.arange(points) + 0.5) / points for a, b in zip(low, high, strict=True)]
        cells = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        return _weighted(np.ascontiguousarray(cells), _log_prior(cells, prior), began=time.perf_counter())

    def update(
        self,
        belief: Belief,
        evidence: Evidence,
        prior: Prior,
        response: Response,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Belief:
        """The belief after all answers, from logarithms, so that no cell is ever lost to underflow."""
        began = time.perf_counter()
        logs = _log_prior(belief.samples, prior) + response.log_likelihood(evidence, belief.samples)
        return _weighted(belief.samples, logs, began=began)


def _log_prior(cells: FloatArray, prior: Prior) -> FloatArray:
    centre, precision = prior.quadratic(cells.shape[1])
    centred = cells - centre
    return np.asarray(-0.5 * np.einsum("nd,de,ne->n", centred, precision, centred))


def _weighted(cells: FloatArray, logs: FloatArray, *, began: float) -> Belief:
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    info = BeliefInfo(effective_samples(weights), seconds=time.perf_counter() - began)
    return frozen_belief(cells, weights, sample_moments(cells, weights), info)
