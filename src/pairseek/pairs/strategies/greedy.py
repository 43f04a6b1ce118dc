"""GreedyMSE and GreedyVolume: the one-step greedy utilities that the paper dismisses as too expensive.

Section 3.1 of the paper would draw new samples for each candidate and answer. Two methods avoid this: reweighting the
current samples by the answer (`exact`) and, for a nearly Gaussian posterior, the closed-form update of the moments by
an answer about a·w (`score`). With u = (a·w - a·μ)/σ and σ² = a'Σa, E[w | y] = μ + Σa E[u | y]/σ and Cov(w | y) = Σ -
Σaa'Σ (1 - Var(u | y))/σ².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairseek.core.types import Belief, FloatArray
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.numerics.moments import sample_moments
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.planes import Planes, sampled_planes
from pairseek.pairs.strategies.base import BaseUtility
from pairseek.pairs.strategies.shape import UtilityShape


@dataclass(frozen=True)
class GreedyMSE(BaseUtility):
    """Expected reduction of the trace of the posterior covariance due to the answer.

    E tr Cov(w | y) = tr Σ - |Σa|²/σ² Var(E[u | y]).

    Examples
    --------
    >>> import pairseek as ps
    >>> items = ps.Items([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> ps.Search(items, strategy=ps.GreedyMSE(), rng=7).ask().info.strategy
    'greedy_mse'
    """

    name: ClassVar[str] = "greedy_mse"

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) expected reductions of the trace, for a Gaussian logit."""
        half = candidates.points[candidates.first] - candidates.points[candidates.second]
        reach = 4.0 * np.sum(np.einsum("md,de->me", half, belief.covariance) ** 2, axis=1)
        gain = np.divide(reach, candidates.variance, out=np.zeros_like(reach), where=candidates.variance > 0)
        if candidates.residual_variance is not None:
            # The answer is about the whole logit, of which the point explains only a part.
            explained, total = candidates.constant**2 * candidates.variance, candidates.logit_deviation**2
            gain *= np.divide(explained, total, out=np.zeros_like(explained), where=total > 0)
        return np.asarray(gain * candidates.tabulated("explained"))

    def shape(self) -> UtilityShape:
        """Return the shape of `score`: a function of the logit's mean and standard deviation, times |Σa|²/σ²."""
        return UtilityShape("trace", "explained")

    def planes(self, space: Space, belief: Belief, response: Response, rng: np.random.Generator) -> Planes:  # noqa: ARG002
        """Return sampled planes, because no closed form is known."""
        return sampled_planes(space, belief, rng)

    def exact(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) expected reductions of the trace, averaged over all samples."""
        (probability_first, if_first, _), (probability_second, if_second, _) = candidates.moments_by_outcome(belief)
        # The variance between outcomes is P(1 - P) |difference of the two means|².
        return np.asarray(probability_first * probability_second * np.sum((if_first - if_second) ** 2, axis=1))


@dataclass(frozen=True)
class GreedyVolume(BaseUtility):
    """Expected reduction of the log determinant of the posterior covariance due to the answer.

    E log det Cov(w | y) = log det Σ + E log Var(u | y).

    Examples
    --------
    >>> import pairseek as ps
    >>> items = ps.Items([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> ps.Search(items, strategy=ps.GreedyVolume(), rng=7).ask().info.strategy
    'greedy_volume'
    """

    name: ClassVar[str] = "greedy_volume"

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:  # noqa: ARG002
        """Return the (m,) expected reductions of the log determinant, for a Gaussian logit."""
        return -candidates.tabulated("log_volume")

    def shape(self) -> UtilityShape:
        """Return the shape of `score`: a function of the logit's mean and standard deviation."""
        return UtilityShape("table", "log_volume")

    def exact(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) expected reductions of the log determinant, averaged over all samples."""
        _, current = sample_moments(belief.samples, belief.weights)
        reduction = np.full(len(candidates), np.linalg.slogdet(current)[1])
        for probability, _, covariance in candidates.moments_by_outcome(belief):
            sign, log_determinant = np.linalg.slogdet(covariance)
            reduction -= np.where(sign > 0, probability * log_determinant, 0.0)
        return reduction
