"""InfoGain: the mutual information between the answer and the user point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

from pairseek.core.lazy import LazyModule
from pairseek.core.limits import Limit
from pairseek.core.types import Belief, FloatArray
from pairseek.core.validation import whole
from pairseek.model.responses import Response
from pairseek.model.spaces import Space
from pairseek.pairs.features import PairFeatures
from pairseek.pairs.strategies.base import BaseUtility
from pairseek.pairs.strategies.shape import UtilityShape

if TYPE_CHECKING:
    from pairseek.pairs import planes as _planes
    from pairseek.pairs.strategies import reliability_probe
else:
    _planes = LazyModule("pairseek.pairs.planes")  # only a continuous space needs planes
    reliability_probe = LazyModule("pairseek.pairs.strategies.reliability_probe")  # and only an unknown k probes


@dataclass(frozen=True)
class InfoGain(BaseUtility):
    """η_0(p, q) = I(W; Y) = h_b(E f(z)) - E h_b(f(z)), in bits (equations 4 to 7 of the paper).

    `score` assumes a Gaussian logit and reads a table; `exact` averages over all samples. If k or the lapse rate is
    unknown, the utility is still the information about W only, and f(z) is P(Y | W) with k and lapse integrated out.
    With ties there are three outcomes, and I is the entropy of their mean probabilities minus the mean of their
    entropy.

    Parameters
    ----------
    checks
        Schedule of reliability probes (see `ReliabilityProbe`) when k or the lapse rate is unknown. An integer n >= 2:
        every n-th question. ``"auto"``: whenever a probe is expected to tell more about k than any question about the
        point, as happens with unreliable people. None: never.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), strategy=ps.InfoGain(), rng=7)
    >>> search.ask().info.information > 0
    True
    """

    checks: Annotated[int | Literal["auto"] | None, Limit(2, 1000)] = None
    name: ClassVar[str] = "infogain"

    def __post_init__(self) -> None:
        if self.checks is not None and self.checks != "auto":
            object.__setattr__(self, "checks", whole(self.checks, "checks of InfoGain", 2, field="checks"))

    def turn(self, number: int, belief: Belief) -> InfoGain | reliability_probe.ReliabilityProbe:
        """Return the utility for question `number`, counted from 0: a reliability probe if one is due."""
        due = isinstance(self.checks, int) and number % self.checks == self.checks - 1
        return reliability_probe.ReliabilityProbe() if due and belief.reliability is not None else self

    def rival(self, belief: Belief) -> reliability_probe.ReliabilityProbe | None:
        """Return the probe whose pair is asked if it is more informative; None unless `checks` is "auto"."""
        return (
            reliability_probe.ReliabilityProbe() if self.checks == "auto" and belief.reliability is not None else None
        )

    def score(self, candidates: PairFeatures, belief: Belief) -> FloatArray:  # noqa: ARG002
        """Return the (m,) information in bits, from the mean and variance of the logit."""
        return candidates.tabulated("information")

    def shape(self) -> UtilityShape:
        """Return the shape of `score`: a function of the logit's mean and standard deviation."""
        return UtilityShape("table", "information")

    def planes(self, space: Space, belief: Belief, response: Response, rng: np.random.Generator) -> _planes.Planes:  # noqa: ARG002
        """Return sampled planes, because no closed form is known."""
        return _planes.sampled_planes(space, belief, rng)

    def exact(self, candidates: PairFeatures, belief: Belief) -> FloatArray:
        """Return the (m,) information in bits, averaged over all samples."""
        return candidates.sampled_information(belief)
