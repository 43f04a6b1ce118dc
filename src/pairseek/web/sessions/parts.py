"""Resolved parts of the searches of sessions, as they were when the sessions began."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

from pairseek._version import MODEL_VERSION
from pairseek.core.lazy import cached_property
from pairseek.core.types import JSON, Event
from pairseek.embed.active import CANDIDATE_TRIPLETS
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

_PART_KINDS = ("response", "prior", "posterior", "strategy", "candidates", "rest", "stop")

Learned: TypeAlias = Population | SimilarityMap
"""Result of a study's learning: a population, or the map of a similarity study."""

# Record keys. Version of the population that was dropped:
_DROPPED_KEY = "dropped_population"
# Number of items, if items can be added to the study:
_ITEMS_KEY = "items"
# Section of the balanced design, for a study's first people:
_DESIGN_KEY = "design"
# Items to ask about, if the study restricts them:
_ASKABLE_KEY = "askable"


class PartsKey(NamedTuple):
    """Key of the `SessionParts` that sessions share."""

    study: int
    population: int | None
    parts: str
    catalogue: int


def dropped_record(population: int) -> JSON:
    """Return the record that replaces the parts of sessions that began with a dropped population."""
    return {"model": MODEL_VERSION, _DROPPED_KEY: population}


@dataclass(frozen=True, eq=False)
class SessionParts:
    """Items and resolved parts of a search, shared by all sessions that began with them.

    Attributes
    ----------
    study_items
        Items of the study.
    record
        Parts as plain data with the model version, from `SearchConfiguration.record`.
    population
        Population that the sessions began with, which gives the items their appeal; in a similarity study, the map.
    """

    study_items: Items
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
        """Resolve the parts of a session that begins now, including all defaults.

        ``design`` is the participant's section of the balanced design; None unless they are among the study's first
        people.
        """
        if configuration.is_similarity:
            return cls(
                items, {"model": MODEL_VERSION, "kind": "similarity", "candidates": CANDIDATE_TRIPLETS}, population
            )
        assert not isinstance(population, SimilarityMap)
        record = configuration.resolved(items, population).record()
        # Items can be added later if they have no coordinates.
        optional: JSON = {} if items.d else {_ITEMS_KEY: items.n}
        if configuration.askable is not None:
            optional[_ASKABLE_KEY] = configuration.askable
        return cls(items, {**record, **optional, **({} if design is None else {_DESIGN_KEY: design})}, population)

    @classmethod
    def from_record(cls, items: Items, record: JSON, population: Learned | None = None) -> Self:
        """Build the parts from their record, without items that were added after the session began."""
        count = record.get(_ITEMS_KEY, items.n)
        return cls(items if count == items.n else first_items(items, count), record, population)

    @cached_property
    def items(self) -> Items:
        """Items with the population's appeal, and with its coordinates if the study's items have none."""
        if not isinstance(self.population, Population):
            return self.study_items
        return population_for(self.study_items, self.population).matched(self.study_items)

    @property
    def item_count(self) -> int:
        """Number of items when the session began."""
        return int(self.record.get(_ITEMS_KEY, self.study_items.n))

    @property
    def design(self) -> tuple[int, int] | None:
        """Seed and first position of the session's section of the balanced design; None if the strategy chooses."""
        record = self.record.get(_DESIGN_KEY)
        return None if record is None else (int(record["seed"]), int(record["begin"]))

    @cached_property
    def unseen_rows(self) -> tuple[int, ...]:
        """Rows of the items that nobody from whom the population was learned has seen."""
        if not isinstance(self.population, Population) or self.study_items.d:
            return ()
        seen = set(self.population.items.ids) - set(self.population.provenance.get("unmet", ()))
        return tuple(row for row, name in enumerate(self.study_items.ids) if name not in seen)

    @property
    def model(self) -> object:
        """Model version for which the parts were resolved."""
        return self.record["model"]

    @property
    def dropped_population(self) -> int | None:
        """Version of the dropped population from which the parts were derived; None if it was not dropped."""
        return self.record.get(_DROPPED_KEY)

    @property
    def is_current(self) -> bool:
        """Whether the parts are usable and have the model version of this pairseek."""
        return self.dropped_population is None and bool(self.model == MODEL_VERSION)

    @property
    def is_usable(self) -> bool:
        """Whether this pairseek can compute with the parts, which were not dropped and have no later model version."""
        return self.dropped_population is None and isinstance(self.model, int) and self.model <= MODEL_VERSION

    def computes_results(self, row: SessionRow) -> bool:
        """Return whether to compute the results of a session, instead of showing the stored ones.

        A session that finished with an earlier model version shows its stored results.
        """
        return row.finished_at is None or self.is_current

    def check(self) -> None:
        """Raise a `Problem` if the parts are not usable."""
        if self.dropped_population is not None:
            raise Problem(
                409,
                "population_dropped",
                f"this session began with population {self.dropped_population}, which was dropped because it was "
                f"learned from a participant who was forgotten",
                received=self.dropped_population,
                hint="Its results are stored and can be read; begin a new session to continue.",
            )
        if not self.is_usable:
            raise Problem(
                409,
                "other_model",
                f"this session began with model version {self.model}, but this pairseek computes with version "
                f"{MODEL_VERSION}",
                received=self.model,
                hint="Upgrade pairseek, or begin a new session.",
            )

    def search(self, seed: int, events: Sequence[Event] = ()) -> SearchState:
        """Return the search with these parts after these events."""
        self.check()
        return SearchState(self._configuration, seed, tuple(events), self._pairs)

    @cached_property
    def _configuration(self) -> SearchConfiguration:
        # Records without a goal come from versions that only had the goal taste.
        goal, askable = self.record.get("goal", "taste"), self.record.get(_ASKABLE_KEY)
        return SearchConfiguration.resolved(self.items, goal=goal, askable=askable, **self.parts_by_kind)

    def with_records(self, **records: object) -> Self:
        """Return the parts with the records of some kinds replaced."""
        return type(self)(self.study_items, {**self.record, **records}, self.population)

    @cached_property
    def parts_by_kind(self) -> JSON:
        """Decoded parts by kind."""
        return {kind: serialization.decode_saved(kind, self.record[kind]) for kind in _PART_KINDS}

    def cached_estimate(self, events: Sequence[Event], compute: Callable[[], JSON]) -> JSON:
        """Return the record of the estimate after these events, from the cache if possible."""
        if self.parts_by_kind["candidates"] is None:
            # Only procedures have no candidates, and their estimates may depend on more than the outcomes.
            return compute()
        return dict(self._estimates.get_or_compute(events, compute))

    @cached_property
    def _pairs(self) -> Memo[ChosenPair]:
        return Memo()

    @cached_property
    def _estimates(self) -> Memo[JSON]:
        return Memo()


def population_for(items: Items, population: Population) -> Population:
    """Return a population for the present items of a study, which may have been replaced since it was learned."""
    return population.for_items(items) if items.d else population


def learned_from_record(record: JSON) -> Learned:
    """Build a population or a map from its record."""
    return (SimilarityMap if record.get("kind") == "similarity" else Population).from_record(record)


def first_items(items: Items, count: int) -> Items:
    """Return the first ``count`` items of a study without coordinates."""
    data = {name: values[:count] for name, values in items.data.items()}
    return Items._without_warnings(None, items.ids[:count], items.labels[:count], items.appeal[:count], data)


def parts_key(row: SessionRow) -> PartsKey:
    """Return the key of the parts of a session."""
    return PartsKey(row.study_id, row.population, row.parts, row.catalogue)


def records_of(database: Database, rows: Iterable[SessionRow]) -> dict[str, JSON]:
    """Return the records of these sessions' parts, by key."""
    keys = {row.parts for row in rows}
    return database.read(lambda connection: stored.contents(connection, keys))
