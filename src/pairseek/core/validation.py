"""Checks of single arguments, each with what was received and what to do."""

from __future__ import annotations

import secrets

import numpy as np

from pairseek.errors import InvalidParameter


def is_number(value: object) -> bool:
    """Whether a value is a real number; True and False are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def whole(value: object, what: str, least: int = 1) -> int:
    """A whole number of at least so many, as a plain int."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidParameter(f"{what} is {value!r}: give a whole number, at least {least}")
    return int(value)


def seed_of(rng: int | np.random.Generator | None) -> int:
    """The seed itself, one drawn from a generator, or a fresh one."""
    if rng is None:
        return secrets.randbits(63)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise InvalidParameter(f"rng is {rng!r}: give a whole number, at least 0, or a numpy Generator")
    return int(rng)
