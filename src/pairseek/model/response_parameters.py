"""Parameters of a response model: their validation, priors of unknown ones, and defaults."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from pairseek.core.limits import Limit
from pairseek.core.validation import is_number
from pairseek.errors import InvalidParameter
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
    checked_unknown_k,
)

TYPICAL_LOGIT = 2.0
"""The default k gives logit 2 (88 % correct answers) one prior standard deviation from the plane."""
MAX_RESIDUAL = 20.0
"""Largest standard deviation of residual utilities."""
# Squares of logits must not overflow.
_MAX_K = 1e100
_MAX_TIE_WIDTH = 20.0


@dataclass(frozen=True)
class ResponseParameters:
    """Parameters of a `Response`, which describes them."""

    k: Annotated[float | Unknown | None, Limit(0, 1e12)] = None
    noise: Noise | Unknown = "normalized"
    lapse: Annotated[float | Unknown, Limit(0, 1)] = 0.0
    reliability: Annotated[float | Unknown, Limit(0, 1e6)] = 1.0
    tie_width: Annotated[float, Limit(0, 20)] = 0.0
    residual: Annotated[float | None, Limit(0, 20)] = None
    curvature: Annotated[float | Unknown, Limit(-10, 10)] = 1.0
    typical: ClassVar[float] = TYPICAL_LOGIT

    def __post_init__(self) -> None:
        object.__setattr__(self, "lapse", checked_lapse(self.lapse))
        lapses = isinstance(self.lapse, Unknown)
        object.__setattr__(self, "reliability", checked_reliability(self.reliability, lapses=lapses))
        self._check_logits()
        if isinstance(self.k, Unknown) and isinstance(self.reliability, Unknown):
            raise InvalidParameter("k and reliability are both unknown, but they are the same factor: infer only one")
        if isinstance(self.noise, Unknown):
            object.__setattr__(self, "noise", checked_noise(self.noise))
        else:
            noise_kind(self.noise)
        object.__setattr__(self, "curvature", checked_curvature(self.curvature))
        if self.curvature != 1.0 and self.noise != "constant":
            raise InvalidParameter(
                f"curvature is {self.curvature!r} and the noise is {self.noise!r}: a curvature other than 1 is "
                f"defined only for constant noise, whose logits are differences of utilities; give noise='constant'",
                field="curvature",
            )
        if isinstance(self.k, Unknown):
            object.__setattr__(self, "k", checked_unknown_k(self.k, lapses=lapses))
        elif self.k is not None:
            if isinstance(self.k, bool) or not isinstance(self.k, int | float | np.number):
                raise InvalidParameter(f"k is {self.k!r}: give a number of at least 0, or Unknown()", field="k")
            if not 0 <= float(self.k) <= _MAX_K:
                raise InvalidParameter(
                    f"k is {self.k!r}: give a noise constant from 0 (random answers) to {_MAX_K:g} (no noise)",
                    field="k",
                )
            object.__setattr__(self, "k", float(self.k))
        if isinstance(self.noise, Unknown) and not self._leaves_k_open():
            raise InvalidParameter(
                f"k is {self.k!r} but the noise kind is unknown, and k has a different unit under each kind: omit k, "
                f"or give Unknown() without a median"
            )

    def _check_logits(self) -> None:
        """Validate the tie width and the residual, which are in logits."""
        if not (is_number(self.tie_width) and 0 <= self.tie_width <= _MAX_TIE_WIDTH):
            raise InvalidParameter(
                f"tie_width is {self.tie_width!r}: give the width of a tie in logits, from 0 (ties are not offered) to "
                f"{_MAX_TIE_WIDTH:g}"
            )
        object.__setattr__(self, "tie_width", float(self.tie_width))
        if self.residual is None:
            return
        if not (is_number(self.residual) and 0 <= self.residual <= MAX_RESIDUAL):
            raise InvalidParameter(
                f"residual is {self.residual!r}: give the standard deviation of residual utilities in logits, a number "
                f"from 0 to {MAX_RESIDUAL:g}",
                field="residual",
            )
        object.__setattr__(self, "residual", float(self.residual))

    def with_numbers(self, **numbers: float) -> Self:
        """Return a copy with parameters taken from a belief, which need no validation."""
        changed = copy.copy(self)
        for name, number in numbers.items():
            object.__setattr__(changed, name, float(number))
        return changed

    def _leaves_k_open(self) -> bool:
        """Return whether k, or the median of an unknown k, is None, or the constants of unknown kinds replace it."""
        kinds = self.noise_prior
        if kinds is not None and kinds.k is not None:
            return self.k == 1.0
        return self.k is None or (self.k_prior is not None and self.k_prior.median is None)

    @property
    def noise_kind(self) -> NoiseKind:
        """Return the record of the noise kind; raise `InvalidParameter` if it is unknown."""
        if isinstance(self.noise, Unknown):
            raise InvalidParameter(
                f"the noise kind of {type(self).__name__} is unknown: give one of {', '.join(NOISES)}"
            )
        return noise_kind(self.noise)

    @property
    def constant(self) -> float:
        """Return the noise constant times the reliability; raise `InvalidParameter` if either is not set."""
        if isinstance(self.k, Unknown):
            raise InvalidParameter(f"k of {type(self).__name__} is unknown: give a number")
        if isinstance(self.reliability, Unknown):
            raise InvalidParameter(f"the reliability of {type(self).__name__} is unknown: give a number")
        if self.k is None:
            raise InvalidParameter(f"k of {type(self).__name__} is not set: give k, or let a Search choose it")
        return self.reliability * self.k

    @property
    def typical_k(self) -> float:
        """Return the noise constant or, if it is unknown, its prior median."""
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
        """Return the reliability or, if it is unknown, its prior median."""
        if not isinstance(self.reliability, Unknown):
            return self.reliability
        assert isinstance(self.reliability.prior, LogNormal)
        assert self.reliability.prior.median is not None
        return self.reliability.prior.median

    @property
    def residual_deviation(self) -> float:
        """Return the standard deviation of residual utilities; 0 if it is not set."""
        return 0.0 if self.residual is None else self.residual

    @property
    def curvature_prior(self) -> Normal | None:
        """Return the prior of an unknown curvature; None if it is known."""
        prior = self.curvature.prior if isinstance(self.curvature, Unknown) else None
        return prior if isinstance(prior, Normal) else None

    @property
    def unknown(self) -> bool:
        """Return whether k, the reliability, the lapse rate or the noise kind is to be inferred."""
        return any(isinstance(part, Unknown) for part in (self.k, self.reliability, self.lapse, self.noise))

    @property
    def is_log_concave(self) -> bool:
        """Return whether the posterior is log-concave: k, reliability and noise kind are known, and nobody lapses."""
        return not self.unknown and self.lapse == 0.0

    @property
    def lapse_rate(self) -> float:
        """Return the lapse rate; raise `InvalidParameter` if it is unknown."""
        if isinstance(self.lapse, Unknown):
            raise InvalidParameter(f"the lapse rate of {type(self).__name__} is unknown: give a number")
        return self.lapse

    @property
    def lapse_prior(self) -> Beta | None:
        """Return the prior of an unknown lapse rate; None if it is known."""
        prior = self.lapse.prior if isinstance(self.lapse, Unknown) else None
        return prior if isinstance(prior, Beta) else None

    @property
    def k_prior(self) -> LogNormal | None:
        """Return the prior of an unknown k; None if k is known."""
        prior = self.k.prior if isinstance(self.k, Unknown) else None
        return prior if isinstance(prior, LogNormal) else None

    @property
    def factor_prior(self) -> LogNormal | None:
        """Return the prior of k or of the reliability, whichever is unknown; None if both are known."""
        prior = self.reliability.prior if isinstance(self.reliability, Unknown) else self.k_prior
        return prior if isinstance(prior, LogNormal) else None

    @property
    def noise_prior(self) -> NoiseKinds | None:
        """Return the prior of an unknown noise kind; None if the kind is known."""
        prior = self.noise.prior if isinstance(self.noise, Unknown) else None
        return prior if isinstance(prior, NoiseKinds) else None

    @property
    def kinds(self) -> list[tuple[Self, float]]:
        """Return a response for each possible noise kind, with its prior probability."""
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
        """Return the response with a default for a missing k, or for a missing prior median of an unknown k.

        ``spread`` is the standard deviation of the prior along a coordinate. A plane at that distance from the user
        then has the logit `typical`, so that 88 % of the answers are correct. For constant noise this holds for points
        two standard deviations apart; for decaying noise, for the most informative |a| up to that length, at most 1.
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
                f"{kind.name} noise, {kind.formula}, depends on the scale of the items, and |a| is about {normal:.3g} "
                f"here: scale the items, for example with items.scaled(), or give k"
            )
        k = float(self.typical / (kind.steepness(kind.steepest_length(0.0, normal)) * spread))
        if unknown is None:
            return dataclasses.replace(self, k=k)
        # Inferred lapses allow for people who click at random, so the prior must not assume a reliable person.
        prior = LogNormal.around(k, unknown.spread) if self.lapse_prior is None else LogNormal(k, unknown.spread)
        return dataclasses.replace(self, k=Unknown(prior))

    def _with_kinds(self, kinds: NoiseKinds, spread: float) -> Self:
        """Return the response with the default k of every noise kind; an unknown k becomes an unknown reliability."""
        constants = []
        for noise, weight in zip(PUBLISHED_NOISES, kinds.weights, strict=True):
            known = dataclasses.replace(self, noise=noise, k=None, lapse=0.0, reliability=1.0)
            constants.append(known.for_spread(spread).constant if weight > 0.0 else 1.0)
        reliability, unknown = self.reliability, self.k_prior
        if unknown is not None:
            around = LogNormal.around(1.0, unknown.spread)
            reliability = Unknown(around if self.lapse_prior is None else LogNormal(1.0, unknown.spread))
        # In one step, because intermediate states would be invalid.
        unknown_kind = Unknown(dataclasses.replace(kinds, k=tuple(constants)))
        return dataclasses.replace(self, k=1.0, noise=unknown_kind, reliability=reliability)
