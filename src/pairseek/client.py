"""Client of the HTTP API: studies, sessions, answers and data.

The client needs only the standard library.

The examples assume a service on this machine and its token in ``token.txt``, which two commands provide:

    pairseek serve
    pairseek token create shop --scope read --scope write --scope answer > token.txt

They use the study ``teas``, which the example of `Client` creates.

Examples
--------
>>> from pathlib import Path
>>> from pairseek.client import Client
>>> client = Client("http://127.0.0.1:8421", Path("token.txt").read_text().strip())
>>> session = client.open_session("teas", seed=1)
>>> session.state().status
'asking'
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import sleep
from typing import Any, Literal, TypeAlias

from pairseek.errors import PairseekError

__all__ = [
    "CatalogueVersion",
    "Client",
    "Outcome",
    "Pair",
    "RecommendedItem",
    "ServiceError",
    "Session",
    "SessionEstimate",
    "State",
    "StudyFacts",
]

Outcome: TypeAlias = Literal["left", "right", "tie", "skip"]
"""Answer to a pair: the left or the right item, a tie, or no answer.

Examples
--------
>>> from typing import get_args
>>> from pairseek.client import Outcome
>>> get_args(Outcome)
('left', 'right', 'tie', 'skip')
"""
_MAX_ATTEMPTS = 4
# Seconds before the first retry; doubled for each further one.
_FIRST_PAUSE = 0.2
# Longest Retry-After, in seconds, that the client obeys.
_MAX_PAUSE = 10.0
# Status codes after which an idempotent request is retried.
_RETRIED_STATUSES = (429, 502, 503, 504)


class ServiceError(PairseekError):
    """Error response of the service.

    Attributes
    ----------
    status
        Status code of the response; 0 if the service cannot be reached.
    code
        Name of the error, such as ``"not_found"``: see the HTTP API.
    message, hint
        What is wrong, and what to do.
    received
        The value that the service rejected, if any.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairseek.client import Client, ServiceError
    >>> client = Client("http://127.0.0.1:8421", Path("token.txt").read_text().strip())
    >>> try:
    ...     client.study("wines")
    ... except ServiceError as error:
    ...     print(error.status, error.code)
    404 not_found
    """

    def __init__(self, status: int, code: str, message: str, hint: str | None = None, received: object = None) -> None:
        super().__init__(f"{message}: {hint}" if hint else message)
        self.status, self.code, self.message, self.hint, self.received = status, code, message, hint, received


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


class _SameOrigin(urllib.request.HTTPRedirectHandler):
    """Follow redirects within the service only: another server, or one without TLS, must not get the token."""

    def redirect_request(self, req: urllib.request.Request, *reply: Any) -> urllib.request.Request | None:
        """Return the request to the new address; raise a `ServiceError` if that is at another origin."""
        there = reply[-1]
        if _origin(there) != _origin(req.full_url):
            reply[0].close()
            raise ServiceError(
                0,
                "redirected",
                f"the service at {_origin(req.full_url)} redirects to {_origin(there)}, which did not get the token",
                "Give the new address to the client if you trust it.",
            )
        return super().redirect_request(req, *reply)


def _origin(address: str) -> str:
    """Return scheme, host and port of an address."""
    parts = urllib.parse.urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


@dataclass(frozen=True)
class _Connection:
    address: str
    token: str = field(repr=False)
    seconds: float = 30.0

    def send(self, method: str, path: str, body: object = None, *, again: bool = True) -> bytes:
        """Send a request and return the body of the response; `again` allows retries of idempotent requests."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        url = f"{self.address.rstrip('/')}/api/v1{path}"
        # Status 429 means that the request had no effect, so a retry is always safe.
        retried = _RETRIED_STATUSES if again else (429,)
        opener = urllib.request.build_opener(_SameOrigin)
        for attempt in range(_MAX_ATTEMPTS):
            is_last = attempt == _MAX_ATTEMPTS - 1
            pause = _FIRST_PAUSE * 2**attempt
            request = urllib.request.Request(url, content, headers, method=method)
            try:
                with opener.open(request, timeout=self.seconds) as reply:
                    return bytes(reply.read())
            except urllib.error.HTTPError as error:
                with error:
                    failure = _service_error(error.code, error.read())
                    retry_after = error.headers.get("Retry-After", "")
                if retry_after.isdecimal():
                    pause = max(pause, min(float(retry_after), _MAX_PAUSE))
                if error.code not in retried or is_last:
                    raise failure from None
            except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
                if is_last or not again:
                    raise ServiceError(
                        0,
                        "unreachable",
                        f"the service at {self.address} cannot be reached ({error})",
                        "Check the address, and that the service is running.",
                    ) from None
            sleep(pause)
        raise AssertionError("unreachable")

    def json(self, method: str, path: str, body: object = None, *, again: bool = True) -> Any:
        """Send a request and return the body of the response, parsed as JSON."""
        return json.loads(self.send(method, path, body, again=again))


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
    connection: _Connection = field(repr=False)

    def state(self) -> State:
        """Return the state of the session; the pair does not change until it is answered."""
        return _state(self.connection.json("GET", f"/sessions/{self.id}/query"))

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
        return _state(self.connection.json("POST", f"/sessions/{self.id}/answers", body))

    def undo(self, query: str) -> State:
        """Undo the last answer."""
        return _state(self.connection.json("POST", f"/sessions/{self.id}/undo", {"query": query}))

    def estimate(self) -> SessionEstimate:
        """Return the estimate of the person's user point."""
        record = self.connection.json("GET", f"/sessions/{self.id}/estimate")
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
            "diversity": diversity,
            "catalogue": catalogue,
        }
        records = self.connection.json("POST", f"/sessions/{self.id}/recommendations", body)
        return [RecommendedItem(**record) for record in records]


@dataclass(frozen=True)
class Client:
    """Client of a service.

    Parameters
    ----------
    address
        Address of the service, such as ``https://studies.example.org``.
    token
        API token, from ``pairseek token create`` or the token page of the service.
    seconds
        Timeout of a request, in seconds.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairseek.client import Client
    >>> client = Client("http://127.0.0.1:8421", Path("token.txt").read_text().strip())
    >>> teas = [
    ...     {"id": "white", "coordinates": [0.1, 0.8]},
    ...     {"id": "green", "coordinates": [0.3, 0.9]},
    ...     {"id": "oolong", "coordinates": [0.6, 0.5]},
    ...     {"id": "black", "coordinates": [0.9, 0.1]},
    ... ]
    >>> slug = client.create_study({"title": "Teas", "answers": 3}, teas)
    >>> client.study(slug).items
    4
    >>> state = client.open_session(slug, participant="visitor-1", seed=1).state()
    >>> state.remaining
    3
    >>> rows = client.export(slug, "items").decode().splitlines()
    >>> len(rows)   # with the header
    5
    """

    address: str
    token: str = field(repr=False)
    seconds: float = 30.0

    @property
    def _connection(self) -> _Connection:
        return _Connection(self.address, self.token, self.seconds)

    def studies(self) -> list[Mapping[str, Any]]:
        """List the studies that the token may read."""
        return list(self._connection.json("GET", "/studies"))

    def study(self, slug: str) -> StudyFacts:
        """Return the facts about a study."""
        return StudyFacts(**self._connection.json("GET", f"/studies/{_quoted(slug)}"))

    def create_study(
        self, configuration: Mapping[str, Any], items: Sequence[Mapping[str, Any]], *, is_open: bool = True
    ) -> str:
        """Create a study of items ``{"id": ..., "coordinates": [...]}`` with display columns; return its slug."""
        body = {"configuration": dict(configuration), "items": [dict(item) for item in items], "open": is_open}
        return str(self._connection.json("POST", "/studies", body, again=False)["slug"])

    def replace_items(
        self, slug: str, items: Sequence[Mapping[str, Any]], *, catalogue: str | None = None
    ) -> StudyFacts:
        """Replace the items of a study by others in the same coordinates; the request is idempotent.

        Parameters
        ----------
        slug
            Slug of the study.
        items
            New items, as in `create_study`. Sessions that have started keep the items they started with.
        catalogue
            Version of the items to replace, `StudyFacts.catalogue`; if the study has another version by now, the result
            is a `ServiceError` with the code ``other_catalogue``. None: the current version, whichever it is.
        """
        body = {"items": [dict(item) for item in items], "catalogue": catalogue}
        return StudyFacts(**self._connection.json("PUT", f"/studies/{_quoted(slug)}/items", body))

    def catalogues(self, slug: str) -> list[CatalogueVersion]:
        """List the versions of the items of a study, newest first."""
        records = self._connection.json("GET", f"/studies/{_quoted(slug)}/catalogues")
        return [CatalogueVersion(**record) for record in records]

    def set_open(self, slug: str, *, is_open: bool) -> None:
        """Open or close a study."""
        self._connection.send("POST", f"/studies/{_quoted(slug)}/{'open' if is_open else 'close'}")

    def open_session(self, slug: str, *, participant: str | None = None, seed: int | None = None) -> Session:
        """Start a session."""
        body = {"participant": participant, "seed": seed}
        record = self._connection.json("POST", f"/studies/{_quoted(slug)}/sessions", body, again=False)
        return self.session(record["session"], record["token"])

    def session(self, session_id: str, token: str) -> Session:
        """Return an existing session."""
        return Session(session_id, token, _Connection(self.address, token, self.seconds))

    def forget(self, slug: str, participant: str) -> Mapping[str, Any]:
        """Delete all sessions of a participant; return the numbers of deleted sessions and answers."""
        body = {"participant": participant}
        return dict(self._connection.json("POST", f"/studies/{_quoted(slug)}/forget", body, again=False))

    def delete_study(self, slug: str) -> Mapping[str, Any]:
        """Delete a study with all its data; return the numbers of deleted sessions and answers."""
        return dict(self._connection.json("DELETE", f"/studies/{_quoted(slug)}", again=False))

    def export(self, slug: str, table: str, ending: str = "csv") -> bytes:
        """Download a table: answers, participants, estimates, items or ranking, as ``csv`` or ``parquet``."""
        return self._connection.send("GET", f"/studies/{_quoted(slug)}/export/{table}.{ending}")

    def bundle(self, slug: str) -> bytes:
        """Download a study as a zip bundle."""
        return self._connection.send("GET", f"/studies/{_quoted(slug)}/bundle.zip")


def _quoted(slug: str) -> str:
    return urllib.parse.quote(slug, safe="")


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


def _service_error(status: int, body: bytes) -> ServiceError:
    try:
        facts = json.loads(body)["error"]
        return ServiceError(status, facts["code"], facts["message"], facts["hint"], facts["received"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(
            status, "not_understood", f"the service answered with status {status} but without a valid error message"
        )
