"""Noise kinds: how the noise constant k_pq depends on the distance of a pair.

A new kind needs a record in `NOISE_KINDS`, a name in `Noise`, a code with a branch in
`pairseek.numerics.pair_kernels.pair_constant`, and for branch and bound a rule in
`pairseek.pairs.sources.branch_and_bound.bounds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.errors import InvalidParameter
from pairseek.numerics.pair_kernels import CONSTANT, DECAYING, NORMALIZED

Noise: TypeAlias = Literal["constant", "normalized", "decaying"]
NOISES: tuple[Noise, ...] = get_args(Noise)
PUBLISHED_NOISES: tuple[Noise, ...] = ("constant", "normalized", "decaying")
"""The kinds of the paper, K1 to K3: an unknown kind averages over these, and its prior has one weight for each."""


@dataclass(frozen=True)
class NoiseKind:
    """Dependence of k_pq on the length |a| of a pair's normal.

    Attributes
    ----------
    name
        Name in files, commands and HTTP.
    code
        Code in compiled kernels.
    formula, summary
        k_pq as a formula, and its meaning in words.
    pair_constant
        Function (k, (m,) lengths) -> (m,) k_pq; at length 0, k for constant noise and otherwise 0.
    steepest_length
        Function (low, high) for bounds: the length between low and high that maximizes k_pq |a|.
    steepness
        k_pq |a| / k at a length.
    farthest
        Longest |a| for which a default k exists: beyond it, any k that suits shorter pairs makes answers random.
    """

    name: Noise
    code: int
    formula: str
    summary: str
    pair_constant: Callable[[float, FloatArray], FloatArray]
    steepest_length: Callable[[float, float], float]
    steepness: Callable[[float], float]
    farthest: float = math.inf


def _constant(k: float, length: FloatArray) -> FloatArray:
    return np.full(length.shape, float(k))


def _normalized(k: float, length: FloatArray) -> FloatArray:
    return np.divide(k, length, out=np.zeros_like(length), where=length > 0)


def _decaying(k: float, length: FloatArray) -> FloatArray:
    return np.where(length > 0, k * np.exp(-length), 0.0)


def _longest(_: float, high: float) -> float:
    return high


def _nearest_to_one(low: float, high: float) -> float:
    return min(max(low, 1.0), high)


NOISE_KINDS: dict[str, NoiseKind] = {
    kind.name: kind
    for kind in (
        NoiseKind("constant", CONSTANT, "k", "far apart is easy", _constant, _longest, float),
        NoiseKind(
            "normalized",
            NORMALIZED,
            "k/|a|",
            "the logit is k times the distance of w from the plane between the two",
            _normalized,
            _longest,
            lambda _: 1.0,
        ),
        NoiseKind(
            "decaying",
            DECAYING,
            "k exp(-|a|)",
            "far apart is confusing",
            _decaying,
            _nearest_to_one,
            lambda length: float(length * np.exp(-length)),
            farthest=100.0,
        ),
    )
}


def noise_kind(name: object) -> NoiseKind:
    """Return the noise kind with this name; raise `InvalidParameter` if it is unknown."""
    kind = NOISE_KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidParameter(f"unknown noise {name!r}: use one of {', '.join(NOISES)}", field="noise")
    return kind
