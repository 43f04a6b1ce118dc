"""Repeated questions to one decision: the votes of ActRank-Q."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairseek.core.types import Event
from pairseek.model.items import Items


@dataclass(frozen=True, slots=True)
class Ballot:
    """Votes on one pair so far.

    Attributes
    ----------
    pair
        The two rows, the smaller first.
    votes
        Answers, ties included.
    lead
        Votes for the first less votes for the second; a tie is half a vote for each.
    """

    pair: tuple[int, int]
    votes: int = 0
    lead: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What came of a ballot: rows of the winner and the loser, or nobody won and it must be inferred."""

    pair: tuple[int, int]
    winner: int | None

    @property
    def loser(self) -> int | None:
        """The other row; None where nobody won."""
        return None if self.winner is None else sum(self.pair) - self.winner


def rows(items: Items, event: Event) -> tuple[int, int]:
    """The two rows, the smaller first."""
    left, right = items.index(event.left), items.index(event.right)
    return (left, right) if left < right else (right, left)


def count(
    items: Items, ballot: Ballot | None, event: Event, *, needed: int, position: int
) -> tuple[Ballot | None, list[Decision]]:
    """The ballot that is open after an event, and the decisions that were reached.

    A ballot closes when it has all its votes, when it is skipped, and when another pair was asked. The majority
    wins. Without one a full ballot is decided by a coin, keyed by the position in the history; the others are
    left open for inference.

    Parameters
    ----------
    ballot
        The one that was open.
    event
        An event of the history that this procedure asked for.
    needed
        Votes for each pair.
    position
        Of the event in the history.
    """
    pair = rows(items, event)
    decisions = []
    if ballot is not None and ballot.pair != pair:
        decisions.append(_close(ballot))
        ballot = None
    ballot = ballot or Ballot(pair)
    if event.outcome == "skip":
        return None, [*decisions, _close(ballot)]
    lead = 0 if event.winner is None else 1 if items.index(event.winner) == pair[0] else -1
    ballot = Ballot(pair, ballot.votes + 1, ballot.lead + lead)
    if ballot.votes < needed:
        return ballot, decisions
    decision = _close(ballot)
    if decision.winner is None:
        coin = int(np.random.default_rng([position, *pair]).integers(2))
        decision = Decision(pair, pair[coin])
    return None, [*decisions, decision]


def _close(ballot: Ballot) -> Decision:
    if ballot.lead == 0:
        return Decision(ballot.pair, None)
    return Decision(ballot.pair, ballot.pair[0] if ballot.lead > 0 else ballot.pair[1])
