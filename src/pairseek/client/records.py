"""Records that the client returns: studies, catalogues, states, pairs, estimates and recommendations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Outcome: TypeAlias = Literal["left", "right", "tie", "skip"]
"""Answer to a pair: the left or the right item, a tie, or no answer.

Examples
--------
>>> from typing import get_args
>>> from pairseek.client import Outcome
>>> get_args(Outcome)
('left', 'right', 'tie', 'skip')
"""


@dataclass(frozen=True)
class Pair:
    """Two items to compare with each other or, in a similarity study, with an anchor.

    Attributes
    ----------
    query
        Id of the question, for `Session.answer`.
    number
        Number of the question, from 1.
    left, right
        Ids of the two items.
    cards
        Appearance of both items, by side.
    anchor
        Id of the item that a similarity study compares them with; None in other studies.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairseek.client import Client
    >>> client = Client("http://127.0.0.1:8421", Path("token.txt").read_text().strip())
    >>> pair = client.open_session("teas", seed=1).state().pair
    >>> sorted([pair.left, pair.right])
    ['black', 'white']
    >>> pair.number, pair.anchor
    (1, None)
    """

    query: str
    number: int
    left: str
    right: str
    cards: Mapping[str, Any] = field(repr=False, compare=False)
    anchor: str | None = None


@dataclass(frozen=True)
class State:
    """State of a session.

    Attributes
    ----------
    status
        ``"asking"``, ``"finished"`` or ``"closed"``.
    pair
        The open pair; None if there is none.
    answered
        Number of answers.
    remaining
        Number of answers to come; None if unknown.
    undoable
        Id of the question whose answer `Session.undo` would undo; None if there is none.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairseek.client import Client
    >>> client = Client("http://127.0.0.1:8421", Path("token.txt").read_text().strip())
    >>> state = client.open_session("teas", seed=1).state()
    >>> state.status, state.answered, state.remaining, state.undoable
    ('asking', 0, 3, None)
    """

    status: str
    pair: Pair | None
    answered: int
    remaining: int | None
    undoable: str | None


@dataclass(frozen=True)
class SessionEstimate:
    """Estimate of a person's user point, and of their `reliability` if the study infers it.

    Attributes
    ----------
    point
        Posterior mean of the user point.
    covariance
        Rows of the posterior covariance.
    radius
        Radius of the 95 % credible ball.
    answers
        Number of answers.
    reliability
        Estimate of the person's reliability; None if the study does not infer it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairseek.client import Client
    >>> client = Client("http://127.0.0.1:8421", Path("token.txt").read_text().strip())
    >>> estimate = client.open_session("teas", seed=1).estimate()
    >>> len(estimate.point), estimate.answers
    (2, 0)
    """

    point: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    radius: float
    answers: int
    reliability: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class RecommendedItem:
    """Recommended item with the probability that it is the person's best.

    Attributes
    ----------
    id, label
        Id and label of the item.
    probability
        Probability that it is the best of the items that may be recommended.
    expected_utility
        Posterior mean of its utility.
    distance
        Distance from the estimated user point.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairseek.client import Client
    >>> client = Client("http://127.0.0.1:8421", Path("token.txt").read_text().strip())
    >>> best, second = client.open_session("teas", seed=1).recommend(2)
    >>> best.expected_utility >= second.expected_utility
    True
    """

    id: str
    label: str
    probability: float
    expected_utility: float
    distance: float


@dataclass(frozen=True)
class StudyFacts:
    """Facts about a study.

    Attributes
    ----------
    slug
        Name of the study in addresses.
    title
        Title of the study.
    open
        Whether people may begin a session.
    items, dimensions
        Number of items, and of coordinates.
    catalogue
        Version of the items: a hash of their ids, coordinates and appeal.
    created_at
        Time of creation, in UTC.
    link
        Address of the study for participants.
    configuration
        Settings of the study.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairseek.client import Client
    >>> client = Client("http://127.0.0.1:8421", Path("token.txt").read_text().strip())
    >>> study = client.study("teas")
    >>> study.title, study.open, study.items, study.dimensions
    ('Teas', True, 4, 2)
    """

    slug: str
    title: str
    open: bool
    items: int
    dimensions: int
    catalogue: str
    created_at: str
    link: str
    configuration: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class CatalogueVersion:
    """Version of a study's items.

    Attributes
    ----------
    catalogue
        Hash of the items.
    items
        Number of items.
    sessions
        Number of sessions that started with this version.
    replaced_at
        Time at which a newer version replaced it; None for the newest.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairseek.client import Client
    >>> client = Client("http://127.0.0.1:8421", Path("token.txt").read_text().strip())
    >>> newest = client.catalogues("teas")[0]
    >>> newest.items, newest.replaced_at
    (4, None)
    >>> newest.catalogue == client.study("teas").catalogue
    True
    """

    catalogue: str
    items: int
    sessions: int
    replaced_at: str | None
