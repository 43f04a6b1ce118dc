"""Expected precision of a group ranking, from the numbers of items, people and answers.

The figures come from simulated studies of items without coordinates, whose pairs were balanced. Half of the variance of
the utilities was shared by everybody, and half was each person's own. `benchmarks/ranking_precision.py` made the table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.special import expit, logit

from pairseek.core.types import FloatArray
from pairseek.core.validation import whole
from pairseek.people.ranking.ranking import INTERVAL_PROBABILITY

_TABLE = Path(__file__).with_suffix(".json")
# Above this width, the answers do not tell a typical item from half of the others.
_MAX_WIDTH = 0.5
# Keeps logits of shares finite.
_MARGIN = 0.002


@dataclass(frozen=True)
class RankingPrecision:
    """Expected precision of the ranking from a study of one size.

    Attributes
    ----------
    items, people, answers
        Numbers of items, people, and answers per person.
    width
        Expected width of the 90 % interval of a rank, as a fraction of all ranks.
    best_found
        Probability that the item ranked first is the best; at most this for more items than were simulated.
    is_bound
        Whether `best_found` is only an upper bound.
    """

    items: int
    people: int
    answers: int
    width: float
    best_found: float
    is_bound: bool

    @property
    def ranks(self) -> float:
        """Number of ranks that the interval spans, at least 1."""
        return 1.0 + self.width * (self.items - 1)

    @property
    def tells_apart(self) -> bool:
        """Whether the answers tell a typical item from at least half of the others."""
        return self.width <= _MAX_WIDTH


def ranking_precision(items: int, people: int, answers: int) -> RankingPrecision:
    """Interpolate the precision of a ranking.

    More people or answers than were simulated count as the largest simulated number, so the result is cautious. More
    items count as that number with as many answers about each.

    Parameters
    ----------
    items, people, answers
        Numbers of items (at least 2), people (at least 3), and answers per person (at least 1).

    Examples
    --------
    >>> from pairseek.people.ranking.precision import ranking_precision
    >>> ranking_precision(3000, 100, 20).tells_apart, ranking_precision(12, 100, 20).tells_apart
    (False, True)
    """
    for name, value, least in (("items", items, 2), ("people", people, 3), ("answers", answers, 1)):
        whole(value, name, least)
    axes, values = _table()
    largest = [round(float(np.exp(axis[-1]))) for axis in axes]
    about_each = answers * min(1.0, largest[0] / items)
    logs = [np.log(min(value, limit)) for value, limit in zip((items, people, about_each), largest, strict=True)]
    clipped = [max(value, axis[0]) for value, axis in zip(logs, axes, strict=True)]
    width, best_found = expit(RegularGridInterpolator(axes, values)(clipped)[0])
    # With fewer answers than were simulated, part of what they tell is missing.
    answered_share = min(1.0, about_each / float(np.exp(axes[2][0])))
    width = answered_share * width + (1.0 - answered_share) * INTERVAL_PROBABILITY
    best_found = answered_share * best_found + (1.0 - answered_share) / items
    return RankingPrecision(
        items, people, answers, float(width), float(max(best_found, 1.0 / items)), items > largest[0]
    )


@cache
def _table() -> tuple[tuple[FloatArray, FloatArray, FloatArray], FloatArray]:
    """Return the logarithms of items, people and answers, and the logits of width and chance at each of them."""
    record = json.loads(_TABLE.read_text(encoding="utf-8"))
    items, people, answers = (np.log(np.array(record[name], dtype=float)) for name in ("items", "people", "answers"))
    shares = np.stack([record["width"], record["leading"]], axis=-1)
    return (items, people, answers), logit(np.clip(shares, _MARGIN, 1.0 - _MARGIN))
