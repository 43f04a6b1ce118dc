"""Majority votes of ActRank-Q: repeated questions about a pair, reduced to a decision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairseek.core.types import Event
from pairseek.model.items import Items


@dataclass(frozen=True, slots=True)
class Ballot:
    """Votes so far on one pair.

    Attributes
    ----------
    pair
        The two rows, smaller first.
    votes
        Number of answers, including ties.
    lead
        Votes for the first minus votes for the second; a tie is half a vote for each.
    """

    pair: tuple[int, int]
    votes: int = 0
    lead: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """Result of a ballot: the winner's row; without a winner the comparison must be inferred."""

    pair: tuple[int, int]
    winner: int | None

    @property
    def loser(self) -> int | None:
        """Row of the loser; None without a winner."""
        return None if self.winner is None else sum(self.pair) - self.winner


def rows(items: Items, event: Event) -> tuple[int, int]:
    """Return the two rows of an event, smaller first."""
    left, right = items.index(event.left), items.index(event.right)
    return (left, right) if left < right else (right, left)


def tally(
    items: Items, ballot: Ballot | None, event: Event, *, needed: int, position: int
) -> tuple[Ballot | None, list[Decision]]:
    """Return the ballot that is open after an event, and the decisions reached by the event.

    A ballot closes when it has all its votes, when it is skipped, or when another pair was asked. The majority wins. A
    complete ballot without a majority is decided by a coin flip seeded by the position in the history; an incomplete
    one has no winner.

    Parameters
    ----------
    ballot
        The ballot open before the event, if any.
    event
        An answer to a query of this procedure.
    needed
        Number of votes per pair.
    position
        Position of the event in the history.
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
