"""Response models: equation 1 of the paper with its noise constants K1, K2 and K3.

P(p preferred to q | w) = lapse/2 + (1 - lapse) f(z), z = k_pq (a·w - b) + appeal_p - appeal_q, where f is the logistic
function or the normal distribution function. Both are symmetric, f(-z) = 1 - f(z), and log-concave, so that the
posterior is log-concave where k is known and there are no lapses, which is the paper's model.

A tie enters as half an answer each way, sqrt(P(z) P(-z)). That is a pseudo-likelihood (it does not sum to one
over the three outcomes), chosen because it stays log-concave and pulls the user point towards the plane.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr, ndtri

from pairseek.core.types import Evidence, FloatArray
from pairseek.errors import InvalidParameter, Unsupported
from pairseek.model.geometry import hyperplanes
from pairseek.model.noise import NOISES as NOISES
from pairseek.model.noise import Noise as Noise
from pairseek.model.noise import NoiseKind, noise_kind
from pairseek.model.unknowns import Beta, LogNormal, Unknown, checked_lapse, checked_unknown_k

TYPICAL_LOGIT = 2.0
"""The default k puts the logit at 2 (88 % right answers) one prior standard deviation from the plane."""
LINK_MEMBERS = ("link_function", "log_link", "slope")
"""The methods that define a link f; a response of one's own must define all three."""
# Methods that compiled kernels replace by formulas of their own.
_COMPILED = (
    *LINK_MEMBERS,
    "pair_constant",
    "planes",
    "probability",
    "log_probability",
    "log_likelihood",
    "gradient",
)
# Squares of logits must not overflow.
_LARGEST = 1e100


@dataclass(frozen=True)
class Response:
    """Base class of response models: the noise constant of a pair, lapses, and the likelihood given a link f.

    A subclass defines ``name`` and the link: `link_function`, `log_link` and `slope`, for a symmetric f,
    f(-z) = 1 - f(z), that is log-concave. `Grid` evaluates these methods. `EP`, `Particles` and the tables of the
    utilities evaluate compiled formulas, which exist for `Logistic` and `Probit` alone: `link` is the code of the
    formula, and raises `Unsupported` for any other response.

    Parameters
    ----------
    k
        Noise constant k_0, at least 0. Larger is more reliable. None: a search takes one that suits the scale
        of its prior, see `for_spread`. ``Unknown()``: it is inferred.
    noise
        ``"constant"`` (K1, k_pq = k), ``"normalized"`` (K2, k/|a|: the logit is k times the distance of w from
        the plane) or ``"decaying"`` (K3, k exp(-|a|)).
    lapse
        Share of the answers that are given at random, whatever was asked: from 0, the paper's model, to below 1.
        ``Unknown()``: it is inferred.
    """

    k: float | Unknown | None = None
    noise: Noise = "normalized"
    lapse: float | Unknown = 0.0
    name: ClassVar[str] = ""
    link_code: ClassVar[int | None] = None
    typical: ClassVar[float] = TYPICAL_LOGIT

    def __post_init__(self) -> None:
        noise_kind(self.noise)
        object.__setattr__(self, "lapse", checked_lapse(self.lapse))
        if isinstance(self.k, Unknown):
            object.__setattr__(self, "k", checked_unknown_k(self.k))
        elif self.k is not None:
            if isinstance(self.k, bool) or not isinstance(self.k, int | float | np.number):
                raise InvalidParameter(f"k is {self.k!r}: give a number, at least 0, or Unknown()", field="k")
            if not 0 <= float(self.k) <= _LARGEST:
                raise InvalidParameter(
                    f"k is {self.k!r}: the noise constant must be at least 0 and at most {_LARGEST:g} (no noise)",
                    field="k",
                )
            object.__setattr__(self, "k", float(self.k))

    @property
    def link(self) -> int:
        """Return the code of the link in compiled kernels; raise `Unsupported` where they would compute another one."""
        code, own = _kernel_link(type(self))
        if code is None:
            raise Unsupported(
                f"{type(self).__name__} defines {_listed(own)} itself, and compiled kernels (EP, Particles, the tables "
                f"that score pairs) evaluate Logistic and Probit alone: use one of these, or infer with Grid() from "
                f"answers given to observe()"
            )
        return code

    @property
    def noise_kind(self) -> NoiseKind:
        """Return the record of the noise kind."""
        return noise_kind(self.noise)

    @property
    def constant(self) -> float:
        """Return the noise constant; raise `InvalidParameter` where it is not set."""
        if isinstance(self.k, Unknown):
            raise InvalidParameter(f"k of {type(self).__name__} is unknown: give a number")
        if self.k is None:
            raise InvalidParameter(f"k of {type(self).__name__} is not set: give k, or let a Search choose it")
        return self.k

    @property
    def reference(self) -> float:
        """Return the noise constant or, where it is unknown, the median of its prior."""
        if not isinstance(self.k, Unknown):
            return self.constant
        assert isinstance(self.k.prior, LogNormal)
        if self.k.prior.median is None:
            raise InvalidParameter("the median of an unknown k is not set: give it, or let a Search choose it")
        return self.k.prior.median

    @property
    def unknown(self) -> bool:
        """Return whether k or the lapse is to be inferred."""
        return isinstance(self.k, Unknown) or isinstance(self.lapse, Unknown)

    @property
    def plain(self) -> bool:
        """Return whether this is the paper's model: a known k and no lapses."""
        return not self.unknown and self.lapse == 0.0

    @property
    def share(self) -> float:
        """Return the lapse, the share of random answers; raise `InvalidParameter` where it is unknown."""
        if isinstance(self.lapse, Unknown):
            raise InvalidParameter(f"the lapse of {type(self).__name__} is unknown: give a number")
        return self.lapse

    @property
    def lapse_prior(self) -> Beta | None:
        """Return the prior of an unknown lapse; None where the lapse is known."""
        prior = self.lapse.prior if isinstance(self.lapse, Unknown) else None
        return prior if isinstance(prior, Beta) else None

    @property
    def k_prior(self) -> LogNormal | None:
        """Return the prior of an unknown k; None where k is known."""
        prior = self.k.prior if isinstance(self.k, Unknown) else None
        return prior if isinstance(prior, LogNormal) else None

    def for_spread(self, spread: float) -> Self:
        """Return the response with k set if it was None, or with the median of the prior of an unknown k set.

        ``spread`` is the standard deviation of the prior along a coordinate. The logit of a plane at that distance from
        the user is then `typical`, so that 88 % of the answers are right. For constant noise this holds for points two
        deviations apart; for decaying noise, for the most informative |a| up to that length, which is at most 1.
        """
        unknown = self.k_prior
        if self.k is not None and (unknown is None or unknown.median is not None):
            return self
        normal, kind = 4.0 * spread, self.noise_kind
        if normal > kind.farthest:
            raise InvalidParameter(
                f"{kind.name} noise has a unit of its own, {kind.formula}, and |a| is about {normal:.3g} here: scale "
                f"the items, as with items.scaled(), or give k"
            )
        k = float(self.typical / (kind.steepness(kind.steepest_length(0.0, normal)) * spread))
        if unknown is None:
            return dataclasses.replace(self, k=k)
        # Inferred lapses allow for people who click at random: the prior must not assume a reliable person then.
        prior = LogNormal.around(k, unknown.spread) if self.lapse_prior is None else LogNormal(k, unknown.spread)
        return dataclasses.replace(self, k=Unknown(prior))

    def pair_constant(self, length: FloatArray) -> FloatArray:
        """Return k_pq for pairs whose normals have these lengths |a| (K1, K2, K3); 0 where the points coincide.

        Where k is unknown, for the median of its prior.
        """
        length = np.asarray(length, dtype=np.float64)
        return self.noise_kind.pair_constant(self.reference, length)

    def planes(
        self, first: FloatArray, second: FloatArray, appeal: FloatArray | float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return slopes k_pq a and offsets -k_pq b + appeal_p - appeal_q of the logits of pairs.

        Parameters
        ----------
        first, second
            (m, d) points p and q.
        appeal
            (m,) difference of appeal, p's minus q's.
        """
        normals, thresholds = hyperplanes(first, second)
        k = self.pair_constant(np.linalg.norm(normals, axis=1))
        return k[:, None] * normals, -k * thresholds + appeal

    def link_function(self, logits: FloatArray) -> FloatArray:
        """Return f(z)."""
        raise NotImplementedError

    def log_link(self, logits: FloatArray) -> FloatArray:
        """Return log f(z), without overflow or cancellation."""
        raise NotImplementedError

    def slope(self, logits: FloatArray) -> FloatArray:
        """Return d log f(z) / dz."""
        raise NotImplementedError

    def probability(self, logits: FloatArray) -> FloatArray:
        """Return P(first) = lapse/2 + (1 - lapse) f(z)."""
        lapse = self.share
        f = self.link_function(logits)
        return f if lapse == 0.0 else 0.5 * lapse + (1.0 - lapse) * f

    def log_probability(self, logits: FloatArray) -> FloatArray:
        """Return log P(first), without overflow or cancellation."""
        lapse = self.share
        log_f = self.log_link(logits)
        if lapse == 0.0:
            return log_f
        return np.asarray(np.logaddexp(np.log(0.5 * lapse), np.log1p(-lapse) + log_f))

    def log_likelihood(self, evidence: Evidence, points: FloatArray) -> FloatArray:
        """Return the (s,) log-likelihood of all answers at (s, d) points."""
        logits = points @ evidence.slopes.T + evidence.offsets
        for_winner = self.log_probability(logits)
        half_each = 0.5 * (for_winner + self.log_probability(-logits))
        return np.asarray(np.where(evidence.decided > 0, for_winner, half_each).sum(axis=1))

    def gradient(self, evidence: Evidence, point: FloatArray) -> FloatArray:
        """Return the (d,) gradient of the log-likelihood at a (d,) point."""
        logits = evidence.slopes @ point + evidence.offsets
        for_winner = self.slope(logits)
        half_each = 0.5 * (for_winner - self.slope(-logits))
        return np.asarray(np.where(evidence.decided > 0, for_winner, half_each) @ evidence.slopes)

    def simulate(self, logits: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw answers: True where the first is chosen."""
        return np.asarray(rng.random(np.shape(logits)) < self.probability(logits))


@dataclass(frozen=True)
class Logistic(Response):
    """The logistic model of the paper, f(z) = 1/(1 + e^-z)."""

    name: ClassVar[str] = "logistic"
    link_code: ClassVar[int | None] = 0

    def link_function(self, logits: FloatArray) -> FloatArray:
        """Return f(z)."""
        return np.asarray(expit(logits))

    def log_link(self, logits: FloatArray) -> FloatArray:
        """Return -log(1 + e^-z)."""
        return np.asarray(log_expit(logits))

    def slope(self, logits: FloatArray) -> FloatArray:
        """Return f(-z)."""
        return np.asarray(expit(-np.asarray(logits)))


@dataclass(frozen=True)
class Probit(Response):
    """The probit model, f(z) = Φ(z): the paper's "Gaussian" model, sign(z + Z) with standard normal Z."""

    name: ClassVar[str] = "probit"
    link_code: ClassVar[int | None] = 1
    # The same probability as that of TYPICAL_LOGIT in the logistic model.
    typical: ClassVar[float] = float(ndtri(expit(TYPICAL_LOGIT)))

    def link_function(self, logits: FloatArray) -> FloatArray:
        """Return Φ(z)."""
        return np.asarray(ndtr(logits))

    def log_link(self, logits: FloatArray) -> FloatArray:
        """Return log Φ(z)."""
        return np.asarray(log_ndtr(logits))

    def slope(self, logits: FloatArray) -> FloatArray:
        """Return φ(z)/Φ(z), computed from logarithms, which is accurate far in the tail."""
        logits = np.asarray(logits)
        return np.asarray(np.exp(-0.5 * logits**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(logits)))


def _kernel_link(kind: type[Response]) -> tuple[int | None, tuple[str, ...]]:
    """Return the code of the compiled link and the formulas that a class overrides below the class that declares it.

    The code is None where no class declares one, or where a formula is overridden.
    """
    declaring = next(base for base in kind.__mro__ if issubclass(base, Response) and "link_code" in vars(base))
    own = tuple(member for member in _COMPILED if getattr(kind, member) is not getattr(declaring, member))
    return (None if own else declaring.link_code), own


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name}()" for name in names) or "no link"


RESPONSES: dict[str, type[Response]] = {response.name: response for response in (Logistic, Probit)}
