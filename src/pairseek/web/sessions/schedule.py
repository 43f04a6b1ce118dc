"""Schedule of a session: which pairs the strategy chooses, and which are repeated, random or attention pairs.

The schedule is a pure function of the session's seed and answers, with random draws keyed by position. So it does not
change with an undo, with the worker or in a replay.
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
# Minimum number of pairs from a pair to its repetition, so that people do not remember their answer.
MIN_REPEAT_DISTANCE = 4
# Makes random draws of the schedule independent of the search's, which uses the same seed.
_SCHEDULE_KEY = 0x5E55
# Purposes of random draws, which make them independent of each other.
_KIND_DRAW = 0
_PAIR_DRAW = 1
_SIDES_DRAW = 2
_PLACE_DRAW = 3
_ORDER_DRAW = 4


def pair_at(position: int, kind: Kind, left: str, right: str, **facts: object) -> AskedPair:
    """Return a pair to ask at a position; its details are the ``facts`` that are not None."""
    details = {name: value for name, value in facts.items() if value is not None}
    return AskedPair("", f"p{position + 1}", position, kind, left, right, "", details)


def scheduled_pair(
    configuration: StudyConfiguration,
    items: Items,
    seed: int,
    done: Sequence[AnsweredPair],
    design: tuple[int, int] | None = None,
    unseen_rows: Sequence[int] = (),
    *,
    learned: bool = False,
) -> AskedPair | None:
    """Return the next pair if it is scheduled; None if the strategy chooses it.

    Parameters
    ----------
    configuration, items, seed, done
        Settings and items of the study, and seed and answers of the session.
    design
        Seed and first position of the participant's section of the balanced design; None unless they are among the
        study's first people.
    unseen_rows
        Rows of items that nobody has seen yet. On average, every other random pair includes one of them.
    learned
        Whether the session began with a population that the study learned; it then asks at least ``RANDOM_SHARE``
        random pairs.
    """
    position = len(done)
    attention = _attention_pair(configuration, seed, position)
    if attention is not None:
        return attention
    share = max(configuration.random, RANDOM_SHARE) if learned else configuration.random
    # Creating a generator can take as long as choosing a pair, and most studies need none.
    draw = float(_rng(seed, position, _KIND_DRAW).random()) if configuration.repeated or share else 1.0
    if draw < configuration.repeated:
        return _repeated_pair(seed, position, done)
    if design is not None:
        return _balanced_pair(items, seed, done, *design)
    if draw < configuration.repeated + share:
        return _random_pair(configuration, items, seed, position, unseen_rows)
    return None


def _random_pair(
    configuration: StudyConfiguration, items: Items, seed: int, position: int, unseen_rows: Sequence[int]
) -> AskedPair:
    """Return a random pair or triplet; half of the pairs include an unseen item, as long as there is one."""
    size, rng = 3 if configuration.is_similarity else 2, _rng(seed, position, _PAIR_DRAW)
    askable = askable_rows(items, configuration.askable)
    rows = rng.choice(items.n if askable is None else askable, size=size, replace=False).tolist()
    if unseen_rows and rng.integers(2):
        unseen = unseen_rows[int(rng.integers(len(unseen_rows)))]
        other = rows[1] if rows[0] == unseen else rows[0]
        rows = [unseen, other] if rng.integers(2) else [other, unseen]
    left, right, *anchor = (str(items.ids[row]) for row in rows)
    # Marks pairs whose answers cannot be predicted, because nobody has seen an item.
    unmet = True if set(rows) & set(unseen_rows) else None
    return pair_at(position, "random", left, right, anchor=anchor[0] if anchor else None, unmet=unmet)


def _balanced_pair(
    items: Items, seed: int, done: Sequence[AnsweredPair], shared_seed: int, begin: int
) -> AskedPair | None:
    """Return the next pair of the balanced design; None after the person was asked every pair."""
    asked = {frozenset((items.find(pair.left), items.find(pair.right))) for pair in done}
    rows = balanced_pair(items.n, shared_seed, begin, asked)
    if rows is None:
        return None
    left, right = rows if _rng(seed, len(done), _SIDES_DRAW).integers(2) else rows[::-1]
    return pair_at(len(done), "random", str(items.ids[left]), str(items.ids[right]))


def _attention_pair(configuration: StudyConfiguration, seed: int, position: int) -> AskedPair | None:
    """Return the attention pair at this position; None if it has none.

    Each block of ``every`` pairs contains an attention pair at a random place, but never as the first pair of a
    session. Each session has its own random order of attention pairs.
    """
    rule = configuration.attention
    if rule is None:
        return None
    block, index_in_block = divmod(position, rule.every)
    first = 1 if block == 0 else 0
    if index_in_block != int(_rng(seed, block, _PLACE_DRAW).integers(first, rule.every)):
        return None
    cycle, index = divmod(block, len(rule.pairs))
    pair = rule.pairs[int(_rng(seed, cycle, _ORDER_DRAW).permutation(len(rule.pairs))[index])]
    left, right = (pair.left, pair.right) if _rng(seed, position, _SIDES_DRAW).integers(2) else (pair.right, pair.left)
    return pair_at(position, "attention", left, right, expected=pair.answer, anchor=pair.anchor)


def _repeated_pair(seed: int, position: int, done: Sequence[AnsweredPair]) -> AskedPair | None:
    """Return a random earlier pair to ask again, on random sides; None if no pair is eligible."""
    earlier = done[: max(0, position - MIN_REPEAT_DISTANCE)]
    repeated = {_items_of(pair) for pair in done if pair.kind == "repeated"}
    eligible = [
        pair
        for pair in earlier
        if pair.kind in ("strategy", "random") and pair.outcome in ("left", "right") and _items_of(pair) not in repeated
    ]
    if not eligible:
        return None
    pair = eligible[int(_rng(seed, position, _PAIR_DRAW).integers(len(eligible)))]
    left, right = (pair.left, pair.right) if _rng(seed, position, _SIDES_DRAW).integers(2) else (pair.right, pair.left)
    return pair_at(position, "repeated", left, right, repeats=pair.name, anchor=pair.anchor)


def _items_of(pair: AnsweredPair) -> tuple[str | None, frozenset[str]]:
    return pair.anchor, frozenset((pair.left, pair.right))


def _rng(seed: int, number: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence([seed, number, purpose, 0, _SCHEDULE_KEY]))
