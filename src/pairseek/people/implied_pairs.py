"""Pairs implied by rankings and ratings, weighted to account for their dependence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from pairseek.core.types import FloatArray, IntArray, ItemId


class ImpliedPairs(NamedTuple):
    """Pairs implied by the levels of items, grouped by person; the columns are as in `Choices`.

    Attributes
    ----------
    person, winner, loser
        (m,) rows of the people and of the items.
    weight
        (m,) weights of the pairs.
    tied
        (t, 3) rows (person, item, item) of pairs of items with equal levels.
    """

    person: IntArray
    winner: IntArray
    loser: IntArray
    weight: FloatArray
    tied: IntArray


def implied_pairs(
    levels: Iterable[Mapping[ItemId, float]], item_rows: Mapping[ItemId, int], max_pairs: int, rng: np.random.Generator
) -> ImpliedPairs:
    """Compare the items of each person by their levels; the higher level wins.

    Parameters
    ----------
    levels
        The level of each item, one mapping per person.
    item_rows
        Row of each item.
    max_pairs
        Approximate maximum number of pairs per person. A larger number is subsampled at random.
    rng
        Generator for the subsampling.
    """
    columns: list[tuple[IntArray, IntArray, IntArray, FloatArray]] = []
    ties: list[IntArray] = []
    for row, person_levels in enumerate(levels):
        items = np.array([item_rows[item] for item in person_levels], dtype=np.int64)
        values = np.array(list(person_levels.values()))
        n = len(items)
        if n * (n - 1) // 2 <= max_pairs:
            first, second = np.triu_indices(n, 1)
        else:
            keys = np.unique(np.sort(rng.integers(n, size=(max_pairs, 2)), axis=1) @ [n, 1])
            first, second = np.divmod(keys, n)
            first, second = first[first < second], second[first < second]
        weight = pair_weight(n, len(first))
        is_decided = values[first] != values[second]
        pairs = items[np.stack([first[~is_decided], second[~is_decided]], axis=1)]
        ties.append(np.insert(pairs, 0, row, axis=1))
        first, second = first[is_decided], second[is_decided]
        first_wins = values[first] > values[second]
        count = len(first)
        columns.append(
            (
                np.full(count, row, dtype=np.int64),
                items[np.where(first_wins, first, second)],
                items[np.where(first_wins, second, first)],
                np.full(count, weight),
            )
        )
    person, winner, loser, weights = (np.concatenate(part) for part in zip(*columns, strict=True))
    return ImpliedPairs(person, winner, loser, weights, np.concatenate(ties))


def pair_weight(n: int, pairs: int) -> float:
    """Return the weight of each pair, ties included, if `pairs` pairs are drawn from a ranking of n items.

    A ranking has independent noise per item, not per pair. Under the Gumbel noise that makes paired choices logistic,
    the ranking has the Plackett-Luce likelihood: a first choice among n, then one among the remaining n - 1, and so on.
    At equal utilities the choice among k random items has the Fisher information (k - 1)/(k(n - 1)) Σδδ'/n about the
    utilities, where the sum is over all pairs of items. The sum over k is (n - H)/(n - 1) Σδδ'/n with the harmonic
    number H = 1 + 1/2 + ... + 1/n. A paired choice has the information δδ'/4. The two agree if the n(n - 1)/2 pairs
    have the total weight 2(n - H), which is 1 for two items.
    """
    if not pairs:
        return 1.0
    return 2.0 * float(n - np.sum(1.0 / np.arange(1, n + 1))) / pairs
