"""Response models: equation 1 of the paper with its noise constants K1, K2 and K3.

For a person at w, item x has utility u_x(w) = appeal_x - k|w - x|². The logit of preferring p to q is
z = r (k_pq/k) (u_p - u_q) = r k_pq (a·w - b + (appeal_p - appeal_q)/k), with the person's reliability r, and
P(p preferred to q | w) = lapse/2 + (1 - lapse) f(z), where f is the logistic function or the normal distribution
function. Both are symmetric, f(-z) = 1 - f(z), and log-concave, so the posterior is log-concave if r is known and there
are no lapses. The paper's model has r = 1, no appeal, no residual and no lapses.

Coordinates never explain all of a person's taste. The residual utility ε_x of an item is the unexplained part:
independent for every item, and normal with standard deviation `residual` (the specific variance of factor analysis). It
adds r (ε_p - ε_q) to the logit under every noise kind.

Utility need not be a distance. With a curvature c, the utility is 2k (w - m)·(x - m) - ck|x - m|², up to a constant,
where m is the prior mean. c = 1 is the model above, in which a person most likes what is near w; c = 0 is a linear
utility, in which a person most likes what is farthest in the direction of w (the ideal-point and vector models of
unfolding; Carroll, 1972). `pairseek.model.curvature` infers c.

If ties are offered, a person calls a tie when the perceived difference is within the width t (Rao and Kupper, 1967;
Glenn and David, 1960): P(first) = f(z - t), P(second) = f(-z - t), P(tie) = f(z + t) - f(z - t). All three are
log-concave in z. A lapse is spread evenly over the outcomes that are offered. A tie reported when none was
offered is treated as the limit of a vanishing width, and never as a lapse: its likelihood is proportional to
(1 - lapse) f'(z).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr, ndtri

from pairseek.core.types import Evidence, FloatArray
from pairseek.errors import Unsupported
from pairseek.model.response_parameters import TYPICAL_LOGIT, ResponseParameters
from pairseek.numerics.jit import LOGISTIC, PROBIT

LINK_MEMBERS = ("link_function", "log_link", "slope")
"""Methods that define a link f; a user-defined response must define all three."""
# Methods whose formulas are also compiled into kernels.
_COMPILED_METHODS = (
    *LINK_MEMBERS,
    "pair_constant",
    "planes",
    "probability",
    "log_probability",
    "tie_probability",
    "log_tie",
    "log_likelihood",
)


def hyperplanes(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the normals and thresholds of the planes between pairs of points (equation 1 of the paper).

    A user at w prefers p to q if |w - p|² < |w - q|², that is, if a·w > b.

    Parameters
    ----------
    first, second
        (m, d) points p and q.

    Returns
    -------
    normals, thresholds
        (m, d) a = 2(p - q) and (m,) b = (p - q)·(p + q), which is |p|² - |q|² without cancellation.
    """
    difference = first - second
    return 2.0 * difference, np.einsum("md,md->m", difference, first + second)


@dataclass(frozen=True)
class Response(ResponseParameters):
    """Base class of response models: noise constants of pairs, lapses, and the likelihood for a link f.

    A subclass defines ``name`` and the link: `link_function`, `log_link` and `slope` of a symmetric f,
    f(-z) = 1 - f(z). `Particles`, `Grid`, the utilities of the strategies and user-defined posteriors call these
    methods. `Logistic` and `Probit` also have compiled formulas, which are much faster, and which `EP` and an unknown
    k, lapse rate or noise kind require.

    Parameters
    ----------
    k
        Noise constant k_0, at least 0; larger is more reliable. None: a search derives it from the scale of its prior,
        see `for_spread`. ``Unknown()``: inferred.
    noise
        ``"constant"`` (K1, k_pq = k), ``"normalized"`` (K2, k/|a|: the logit is k times the distance of w from
        the plane) or ``"decaying"`` (K3, k exp(-|a|)). ``Unknown()``: the belief averages over all three, each with its
        own k derived from the scale of the prior; do not give a number for k then.
    lapse
        Lapse rate: the fraction of answers given at random, regardless of the question, from 0 (the paper's model) to
        below 1. ``Unknown()``: inferred.
    reliability
        Factor r on every logit, at least 0: 1 for a typical person, 0 for someone who answers at random.
        ``Unknown()``: inferred. An unknown k is modelled as r times the prior median of k.
    tie_width
        Width t in logits: a person calls a tie when the perceived difference is smaller. 0: ties are not offered.
    residual
        Standard deviation of a person's residual utility of an item, in logits: the part of taste that coordinates and
        appeal do not explain. 0: the paper's model. None: the value of the search's population, or 0 without a
        population.
    curvature
        Curvature c of the utility: 1 in the paper's model, 0 for a linear utility. ``Unknown()``: inferred. Values
        other than 1 require constant noise and a Gaussian prior.
    """

    name: ClassVar[str] = ""
    link_code: ClassVar[int | None] = None

    @property
    def compiled(self) -> bool:
        """Return whether compiled kernels compute the formulas of this response."""
        return _kernel_link(type(self))[0] is not None  # type: ignore[arg-type]

    @property
    def link(self) -> int:
        """Return the code of the link in compiled kernels; raise `Unsupported` if they do not implement it."""
        code, overridden = _kernel_link(type(self))  # type: ignore[arg-type]
        if code is None:
            raise Unsupported(
                f"{type(self).__name__} defines {_method_names(overridden)} itself, but EP and an unknown k, lapse "
                f"rate or noise kind need the compiled formulas of Logistic or Probit: use one of these, or give "
                f"numbers and use Particles(), Grid() or a posterior of your own"
            )
        return code

    @property
    def stand_in(self) -> Response:
        """Return the response itself or, if it is not compiled, a logistic response with the same parameters.

        The stand-in only preselects pairs and forecasts the length of a search; it never interprets answers.
        """
        if self.compiled:
            return self
        return Logistic(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Response)})

    def pair_constant(self, length: FloatArray) -> FloatArray:
        """Return r k_pq for pairs whose normals have these lengths |a| (K1, K2, K3).

        If the points coincide, it is r k under constant noise, so that appeal still counts, and otherwise 0. An unknown
        k or r is replaced by its prior median.
        """
        length = np.asarray(length, dtype=np.float64)
        return self.noise_kind.pair_constant(self.typical_reliability * self.typical_k, length)

    def planes(
        self, first: FloatArray, second: FloatArray, appeal: FloatArray | float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return slopes r k_pq a and offsets r k_pq ((appeal_p - appeal_q)/k - b) of the logits of pairs.

        If the noise kind is unknown, these are a and -b, which each kind scales differently.

        Parameters
        ----------
        first, second
            (m, d) points p and q.
        appeal
            (m,) appeal of p minus appeal of q.
        """
        normals, thresholds = hyperplanes(first, second)
        if self.noise_prior is not None:
            return normals, -thresholds
        # k_pq/k times the reliability, computed without dividing by k, which may be 0.
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
        """Return P(first) = lapse/n + (1 - lapse) f(z - t) with n outcomes: 2, or 3 if ties are offered."""
        lapse = self.lapse_rate
        f = self.link_function(np.asarray(logits) - self.tie_width)
        return f if lapse == 0.0 else self.floor + (1.0 - lapse) * f

    @property
    def floor(self) -> float:
        """Return the probability that lapses add to each outcome: lapse/2, or lapse/3 if ties are offered."""
        return self.lapse_rate / (3.0 if self.tie_width > 0.0 else 2.0)

    def log_probability(self, logits: FloatArray) -> FloatArray:
        """Return log P(first), without overflow or cancellation."""
        lapse = self.lapse_rate
        log_f = self.log_link(np.asarray(logits) - self.tie_width)
        if lapse == 0.0:
            return log_f
        return np.asarray(np.logaddexp(np.log(self.floor), np.log1p(-lapse) + log_f))

    def tie_probability(self, logits: FloatArray) -> FloatArray:
        """Return P(tie); 0 if ties are not offered."""
        if self.tie_width == 0.0:
            return np.zeros(np.shape(logits))
        return np.exp(self.log_tie(logits))

    def log_tie(self, logits: FloatArray) -> FloatArray:
        """Return log P(tie), without overflow or cancellation; log f'(z) if ties are not offered."""
        # Both are even in z; for negative z, the difference of two values of f does not cancel.
        negative = -np.abs(np.asarray(logits, dtype=np.float64))
        if self.tie_width == 0.0:
            return np.asarray(self.log_link(negative) + np.log(self.slope(negative)) + np.log1p(-self.lapse_rate))
        upper, lower = self.log_link(negative + self.tie_width), self.log_link(negative - self.tie_width)
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
        """Draw answers without ties: True if the first is chosen, False otherwise."""
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
    link_code: ClassVar[int | None] = LOGISTIC

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
    link_code: ClassVar[int | None] = PROBIT
    # The z at which Φ(z) equals the logistic probability of TYPICAL_LOGIT.
    typical: ClassVar[float] = float(ndtri(expit(TYPICAL_LOGIT)))

    def link_function(self, logits: FloatArray) -> FloatArray:
        """Return Φ(z)."""
        return np.asarray(ndtr(logits))

    def log_link(self, logits: FloatArray) -> FloatArray:
        """Return log Φ(z)."""
        return np.asarray(log_ndtr(logits))

    def slope(self, logits: FloatArray) -> FloatArray:
        """Return φ(z)/Φ(z), computed from logarithms to be accurate far in the tail."""
        logits = np.asarray(logits)
        return np.asarray(np.exp(-0.5 * logits**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(logits)))


@lru_cache(maxsize=32)
def _kernel_link(kind: type[Response]) -> tuple[int | None, tuple[str, ...]]:
    """Return the code of the compiled link, and the methods overridden below the class that declares it.

    The code is None if no class declares a link, or if a method is overridden.
    """
    declaring = next(base for base in kind.__mro__ if issubclass(base, Response) and "link_code" in vars(base))
    overridden = tuple(name for name in _COMPILED_METHODS if getattr(kind, name) is not getattr(declaring, name))
    return (None if overridden else declaring.link_code), overridden


def _method_names(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name}()" for name in names) or "no link"


RESPONSES: dict[str, type[Response]] = {response.name: response for response in (Logistic, Probit)}
