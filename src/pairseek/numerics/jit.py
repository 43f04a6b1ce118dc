"""Compilation settings of all kernels, and scalar functions that several kernels share.

Kernels take contiguous float64 arrays, write into output arrays, and process the rows from ``start`` to ``stop``, so
that `parallel.for_ranges` can distribute them over threads. A link is 0 (logistic) or 1 (probit).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numba import njit

from pairseek.core.types import FloatArray
from pairseek.numerics.constants import HALF_LOG_TWO_PI
from pairseek.numerics.kernel_cache import cached

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A", bound=np.ndarray[Any, Any])
AnswerArrays: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
"""Slopes (m, d), offsets (m,) and decided (m,): see `pairseek.posteriors.factors.Factors`."""
LinkModel: TypeAlias = tuple[float, float, float]
"""Floor, scale and tie width, as in `log_answer`."""
PriorArrays: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Lower and upper corners (d,) of a box, and centre (d,) and precision (d, d) of the Gaussian inside it."""
SeedArray: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

LOGISTIC = 0
PROBIT = 1

# Reassociation lets sums and products over answers or samples be vectorized. NaN and infinity keep their meaning.
_FASTMATH = {"reassoc", "contract", "arcp", "nsz"}
# Python's check for division by zero would prevent vectorization of loops that divide.
_KERNEL_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": _FASTMATH,
    "error_model": "numpy",
    # Nothing calls the C entry points, which take 5 % of the compilation time.
    "no_cfunc_wrapper": True,
}


def kernel(function: F) -> F:
    """Compile a function that releases the GIL, and cache it on disk."""
    return cast(F, cached(njit(**_KERNEL_OPTIONS)(function)))


# A function that is not inlined exists twice: in its own library and in the calling kernel's, optimized differently.
# Which copy a kernel calls depends on whether it was compiled in this process or loaded from disk, and the last bits of
# its results would depend on it too.
_INLINE_OPTIONS: dict[str, Any] = {**_KERNEL_OPTIONS, "forceinline": True}


def primitive(function: F) -> F:
    """Compile a small function called from kernels and from Python."""
    return cast(F, cached(njit(**_INLINE_OPTIONS)(function)))


def inner(function: F) -> F:
    """Compile a function that only kernels call, without disk cache and Python wrapper, which saves time."""
    return cast(F, njit(**{**_INLINE_OPTIONS, "no_cpython_wrapper": True})(function))


def read_only(array: A) -> A:
    """Return a read-only view, so that kernels are compiled for one array type only."""
    view = array.view()
    view.flags.writeable = False
    return view


@primitive
def exp_minus(x: float) -> float:
    """Return e^-x for x >= 0, to 1e-11 relative where it exceeds 1e-15, and 1e-16 beyond.

    Uses only additions and multiplications, so that loops over it vectorize: without a vector mathematics library,
    numba calls `exp` for one number at a time. Computes (e^(-x/512))^512 with a Taylor series of order 7.
    """
    y = -min(x, 36.0) / 512.0
    p = 1.0 + y * (1.0 + y * (0.5 + y * (1 / 6 + y * (1 / 24 + y * (1 / 120 + y * (1 / 720 + y / 5040))))))
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    return p * p


@primitive
def log_ndtr(z: float) -> float:
    """Return log Φ(z), by erfc or, where erfc underflows, by its asymptotic series."""
    if z > -30.0:
        return math.log(0.5 * math.erfc(-z / math.sqrt(2.0)))
    q = 1.0 / (z * z)
    return -0.5 * z * z - math.log(-z) - HALF_LOG_TWO_PI + math.log1p(q * (-1.0 + q * (3.0 - 15.0 * q)))


@primitive
def log_tie(z: float, width: float, link: int) -> float:
    """Return log(f(z + width) - f(z - width)), or log f'(z) where the width is 0."""
    if link == LOGISTIC:
        # f(z + t) - f(z - t) = f(z + t) f(t - z) (1 - e^(-2t)) avoids cancellation.
        plus, minus = width + z, width - z
        total = min(plus, 0.0) - math.log1p(math.exp(-abs(plus))) + min(minus, 0.0) - math.log1p(math.exp(-abs(minus)))
        return total + math.log(-math.expm1(-2.0 * width)) if width > 0.0 else total
    negative = -abs(z)
    if width == 0.0:
        return -0.5 * negative * negative - HALF_LOG_TWO_PI
    upper = log_ndtr(negative + width)
    return upper + math.log(-math.expm1(log_ndtr(negative - width) - upper))


@primitive
def log_answer(z: float, decided: float, link: int, model: LinkModel) -> float:
    """Return the log-likelihood of an answer with logit z, or of a tie.

    ``model`` is (floor, scale, width). An answer has probability floor + scale f(z), where the tie width is already
    subtracted from z; a tie has probability floor + scale (f(z + width) - f(z - width)). With width 0, ties are not
    offered and cannot be lapses, so their likelihood is the density scale f'(z).
    """
    floor, scale, width = model
    if decided == 0.0:
        value = log_tie(z, width, link)
        if floor == 0.0 or width == 0.0:
            return value + math.log(scale)
        return math.log(floor + scale * math.exp(value))
    value = min(z, 0.0) - math.log1p(math.exp(-abs(z))) if link == LOGISTIC else log_ndtr(z)
    return value if floor == 0.0 else math.log(floor + scale * math.exp(value))


@primitive
def log_slope(z: float, decided: float, link: int, width: float) -> float:
    """Return the derivative of `log_answer` with respect to z, without lapses."""
    if link == LOGISTIC:
        if decided > 0.0:
            e = math.exp(-abs(z))
            return (e if z > 0.0 else 1.0) / (1.0 + e)
        plus, minus = math.exp(-abs(z + width)), math.exp(-abs(z - width))
        below = (plus if z + width > 0.0 else 1.0) / (1.0 + plus)
        return below - (1.0 if z - width > 0.0 else minus) / (1.0 + minus)
    if decided > 0.0:
        return math.exp(-0.5 * z * z - HALF_LOG_TWO_PI - log_ndtr(z))
    if width == 0.0:
        return -z
    negative = -abs(z)
    log_probability = log_tie(negative, width, link)
    slope = math.exp(-0.5 * (negative + width) ** 2 - HALF_LOG_TWO_PI - log_probability)
    slope -= math.exp(-0.5 * (negative - width) ** 2 - HALF_LOG_TWO_PI - log_probability)
    return slope if z < 0.0 else -slope


@primitive
def next_uniform(state: SeedArray) -> float:
    """Return the next number in (0, 1) of a splitmix64 stream; advances ``state``, a (1,) uint64 array."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (float(z >> np.uint64(11)) + 0.5) * (1.0 / 9007199254740992.0)
