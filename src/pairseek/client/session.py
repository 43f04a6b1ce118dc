"""A person's session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pairseek.client.connection import Connection
from pairseek.client.records import Outcome, Pair, RecommendedItem, SessionEstimate, State


@dataclass(frozen=True)
class Session:
    """Session of one person.

    Attributes
    ----------
    id
        Id of the session.
    token
        Token of the session. It gives access to this session only, so a person's device may hold it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairseek.client import Client
    >>> client = Client("http://127.0.0.1:8421", Path("token.txt").read_text().strip())
    >>> session = client.open_session("teas", seed=1)
    >>> state = session.state()
    >>> while state.pair is not None:
    ...     state = session.answer(state.pair, "left")
    >>> state.status, session.estimate().answers
    ('finished', 3)
    >>> [item.id for item in session.recommend(1)]
    ['black']
    """

    id: str
    token: str = field(repr=False)
    _connection: Connection = field(repr=False)

    def state(self) -> State:
        """Return the state of the session; the pair does not change until it is answered."""
        return _state(self._connection.json("GET", f"/sessions/{self.id}/query"))

    def answer(
        self,
        query: Pair | str,
        outcome: Outcome,
        *,
        rt_ms: int | None = None,
        played: Mapping[str, Literal["yes", "no", "failed"]] | None = None,
    ) -> State:
        """Answer a pair; the request is idempotent.

        Parameters
        ----------
        query, outcome
            The pair or its id, and the answer to it.
        rt_ms
            Reaction time in milliseconds.
        played
            Whether the sound or video of each side was played, such as ``{"left": "yes", "right": "failed"}``; None if
            unknown.
        """
        query_id = query if isinstance(query, str) else query.query
        body: dict[str, Any] = {"query": query_id, "outcome": outcome, "rt_ms": rt_ms}
        if played is not None:
            body["played"] = dict(played)
        return _state(self._connection.json("POST", f"/sessions/{self.id}/answers", body))

    def reply(self, replies: Mapping[str, str | float], *, stage: Literal["before", "after"] = "after") -> None:
        """Store the replies to the researcher's own questions of a stage, by the name of the question."""
        self._connection.send("PUT", f"/sessions/{self.id}/replies", {"stage": stage, "replies": dict(replies)})

    def undo(self, query: str) -> State:
        """Undo the last answer."""
        return _state(self._connection.json("POST", f"/sessions/{self.id}/undo", {"query": query}))

    def estimate(self) -> SessionEstimate:
        """Return the estimate of the person's user point."""
        record = self._connection.json("GET", f"/sessions/{self.id}/estimate")
        rows = tuple(tuple(row) for row in record["covariance"])
        return SessionEstimate(
            tuple(record["point"]), rows, record["radius"], record["answers"], record.get("reliability")
        )

    def recommend(
        self,
        count: int = 5,
        *,
        only: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        where: Mapping[str, Any] | None = None,
        missing: Literal["error", "ignore"] = "error",
        diversity: float = 0.0,
        catalogue: str | None = None,
    ) -> list[RecommendedItem]:
        """Return the best items for this person.

        Parameters
        ----------
        count
            Number of items, at most 100.
        only, exclude
            Ids of items that may be recommended (None: all), and of items that may not.
        where
            Attributes that items must have, such as ``{"in_stock": True, "category": ["lamp", "chair"], "price":
            {"max": 50}}``: a value, a list of accepted values, or a range.
        missing
            Whether ids in `only` and `exclude` that are not in the catalogue are an ``"error"`` or are skipped
            (``"ignore"``).
        diversity
            Minimum distance between recommended items, as a fraction of the typical distance, from 0 to 1.
        catalogue
            Version of the study's items to recommend from, such as `StudyFacts.catalogue`; an unknown version is a
            `ServiceError` with the code ``other_catalogue``. None: the version with which the session started.
        """
        body = {
            "count": count,
            "only": None if only is None else list(only),
            "exclude": list(exclude),
            "where": None if where is None else dict(where),
            "missing": missing,
            "diversity": diversity,
            "catalogue": catalogue,
        }
        records = self._connection.json("POST", f"/sessions/{self.id}/recommendations", body)
        return [RecommendedItem(**record) for record in records]


def _state(record: Mapping[str, Any]) -> State:
    query = record["query"]
    pair = None
    if query is not None:
        cards = {side: query[side] for side in ("left", "right")}
        anchor = query.get("anchor")
        sides = (query["left"]["id"], query["right"]["id"])
        pair = Pair(query["query"], query["number"], *sides, cards, None if anchor is None else anchor["id"])
    progress = record["progress"]
    return State(record["status"], pair, progress["answered"], progress["remaining"], record["can"]["undo"])
