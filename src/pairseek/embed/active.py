"""Active choice of triplets to ask, and the loop of asking, fitting and measuring.

From a random sample of triplets, the loop asks the one whose answer is expected to be most informative about the
positions of its three items, so it prefers anchors that are still uncertain. Some triplets are asked at random and held
out: they measure the error on judgements that the positions were not fitted to.
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

CANDIDATE_TRIPLETS = 4000
"""Number of random triplets from which the most informative is chosen."""
RANDOM_SHARE = 0.1
"""Fraction of questions that are random and held out."""
MIN_ITEMS = 4
MAX_ITEMS = 500
JUDGEMENTS_PER_ITEM = 15
"""Typical judgements needed per item; `Placement.forecast` is more precise once there are some."""
# Also refit from a fresh start whenever the number of triplets has grown by this factor.
_FRESH_START_GROWTH = 1.25


@dataclass(frozen=True)
class TripletQuery:
    """Question whether the anchor is more like the left or the right item.

    Attributes
    ----------
    number
        Number of the question, counted from 0.
    anchor, left, right
        Ids of the items.
    kind
        ``"active"``, or ``"random"`` for a held-out triplet.
    information
        Expected information of the answer in bits; None for a random triplet, and before the first fit.

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


def check_count(n: int, purpose: str = "a similarity study") -> None:
    """Refuse too few items for a triplet embedding, or more than people can judge."""
    if n < MIN_ITEMS:
        raise InvalidItems(f"{plural(n, 'item')}: {purpose} needs at least {MIN_ITEMS}; add items")
    if n > MAX_ITEMS:
        raise InvalidItems(
            f"{n:,} items need about {JUDGEMENTS_PER_ITEM * n:,} judgements ({JUDGEMENTS_PER_ITEM} per item), and "
            f"{purpose} takes at most {MAX_ITEMS} items: judge a sample of them; or use pairseek embed --method pca to "
            f"compute coordinates from vectors that you have, such as those of an image or text model"
        )


def most_informative(
    placement: Placement,
    rng: np.random.Generator,
    *,
    asked: IntArray | None = None,
    candidates: int = CANDIDATE_TRIPLETS,
) -> tuple[IntArray, float]:
    """Return the most informative of a sample of triplets, as its (3,) rows, and its information in bits.

    Parameters
    ----------
    placement
        The current positions.
    rng
        Generator for the candidates.
    asked
        (t, 3) triplets asked since the positions were fitted, with near and far in any order. Their answers count as
        known. A triplet is repeated only if there are no other candidates.
    candidates
        Number of random triplets in the sample.
    """
    rows = random_triplets(placement.n, candidates, rng)
    bits = placement.information(rows, asked)
    if asked is not None and len(asked):
        repeated = np.isin(_triplet_keys(rows, placement.n), _triplet_keys(asked, placement.n))
        bits = np.where(repeated, -1.0, bits)
    best = int(bits.argmax())
    return rows[best], max(float(bits[best]), 0.0)


def _triplet_keys(rows: IntArray, n: int) -> IntArray:
    low, high = np.sort(rows[:, 1:], axis=1).T
    return np.asarray((rows[:, 0] * n + low) * n + high)


class ActiveTriplets:
    """Ask-and-tell loop for similarity judgements.

    Questions depend only on the seed and the answers.

    Parameters
    ----------
    ids
        Ids of the items, or the number of items.
    dimensions
        Number of dimensions of the positions.
    share
        Fraction of questions that are random and held out.
    refit_every
        Number of answers between two fits of the positions. None: half the number of items.
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
        share: float = RANDOM_SHARE,
        refit_every: int | None = None,
        rng: int = 0,
    ) -> None:
        item_ids = tuple(range(ids)) if isinstance(ids, int) else tuple(ids)
        check_count(len(item_ids), "an embedding from judgements")
        if not 0.0 <= share < 1.0:
            raise InvalidParameter(f"share is {share!r}: give a number from 0 to below 1", field="share")
        self.ids, self.dimensions, self.share = item_ids, whole(dimensions, "dimensions"), share
        self._refit_every = max(len(item_ids) // 2, 1) if refit_every is None else whole(refit_every, "refit_every")
        self._seed = whole(rng, "rng", 0)
        self._rows: list[tuple[int, int, int]] = []
        self._kinds: list[str] = []
        self._placement: Placement | None = None
        self._fitted_count, self._fresh_start_count = 0, 0
        self._query: tuple[TripletQuery, tuple[int, int, int]] | None = None

    def ask(self) -> TripletQuery:
        """Return the next question; it stays the same until it is answered."""
        if self._query is None:
            self._refit()
            rng = np.random.default_rng([self._seed, len(self._rows)])
            kind, bits = ("random" if rng.random() < self.share else "active"), None
            if kind == "active" and self._placement is not None:
                recent = zip(self._rows[self._fitted_count :], self._kinds[self._fitted_count :], strict=True)
                asked = [row for row, row_kind in recent if row_kind == "active"]
                row, bits = most_informative(self._placement, rng, asked=np.array(asked).reshape(-1, 3))
            else:
                row = random_triplets(len(self.ids), 1, rng)[0]
            anchor, left, right = row.tolist()
            names = (self.ids[anchor], self.ids[left], self.ids[right])
            self._query = TripletQuery(len(self._rows), *names, kind, bits), (anchor, left, right)
        return self._query[0]

    def tell(self, near: ItemId) -> None:
        """Record the answer to the open question: the item that is more like the anchor."""
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
        """Held-out answers; None if there are none."""
        return self._triplets_of_kind("random")

    def embedding(self) -> Placement:
        """Return the positions fitted to all answers, including those held out."""
        return Placement.fit(self.triplets, self.dimensions, start=self._placement, rng=self._seed)

    def held_out_error(self) -> float | None:
        """Return the fraction of held-out triplets violated by positions fitted to the others; None without any."""
        held_out, training = self.apart, self._triplets_of_kind("active")
        if held_out is None or training is None:
            return None
        return Placement.fit(training, self.dimensions, start=self._placement, rng=self._seed).error(held_out)

    def _triplets_of_kind(self, kind: str) -> Triplets | None:
        rows = [row for row, row_kind in zip(self._rows, self._kinds, strict=True) if row_kind == kind]
        return Triplets(np.array(rows), self.ids) if rows else None

    def _refit(self) -> None:
        count = len(self._rows)
        if count < max(self._refit_every, len(self.ids)) or count - self._fitted_count < self._refit_every:
            return
        training = self._triplets_of_kind("active")
        if training is None:
            return
        if self._placement is None or count >= _FRESH_START_GROWTH * self._fresh_start_count:
            self._placement = Placement.fit(training, self.dimensions, start=self._placement, rng=self._seed)
            self._fresh_start_count = count
        else:
            self._placement = self._placement.refit(training)
        self._fitted_count = count
