"""`SearchRecord`: the part of a saved search that all formats share, without items and configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

from pairseek.core.types import JSON, Event, Query
from pairseek.core.validation import whole
from pairseek.errors import InvalidFile, PairseekError
from pairseek.model.catalogues import RemovedItem
from pairseek.search import serialization
from pairseek.search.configuration import SearchConfiguration
from pairseek.search.state import SearchState

StateAndPending: TypeAlias = tuple[SearchState, tuple[Query, ...]]
"""A search as its state and its pending queries."""


class RecordFormat(NamedTuple):
    """Functions that write and read events and queries in one format."""

    event: Callable[[Event], Any]
    event_from: Callable[[Any], Event]
    query: Callable[[Query], Any]
    query_from: Callable[[Any], Query]


FULL_FORMAT = RecordFormat(
    serialization.event_record, serialization.event_from, serialization.query_record, serialization.query_from
)
"""Events and queries with all information from the time when they were asked."""
LIGHT_FORMAT = RecordFormat(
    serialization.light_event, serialization.event_from_light, serialization.light_query, serialization.query_from_light
)
"""Events and queries by ids only."""


@dataclass(frozen=True)
class SearchRecord:
    """Seed, events and pending queries of a search, and the removed items that they are about.

    ``migrated_from`` is the model version that the search was saved with, if it is an earlier one.
    """

    seed: int
    events: Sequence[Event]
    pending: Sequence[Query]
    removed: Sequence[RemovedItem]
    migrated_from: int | None = None

    @classmethod
    def of(cls, state: SearchState, pending: Sequence[Query]) -> Self:
        """Return the record of a search."""
        removed = tuple(state.configuration.removed.values())
        return cls(state.seed, state.events, pending, removed, state.migrated_from)

    @classmethod
    def read(cls, record: Mapping[str, Any], form: RecordFormat) -> Self:
        """Read the record that `as_json` returned; call it within `convert_read_errors`."""
        return cls(
            whole(record["seed"], "the seed", 0),
            [form.event_from(event) for event in record["events"]],
            [form.query_from(query) for query in record["pending"]],
            [RemovedItem.of_record(item) for item in record.get("gone", [])],
            record.get("migrated_from"),
        )

    def as_json(self, form: RecordFormat) -> JSON:
        """Return the record as plain data."""
        return {
            "seed": self.seed,
            "gone": [item.record() for item in self.removed],
            "events": [form.event(event) for event in self.events],
            "pending": [form.query(query) for query in self.pending],
            **({} if self.migrated_from is None else {"migrated_from": self.migrated_from}),
        }

    def restore(self, configuration: SearchConfiguration) -> StateAndPending:
        """Restore the search, after validating that its events and queries fit its items and each other."""
        configuration = configuration.with_removed({item.id: item for item in self.removed})
        asked = [(event.left, event.right) for event in self.events]
        asked += [(query.left, query.right) for query in self.pending]
        for side in (side for pair in asked for side in pair):
            configuration.side(side)
        serialization.check_query_order(self.events, self.pending)
        state = SearchState(configuration, self.seed, tuple(self.events), migrated_from=self.migrated_from)
        return state, tuple(self.pending)


@contextmanager
def convert_read_errors(message: Callable[[str], str], *, wrap_own_errors: bool = False) -> Iterator[None]:
    """Convert errors that a missing field or a value of the wrong type causes to `InvalidFile`.

    Parameters
    ----------
    message
        Function that makes the message from the reason.
    wrap_own_errors
        Whether to convert errors of pairseek too.
    """
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, PairseekError) and not wrap_own_errors:
            raise
        raise InvalidFile(message(f"it lacks {error}" if isinstance(error, KeyError) else str(error))) from error
