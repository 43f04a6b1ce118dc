"""Group rankings: items by their mean utility over people, with uncertainty."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from scipy.special import expit

from pairseek.core import notebook
from pairseek.core.frames import Backend, frame_of
from pairseek.core.lazy import cached_property
from pairseek.core.text import plural, quoted
from pairseek.core.types import FloatArray, IntArray, ItemId
from pairseek.core.validation import seed_of
from pairseek.errors import InvalidItems
from pairseek.model.items import Items
from pairseek.people.choices import Choices
from pairseek.people.ranking.utilities import UtilityPosterior, mean_utilities

# Largest number of draws from the posterior.
_MAX_DRAWS = 2000
# Largest number of utilities in all draws; it limits the draws for large catalogues.
_MAX_DRAWN_UTILITIES = 8_000_000
# Largest number of draws from which choice shares are computed.
_MAX_SHARE_DRAWS = 200
# Largest number of items that represent a random opponent.
_MAX_OPPONENTS = 200
# Largest number of predicted choices behind the shares; it limits the draws for large catalogues.
_MAX_PREDICTED_CHOICES = 50_000_000
TIER_PROBABILITY = 0.95
"""A tier ends at the first item that is worse than its leader with at least this probability."""
INTERVAL_PROBABILITY = 0.9
"""Probability of the intervals."""


@dataclass(frozen=True, slots=True)
class RankedItem:
    """One row of a group ranking.

    Attributes
    ----------
    id, label
        Id of the item, and its label.
    place
        Place in the ranking, from 1.
    tier
        Number of the tier, from 1. The answers do not distinguish an item from the first item of its tier.
    share, share_low, share_high
        Probability that a random person chooses the item over another random item, and the ends of its 90 % interval.
    rank, rank_low, rank_high
        Expected rank, and the ends of its 90 % interval.
    top_1, top_3, top_5
        Probabilities that the item is the best, among the best three, and among the best five.
    answers
        Number of answers in which the item was shown.
    """

    id: ItemId
    label: str
    place: int
    tier: int
    share: float
    share_low: float
    share_high: float
    rank: float
    rank_low: int
    rank_high: int
    top_1: float
    top_3: float
    top_5: float
    answers: int


@dataclass(frozen=True, eq=False)
class Ranking:
    """Items ordered by their expected rank over a group of people.

    Attributes
    ----------
    items
        The rows, best first.
    people, answers
        Numbers of people and answers behind the ranking.
    trusted
        Expected number of people whose answers are informative rather than random.
    notes
        Sentences about the limits of the ranking.

    Examples
    --------
    >>> import pairseek as ps
    >>> pairs = [(f"guest {p}", "tea", item) for p in range(5) for item in ("coffee", "cocoa")]
    >>> ranking = ps.rank(ps.Choices.from_pairs(pairs))
    >>> ranking["tea"].place, len(ranking.ids)
    (1, 3)
    """

    items: tuple[RankedItem, ...]
    people: int
    answers: int
    trusted: float
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[RankedItem]:
        return iter(self.items)

    def __getitem__(self, item: ItemId) -> RankedItem:
        if item not in self._by_id:
            raise InvalidItems(f"there is no item {item!r} in the ranking; it has {quoted(self._by_id)}")
        return self._by_id[item]

    def __repr__(self) -> str:
        first = ", ".join(str(item.id) for item in self.items[:3])
        size = f"{plural(len(self), 'item')}, {self.people} people, {plural(self.answers, 'answer')}"
        return f"Ranking({size}: {first}, ...)"

    def _repr_html_(self) -> str:
        rows = [
            (
                item.place,
                item.label,
                notebook.bar(item.share, item.share_low, item.share_high),
                f"{item.rank_low} to {item.rank_high}",
                item.tier,
                item.answers,
            )
            for item in self.items
        ]
        header = ("place", "item", "chosen over another, 90 %", "ranks, 90 %", "tier", "answers")
        title = f"Ranking of {plural(len(self), 'item')} by {self.people} people, {plural(self.answers, 'answer')}"
        return notebook.panel(title, notebook.table(header, rows), note=" ".join(self.notes))

    @cached_property
    def _by_id(self) -> dict[ItemId, RankedItem]:
        return {item.id: item for item in self.items}

    @property
    def ids(self) -> tuple[ItemId, ...]:
        """Ids of the items, best first."""
        return tuple(item.id for item in self.items)

    @property
    def tiers(self) -> int:
        """Number of tiers; 1 if the answers distinguish no item from the first."""
        return self.items[-1].tier

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the table as a data frame of pandas, polars or pyarrow: `backend`, or the first that is installed."""
        return frame_of({name: [getattr(item, name) for item in self.items] for name in RANKING_COLUMNS}, backend)

    def csv(self) -> str:
        """Return the table as CSV."""
        out = io.StringIO()
        writer = csv.DictWriter(out, RANKING_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, self.items))
        return out.getvalue()


RANKING_COLUMNS = tuple(field.name for field in fields(RankedItem))
"""Columns of the table of a ranking."""


def rank(choices: Choices, items: Items | None = None, *, rng: int | np.random.Generator = 0) -> Ranking:
    """Rank items by their mean utility over the people who chose.

    Intervals and probabilities come from the posterior of a population model fitted to the choices: see
    `pairseek.people.ranking.utilities`. People whose answers look random count less.

    Parameters
    ----------
    choices
        Choices of at least three people. Ratings and rankings count as the pairs that they imply.
    items
        All items, with or without coordinates. None: the items of the choices.
    rng
        A seed or a generator for the draws from the posterior.

    Examples
    --------
    >>> import pairseek as ps
    >>> pairs = [(f"guest {p}", "tea", item) for p in range(5) for item in ("coffee", "cocoa")]
    >>> ps.rank(ps.Choices.from_pairs(pairs)).ids[0]
    'tea'
    """
    return ranking_from_posterior(mean_utilities(choices, items), items, rng=rng)


def ranking_from_posterior(
    posterior: UtilityPosterior, items: Items | None = None, *, rng: int | np.random.Generator = 0
) -> Ranking:
    """Rank items by a posterior of mean utilities."""
    generator = np.random.default_rng(seed_of(rng))
    n = len(posterior.base)
    draws = int(np.clip(_MAX_DRAWN_UTILITIES // n, 100, _MAX_DRAWS))
    utilities = posterior.draws(draws, generator)
    order = np.argsort(-utilities, axis=1, kind="stable")
    ranks = np.empty((draws, n), dtype=np.int64)
    np.put_along_axis(ranks, order, np.arange(1, n + 1)[None, :], axis=1)
    expected = ranks.mean(axis=0)
    low, high = _interval(ranks)
    order_by_rank = np.lexsort((-posterior.base, expected))
    tiers = _tiers(utilities, order_by_rank)
    share, share_low, share_high = _shares(posterior, utilities)
    choices = posterior.choices
    answers = _answer_counts(choices)
    labels = tuple(map(str, choices.ids)) if items is None else items.labels
    rows = tuple(
        RankedItem(
            id=choices.ids[row],
            label=labels[row],
            place=place,
            tier=int(tiers[row]),
            share=float(share[row]),
            share_low=float(share_low[row]),
            share_high=float(share_high[row]),
            rank=float(expected[row]),
            rank_low=int(low[row]),
            rank_high=int(high[row]),
            **{f"top_{count}": float(np.mean(ranks[:, row] <= count)) for count in (1, 3, 5)},
            answers=int(answers[row]),
        )
        for place, row in enumerate(order_by_rank.tolist(), 1)
    )
    people, answer_count = len(choices.people), len(choices) + len(choices.outcomes)
    return Ranking(rows, people, answer_count, float(posterior.trust.sum()), _notes(rows))


def _interval(ranks: IntArray) -> tuple[IntArray, IntArray]:
    """Return the (n,) ends of the 90 % intervals of (draws, n) ranks."""
    tail = 0.5 * (1.0 - INTERVAL_PROBABILITY)
    low = np.quantile(ranks, tail, axis=0, method="lower")
    return low.astype(np.int64), np.quantile(ranks, 1.0 - tail, axis=0, method="higher").astype(np.int64)


def _tiers(utilities: FloatArray, order_by_rank: IntArray) -> IntArray:
    """Return the (n,) tiers; a tier ends where an item is worse than its leader with probability `TIER_PROBABILITY`."""
    tiers = np.empty(len(order_by_rank), dtype=np.int64)
    tier, leader = 1, int(order_by_rank[0])
    for row in order_by_rank.tolist():
        if row != leader and np.mean(utilities[:, leader] > utilities[:, row]) >= TIER_PROBABILITY:
            tier, leader = tier + 1, row
        tiers[row] = tier
    return tiers


def _shares(posterior: UtilityPosterior, utilities: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (n,) shares of choices that items win against random opponents, and the ends of their intervals.

    For a Gaussian logit of mean m and variance v, the mean of f is f(m / sqrt(1 + π v / 8)) with an error of at most
    0.02 (MacKay 1992).
    """
    n = len(posterior.base)
    opponents = np.unique(np.linspace(0, n - 1, min(n, _MAX_OPPONENTS)).round().astype(np.int64))
    utilities = utilities[: int(np.clip(_MAX_PREDICTED_CHOICES // (n * len(opponents)), 20, _MAX_SHARE_DRAWS))]
    taste_root = posterior.factors @ np.linalg.cholesky(posterior.taste_covariance)
    taste_variance = np.sum(taste_root**2, axis=1)
    shares = np.empty((len(utilities), n))
    is_opponent = np.isin(np.arange(n), opponents)
    for start in range(0, n, _MAX_OPPONENTS):
        chunk = slice(start, min(start + _MAX_OPPONENTS, n))
        variance = (
            taste_variance[chunk, None] + taste_variance[opponents] - 2.0 * taste_root[chunk] @ taste_root[opponents].T
        )
        scale = 1.0 / np.sqrt(1.0 + np.pi / 8.0 * np.maximum(variance, 0.0))
        for draw, drawn_utilities in enumerate(utilities):
            shares[draw, chunk] = expit((drawn_utilities[chunk, None] - drawn_utilities[opponents]) * scale).sum(axis=1)
    # An item among the opponents was also compared with itself, which counted 1/2.
    shares = (shares - 0.5 * is_opponent) / (len(opponents) - is_opponent)
    low, high = np.quantile(shares, [0.5 * (1.0 - INTERVAL_PROBABILITY), 0.5 * (1.0 + INTERVAL_PROBABILITY)], axis=0)
    return shares.mean(axis=0), low, high


def _answer_counts(choices: Choices) -> IntArray:
    """Return the (n,) numbers of answers in which each item was shown."""
    shown = np.concatenate([choices.winner, choices.loser, choices.outcomes[:, 1:].ravel()])
    return np.bincount(shown, minlength=len(choices.ids))


def _notes(rows: tuple[RankedItem, ...]) -> tuple[str, ...]:
    out = []
    unseen = [row.id for row in rows if not row.answers]
    if unseen:
        verb, remark = ("was", "its place is a guess") if len(unseen) == 1 else ("were", "their places are guesses")
        out.append(f"{plural(len(unseen), 'item')} {verb} never shown, so {remark}: {quoted(unseen)}")
    if rows[-1].tier == 1:
        out.append("the answers do not distinguish any item from the first one: collect more answers")
    return tuple(out)
