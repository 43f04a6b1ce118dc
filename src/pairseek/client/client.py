"""The client: studies, their sessions and their data."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import sleep
from typing import Any, Literal

from pairseek.client.connection import Connection, ServiceError
from pairseek.client.records import CatalogueVersion, StudyFacts
from pairseek.client.session import Session

# Seconds between two requests for the state of a replacement: the first pause, which doubles, and the longest.
_FIRST_PAUSE = 0.05
_MAX_PAUSE = 2.0


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
    seconds: float = 60.0

    @property
    def _connection(self) -> Connection:
        return Connection(self.address, self.token, self.seconds)

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
        return str(self._connection.json("POST", "/studies", body, is_idempotent=False)["slug"])

    def replace_items(
        self, slug: str, items: Sequence[Mapping[str, Any]], *, catalogue: str | None = None
    ) -> StudyFacts:
        """Replace the items of a study by others in the same coordinates, and wait until they are stored.

        The request is idempotent: a call that was interrupted can be repeated at any time.

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
        address = f"/studies/{_quoted(slug)}"
        state = self._connection.json("PUT", f"{address}/items", body)
        pause = _FIRST_PAUSE
        while state["state"] == "running":
            sleep(pause)
            pause = min(2.0 * pause, _MAX_PAUSE)
            state = self._connection.json("GET", f"{address}/replacements/{state['replacement']}")
        if state["state"] == "failed":
            raise ServiceError(state["status"], **state["error"])
        return StudyFacts(**state["study"])

    def set_attributes(
        self,
        slug: str,
        attributes: Mapping[str, Mapping[str, bool | float | str | None]],
        *,
        missing: Literal["error", "ignore"] = "error",
    ) -> Mapping[str, int]:
        """Change attributes of the items of a study; return how many items have each. The request is idempotent.

        Parameters
        ----------
        slug
            Slug of the study.
        attributes
            Values by attribute and item, such as ``{"in_stock": {"lamp": True}}``; None removes a value.
        missing
            Whether ids that the study does not have are an ``"error"`` or are skipped (``"ignore"``).
        """
        body = {"attributes": {name: dict(own) for name, own in attributes.items()}, "missing": missing}
        return dict(self._connection.json("PATCH", f"/studies/{_quoted(slug)}/attributes", body)["attributes"])

    def upload_population(self, slug: str, name: str, population: Mapping[str, Any]) -> int:
        """Store a population, ``Population.record()``, with which new sessions begin; return its version.

        Automatic learning is switched off. The request is idempotent.
        """
        address = f"/studies/{_quoted(slug)}/populations/{_quoted(name)}"
        return int(self._connection.json("PUT", address, {"population": dict(population)})["version"])

    def populations(self, slug: str) -> list[Mapping[str, Any]]:
        """List the populations of a study, learned and uploaded, newest first."""
        return list(self._connection.json("GET", f"/studies/{_quoted(slug)}/populations"))

    def choose_population(self, slug: str, version: int) -> None:
        """Choose the population with which new sessions begin, 0 for none, and switch automatic learning off."""
        self._connection.send("PUT", f"/studies/{_quoted(slug)}/population", {"version": version})

    def catalogues(self, slug: str) -> list[CatalogueVersion]:
        """List the versions of the items of a study, newest first."""
        records = self._connection.json("GET", f"/studies/{_quoted(slug)}/catalogues")
        return [CatalogueVersion(**record) for record in records]

    def set_open(self, slug: str, *, is_open: bool) -> None:
        """Open or close a study."""
        self._connection.send("POST", f"/studies/{_quoted(slug)}/{'open' if is_open else 'close'}")

    def open_session(
        self,
        slug: str,
        *,
        participant: str | None = None,
        seed: int | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Session:
        """Start a session; ``variables`` are further facts to keep, as in a link."""
        body = {"participant": participant, "seed": seed, "variables": dict(variables or {})}
        record = self._connection.json("POST", f"/studies/{_quoted(slug)}/sessions", body, is_idempotent=False)
        return self.session(record["session"], record["token"])

    def session(self, session_id: str, token: str) -> Session:
        """Return an existing session."""
        return Session(session_id, token, Connection(self.address, token, self.seconds))

    def set_limits(self, slug: str, *, quota: int | None, closes: str | None) -> StudyFacts:
        """Set the quota and the closing date of a study; None: none.

        Parameters
        ----------
        slug
            Slug of the study.
        quota
            Number of finished sessions at which nobody can begin any more.
        closes
            ISO 8601 time with its offset from UTC, such as ``"2027-01-31T18:00+01:00"``.
        """
        body = {"quota": quota, "closes": closes}
        return StudyFacts(**self._connection.json("PUT", f"/studies/{_quoted(slug)}/limits", body))

    def forget(self, slug: str, participant: str) -> Mapping[str, Any]:
        """Delete all sessions of a participant; return the numbers of deleted sessions and answers."""
        body = {"participant": participant}
        return dict(self._connection.json("POST", f"/studies/{_quoted(slug)}/forget", body, is_idempotent=False))

    def delete_study(self, slug: str) -> Mapping[str, Any]:
        """Delete a study with all its data; return the numbers of deleted sessions and answers."""
        return dict(self._connection.json("DELETE", f"/studies/{_quoted(slug)}", is_idempotent=False))

    def export(self, slug: str, table: str, ending: str = "csv") -> bytes:
        """Download a table: answers, participants, estimates, items, ranking or people, as ``csv`` or ``parquet``."""
        return self._connection.send("GET", f"/studies/{_quoted(slug)}/export/{table}.{ending}")

    def workbook(self, slug: str, language: str = "en") -> bytes:
        """Download a study as an Excel workbook."""
        return self._connection.send("GET", f"/studies/{_quoted(slug)}/workbook.xlsx?language={_quoted(language)}")

    def slide(self, slug: str, ending: str = "png", language: str = "en") -> bytes:
        """Download the ranking of a study as a slide, as ``png`` or ``svg``."""
        return self._connection.send("GET", f"/studies/{_quoted(slug)}/slide.{ending}?language={_quoted(language)}")

    def bundle(self, slug: str) -> bytes:
        """Download a study as a zip bundle."""
        return self._connection.send("GET", f"/studies/{_quoted(slug)}/bundle.zip")


def _quoted(slug: str) -> str:
    return urllib.parse.quote(slug, safe="")
