"""Unknown parameters of a response model, and their priors.

k and the reliability are positive scales, with log-normal priors. The lapse rate is a probability, with a Beta
prior. An unknown noise kind has a weight for each kind. A curvature can have either sign, so its prior is normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self, TypeAlias

import numpy as np
from scipy.special import betaincinv

from pairseek.core.limits import Limit
from pairseek.core.types import FloatArray
from pairseek.core.validation import is_number
from pairseek.errors import InvalidParameter

# Samplers are not tested for wider or more extreme priors.
_MAX_SPREAD = 5.0
_MAX_BETA_PARAMETER = 1e4
# Ratio of the median to the guess. Underestimating k costs a search more answers than overestimating it. With this
# ratio the cost is about equal whether a person's k is a quarter of the guess or four times the guess.
_MEDIAN_PER_GUESS = 2.5
# Default spread of log k if the lapse rate is unknown too: people who answer nearly at random must then be expected.
_SPREAD_WITH_LAPSES = 1.5
_MAX_CURVATURE = 10.0
MIN_LAPSE = 1e-9
"""Sampled lapse rates are clipped to [MIN_LAPSE, 1 - MIN_LAPSE]."""


@dataclass(frozen=True)
class LogNormal:
    """Log-normal distribution, the prior of a noise constant k.

    Parameters
    ----------
    median
        Median of k, above 0. None: a search sets it to the default k for the scale of its prior or, if the lapse rate
        is known, to the median of ``LogNormal.around`` that k.
    spread
        Standard deviation of log k, above 0 and at most 5. With spread 1, k is within a factor of 2.7 of the median for
        two people in three, and within a factor of 7.1 for 19 in 20.

    Examples
    --------
    >>> import pairseek as ps
    >>> ps.Logistic(k=ps.Unknown(ps.LogNormal(median=2.0, spread=0.5))).k.prior.median
    2.0
    """

    median: Annotated[float | None, Limit(0, 1e12)] = None
    spread: Annotated[float, Limit(0, 5)] = 1.0
    name: ClassVar[str] = "log_normal"

    def __post_init__(self) -> None:
        if self.median is not None:
            if not (is_number(self.median) and 0 < self.median < 1e100):
                raise InvalidParameter(f"LogNormal(median={self.median!r}): give a number above 0", field="median")
            object.__setattr__(self, "median", float(self.median))
        if not (is_number(self.spread) and 0 < self.spread <= _MAX_SPREAD):
            raise InvalidParameter(
                f"LogNormal(spread={self.spread!r}): give the standard deviation of log k, above 0 and at most "
                f"{_MAX_SPREAD:g}; if k is known, give k itself",
                field="spread",
            )
        object.__setattr__(self, "spread", float(self.spread))

    @classmethod
    def around(cls, guess: float, spread: float = 1.0) -> Self:
        """Return the prior for an uncertain guess of k, with a median of 2.5 times the guess.

        The median is higher because underestimating k costs a search more answers than overestimating it.
        """
        if cls(guess, spread).median is None:
            raise InvalidParameter("LogNormal.around(None): give a guess above 0, or LogNormal() for the default")
        return cls(_MEDIAN_PER_GUESS * guess, spread)


@dataclass(frozen=True)
class Beta:
    """Beta distribution mixed with people who answer at random, the prior of a lapse rate.

    Parameters
    ----------
    a
        Above 0: as if `a` lapses had been seen in a + b answers. The mean is a/(a + b).
    b
        Above 0: see `a`.
    random
        Prior probability that a person always answers at random (lapse rate 1), from 0 to below 1.

    Examples
    --------
    >>> import pairseek as ps
    >>> ps.Logistic(lapse=ps.Unknown(ps.Beta(a=1.0, b=19.0))).lapse.prior.b
    19.0
    """

    a: Annotated[float, Limit(1e-4, 1e4)] = 1.0
    b: Annotated[float, Limit(1e-4, 1e4)] = 9.0
    random: Annotated[float, Limit(0, 1)] = 0.1
    name: ClassVar[str] = "beta"

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            value = getattr(self, name)
            if not (is_number(value) and 1 / _MAX_BETA_PARAMETER <= value <= _MAX_BETA_PARAMETER):
                raise InvalidParameter(
                    f"Beta({name}={value!r}): give a number above 0 (from {1 / _MAX_BETA_PARAMETER:g} "
                    f"to {_MAX_BETA_PARAMETER:g})",
                    field=name,
                )
            object.__setattr__(self, name, float(value))
        if not (is_number(self.random) and 0 <= self.random < 1):
            raise InvalidParameter(
                f"Beta(random={self.random!r}): give the fraction of people who answer at random, from 0 to below 1"
            )
        object.__setattr__(self, "random", float(self.random))

    def quantiles(self, uniform: FloatArray) -> FloatArray:
        """Return quantiles of the lapse rate at levels in (0, 1), for people who do not always answer at random."""
        return np.asarray(np.clip(betaincinv(self.a, self.b, uniform), MIN_LAPSE, 1 - MIN_LAPSE))


@dataclass(frozen=True)
class Normal:
    """Normal distribution, the prior of the curvature of a utility.

    Parameters
    ----------
    mean
        Mean; 1 is the curvature of the paper's model, and 0 means linear utility.
    deviation
        Standard deviation, above 0.

    Examples
    --------
    >>> import pairseek as ps
    >>> response = ps.Logistic(1.0, "constant", curvature=ps.Unknown(ps.Normal(1.0, 0.5)))
    >>> search = ps.Search(ps.Items([[0.0], [1.0], [2.0]]), response=response, rng=7)
    >>> search.modelled_items.d
    2
    """

    mean: Annotated[float, Limit(-10, 10)] = 0.0
    deviation: Annotated[float, Limit(0, 10)] = 0.8
    name: ClassVar[str] = "normal"

    def __post_init__(self) -> None:
        if not (is_number(self.mean) and abs(self.mean) <= _MAX_CURVATURE):
            raise InvalidParameter(
                f"Normal(mean={self.mean!r}): give a number from {-_MAX_CURVATURE:g} to {_MAX_CURVATURE:g}",
                field="mean",
            )
        if not (is_number(self.deviation) and 0 < self.deviation <= _MAX_CURVATURE):
            raise InvalidParameter(
                f"Normal(deviation={self.deviation!r}): give a standard deviation above 0 and at most "
                f"{_MAX_CURVATURE:g}; if the curvature is known, give it itself",
                field="deviation",
            )
        object.__setattr__(self, "mean", float(self.mean))
        object.__setattr__(self, "deviation", float(self.deviation))


@dataclass(frozen=True)
class NoiseKinds:
    """Prior of an unknown noise kind.

    Parameters
    ----------
    weights
        Relative weights of constant, normalized and decaying noise, at least 0 and not all 0.
    k
        Noise constant of each kind. None: a search sets each to the default for the kind and the scale of its prior.

    Examples
    --------
    >>> import pairseek as ps
    >>> response = ps.Logistic(k=ps.Unknown(), noise=ps.Unknown(ps.NoiseKinds()))
    >>> search = ps.Search(ps.Items([[0.0], [1.0], [2.0]]), response=response, rng=7)
    >>> search.ask().left in (0, 1, 2)
    True
    """

    weights: Annotated[tuple[float, ...], Limit(0, 1e12)] = (1.0, 1.0, 1.0)
    k: Annotated[tuple[float, ...] | None, Limit(0, 1e12)] = None
    name: ClassVar[str] = "noise_kinds"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _triple(self.weights, "weights"))
        if sum(self.weights) == 0.0:
            raise InvalidParameter(f"NoiseKinds(weights={self.weights!r}): give at least one weight above 0")
        if self.k is not None:
            object.__setattr__(self, "k", _triple(self.k, "k"))


def _triple(values: object, name: str) -> tuple[float, ...]:
    numbers = tuple(values) if isinstance(values, tuple | list) else ()
    if len(numbers) != 3 or not all(is_number(x) and 0 <= x < 1e100 for x in numbers):
        raise InvalidParameter(
            f"NoiseKinds({name}={values!r}): give three numbers of at least 0, for constant, normalized and "
            f"decaying noise"
        )
    return tuple(float(x) for x in numbers)


UnknownPrior: TypeAlias = LogNormal | Beta | NoiseKinds | Normal


@dataclass(frozen=True)
class Unknown:
    """Parameter of the response model to infer from the answers, together with the user point.

    Parameters
    ----------
    prior
        `LogNormal` for k or a reliability, `Beta` for a lapse rate, `NoiseKinds` for a noise kind, `Normal` for a
        curvature. None: the default of each.

    Examples
    --------
    >>> import pairseek as ps
    >>> response = ps.Logistic(k=ps.Unknown(), lapse=ps.Unknown())
    >>> search = ps.Search(ps.Items([[0.0], [1.0], [2.0]]), response=response, rng=7)
    >>> search.estimate().reliability.word in ("consistent", "noisy", "random")
    True
    """

    prior: UnknownPrior | None = None
    name: ClassVar[str] = "unknown"

    def __post_init__(self) -> None:
        if self.prior is not None and not isinstance(self.prior, LogNormal | Beta | NoiseKinds | Normal):
            raise InvalidParameter(
                f"the prior of an Unknown is {self.prior!r}: give LogNormal(median, spread) for k or a reliability, "
                f"Beta(a, b) for a lapse rate, NoiseKinds(weights) for a noise kind, Normal(mean, deviation) for a "
                f"curvature",
                field="prior",
            )


UNKNOWNS = {part.name: part for part in (Unknown, LogNormal, Beta, NoiseKinds, Normal)}


def checked_lapse(lapse: object) -> float | Unknown:
    """Return a validated lapse rate; an unknown one gets its default prior."""
    if isinstance(lapse, Unknown):
        prior = Beta() if lapse.prior is None else lapse.prior
        if not isinstance(prior, Beta):
            raise InvalidParameter(f"lapse is unknown with the prior {prior!r}: give a Beta(a, b)", field="lapse")
        return Unknown(prior)
    if not (is_number(lapse) and 0 <= float(lapse) < 1):  # type: ignore[arg-type]
        raise InvalidParameter(
            f"lapse is {lapse!r}: give the fraction of random answers, from 0 to below 1, or Unknown()",
            field="lapse",
        )
    return float(lapse)  # type: ignore[arg-type]


def checked_unknown_k(k: Unknown, *, lapses: bool = False) -> Unknown:
    """Return a validated unknown k with its default prior, which is wider if the lapse rate is unknown too."""
    prior = LogNormal(spread=_SPREAD_WITH_LAPSES if lapses else 1.0) if k.prior is None else k.prior
    if not isinstance(prior, LogNormal):
        raise InvalidParameter(f"k is unknown with the prior {prior!r}: give a LogNormal(median, spread)", field="k")
    return Unknown(prior)


def checked_reliability(reliability: object, *, lapses: bool = False) -> float | Unknown:
    """Return a validated reliability; the prior of an unknown one has median 1 by default."""
    if isinstance(reliability, Unknown):
        default = LogNormal(spread=_SPREAD_WITH_LAPSES if lapses else 1.0)
        prior = default if reliability.prior is None else reliability.prior
        if not isinstance(prior, LogNormal):
            raise InvalidParameter(f"reliability is unknown with the prior {prior!r}: give a LogNormal(median, spread)")
        return Unknown(LogNormal(1.0, prior.spread) if prior.median is None else prior)
    if not (is_number(reliability) and 0 <= float(reliability) < 1e100):  # type: ignore[arg-type]
        raise InvalidParameter(
            f"reliability is {reliability!r}: give a factor on the logits of at least 0 (1 for a typical person), or "
            f"Unknown()"
        )
    return float(reliability)  # type: ignore[arg-type]


def checked_noise(noise: Unknown) -> Unknown:
    """Return a validated unknown noise kind with its default prior."""
    prior = NoiseKinds() if noise.prior is None else noise.prior
    if not isinstance(prior, NoiseKinds):
        raise InvalidParameter(f"noise is unknown with the prior {prior!r}: give NoiseKinds(weights)")
    return Unknown(prior)


def checked_curvature(curvature: object) -> float | Unknown:
    """Return a validated curvature; an unknown one gets its default prior."""
    if isinstance(curvature, Unknown):
        prior = Normal() if curvature.prior is None else curvature.prior
        if not isinstance(prior, Normal):
            raise InvalidParameter(
                f"curvature is unknown with the prior {prior!r}: give a Normal(mean, deviation)", field="curvature"
            )
        return Unknown(prior)
    if not (is_number(curvature) and abs(float(curvature)) <= _MAX_CURVATURE):  # type: ignore[arg-type]
        raise InvalidParameter(
            f"curvature is {curvature!r}: give 1 (the paper's model), 0 (a linear utility), another number up to "
            f"{_MAX_CURVATURE:g}, or Unknown()",
            field="curvature",
        )
    return float(curvature)  # type: ignore[arg-type]
