"""Measures of recommended and shown items: regret, value of the top items, fraction of liked items.

They use the value of each item for the person: the rating or, if the person compared every pair of their items, the
fraction of its comparisons that the item won. Other choices give no values, and the measures are NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pairseek.core.types import BoolArray, FloatArray
from pairseek.people.population import Choices

TOP_LIST_LENGTHS = (3, 5)
"""Lengths of the lists whose mean value is measured."""


def values_of(choices: Choices, row: int) -> FloatArray:
    """Return the (n,) values of the items for the person at a row of the choices; NaN for items without one."""
    n = len(choices.ids)
    out = np.full(n, np.nan)
    if choices.ratings is not None:
        is_own = choices.ratings.person == row
        out[choices.ratings.item[is_own]] = choices.ratings.value[is_own]
        return out
    span = slice(*choices.starts[[row, row + 1]])
    ends = slice(*np.searchsorted(choices.tied[:, 0], [row, row + 1]))
    # Row and column are the items of a comparison; a tie is half a win for each.
    wins = np.zeros((n, n))
    np.add.at(wins, (choices.winner[span], choices.loser[span]), 1.0)
    for a, b in ((1, 2), (2, 1)):
        np.add.at(wins, (choices.tied[ends, a], choices.tied[ends, b]), 0.5)
    compared = wins + wins.T
    known = np.flatnonzero(compared.any(axis=1))
    if len(known) and (np.count_nonzero(compared[np.ix_(known, known)]) == len(known) * (len(known) - 1)):
        share = np.divide(wins, compared, out=np.zeros_like(wins), where=compared > 0)
        out[known] = share[known].sum(axis=1) / (len(known) - 1)
    return out


def liked_items(value: FloatArray) -> BoolArray:
    """Return a mask of liked items: those whose value is above the mean of the person's values."""
    known = np.isfinite(value)
    return np.asarray(known & (value > np.mean(value[known]))) if known.any() else known


def top_mean(utility: FloatArray, value: FloatArray, count: int) -> float:
    """Return the mean value of the `count` items of highest utility; NaN if fewer items have a value.

    Items of equal utility are averaged over their orders, and items without a value are ignored.
    """
    known = np.isfinite(value)
    utility, value = utility[known], value[known]
    if len(value) < count:
        return float("nan")
    threshold = np.partition(utility, -count)[-count]
    above, is_tied = utility > threshold, utility == threshold
    return float((value[above].sum() + (count - above.sum()) * value[is_tied].mean()) / count)


def pick_measures(utility: FloatArray, value: FloatArray, shown: Sequence[int]) -> tuple[float, ...]:
    """Return the measures that `PICK_MEASURES` names.

    Parameters
    ----------
    utility
        (n,) expected utilities, by which items are recommended.
    value
        (n,) values of the items for the person.
    shown
        Rows of the items of all questions, with repetitions.
    """
    known = np.isfinite(value)
    best = float(np.max(value[known])) if known.any() else float("nan")
    regret = best - top_mean(utility, value, 1)
    rated_rows = [row for row in shown if known[row]]
    liked = float(np.mean(liked_items(value)[rated_rows])) if rated_rows else float("nan")
    return (regret, *(top_mean(utility, value, count) for count in TOP_LIST_LENGTHS), liked)
