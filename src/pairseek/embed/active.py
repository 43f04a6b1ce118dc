"""Active similarity judgements: which triplet to ask next, and the loop that asks, learns and measures.

A triplet is a question to its anchor. Among random triplets, the one is asked whose answer is expected to tell most of
the positions of its three items; so anchors are taken by what is still unknown of them. A share of the triplets is
drawn at random and kept apart: it measures the error on judgements that the positions were not fitted to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairseek.core.text import plural, quoted
from pairseek.core.types import IntArray, ItemId
from pairseek.core.validation import whole
from pairseek.embed.placement import Placement, random_triplets
from pairseek.embed.triplets import Triplets
from pairseek.errors import InvalidItems, InvalidParameter, UnknownQuery

CANDIDATES = 4000
"""Random triplets among which the most informative one is asked."""
SHARE = 0.1
"""Share of random triplets that are kept apart."""
LEAST_ITEMS = 4
MOST_ITEMS = 500
JUDGEMENTS_PER_ITEM = 15
"""Judgements an item that a map needs, as a rule; `Placement.forecast` says more once there are some."""
# A fresh start competes with the current positions whenever the triplets have grown by this factor.
_GROWTH = 1.25


@dataclass(frozen=True)
class TripletQuery:
    """Question: is the anchor more like the left or more like the right item?

    Attributes
    ----------
    number
        Number of earlier questions.
    anchor, left, right
        Ids of the items.
    kind
        ``"active"``, or ``"random"`` for a triplet that is kept apart.
    information
        Expected information of the answer in bits; None for a random triplet, and before there are positions.

    Examples
    --------
    >>> from pairseek.embed import ActiveTriplets
    >>> query = ActiveTriplets(["plum", "cherry", "leek", "onion", "garlic"], rng=7).ask()
    >>> query.number, query.kind, query.information is None
    (0, 'active', True)
    >>> print(f"Is {query.anchor} more like {query.left} or more like {query.right}?")
    Is onion more like leek or more like cherry?
    """

    number: int
    anchor: ItemId
    left: ItemId
    right: ItemId
    kind: str
    information: float | None = None


def check_count(n: int, what: str = "a similarity study") -> None:
    """Refuse fewer items than a triplet embedding needs, and more than people can judge."""
    if n < LEAST_ITEMS:
        raise InvalidItems(f"{plural(n, 'item')}: {what} needs at least {LEAST_ITEMS}; add items")
    if n > MOST_ITEMS:
        raise InvalidItems(
            f"{n:,} items need about {JUDGEMENTS_PER_ITEM * n:,} judgements ({JUDGEMENTS_PER_ITEM} an item), and "
            f"{what} takes at most {MOST_ITEMS} items: judge a sample of them; or make coordinates of all from vectors "
            f"that you have, such as those of a model of images or texts, with pairseek embed --method pca"
        )


def most_informative(
    placement: Placement,
    rng: np.random.Generator,
    *,
    asked: IntArray | None = None,
    candidates: int = CANDIDATES,
) -> tuple[IntArray, float]:
    """Return the (3,) rows of the most informative of random triplets, and its information in bits.

    Parameters
    ----------
    placement
        What is known.
    rng
        Generator of the candidates.
    asked
        (t, 3) further triplets that were asked, in any order of near and far. They are not asked again unless nothing
        else is among the candidates, and count as known, whatever the answers.
    candidates
        Number of random triplets.
    """
    rows = random_triplets(placement.n, candidates, rng)
    told = placement.information(rows, asked)
    if asked is not None and len(asked):
        again = np.isin(_keys(rows, placement.n), _keys(asked, placement.n))
        told = np.where(again, -1.0, told)
    best = int(told.argmax())
    return rows[best], max(float(told[best]), 0.0)


def _keys(rows: IntArray, n: int) -> IntArray:
    low, high = np.sort(rows[:, 1:], axis=1).T
    return np.asarray((rows[:, 0] * n + low) * n + high)


class ActiveTriplets:
    """Loop that asks similarity judgements: ask, tell, refit.

    The questions are a function of the seed and the answers.

    Parameters
    ----------
    ids
        Ids of the items, or their number.
    dimensions
        Number of dimensions of the positions.
    share
        Share of random triplets that are kept apart.
    refit_every
        Number of answers after which the positions are fitted again. None: half the number of items.
    rng
        Seed.

    Examples
    --------
    >>> from pairseek.embed import ActiveTriplets
    >>> active = ActiveTriplets(["plum", "cherry", "leek", "onion", "garlic"], rng=7)
    >>> query = active.ask()
    >>> active.tell(query.left)
    >>> len(active.triplets)
    1
    """

    def __init__(
        self,
        ids: Sequence[ItemId] | int,
        dimensions: int = 2,
        *,
        share: float = SHARE,
        refit_every: int | None = None,
        rng: int = 0,
    ) -> None:
        names = tuple(range(ids)) if isinstance(ids, int) else tuple(ids)
        check_count(len(names), "an embedding from judgements")
        if not 0.0 <= share < 1.0:
            raise InvalidParameter(f"share is {share!r}: give a number from 0 to below 1", field="share")
        self.ids, self.dimensions, self.share = names, whole(dimensions, "dimensions"), share
        self._every = max(len(names) // 2, 1) if refit_every is None else whole(refit_every, "refit_every")
        self._seed = whole(rng, "rng", 0)
        self._rows: list[tuple[int, int, int]] = []
        self._kinds: list[str] = []
        self._placement: Placement | None = None
        self._fitted, self._since_fresh = 0, 0
        self._query: tuple[TripletQuery, tuple[int, int, int]] | None = None
        self._places = {name: row for row, name in enumerate(names)}

    def ask(self) -> TripletQuery:
        """Return the next question; the same one until it is answered."""
        if self._query is None:
            self._refit()
            rng = np.random.default_rng([self._seed, len(self._rows)])
            kind, told = ("random" if rng.random() < self.share else "active"), None
            if kind == "active" and self._placement is not None:
                asked = [row for row, one in zip(self._recent(), self._recent_kinds(), strict=True) if one == "active"]
                row, told = most_informative(self._placement, rng, asked=np.array(asked).reshape(-1, 3))
            else:
                row = random_triplets(len(self.ids), 1, rng)[0]
            anchor, left, right = row.tolist()
            names = (self.ids[anchor], self.ids[left], self.ids[right])
            self._query = TripletQuery(len(self._rows), *names, kind, told), (anchor, left, right)
        return self._query[0]

    def tell(self, near: ItemId) -> None:
        """Store the answer to the open question: the item that is more like the anchor."""
        if self._query is None:
            raise UnknownQuery("no question is open: call ask first")
        query, (anchor, left, right) = self._query
        if near not in (query.left, query.right):
            raise InvalidParameter(f"{near!r} was not asked: answer with one of {quoted((query.left, query.right))}")
        self._rows.append((anchor, left, right) if near == query.left else (anchor, right, left))
        self._kinds.append(query.kind)
        self._query = None

    @property
    def triplets(self) -> Triplets:
        """All answers."""
        return Triplets(np.array(self._rows).reshape(-1, 3), self.ids)

    @property
    def apart(self) -> Triplets | None:
        """Answers that are kept apart; None without any."""
        return self._of("random")

    def embedding(self) -> Placement:
        """Return the positions after all answers, including those that were kept apart."""
        return Placement.fit(self.triplets, self.dimensions, start=self._placement, rng=self._seed)

    def held_out_error(self) -> float | None:
        """Return the share of the triplets kept apart that positions fitted to the others violate; None without any."""
        apart, others = self.apart, self._of("active")
        if apart is None or others is None:
            return None
        return Placement.fit(others, self.dimensions, start=self._placement, rng=self._seed).error(apart)

    def _of(self, kind: str) -> Triplets | None:
        rows = [row for row, one in zip(self._rows, self._kinds, strict=True) if one == kind]
        return Triplets(np.array(rows), self.ids) if rows else None

    def _recent(self) -> list[tuple[int, int, int]]:
        return self._rows[self._fitted :]

    def _recent_kinds(self) -> list[str]:
        return self._kinds[self._fitted :]

    def _refit(self) -> None:
        count = len(self._rows)
        if count < max(self._every, len(self.ids)) or count - self._fitted < self._every:
            return
        others = self._of("active")
        if others is None:
            return
        if self._placement is None or count >= _GROWTH * self._since_fresh:
            self._placement = Placement.fit(others, self.dimensions, start=self._placement, rng=self._seed)
            self._since_fresh = count
        else:
            self._placement = self._placement.refit(others)
        self._fitted = count
