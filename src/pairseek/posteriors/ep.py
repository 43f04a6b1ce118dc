"""The default posterior: expectation propagation, and a mixture over unknown parameters."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pairseek.core.limits import Limit
from pairseek.core.types import Belief, Evidence, FloatArray
from pairseek.core.validation import whole
from pairseek.model.priors import Prior
from pairseek.model.responses import Response
from pairseek.posteriors.base import BasePosterior
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.gaussian import (
    GOAL,
    PointBelief,
    PriorForm,
    gaussian_fit,
    importance_sampled,
    is_trusted,
    propagated,
)

# Tolerance and largest number of sweeps at one of many nodes, and with residual utilities, whose sites are weak: the
# errors of EP itself are larger.
_NODE_GOAL = (1e-3, 40.0)
# The same for a proposal of importance samples.
_ROUGH_GOAL = (3e-2, 8.0)


@dataclass(frozen=True)
class EP(BasePosterior):
    """Expectation propagation with a check of its accuracy, and samplers where it fails.

    Every call starts from the prior and sweeps over the answers until convergence: a pure function of the evidence,
    without randomness, in O(sweeps answers d²). Four to six sweeps are usual.

    EP is exact for one answer and a Gaussian prior, and accurate where each answer is little informative given all
    others. It is inaccurate for nearly noiseless answers, whose posterior is almost a polytope, where many answers make
    the posterior skewed along one direction, and in few dimensions at the faces of a box. The check has two parts: the
    largest standard deviation of an answer's logit under its cavity, and the moments of the posterior along lines
    through the mean. Where one of them fails, or in a box of up to three dimensions, importance samples from a wider
    Gaussian replace EP: more of them if their effective sample size is too small, and tempered particles if it is so
    small that particles take less time.
    ``Belief.info.method`` tells which of the three was used.

    Where k, the reliability, the lapse or the noise kind is unknown, EP gives the evidence p(answers | parameters) at
    the nodes of a grid, and the belief is the mixture of their Gaussians: see `pairseek.posteriors.mixture`. With
    lapses the posterior can have several modes, and importance samples from these Gaussians and the prior replace them.

    Parameters
    ----------
    points
        Number of importance samples, for the check and as samples of the belief: a low-discrepancy sequence.

    Examples
    --------
    >>> import pairseek as ps
    >>> posterior = ps.EP(points=512)
    >>> items, response = ps.datasets.colours(), ps.Logistic()
    >>> search = ps.Search(items, response=response, posterior=posterior, rng=7)
    >>> search.belief.mean.shape, search.belief.covariance.shape
    ((3,), (3, 3))
    """

    points: Annotated[int, Limit(16, 50_000)] = 2048
    name: ClassVar[str] = "ep"
    infers_reliability: ClassVar[bool] = True
    takes_lapses: ClassVar[bool] = True
    takes_residuals: ClassVar[bool] = True
    uses_kernels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", whole(self.points, "points of EP", 16, field="points"))

    def infer(self, evidence: Evidence, prior: Prior, response: Response) -> Belief:
        """Return the belief after these answers."""
        form = PriorForm.of(prior, evidence.slopes.shape[1])
        if response.unknown or (response.lapse_rate > 0.0 and len(evidence.offsets)):
            from pairseek.posteriors.mixture import mixture_belief  # a default search does without it

            return mixture_belief(evidence, prior, response, PropagatedNodes(self.points, form), self.points)
        began = time.perf_counter()
        factors = Factors.of(evidence, response)
        goal = _NODE_GOAL if form.residuals else GOAL
        fit = gaussian_fit(factors, form, goal=goal)
        if is_trusted(fit, factors, form):
            point = propagated(fit, factors, prior, self.points, time.perf_counter() - began)
        else:
            point = importance_sampled(fit, factors, prior, self.points)
        return point.evident(prior, len(evidence.offsets))


@dataclass(frozen=True, eq=False)
class PropagatedNodes:
    """Inference of a node of unknown parameters by EP, or by importance samples where EP is inaccurate."""

    points: int
    form: PriorForm
    exact: ClassVar[bool] = False

    def infer(self, factors: Factors, prior: Prior, start: FloatArray | None, *, rough: bool = False) -> PointBelief:
        """Return the belief by EP and its evidence, from the sites of a neighbour if given."""
        goal = _ROUGH_GOAL if rough else _NODE_GOAL
        return propagated(gaussian_fit(factors, self.form, start, goal), factors, prior, self.points)

    def is_accurate(self, point: PointBelief, factors: Factors, prior: Prior) -> bool:  # noqa: ARG002
        """Return whether EP is accurate; sharp answers alone are no reason to doubt it among other nodes."""
        return point.fit is None or is_trusted(point.fit, factors, self.form, sharp=True)

    def refined(self, point: PointBelief, factors: Factors, prior: Prior) -> PointBelief:
        """Return the belief by importance samples or, if they are too uneven, by particles."""
        return point if point.fit is None else importance_sampled(point.fit, factors, prior, self.points)
