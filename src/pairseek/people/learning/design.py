"""Balanced pairs for the first people of a study, before anything is learned.

The pairs form an endless sequence, and each person is asked a section of it. The sequence consists of rounds. A round
is a cycle through all items in random order, whose n pairs of neighbours connect all items and contain each item twice.
Pairs at even positions come first, then pairs at odd positions, so every item occurs once in each half of a round.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import numpy as np

from pairseek.core.types import IntArray

Pair = frozenset[int]
# Maximum number of rounds searched for a pair that may be asked.
_MAX_ROUNDS = 200
# Separates the random order of rounds from other random numbers with the same seed.
_ROUNDS_STREAM = 0xBA1A


def balanced_pair(
    n: int,
    seed: int,
    start: int,
    asked: Collection[Pair],
    allowed: Collection[Pair] | None = None,
) -> tuple[int, int] | None:
    """Return the rows of a person's next pair; None if they have been asked every pair.

    The function is pure: equal arguments give equal pairs.

    Parameters
    ----------
    n
        Number of items.
    seed
        Seed of the sequence, shared by all people.
    start
        Position in the sequence where the person's section starts: the number of pairs asked of all people before.
    asked
        Pairs that the person has been asked; they are not repeated.
    allowed
        Pairs that may be asked. None: all pairs.
    """
    possible = n * (n - 1) // 2 if allowed is None else len(allowed)
    if possible <= sum(1 for pair in asked if allowed is None or pair in allowed):
        return None
    first_round, position = divmod(start, n)
    for number in range(first_round, first_round + _MAX_ROUNDS):
        for row in _round(n, seed, number)[position:]:
            pair = (int(row[0]), int(row[1]))
            if frozenset(pair) not in asked and (allowed is None or frozenset(pair) in allowed):
                return pair
        position = 0
    return None


@lru_cache(maxsize=64)
def _round(n: int, seed: int, number: int) -> IntArray:
    """Return the (n, 2) pairs of a round in their order."""
    order = np.random.default_rng(np.random.SeedSequence([seed, number, _ROUNDS_STREAM])).permutation(n)
    pairs = np.stack([order, np.roll(order, -1)], axis=1)
    return np.concatenate([pairs[::2], pairs[1::2]])
