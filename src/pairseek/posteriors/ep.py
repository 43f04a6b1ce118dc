"""Expectation propagation, the default posterior, with a mixture over unknown response parameters."""

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
from pairseek.posteriors.gaussian import CONVERGENCE, PriorForm, gaussian_fit, is_trusted
from pairseek.posteriors.point_beliefs import PointBelief, ep_point_belief, sampled_point_belief

# Tolerance and largest number of sweeps at each node of a mixture and with residual utilities, whose sites are weak:
# the error of EP itself is larger.
_NODE_CONVERGENCE = (1e-3, 40.0)
# Tolerance and largest number of sweeps where EP only serves as a proposal for importance samples.
_PROPOSAL_CONVERGENCE = (3e-2, 8.0)


@dataclass(frozen=True)
class EP(BasePosterior):
    """Expectation propagation with a check of its accuracy, and samplers where it fails.

    Every call starts from the prior and sweeps over the answers until convergence: a pure function of the evidence,
    without randomness, in O(sweeps · answers · d²). Four to six sweeps are typical.

    EP is exact after one answer under a Gaussian prior, and accurate while no single answer dominates. It degrades in
    three cases: nearly noiseless answers (the posterior approaches a polytope), many answers that skew the posterior
    along one direction, and low-dimensional box priors near a face. The check has two parts: the largest standard
    deviation of an answer's logit under its cavity, and the moments of the posterior along lines through the mean. If
    either part fails, and always in a box of up to three dimensions, importance samples from a wider Gaussian replace
    EP. If their effective size is too small, more are drawn, up to the point where tempered particles are faster.
    ``Belief.info.method`` says which of the three was used.

    If k, the reliability, the lapse rate or the noise kind is unknown, EP computes the evidence p(answers | parameters)
    at the nodes of a grid, and the belief is the mixture of the Gaussians at the nodes: see
    `pairseek.posteriors.mixture`. Lapses can make the posterior multimodal, so importance samples from these Gaussians
    and the prior then replace the mixture.

    Parameters
    ----------
    points
        Number of importance samples, a low-discrepancy sequence, used for the check and as samples of the belief.

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
            from pairseek.posteriors.mixture import mixture_belief  # a default search does not need it

            return mixture_belief(evidence, prior, response, EPNodeInference(self.points, form), self.points)
        start_time = time.perf_counter()
        factors = Factors.of(evidence, response)
        fit = gaussian_fit(factors, form, convergence=_NODE_CONVERGENCE if form.residuals else CONVERGENCE)
        if is_trusted(fit, factors, form):
            point = ep_point_belief(fit, factors, prior, self.points, time.perf_counter() - start_time)
        else:
            point = sampled_point_belief(fit, factors, prior, self.points)
        return point.with_evidence(prior, len(evidence.offsets))


@dataclass(frozen=True, eq=False)
class EPNodeInference:
    """Inference at one node of the unknown parameters by EP, or by importance samples where EP is inaccurate."""

    points: int
    form: PriorForm
    is_exact: ClassVar[bool] = False

    def infer(
        self, factors: Factors, prior: Prior, start: FloatArray | None, *, for_proposal: bool = False
    ) -> PointBelief:
        """Return the belief by EP with its evidence; `start` holds the sites of a neighbouring node, if any."""
        convergence = _PROPOSAL_CONVERGENCE if for_proposal else _NODE_CONVERGENCE
        return ep_point_belief(gaussian_fit(factors, self.form, start, convergence), factors, prior, self.points)

    def is_accurate(self, point: PointBelief, factors: Factors, prior: Prior) -> bool:  # noqa: ARG002
        """Return whether EP is accurate; nodes of a mixture may have nearly noiseless answers."""
        return point.fit is None or is_trusted(point.fit, factors, self.form, accept_near_steps=True)

    def refined(self, point: PointBelief, factors: Factors, prior: Prior) -> PointBelief:
        """Return the belief by importance samples or, if their weights are too uneven, by particles."""
        return point if point.fit is None else sampled_point_belief(point.fit, factors, prior, self.points)
