"""Response models: equation 1 of the paper with its noise constants K1, K2 and K3.

An item x has the utility u_x(w) = appeal_x - k|w - x|² for a person at w. The logit of preferring p to q is
z = r (k_pq/k) (u_p - u_q) = r k_pq (a·w - b + (appeal_p - appeal_q)/k), with the person's reliability r, and
P(p preferred to q | w) = lapse/2 + (1 - lapse) f(z), where f is the logistic function or the normal distribution
function. Both are symmetric, f(-z) = 1 - f(z), and log-concave, so that the posterior is log-concave where r is known
and there are no lapses. The paper's model has r = 1, no appeal, no residual and no lapses.

No coordinates explain all of a person's taste. The residual utility ε_x of an item is what they leave out of it, for
this person: independent for every item and normal with the standard deviation `residual` (the specific variance of
factor analysis). It adds r (ε_p - ε_q) to the logit under every noise kind.

Distance is one of the shapes that a utility over coordinates can have. With a curvature c, the utility is
2k (w - m)·(x - m) - ck|x - m|², up to a constant, where m is the mean of the prior. c = 1 is the model above, in which
a person likes best what is near w; c = 0 is a linear utility, in which a person likes best what is farthest in the
direction of w (the ideal-point and vector models of unfolding; Carroll, 1972). `pairseek.model.curvature` infers c.

Where ties are offered, a person who perceives a difference within the width t says so (Rao and Kupper, 1967; Glenn and
David, 1960): P(first) = f(z - t), P(second) = f(-z - t), P(tie) = f(z + t) - f(z - t). All three are log-concave in
z. A lapse is spread evenly over the outcomes that are offered. A tie that is told where none was offered is the limit
of a vanishing width, and no lapse: its likelihood is proportional to (1 - lapse) f'(z).
"""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Self

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr, ndtri

from pairseek.core.limits import Limit
from pairseek.core.types import Evidence, FloatArray
from pairseek.core.validation import is_number
from pairseek.errors import InvalidParameter, Unsupported
from pairseek.model.noise import NOISES, PUBLISHED_NOISES, Noise, NoiseKind, noise_kind
from pairseek.model.unknowns import (
    Beta,
    LogNormal,
    NoiseKinds,
    Normal,
    Unknown,
    checked_curvature,
    checked_lapse,
    checked_noise,
    checked_reliability,
    checked_residual,
    checked_unknown_k,
)

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
    "tie_probability",
    "log_tie",
    "log_likelihood",
)
# Squares of logits must not overflow.
_LARGEST = 1e100
_WIDEST_TIE = 20.0
_LARGEST_RESIDUAL = 20.0


def hyperplanes(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the normals and thresholds of the planes between pairs of points (equation 1 of the paper).

    A user at w prefers p to q when |w - p|² < |w - q|², that is when a·w > b.

    Parameters
    ----------
    first, second
        (m, d) points p and q.

    Returns
    -------
    normals, thresholds
        (m, d) a = 2(p - q) and (m,) b = (p - q)·(p + q), which is |p|² - |q|² without its cancellation.
    """
    difference = first - second
    return 2.0 * difference, np.einsum("md,md->m", difference, first + second)


@dataclass(frozen=True)
class Response:
    """Base class of response models: the noise constant of a pair, lapses, and the likelihood given a link f.

    A subclass defines ``name`` and the link: `link_function`, `log_link` and `slope`, for a symmetric f,
    f(-z) = 1 - f(z). `Particles`, `Grid` and the utilities of the strategies evaluate these methods, and so does a
    posterior of your own. `Logistic` and `Probit` have compiled formulas besides, which are much faster, and which `EP`
    and an unknown k, lapse or noise kind need.

    Parameters
    ----------
    k
        Noise constant k_0, at least 0. Larger is more reliable. None: a search takes one that suits the scale
        of its prior, see `for_spread`. ``Unknown()``: it is inferred.
    noise
        ``"constant"`` (K1, k_pq = k), ``"normalized"`` (K2, k/|a|: the logit is k times the distance of w from
        the plane) or ``"decaying"`` (K3, k exp(-|a|)). ``Unknown()``: the belief averages over all three, each with
        its own k for the scale of the prior; give no number for k then.
    lapse
        Share of the answers that are given at random, whatever was asked: from 0, the paper's model, to below 1.
        ``Unknown()``: it is inferred.
    reliability
        Factor r on every logit, at least 0: 1 for a typical person, 0 for one who answers at random. ``Unknown()``: it
        is inferred. An unknown k is the same factor, with the median of its prior as k.
    tie_width
        Width t of the perceived differences, in logits, within which a person calls a tie. 0: ties are not offered.
    residual
        Standard deviation of a person's residual utility of an item, in logits: the part of taste that coordinates and
        appeal do not explain. 0: the paper's model. None: that of the population of a search, and 0 without one.
        ``Unknown()``: it is inferred.
    curvature
        Curvature c of the utility: 1 in the paper's model, 0 for a linear utility. ``Unknown()``: it is inferred. Other
        values than 1 need constant noise and a Gaussian prior.
    """

    k: Annotated[float | Unknown | None, Limit(0, 1e12)] = None
    noise: Noise | Unknown = "normalized"
    lapse: Annotated[float | Unknown, Limit(0, 1)] = 0.0
    reliability: Annotated[float | Unknown, Limit(0, 1e6)] = 1.0
    tie_width: Annotated[float, Limit(0, 20)] = 0.0
    residual: Annotated[float | Unknown | None, Limit(0, 20)] = None
    curvature: Annotated[float | Unknown, Limit(-10, 10)] = 1.0
    name: ClassVar[str] = ""
    link_code: ClassVar[int | None] = None
    typical: ClassVar[float] = TYPICAL_LOGIT

    def __post_init__(self) -> None:
        object.__setattr__(self, "lapse", checked_lapse(self.lapse))
        lapses = isinstance(self.lapse, Unknown)
        object.__setattr__(self, "reliability", checked_reliability(self.reliability, lapses=lapses))
        self._check_logits()
        if isinstance(self.k, Unknown) and isinstance(self.reliability, Unknown):
            raise InvalidParameter("k and reliability are both unknown, and are the same factor: infer one of the two")
        if isinstance(self.noise, Unknown):
            object.__setattr__(self, "noise", checked_noise(self.noise))
        else:
            noise_kind(self.noise)
        object.__setattr__(self, "curvature", checked_curvature(self.curvature))
        if self.curvature != 1.0 and self.noise != "constant":
            raise InvalidParameter(
                f"curvature is {self.curvature!r} and the noise is {self.noise!r}: a curvature other than 1 has a "
                f"meaning under constant noise alone, whose logits are differences of utilities; give noise='constant'",
                field="curvature",
            )
        if isinstance(self.k, Unknown):
            object.__setattr__(self, "k", checked_unknown_k(self.k, lapses=lapses))
        elif self.k is not None:
            if isinstance(self.k, bool) or not isinstance(self.k, int | float | np.number):
                raise InvalidParameter(f"k is {self.k!r}: give a number, at least 0, or Unknown()", field="k")
            if not 0 <= float(self.k) <= _LARGEST:
                raise InvalidParameter(
                    f"k is {self.k!r}: the noise constant must be at least 0 and at most {_LARGEST:g} (no noise)",
                    field="k",
                )
            object.__setattr__(self, "k", float(self.k))
        if isinstance(self.noise, Unknown) and not self._leaves_k_open():
            raise InvalidParameter(
                f"k is {self.k!r} and the noise kind is unknown: k has another unit under each kind, so leave it out, "
                f"or give Unknown() without a median"
            )

    def _check_logits(self) -> None:
        """Reject a width of ties or a residual that is no number of logits."""
        if not (is_number(self.tie_width) and 0 <= self.tie_width <= _WIDEST_TIE):
            raise InvalidParameter(
                f"tie_width is {self.tie_width!r}: give the width of a tie in logits, from 0 (none are offered) to "
                f"{_WIDEST_TIE:g}"
            )
        object.__setattr__(self, "tie_width", float(self.tie_width))
        if isinstance(self.residual, Unknown):
            object.__setattr__(self, "residual", checked_residual(self.residual))
        if self.residual is None or isinstance(self.residual, Unknown):
            return
        if not (is_number(self.residual) and 0 <= self.residual <= _LARGEST_RESIDUAL):
            raise InvalidParameter(
                f"residual is {self.residual!r}: give the standard deviation of residual utilities in logits, from 0 "
                f"to {_LARGEST_RESIDUAL:g}, or Unknown()",
                field="residual",
            )
        object.__setattr__(self, "residual", float(self.residual))

    def with_numbers(self, **numbers: float) -> Self:
        """Return the response with numbers that follow from a belief, which need no validation."""
        twin = copy.copy(self)
        for name, number in numbers.items():
            object.__setattr__(twin, name, float(number))
        return twin

    def _leaves_k_open(self) -> bool:
        """Return whether k is None, the median of an unknown k is None, or all constants of unknown kinds are set."""
        kinds = self.noise_prior
        if kinds is not None and kinds.k is not None:
            return self.k == 1.0
        return self.k is None or (self.k_prior is not None and self.k_prior.median is None)

    @property
    def compiled(self) -> bool:
        """Return whether compiled kernels compute the formulas of this response."""
        return _kernel_link(type(self))[0] is not None  # type: ignore[arg-type]

    @property
    def link(self) -> int:
        """Return the code of the link in compiled kernels; raise `Unsupported` where they would compute another one."""
        code, own = _kernel_link(type(self))  # type: ignore[arg-type]
        if code is None:
            raise Unsupported(
                f"{type(self).__name__} defines {_listed(own)} itself, and EP and an unknown k, lapse or noise kind "
                f"need the compiled formulas of Logistic or Probit: use one of these, or give numbers and use "
                f"Particles(), Grid() or a posterior of your own"
            )
        return code

    @property
    def stand_in(self) -> Response:
        """Return the response itself or, where no kernel computes its formulas, the logistic one of its parameters.

        It says roughly which pairs are worth a look, and how long a search will take; never what an answer tells.
        """
        if self.compiled:
            return self
        return Logistic(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Response)})

    @property
    def noise_kind(self) -> NoiseKind:
        """Return the record of the noise kind; raise `InvalidParameter` where it is unknown."""
        if isinstance(self.noise, Unknown):
            raise InvalidParameter(
                f"the noise kind of {type(self).__name__} is unknown: give one of {', '.join(NOISES)}"
            )
        return noise_kind(self.noise)

    @property
    def constant(self) -> float:
        """Return the noise constant times the reliability; raise `InvalidParameter` where they are not set."""
        if isinstance(self.k, Unknown):
            raise InvalidParameter(f"k of {type(self).__name__} is unknown: give a number")
        if isinstance(self.reliability, Unknown):
            raise InvalidParameter(f"the reliability of {type(self).__name__} is unknown: give a number")
        if self.k is None:
            raise InvalidParameter(f"k of {type(self).__name__} is not set: give k, or let a Search choose it")
        return self.reliability * self.k

    @property
    def typical_k(self) -> float:
        """Return the noise constant or, where it is unknown, the median of its prior."""
        if self.k is None:
            raise InvalidParameter(f"k of {type(self).__name__} is not set: give k, or let a Search choose it")
        if not isinstance(self.k, Unknown):
            return self.k
        assert isinstance(self.k.prior, LogNormal)
        if self.k.prior.median is None:
            raise InvalidParameter("the median of an unknown k is not set: give it, or let a Search choose it")
        return self.k.prior.median

    @property
    def typical_reliability(self) -> float:
        """Return the reliability or, where it is unknown, the median of its prior."""
        if not isinstance(self.reliability, Unknown):
            return self.reliability
        assert isinstance(self.reliability.prior, LogNormal)
        assert self.reliability.prior.median is not None
        return self.reliability.prior.median

    @property
    def residual_deviation(self) -> float:
        """Return the standard deviation of residual utilities: 0 where it is not set, the median where unknown."""
        if self.residual_prior is not None:
            assert self.residual_prior.median is not None
            return self.residual_prior.median
        return 0.0 if self.residual is None or isinstance(self.residual, Unknown) else self.residual

    @property
    def residual_prior(self) -> LogNormal | None:
        """Return the prior of an unknown residual; None where it is known."""
        prior = self.residual.prior if isinstance(self.residual, Unknown) else None
        return prior if isinstance(prior, LogNormal) else None

    @property
    def curvature_prior(self) -> Normal | None:
        """Return the prior of an unknown curvature; None where it is known."""
        prior = self.curvature.prior if isinstance(self.curvature, Unknown) else None
        return prior if isinstance(prior, Normal) else None

    @property
    def unknown(self) -> bool:
        """Return whether k, the reliability, the lapse or the noise kind is to be inferred; not so other parameters."""
        return any(isinstance(part, Unknown) for part in (self.k, self.reliability, self.lapse, self.noise))

    @property
    def is_log_concave(self) -> bool:
        """Return whether every parameter is known and there are no lapses, so that the posterior is log-concave."""
        return not self.unknown and self.lapse == 0.0

    @property
    def lapse_rate(self) -> float:
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

    @property
    def factor_prior(self) -> LogNormal | None:
        """Return the prior of k or of the reliability, whichever is unknown; None where both are known."""
        prior = self.reliability.prior if isinstance(self.reliability, Unknown) else self.k_prior
        return prior if isinstance(prior, LogNormal) else None

    @property
    def noise_prior(self) -> NoiseKinds | None:
        """Return the prior of an unknown noise kind; None where the kind is known."""
        prior = self.noise.prior if isinstance(self.noise, Unknown) else None
        return prior if isinstance(prior, NoiseKinds) else None

    @property
    def kinds(self) -> list[tuple[Self, float]]:
        """Return one response for each noise kind that is possible, with its prior probability."""
        prior = self.noise_prior
        if prior is None:
            return [(self, 1.0)]
        if prior.k is None:
            raise InvalidParameter("the constants of an unknown noise kind are not set: let a Search choose them")
        weights = prior.weights
        return [
            (dataclasses.replace(self, noise=noise, k=k), weight / sum(weights))
            for noise, k, weight in zip(PUBLISHED_NOISES, prior.k, weights, strict=True)
            if weight > 0.0
        ]

    def for_spread(self, spread: float) -> Self:
        """Return the response with k set if it was None, or with the median of the prior of an unknown k set.

        ``spread`` is the standard deviation of the prior along a coordinate. The logit of a plane at that distance from
        the user is then `typical`, so that 88 % of the answers are right. For constant noise this holds for points two
        deviations apart; for decaying noise, for the most informative |a| up to that length, which is at most 1.
        """
        unknown = self.k_prior
        kinds = self.noise_prior
        if kinds is not None:
            return self if kinds.k is not None else self._with_kinds(kinds, spread)
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

    def _with_kinds(self, kinds: NoiseKinds, spread: float) -> Self:
        """Return the response with the default k of every noise kind, and an unknown k as an unknown reliability."""
        constants = []
        for noise, weight in zip(PUBLISHED_NOISES, kinds.weights, strict=True):
            one = dataclasses.replace(self, noise=noise, k=None, lapse=0.0, reliability=1.0)
            constants.append(one.for_spread(spread).constant if weight > 0.0 else 1.0)
        reliability, unknown = self.reliability, self.k_prior
        if unknown is not None:
            around = LogNormal.around(1.0, unknown.spread)
            reliability = Unknown(around if self.lapse_prior is None else LogNormal(1.0, unknown.spread))
        # In one step, because the intermediate states are not valid.
        unknown_kind = Unknown(dataclasses.replace(kinds, k=tuple(constants)))
        return dataclasses.replace(self, k=1.0, noise=unknown_kind, reliability=reliability)

    def pair_constant(self, length: FloatArray) -> FloatArray:
        """Return r k_pq for pairs whose normals have these lengths |a| (K1, K2, K3).

        Where the points coincide it is r k under constant noise, which leaves their appeal, and else 0.

        Where k or r is unknown, for the median of its prior.
        """
        length = np.asarray(length, dtype=np.float64)
        return self.noise_kind.pair_constant(self.typical_reliability * self.typical_k, length)

    def planes(
        self, first: FloatArray, second: FloatArray, appeal: FloatArray | float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return slopes r k_pq a and offsets r k_pq ((appeal_p - appeal_q)/k - b) of the logits of pairs.

        Where the noise kind is unknown, these are a and -b, which each kind scales in its own way.

        Parameters
        ----------
        first, second
            (m, d) points p and q.
        appeal
            (m,) difference of appeal, p's minus q's.
        """
        normals, thresholds = hyperplanes(first, second)
        if self.noise_prior is not None:
            return normals, -thresholds
        # k_pq/k times the reliability: k itself may be 0.
        factor = self.noise_kind.pair_constant(self.typical_reliability, np.linalg.norm(normals, axis=1))
        k = factor * self.typical_k
        return k[:, None] * normals, -k * thresholds + factor * appeal

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
        """Return P(first) = lapse/n + (1 - lapse) f(z - t) with n outcomes: 2, or 3 where ties are offered."""
        lapse = self.lapse_rate
        f = self.link_function(np.asarray(logits) - self.tie_width)
        return f if lapse == 0.0 else self.floor + (1.0 - lapse) * f

    @property
    def floor(self) -> float:
        """Return the probability that a lapse adds to each outcome: lapse/2, or lapse/3 where ties are offered."""
        return self.lapse_rate / (3.0 if self.tie_width > 0.0 else 2.0)

    def log_probability(self, logits: FloatArray) -> FloatArray:
        """Return log P(first), without overflow or cancellation."""
        lapse = self.lapse_rate
        log_f = self.log_link(np.asarray(logits) - self.tie_width)
        if lapse == 0.0:
            return log_f
        return np.asarray(np.logaddexp(np.log(self.floor), np.log1p(-lapse) + log_f))

    def tie_probability(self, logits: FloatArray) -> FloatArray:
        """Return P(tie); 0 where ties are not offered."""
        if self.tie_width == 0.0:
            return np.zeros(np.shape(logits))
        return np.exp(self.log_tie(logits))

    def log_tie(self, logits: FloatArray) -> FloatArray:
        """Return log P(tie), without overflow or cancellation; log f'(z) where ties are not offered."""
        # Both are even in z; below 0 the difference of two values of f loses no digits.
        low = -np.abs(np.asarray(logits, dtype=np.float64))
        if self.tie_width == 0.0:
            return np.asarray(self.log_link(low) + np.log(self.slope(low)) + np.log1p(-self.lapse_rate))
        upper, lower = self.log_link(low + self.tie_width), self.log_link(low - self.tie_width)
        log_p = upper + np.log(-np.expm1(lower - upper))
        if self.lapse_rate == 0.0:
            return np.asarray(log_p)
        return np.asarray(np.logaddexp(np.log(self.floor), np.log1p(-self.lapse_rate) + log_p))

    def log_likelihood(self, evidence: Evidence, points: FloatArray) -> FloatArray:
        """Return the (s,) log-likelihood of all answers at (s, d) points."""
        logits = points @ evidence.slopes.T + evidence.offsets
        decided = evidence.decided > 0
        answers = self.log_probability(logits[:, decided]).sum(axis=1)
        return np.asarray(answers + self.log_tie(logits[:, ~decided]).sum(axis=1))

    def simulate(self, logits: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw answers: True where the first is chosen, False where the other is; ties are not offered."""
        return np.asarray(rng.random(np.shape(logits)) < dataclasses.replace(self, tie_width=0.0).probability(logits))


@dataclass(frozen=True)
class Logistic(Response):
    """The logistic model of the paper, f(z) = 1/(1 + e^-z).

    Examples
    --------
    >>> import pairseek as ps
    >>> response = ps.Logistic(k=2.0, noise="constant")
    >>> float(response.link_function(0.0))
    0.5
    """

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
    """The probit model, f(z) = Φ(z): the paper's "Gaussian" model, sign(z + Z) with standard normal Z.

    Examples
    --------
    >>> import pairseek as ps
    >>> response = ps.Probit(k=2.0, noise="constant")
    >>> float(response.link_function(0.0))
    0.5
    """

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


@lru_cache(maxsize=32)
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
