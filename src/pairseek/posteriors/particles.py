"""Particles: samples of the posterior by sequential Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, cast

import numpy as np

from pairseek.core.limits import BySize, Limit
from pairseek.core.types import Belief, Evidence, FloatArray
from pairseek.core.validation import whole
from pairseek.model.priors import AnyPrior, Prior
from pairseek.model.responses import Response
from pairseek.posteriors.base import BasePosterior, generator_for
from pairseek.posteriors.densities import density_belief
from pairseek.posteriors.factors import Factors
from pairseek.posteriors.gaussian import log_prior_mass
from pairseek.posteriors.mixture import mixture_belief
from pairseek.posteriors.point_beliefs import PointBelief
from pairseek.posteriors.tempering import tempered_belief

# With unknown response parameters, every node of their grid gets a quarter of the particles, and at least 500.
_NODE_DIVISOR = 4
_MIN_NODE_PARTICLES = 500
# Limits in studies of the service. Unknown parameters multiply the time by the number of their nodes.
_WITH_UNKNOWNS = "with unknown response parameters"
_MAX_PARTICLES = BySize(lambda size: 4000 if size.unknown else 20_000, f"20,000; {_WITH_UNKNOWNS} 4,000")
_MAX_SWEEPS = BySize(lambda size: 2 if size.unknown else 4, f"4; {_WITH_UNKNOWNS} 2")


@dataclass(frozen=True)
class Particles(BasePosterior):
    """Samples of the posterior by sequential Monte Carlo with tempering.

    All answers enter together, raised to a power that grows from 0 to 1 in stages; each stage halves the effective
    sample size. Within a stage, particles are resampled (systematically), and each is moved by slice steps along a
    random orthonormal frame of the whitened space. Under a Gaussian posterior, one sweep over the frame would make a
    particle independent of its previous position. Only a quarter of the particles is tempered; the others are resampled
    from them at the end. If k, the reliability, the lapse rate or the noise kind is unknown, each node of a grid over
    them is inferred separately and weighted by its evidence: see `pairseek.posteriors.mixture`.

    Control variates remove most of the sampling variance of the mean and covariance.

    Any prior with ``sample`` and ``log_density`` works, such as a mixture, and so does any response. Calling their
    methods instead of compiled formulas is several times slower and rules out control variates.

    Time grows linearly with n, with the number of answers, with d (directions per sweep), and with the information in
    the answers (stages).

    Parameters
    ----------
    n
        Number of particles.
    sweeps
        Sweeps over a frame per move.
    seed
        Seed of the draws, together with the evidence. Another seed shows how much the result varies by chance.

    Examples
    --------
    >>> import pairseek as ps
    >>> posterior = ps.Particles(500)
    >>> items, response = ps.datasets.colours(), ps.Logistic(20.0)
    >>> search = ps.Search(items, response=response, posterior=posterior, rng=7)
    >>> search.belief.samples.shape
    (500, 3)
    """

    n: Annotated[int, Limit(2, _MAX_PARTICLES)] = 4000
    sweeps: Annotated[int, Limit(1, _MAX_SWEEPS)] = 2
    seed: Annotated[int, Limit(0, 2**63 - 1)] = 0
    name: ClassVar[str] = "particles"
    infers_reliability: ClassVar[bool] = True
    takes_residuals: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for field, minimum in (("n", 2), ("sweeps", 1), ("seed", 0)):
            value = whole(getattr(self, field), f"{field} of Particles", minimum, field=field)
            object.__setattr__(self, field, value)

    def infer(self, evidence: Evidence, prior: AnyPrior, response: Response) -> Belief:
        """Return the belief after these answers."""
        rng = generator_for(evidence, self)
        if not (response.compiled or response.unknown):
            log_answers = partial(response.log_likelihood, evidence)
            belief, log_evidence = density_belief(log_answers, evidence.slopes.shape, prior, self.n, self.sweeps, rng)
            return replace(belief, info=replace(belief.info, log_evidence=log_evidence))
        prior = cast("Prior", prior)  # the functions below handle densities too
        if response.unknown:
            n = max(self.n // _NODE_DIVISOR, min(self.n, _MIN_NODE_PARTICLES))
            return mixture_belief(evidence, prior, response, ParticleNodeInference(n, self.sweeps, rng), self.n)
        belief, log_evidence = tempered_belief(Factors.of(evidence, response), prior, self.n, self.sweeps, rng)
        return replace(belief, info=replace(belief.info, log_evidence=log_evidence))


@dataclass(frozen=True, eq=False)
class ParticleNodeInference:
    """Inference at one node of the unknown parameters by n tempered particles."""

    n: int
    sweeps: int
    rng: np.random.Generator
    is_exact: ClassVar[bool] = True

    def infer(
        self,
        factors: Factors,
        prior: Prior,
        start: FloatArray | None,  # noqa: ARG002
        *,
        for_proposal: bool = False,  # noqa: ARG002
    ) -> PointBelief:
        """Return the belief with its evidence."""
        belief, log_evidence = tempered_belief(factors, prior, self.n, self.sweeps, self.rng)
        return PointBelief(belief, log_evidence + log_prior_mass(prior, factors.slopes.shape[1]))

    def is_accurate(self, point: PointBelief, factors: Factors, prior: Prior) -> bool:  # noqa: ARG002
        """Return True: particles converge to any density."""
        return True

    def refined(self, point: PointBelief, factors: Factors, prior: Prior) -> PointBelief:  # noqa: ARG002
        """Return the belief as it is."""
        return point
