"""Measures of one person after a number of answers: predictions of withheld pairs, and recommended items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.experiments.comparison.person import Person
from pairseek.experiments.comparison.picks import top_mean

BIN_COUNT = 10
SCORES = ("accuracy", "log_loss", "regret", "top_3")
"""Share of withheld pairs whose likelier outcome came true; log loss in nats; value of the person's best item less that
of the item recommended first; mean value of the three items recommended first."""
LOWER_IS_BETTER = ("log_loss", "regret")
_BIN_COLUMNS = tuple(f"{quantity}_{bin}" for bin in range(BIN_COUNT) for quantity in ("pairs", "right", "chance"))
COLUMNS = (*SCORES, *_BIN_COLUMNS)
"""Columns of an outcome: the scores; number of pairs, correct predictions and sum of probabilities in each of ten bins
of the probability of the likelier outcome, 0.5 to 0.55 and so on."""
# Probabilities are clipped here, so that one wrong prediction does not dominate the mean log loss.
MIN_PROBABILITY = 1e-4


def withheld_pairs(person: Person) -> tuple[IntArray, FloatArray]:
    """Return the (m, 2) withheld pairs, and whether the first item of each won.

    Pairs and sides are in the order of the items, which says nothing about who won.
    """
    rows = np.stack([person.winner[person.withheld], person.loser[person.withheld]], axis=1)
    pairs = np.sort(rows, axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return pairs[order], (rows[:, 0] == pairs[:, 0])[order].astype(np.float64)


def prediction_measures(
    probability: FloatArray, won: FloatArray, *, bins: int = BIN_COUNT
) -> tuple[float, float, FloatArray]:
    """Return accuracy, log loss and the (bins, 3) sums of the bins.

    Parameters
    ----------
    probability
        (m,) probabilities that the first item wins.
    won
        (m,) whether it won.
    bins
        Number of bins of the probability of the likelier outcome.
    """
    true = np.where(won > 0.5, probability, 1.0 - probability)
    right = hit_values(true)
    sure = np.maximum(probability, 1.0 - probability)
    positions = np.minimum(((sure - 0.5) * 2 * bins).astype(np.int64), bins - 1)
    sums = [np.bincount(positions, weights, bins) for weights in (None, right, sure)]
    return (
        float(right.mean()),
        -float(np.log(np.maximum(true, MIN_PROBABILITY)).mean()),
        np.stack(sums, axis=1).astype(float),
    )


def hit_values(probability: FloatArray) -> FloatArray:
    """Return 1 where the outcome with this probability was the likelier one, 0 where not, 1/2 where both were equal."""
    return np.where(probability == 0.5, 0.5, (probability > 0.5).astype(np.float64))


def shares_won(n: int, probability: FloatArray) -> FloatArray:
    """Return the (n,) mean probabilities of winning, given each pair's probability, in the order of `all_pairs`."""
    first, second = all_pairs(n).T
    return np.asarray(np.bincount(first, probability, n) + np.bincount(second, 1.0 - probability, n)) / (n - 1)


def all_pairs(n: int) -> IntArray:
    """Return the (n (n - 1)/2, 2) pairs of n items."""
    return np.stack(np.triu_indices(n, 1), axis=1)


def pick_scores(value: FloatArray, ranking: Sequence[int] | FloatArray) -> tuple[float, float]:
    """Return the regret of the first item and the mean value of the first three; NaN without values.

    Parameters
    ----------
    value
        (n,) values of the items for the person; NaN where unknown. Items without one are left out of the list.
    ranking
        Rows of items, the best first, or an array of (n,) scores, whose ties count by their mean.
    """
    known = np.isfinite(value)
    if not known.any():
        return (float("nan"),) * 2
    if isinstance(ranking, np.ndarray):
        score = ranking
    else:
        rows = [row for row in ranking if known[row]]
        score = np.full(len(value), -np.inf)
        score[rows] = -np.arange(len(rows), dtype=np.float64)
    return float(np.max(value[known])) - top_mean(score, value, 1), top_mean(score, value, 3)
