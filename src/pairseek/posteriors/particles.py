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
from pairseek.posteriors.gaussian import PointBelief, log_prior_mass
from pairseek.posteriors.mixture import mixture_belief
from pairseek.posteriors.tempering import tempered_belief

# Where a parameter is unknown, every node of its grid gets this share of the particles, and at least so many.
_NODE_SHARE = 4
_LEAST_OF_NODE = 500
# In studies of the service. Unknown parameters multiply the time by the number of their nodes.
_BESIDE = "beside unknown parameters of the response"
_MOST_PARTICLES = BySize(lambda size: 4000 if size.unknown else 20_000, f"20,000; {_BESIDE} 4,000")
_MOST_SWEEPS = BySize(lambda size: 2 if size.unknown else 4, f"4; {_BESIDE} 2")


@dataclass(frozen=True)
class Particles(BasePosterior):
    """Samples of the posterior by sequential Monte Carlo with tempering.

    All answers enter together, with a power that grows from 0 to 1 in stages; each stage keeps half of the effective
    sample size. In a stage particles are resampled (systematically) and each is moved by slice steps along a random
    orthonormal frame of the whitened space: for a Gaussian posterior one sweep over the frame would make it independent
    of where it was. A quarter of the particles is tempered, and the others are resampled
    from them at the end. Where k, the reliability, the lapse or the noise kind is unknown, the nodes of a grid of them
    are inferred one by one, and weighted by their evidence: see `pairseek.posteriors.mixture`.

    Control variates remove most of the sampling variance of the mean and covariance.

    Any prior with ``sample`` and ``log_density`` will do, such as a mixture, and any response. Their own formulas are
    then evaluated instead of compiled ones, which is several times slower, and without control variates.

    Time grows linearly with n, with the number of answers, with d (directions in a sweep), and with the bits that the
    answers tell (stages).

    Parameters
    ----------
    n
        Number of particles.
    sweeps
        Sweeps over a frame in each move.
    seed
        Key of its draws, beside the evidence: another seed shows how much the result varies by chance.

    Examples
    --------
    >>> import pairseek as ps
    >>> posterior = ps.Particles(500)
    >>> items, response = ps.datasets.colours(), ps.Logistic(20.0)
    >>> search = ps.Search(items, response=response, posterior=posterior, rng=7)
    >>> search.belief.samples.shape
    (500, 3)
    """

    n: Annotated[int, Limit(2, _MOST_PARTICLES)] = 4000
    sweeps: Annotated[int, Limit(1, _MOST_SWEEPS)] = 2
    seed: Annotated[int, Limit(0, 2**63 - 1)] = 0
    name: ClassVar[str] = "particles"
    infers_reliability: ClassVar[bool] = True
    takes_residuals: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for setting, least in (("n", 2), ("sweeps", 1), ("seed", 0)):
            value = whole(getattr(self, setting), f"{setting} of Particles", least, field=setting)
            object.__setattr__(self, setting, value)

    def infer(self, evidence: Evidence, prior: AnyPrior, response: Response) -> Belief:
        """Return the belief after these answers."""
        rng = generator_for(evidence, self)
        if not (response.compiled or response.unknown):
            log_answers = partial(response.log_likelihood, evidence)
            belief, gained = density_belief(log_answers, evidence.slopes.shape, prior, self.n, self.sweeps, rng)
            return replace(belief, info=replace(belief.info, log_evidence=gained))
        prior = cast("Prior", prior)  # the functions below tell the two kinds apart themselves
        if response.unknown:
            n = max(self.n // _NODE_SHARE, min(self.n, _LEAST_OF_NODE))
            return mixture_belief(evidence, prior, response, TemperedNodes(n, self.sweeps, rng), self.n)
        belief, log_evidence = tempered_belief(Factors.of(evidence, response), prior, self.n, self.sweeps, rng)
        log_mass = log_evidence + log_prior_mass(prior, evidence.slopes.shape[1])
        return replace(belief, info=replace(belief.info, log_evidence=log_evidence, log_mass=log_mass))


@dataclass(frozen=True, eq=False)
class TemperedNodes:
    """Inference of a node of unknown parameters by n tempered particles."""

    n: int
    sweeps: int
    rng: np.random.Generator
    exact: ClassVar[bool] = True

    def infer(
        self,
        factors: Factors,
        prior: Prior,
        start: FloatArray | None,  # noqa: ARG002
        *,
        rough: bool = False,  # noqa: ARG002
    ) -> PointBelief:
        """Return the belief and its evidence."""
        belief, gained = tempered_belief(factors, prior, self.n, self.sweeps, self.rng)
        return PointBelief(belief, gained + log_prior_mass(prior, factors.slopes.shape[1]))

    def is_accurate(self, point: PointBelief, factors: Factors, prior: Prior) -> bool:  # noqa: ARG002
        """Return True: particles are right for any density."""
        return True

    def refined(self, point: PointBelief, factors: Factors, prior: Prior) -> PointBelief:  # noqa: ARG002
        """Return the belief as it is."""
        return point
