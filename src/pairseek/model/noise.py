"""Noise kinds: the dependence of the noise constant k_pq on the distance of a pair.

A new kind is a record in `NOISE_KINDS`, its name in `Noise`, and its code with a branch in
`pairseek.numerics.pair_kernels.pair_constant`; branch and bound needs its rule in
`pairseek.pairs.sources.branch_and_bound.bounds` as well.
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
"""The kinds of the paper, K1 to K3, over which an unknown kind is averaged: saved priors have one weight for each."""


@dataclass(frozen=True)
class NoiseKind:
    """One dependence of k_pq on the length |a| of a pair's normal.

    Attributes
    ----------
    name
        The name in files, commands and HTTP.
    code
        The number by which compiled kernels know it.
    formula, summary
        k_pq as a formula, and its meaning in words.
    pair_constant
        The function (k, (m,) lengths) -> (m,) k_pq; where a length is 0, k under constant noise, and else 0.
    steepest_length
        The bound rule: the length from low to high at which k_pq |a| is largest, as a function (low, high).
    steepness
        k_pq |a| / k at a length.
    farthest
        Longest |a| for which there is a default k: beyond, answers are random for any k that suits shorter ones.
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
    """Return the noise kind with this name; raise `InvalidParameter` for an unknown one."""
    kind = NOISE_KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidParameter(f"unknown noise {name!r}: use one of {', '.join(NOISES)}", field="noise")
    return kind
