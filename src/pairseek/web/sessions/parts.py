"""Resolved search parts of sessions, as they were when the sessions began."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

from pairseek._version import MODEL_VERSION
from pairseek.core.lazy import cached_property
from pairseek.core.types import JSON, Event
from pairseek.embed.active import CANDIDATES
from pairseek.embed.similarity_map import SimilarityMap
from pairseek.model.items import Items
from pairseek.pairs.selection import ChosenPair
from pairseek.people.population import Population
from pairseek.search import serialization
from pairseek.search.configuration import SearchConfiguration
from pairseek.search.state import SearchState
from pairseek.store import parts as stored
from pairseek.store.database import Database
from pairseek.store.sessions import SessionRow
from pairseek.web.errors import Problem
from pairseek.web.sessions.memo import Memo
from pairseek.web.studies.configuration import StudyConfiguration

_KINDS = ("response", "prior", "posterior", "strategy", "candidates", "rest", "stop")

Learned: TypeAlias = Population | SimilarityMap
"""What a study has learned from its people: a population, or the map of a similarity study."""
PartsKey: TypeAlias = tuple[int, int | None, str, int]
"""Study, version of its population, key of the parts and number of the catalogue: sessions with the same share one
`SessionParts`."""


_DROPPED = "dropped_population"
# Number of items of a study to which items can be added, and the first people's section of the balanced pairs.
_ITEMS, _DESIGN = "items", "design"
# Key of the items to ask about, where a study restricts them.
_ASKABLE = "askable"


def dropped_record(population: int) -> JSON:
    """Return the record in place of parts that followed from a dropped population."""
    return {"model": MODEL_VERSION, _DROPPED: population}


@dataclass(frozen=True, eq=False)
class SessionParts:
    """Items and resolved parts of a search, shared by all sessions that began with them.

    Attributes
    ----------
    given
        Items of the study.
    record
        The parts as plain data, with the version of the model: `SearchConfiguration.record`.
    population
        The population that the sessions began with, whose appeal the items get, or the map of a similarity study.
    """

    given: Items
    record: JSON
    population: Learned | None = None

    @classmethod
    def resolved(
        cls,
        configuration: StudyConfiguration,
        items: Items,
        population: Learned | None = None,
        design: JSON | None = None,
    ) -> Self:
        """Return the parts with which a session begins now, every default filled in.

        ``design`` is the section of the balanced pairs that the first people of a study are asked.
        """
        if configuration.is_similarity:
            return cls(items, {"model": MODEL_VERSION, "kind": "similarity", "candidates": CANDIDATES}, population)
        assert not isinstance(population, SimilarityMap)
        record = configuration.resolved(items, population).record()
        # Items can be added to a study whose items have no coordinates.
        further: JSON = {} if items.d else {_ITEMS: items.n}
        if configuration.askable is not None:
            further[_ASKABLE] = configuration.askable
        return cls(items, {**record, **further, **({} if design is None else {_DESIGN: design})}, population)

    @classmethod
    def stored(cls, items: Items, record: JSON, population: Learned | None = None) -> Self:
        """Return the parts of a record, with those of the study's items that were there when the session began."""
        count = record.get(_ITEMS, items.n)
        return cls(items if count == items.n else first_items(items, count), record, population)

    @cached_property
    def items(self) -> Items:
        """Items with the appeal, and where they have none the coordinates, that the population has learned."""
        return self.population.matched(self.given) if isinstance(self.population, Population) else self.given

    @property
    def count(self) -> int:
        """Number of items when the session began."""
        return int(self.record.get(_ITEMS, self.given.n))

    @property
    def design(self) -> tuple[int, int] | None:
        """Seed and begin of the session's section of the balanced pairs; None if the strategy asks."""
        found = self.record.get(_DESIGN)
        return None if found is None else (int(found["seed"]), int(found["begin"]))

    @cached_property
    def unmet(self) -> tuple[int, ...]:
        """Rows of the items that nobody whom the population was learned from had met."""
        if not isinstance(self.population, Population) or self.given.d:
            return ()
        known = set(self.population.items.ids) - set(self.population.provenance.get("unmet", ()))
        return tuple(row for row, name in enumerate(self.given.ids) if name not in known)

    @property
    def model(self) -> object:
        """Model version for which the parts were resolved."""
        return self.record["model"]

    @property
    def dropped(self) -> int | None:
        """Version of the population that the parts followed from and that was dropped, if so."""
        return self.record.get(_DROPPED)

    @property
    def is_current(self) -> bool:
        """Whether this pairseek can compute with the parts: they are there, and have its model version."""
        return bool(self.model == MODEL_VERSION) and self.dropped is None

    def check(self) -> None:
        """Raise a `Problem` that says why unless the parts are current."""
        if self.dropped is not None:
            raise Problem(
                409,
                "population_dropped",
                f"this session began with population {self.dropped}, which was learned from a participant who was "
                f"forgotten, and was dropped",
                received=self.dropped,
                hint="Its results are stored and can be read; begin a new session to go on.",
            )
        if not self.is_current:
            raise Problem(
                409,
                "other_model",
                f"this session began with version {self.model} of the model, and this pairseek computes with version "
                f"{MODEL_VERSION}",
                received=self.model,
                hint="Continue it with the pairseek that it began with, or begin a new session.",
            )

    def search(self, seed: int, events: Sequence[Event] = ()) -> SearchState:
        """Return the search with these parts after these events."""
        self.check()
        return SearchState(self._configuration, seed, tuple(events), self._pairs)

    @cached_property
    def _configuration(self) -> SearchConfiguration:
        # Sessions from before there were goals were for a taste.
        goal, askable = self.record.get("goal", "taste"), self.record.get(_ASKABLE)
        return SearchConfiguration.resolved(self.items, goal=goal, askable=askable, **self.decoded)

    def changed(self, **others: object) -> Self:
        """Return parts with other records in place of some."""
        return type(self)(self.given, {**self.record, **others}, self.population)

    @cached_property
    def decoded(self) -> JSON:
        """Parts by kind."""
        return {kind: serialization.decode_saved(kind, self.record[kind]) for kind in _KINDS}

    def recalled_estimate(self, events: Sequence[Event], compute: Callable[[], JSON]) -> JSON:
        """Return the record of the estimate after these events, computed unless it is known."""
        if self.decoded["candidates"] is None:
            # The estimate of a procedure may depend on more than what was said.
            return compute()
        return dict(self._estimates.of(events, compute))

    @cached_property
    def _pairs(self) -> Memo[ChosenPair]:
        return Memo()

    @cached_property
    def _estimates(self) -> Memo[JSON]:
        return Memo()


def learned_from_record(record: JSON) -> Learned:
    """Read what a study has learned from its record."""
    return (SimilarityMap if record.get("kind") == "similarity" else Population).from_record(record)


def first_items(items: Items, count: int) -> Items:
    """Return the first items of a study without coordinates, to which others were added."""
    data = {name: values[:count] for name, values in items.data.items()}
    return Items._unwarned(None, items.ids[:count], items.labels[:count], items.appeal[:count], data)


def parts_key(row: SessionRow) -> PartsKey:
    """Return the key of the parts of a session."""
    return row.study_id, row.population, row.parts, row.catalogue


def records_of(database: Database, rows: Iterable[SessionRow]) -> dict[str, JSON]:
    """Return the records of the parts of these sessions, by key."""
    keys = {row.parts for row in rows}
    return database.read(lambda connection: stored.contents(connection, keys))
