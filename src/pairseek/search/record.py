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

Saved: TypeAlias = tuple[SearchState, tuple[Query, ...]]
"""A restored search: its state and its pending queries."""


class Form(NamedTuple):
    """Functions by which a format writes and reads events and queries."""

    event: Callable[[Event], Any]
    event_from: Callable[[Any], Event]
    query: Callable[[Query], Any]
    query_from: Callable[[Any], Query]


FULL = Form(serialization.event_record, serialization.event_from, serialization.query_record, serialization.query_from)
"""Events and queries with all the information from the time when they were asked."""
LIGHT = Form(
    serialization.light_event, serialization.event_of_light, serialization.light_query, serialization.query_of_light
)
"""Events and queries by ids only."""


@dataclass(frozen=True)
class SearchRecord:
    """Seed, events and pending queries of a search, the removed items among theirs, and an earlier model version."""

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
    def read(cls, record: Mapping[str, Any], form: Form) -> Self:
        """Read the record that `written` returned; call it within `reading`."""
        return cls(
            whole(record["seed"], "the seed", 0),
            [form.event_from(event) for event in record["events"]],
            [form.query_from(query) for query in record["pending"]],
            [RemovedItem.of_record(item) for item in record.get("gone", [])],
            record.get("migrated_from"),
        )

    def written(self, form: Form) -> JSON:
        """Return the record as plain data."""
        return {
            "seed": self.seed,
            "gone": [item.record() for item in self.removed],
            "events": [form.event(event) for event in self.events],
            "pending": [form.query(query) for query in self.pending],
            **({} if self.migrated_from is None else {"migrated_from": self.migrated_from}),
        }

    def restored(self, configuration: SearchConfiguration) -> Saved:
        """Restore the search, after validating that its events and queries fit its items and each other."""
        configuration = configuration.with_removed({item.id: item for item in self.removed})
        asked = [(event.left, event.right) for event in self.events]
        asked += [(query.left, query.right) for query in self.pending]
        for side in (side for pair in asked for side in pair):
            configuration.side(side)
        serialization.check_order(self.events, self.pending)
        state = SearchState(configuration, self.seed, tuple(self.events), migrated_from=self.migrated_from)
        return state, tuple(self.pending)


@contextmanager
def reading(what: Callable[[str], str], *, wrapped: bool = False) -> Iterator[None]:
    """Raise `InvalidFile` for a record with a missing field or a value of the wrong type.

    Parameters
    ----------
    what
        Function that turns the reason into the message.
    wrapped
        Whether errors of pairseek are turned into the reason too.
    """
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, PairseekError) and not wrapped:
            raise
        raise InvalidFile(what(f"it lacks {error}" if isinstance(error, KeyError) else str(error))) from error
