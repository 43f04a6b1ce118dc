"""Schedule of a session: which queries the strategy chooses, and which are repeated, random or attention pairs.

The functions are pure functions of the session's seed and its answers, with random draws keyed by position. Undo, other
workers and a replay therefore give the same schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from pairseek.model.catalogues import askable_rows
from pairseek.model.items import Items
from pairseek.people.learning import RANDOM_SHARE, balanced_pair
from pairseek.store.events import AnsweredPair, AskedPair
from pairseek.web.studies.configuration import StudyConfiguration

Kind: TypeAlias = Literal["strategy", "repeated", "random", "attention"]
KINDS: tuple[Kind, ...] = ("strategy", "repeated", "random", "attention")
# Minimum number of pairs between a pair and its repetition, so that the answer is not remembered.
APART = 4
# Separates the random streams of the schedule from those of the search, which uses the same seed.
_DOMAIN = 0x5E55
_WHICH, _PAIR, _SIDES, _PLACE, _ORDER = range(5)


def pair_at(position: int, kind: Kind, left: str, right: str, **facts: object) -> AskedPair:
    """Return a pair to ask at a position; ``facts`` that are None are left out of its details."""
    details = {name: value for name, value in facts.items() if value is not None}
    return AskedPair("", f"p{position + 1}", position, kind, left, right, "", details)


def scheduled_pair(
    configuration: StudyConfiguration,
    items: Items,
    seed: int,
    done: Sequence[AnsweredPair],
    design: tuple[int, int] | None = None,
    unmet: Sequence[int] = (),
    *,
    learned: bool = False,
) -> AskedPair | None:
    """Return the next pair if it is scheduled; None if the strategy chooses it.

    Parameters
    ----------
    configuration, items, seed, done
        Settings and items of the study, and seed and answers of the session.
    design
        Seed and begin of a section of the balanced pairs, which the first people of a study are asked.
    unmet
        Rows of items that nobody has met yet. Every other random pair has one of them.
    learned
        Whether the study learned by itself what the session began with: a share of its pairs is then random.
    """
    position = len(done)
    attention = _attention(configuration, seed, position)
    if attention is not None:
        return attention
    share = max(configuration.random, RANDOM_SHARE) if learned else configuration.random
    # Making a generator takes as long as many a pair, and most studies draw nothing.
    draw = float(_rng(seed, position, _WHICH).random()) if configuration.repeated or share else 1.0
    if draw < configuration.repeated:
        return _repeated(seed, position, done)
    if design is not None:
        return _balanced(items, seed, done, *design)
    if draw < configuration.repeated + share:
        return _random(configuration, items, seed, position, unmet)
    return None


def _random(
    configuration: StudyConfiguration, items: Items, seed: int, position: int, unmet: Sequence[int]
) -> AskedPair:
    """Return a random pair or triplet; half of the pairs have an item that nobody has met, if there is one."""
    size, rng = 3 if configuration.is_similarity else 2, _rng(seed, position, _PAIR)
    askable = askable_rows(items, configuration.askable)
    rows = rng.choice(items.n if askable is None else askable, size=size, replace=False).tolist()
    if unmet and rng.integers(2):
        new = unmet[int(rng.integers(len(unmet)))]
        other = rows[1] if rows[0] == new else rows[0]
        rows = [new, other] if rng.integers(2) else [other, new]
    left, right, *anchor = (str(items.ids[row]) for row in rows)
    # Nothing can be predicted of an item that nobody has met.
    is_new = True if set(rows) & set(unmet) else None
    return pair_at(position, "random", left, right, anchor=anchor[0] if anchor else None, unmet=is_new)


def _balanced(items: Items, seed: int, done: Sequence[AnsweredPair], shared_seed: int, begin: int) -> AskedPair | None:
    """Return the next of the balanced pairs; None when the person was asked every pair."""
    asked = {frozenset((items.index(pair.left), items.index(pair.right))) for pair in done}
    found = balanced_pair(items.n, shared_seed, begin, asked)
    if found is None:
        return None
    left, right = found if _rng(seed, len(done), _SIDES).integers(2) else found[::-1]
    return pair_at(len(done), "random", str(items.ids[left]), str(items.ids[right]))


def _attention(configuration: StudyConfiguration, seed: int, position: int) -> AskedPair | None:
    """Return the attention pair at this position, if there is one.

    Each block has one at a random place, never the first pair of a session, in an order drawn for the session.
    """
    rule = configuration.attention
    if rule is None:
        return None
    block, place = divmod(position, rule.every)
    first = 1 if block == 0 else 0
    if place != int(_rng(seed, block, _PLACE).integers(first, rule.every)):
        return None
    around, index = divmod(block, len(rule.pairs))
    pair = rule.pairs[int(_rng(seed, around, _ORDER).permutation(len(rule.pairs))[index])]
    left, right = (pair.left, pair.right) if _rng(seed, position, _SIDES).integers(2) else (pair.right, pair.left)
    return pair_at(position, "attention", left, right, expected=pair.answer, anchor=pair.anchor)


def _repeated(seed: int, position: int, done: Sequence[AnsweredPair]) -> AskedPair | None:
    before = done[: max(0, position - APART)]
    again = {_items_of(pair) for pair in done if pair.kind == "repeated"}
    usable = [
        pair
        for pair in before
        if pair.kind in ("strategy", "random") and pair.outcome in ("left", "right") and _items_of(pair) not in again
    ]
    if not usable:
        return None
    pair = usable[int(_rng(seed, position, _PAIR).integers(len(usable)))]
    left, right = (pair.left, pair.right) if _rng(seed, position, _SIDES).integers(2) else (pair.right, pair.left)
    return pair_at(position, "repeated", left, right, repeats=pair.name, anchor=pair.anchor)


def _items_of(pair: AnsweredPair) -> tuple[str | None, frozenset[str]]:
    return pair.anchor, frozenset((pair.left, pair.right))


def _rng(seed: int, number: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence([seed, number, purpose, 0, _DOMAIN]))
