"""Group ranking: the items in the order of their mean utility over people, with what is uncertain about it."""

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

# Draws from the posterior, and the largest number of utilities drawn at once.
_DRAWS, _AT_ONCE = 2000, 8_000_000
# Draws of the shares, and items that stand for a typical one: an average over them is exact enough. Many items have
# fewer draws, so that at most this many choices are predicted.
_SHARE_DRAWS, _TYPICAL, _PREDICTED = 200, 200, 50_000_000
# Two items are told apart where one is better with at least this probability.
CERTAIN = 0.95
LEVEL = 0.9
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
        Number of the tier, from 1: an item of a tier cannot be told apart from the first item of its tier.
    share, share_low, share_high
        Probability that a person drawn at random chooses the item over another item drawn at random, and the ends of
        its 90 % interval.
    rank, rank_low, rank_high
        Expected rank, and the ends of its 90 % interval.
    top_1, top_3, top_5
        Probabilities that the item is the best, among the best three and among the best five.
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
    """Items in the order of their expected rank over a group of people.

    Attributes
    ----------
    items
        The rows, best first.
    people, answers
        Numbers of people and of answers behind the ranking.
    trusted
        Expected number of people whose answers are more informative than random ones.
    notes
        Sentences about what the ranking does not tell.

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
        first = ", ".join(str(one.id) for one in self.items[:3])
        size = f"{plural(len(self), 'item')}, {self.people} people, {plural(self.answers, 'answer')}"
        return f"Ranking({size}: {first}, ...)"

    def _repr_html_(self) -> str:
        rows = [
            (
                one.place,
                one.label,
                notebook.bar(one.share, one.share_low, one.share_high),
                f"{one.rank_low} to {one.rank_high}",
                one.tier,
                one.answers,
            )
            for one in self.items
        ]
        header = ("place", "item", "chosen over another, 90 %", "ranks, 90 %", "tier", "answers")
        title = f"Ranking of {plural(len(self), 'item')} by {self.people} people, {plural(self.answers, 'answer')}"
        return notebook.panel(title, notebook.table(header, rows), note=" ".join(self.notes))

    @cached_property
    def _by_id(self) -> dict[ItemId, RankedItem]:
        return {one.id: one for one in self.items}

    @property
    def ids(self) -> tuple[ItemId, ...]:
        """Ids of the items, best first."""
        return tuple(one.id for one in self.items)

    @property
    def tiers(self) -> int:
        """Number of tiers; 1 if no item can be told apart from the first one."""
        return self.items[-1].tier

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the table as a data frame of pandas, polars or pyarrow: the first that is installed, or `backend`."""
        return frame_of({name: [getattr(one, name) for one in self.items] for name in COLUMNS}, backend)

    def csv(self) -> str:
        """Return the table as CSV."""
        out = io.StringIO()
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({**asdict(one), "place": one.place} for one in self.items)
        return out.getvalue()


COLUMNS = tuple(field.name for field in fields(RankedItem))
"""Columns of a ranking as a table."""


def rank(choices: Choices, items: Items | None = None, *, rng: int | np.random.Generator = 0) -> Ranking:
    """Rank items by their mean utility over the people who chose.

    Intervals and probabilities are those of the posterior of a population model, fitted to the choices: see
    `pairseek.people.ranking.utilities`. People whose answers look random count for less.

    Parameters
    ----------
    choices
        Choices of at least three people. Ratings and rankings count by the pairs that they imply.
    items
        All items, with coordinates or without. None takes the ids of the choices.
    rng
        A seed or a generator for the draws from the posterior.

    Examples
    --------
    >>> import pairseek as ps
    >>> pairs = [(f"guest {p}", "tea", item) for p in range(5) for item in ("coffee", "cocoa")]
    >>> ps.rank(ps.Choices.from_pairs(pairs)).ids[0]
    'tea'
    """
    return ranked(mean_utilities(choices, items), items, rng=rng)


def ranked(found: UtilityPosterior, items: Items | None = None, *, rng: int | np.random.Generator = 0) -> Ranking:
    """Return the ranking of a posterior of mean utilities."""
    generator = np.random.default_rng(seed_of(rng))
    n = len(found.base)
    draws = int(np.clip(_AT_ONCE // n, 100, _DRAWS))
    utilities = found.draws(draws, generator)
    order = np.argsort(-utilities, axis=1, kind="stable")
    ranks = np.empty((draws, n), dtype=np.int64)
    np.put_along_axis(ranks, order, np.arange(1, n + 1)[None, :], axis=1)
    expected = ranks.mean(axis=0)
    low, high = _interval(ranks)
    best = np.lexsort((-found.base, expected))
    tiers = _tiers(utilities, best)
    share, share_low, share_high = _shares(found, utilities)
    answers = _answers(found.choices)
    labels = tuple(map(str, found.choices.ids)) if items is None else items.labels
    rows = tuple(
        RankedItem(
            id=found.choices.ids[row],
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
        for place, row in enumerate(best.tolist(), 1)
    )
    people, total = len(found.choices.people), len(found.choices) + len(found.choices.outcomes)
    return Ranking(rows, people, total, float(found.trust.sum()), _notes(rows))


def _interval(ranks: IntArray) -> tuple[IntArray, IntArray]:
    """Return the (n,) ends of the 90 % intervals of (draws, n) ranks."""
    tail = 0.5 * (1.0 - LEVEL)
    low = np.quantile(ranks, tail, axis=0, method="lower")
    return low.astype(np.int64), np.quantile(ranks, 1.0 - tail, axis=0, method="higher").astype(np.int64)


def _tiers(utilities: FloatArray, best: IntArray) -> IntArray:
    """Return the (n,) tiers; a tier begins with the first item that is worse than the tier's first with certainty."""
    tiers = np.empty(len(best), dtype=np.int64)
    tier, leader = 1, int(best[0])
    for row in best.tolist():
        if row != leader and np.mean(utilities[:, leader] > utilities[:, row]) >= CERTAIN:
            tier, leader = tier + 1, row
        tiers[row] = tier
    return tiers


def _shares(found: UtilityPosterior, utilities: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the (n,) shares of choices that an item wins against a typical one, and the ends of their intervals.

    For a Gaussian logit of mean m and variance v, E f is f(m / sqrt(1 + π v / 8)) up to 0.02 (MacKay 1992).
    """
    n = len(found.base)
    typical = np.unique(np.linspace(0, n - 1, min(n, _TYPICAL)).round().astype(np.int64))
    utilities = utilities[: int(np.clip(_PREDICTED // (n * len(typical)), 20, _SHARE_DRAWS))]
    root = found.factors @ np.linalg.cholesky(found.spread)
    square = np.sum(root**2, axis=1)
    shares = np.empty((len(utilities), n))
    itself = np.isin(np.arange(n), typical)
    for start in range(0, n, _TYPICAL):
        part = slice(start, min(start + _TYPICAL, n))
        variance = square[part, None] + square[typical] - 2.0 * root[part] @ root[typical].T
        scale = 1.0 / np.sqrt(1.0 + np.pi / 8.0 * np.maximum(variance, 0.0))
        for draw, own in enumerate(utilities):
            shares[draw, part] = expit((own[part, None] - own[typical]) * scale).sum(axis=1)
    # An item against itself has counted 1/2.
    shares = (shares - 0.5 * itself) / (len(typical) - itself)
    low, high = np.quantile(shares, [0.5 * (1.0 - LEVEL), 0.5 * (1.0 + LEVEL)], axis=0)
    return shares.mean(axis=0), low, high


def _answers(choices: Choices) -> IntArray:
    """Return the (n,) numbers of answers in which each item was shown."""
    shown = np.concatenate([choices.winner, choices.loser, choices.outcomes[:, 1:].ravel()])
    return np.bincount(shown, minlength=len(choices.ids))


def _notes(rows: tuple[RankedItem, ...]) -> tuple[str, ...]:
    out = []
    unseen = [row.id for row in rows if not row.answers]
    if unseen:
        verb = "was" if len(unseen) == 1 else "were"
        out.append(
            f"{plural(len(unseen), 'item')} {verb} never shown, and the place of such an item is a guess: "
            f"{quoted(unseen)}"
        )
    if rows[-1].tier == 1:
        out.append("the answers do not tell any item apart from the first one: collect more answers")
    return tuple(out)
