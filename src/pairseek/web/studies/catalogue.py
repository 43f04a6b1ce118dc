"""Catalogue of studies, cached in memory because configurations never change, and items only with a new version."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from cachetools import LRUCache

from pairseek.core.media import loaded_media, played_media
from pairseek.model.items import Items
from pairseek.store import media, studies
from pairseek.store.database import Database
from pairseek.store.studies import StudyRow
from pairseek.web.errors import not_found
from pairseek.web.pages.contexts.shared import CardSchema
from pairseek.web.studies.cards import card
from pairseek.web.studies.configuration import StudyConfiguration, configured, unpack_items

_KEPT = 32
# Catalogues of one study that were replaced and are in memory.
_KEPT_EARLIER = 4


class EarlierItems:
    """Items of a study that were replaced by others, read from the database when they are needed."""

    def __init__(self, database: Database, study_id: int) -> None:
        self._database, self._study_id = database, study_id
        self._lock = threading.RLock()
        self._known: LRUCache[int, Items] = LRUCache(_KEPT_EARLIER)
        self._joined: tuple[int, Items] | None = None

    def numbered(self, number: int) -> Items:
        """Return the items of a catalogue by its number."""
        with self._lock:
            if number not in self._known:
                read = self._database.read(lambda c: studies.earlier_items(c, self._study_id, number))
                if read is None:
                    raise not_found("catalogue", number)
                self._known[number] = unpack_items(read)
            return self._known[number]

    def joined(self, row: StudyRow, items: Items) -> Items:
        """Return these items, and those of all earlier catalogues that are gone."""
        with self._lock:
            if self._joined is None or self._joined[0] != row.additions:
                numbers = [one.number for one in self._database.read(lambda c: studies.earlier(c, self._study_id))]
                for number in reversed(numbers):
                    items = joined_items(items, self.numbered(number))
                self._joined = row.additions, items
            return self._joined[1]


def joined_items(items: Items, others: Items) -> Items:
    """Return items, followed by the others that have new ids; all have the same dimension."""
    rows = [row for row, name in enumerate(others.ids) if items.find(name) < 0]
    if not rows:
        return items

    # Not by `Items.subset`, because a single row is no set of items.
    def column(name: str) -> tuple[object, ...]:
        mine, theirs = (one.data.get(name, ("",) * one.n) for one in (items, others))
        return (*mine, *(theirs[row] for row in rows))

    return Items._unwarned(
        np.concatenate([items.coordinates, others.coordinates[rows]]) if items.d else None,
        (*items.ids, *(others.ids[row] for row in rows)),
        (*items.labels, *(others.labels[row] for row in rows)),
        np.concatenate([items.appeal, others.appeal[rows]]),
        {name: column(name) for name in dict.fromkeys([*items.data, *others.data])},
        items.columns,
    )


@dataclass(frozen=True, eq=False)
class Study:
    """Study with its items: those of the newest catalogue, or of another one after `at`."""

    row: StudyRow
    configuration: StudyConfiguration
    items: Items
    pictures: dict[str, list[tuple[int, int]]] = field(repr=False)
    earlier: EarlierItems = field(repr=False)
    _newest: Items | None = None

    @property
    def newest(self) -> Items:
        """Items of the newest catalogue, with which sessions begin."""
        return self.items if self._newest is None else self._newest

    def at(self, catalogue: int) -> Study:
        """Return the study with the items of a catalogue by its number, as a session has them."""
        if catalogue == self.row.catalogue:
            return self if self._newest is None else replace(self, items=self._newest, _newest=None)
        return replace(self, items=self.earlier.numbered(catalogue), _newest=self.newest)

    @property
    def every_item(self) -> Items:
        """Items of all catalogues; where they differ, as the newest has them. Answers may be about any of them."""
        return self.newest if self.row.catalogue == 0 else self.earlier.joined(self.row, self.newest)

    @property
    def has_media(self) -> bool:
        """Whether a page must load something to show the items: pictures, sounds or videos."""
        return bool(self.pictures) or any(name in self.items.data for name in loaded_media())

    @property
    def has_players(self) -> bool:
        """Whether items have sounds or videos."""
        return any(name in self.items.data for name in played_media())

    def plays(self, item: str) -> bool:
        """Return whether the card of an item has a player."""
        items = self._with(item)
        return any(items.data[name][items.index(item)] for name in played_media() if name in items.data)

    def card(self, item: str) -> CardSchema:
        """Return the card of an item."""
        items = self._with(item)
        return card(items, items.index(item), self.pictures, f"/media/{self.row.slug}")

    def _with(self, item: str) -> Items:
        return self.items if self.items.find(item) >= 0 else self.every_item


class Catalogue:
    """Studies of a database.

    Parameters
    ----------
    database
        Database of the studies.
    known
        Studies that were read before the worker was forked, by number.
    """

    def __init__(self, database: Database, known: Mapping[int, Study] | None = None) -> None:
        self._database = database
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._known: LRUCache[int, Study] = LRUCache(_KEPT)
        for number, study in (known or {}).items():
            # A connection of the process before the fork must not be used.
            self._known[number] = replace(study, earlier=EarlierItems(database, number))

    @property
    def known(self) -> dict[int, Study]:
        """Studies in memory, by number."""
        with self._lock:
            return dict(self._known)

    def row(self, slug: str) -> StudyRow:
        """Return the current row of a study."""
        row = self._database.read(lambda connection: studies.by_slug(connection, slug))
        if row is None:
            raise not_found("study", slug)
        return row

    def named(self, slug: str) -> Study:
        """Return the study with this slug."""
        return self._study(self.row(slug))

    def numbered(self, study_id: int) -> Study:
        """Return the study with this number."""
        with self._lock:
            known = self._known.get(study_id)
        if known is not None:
            return known
        row = self._database.read(lambda connection: studies.by_id(connection, study_id))
        if row is None:
            raise not_found("study", study_id)
        return self._study(row)

    def refreshed(self, study_id: int) -> Study:
        """Return the study with this number, with items that were added since it was read."""
        row = self._database.read(lambda connection: studies.by_id(connection, study_id))
        if row is None:
            raise not_found("study", study_id)
        return self._study(row)

    def clear_cache(self) -> None:
        """Remove studies from memory that were deleted."""
        there = {row.id for row in self._database.read(studies.every)}
        with self._lock:
            for number in set(self._known) - there:
                del self._known[number]

    def _study(self, row: StudyRow) -> Study:
        known = self._recalled(row)
        if known is not None:
            return known
        # After a restart many requests arrive at once: one thread reads the study and the others wait for it.
        with self._reading:
            return self._recalled(row) or self._read(row)

    def _recalled(self, row: StudyRow) -> Study | None:
        with self._lock:
            known = self._known.get(row.id)
        if known is None or known.row.additions != row.additions:
            return None
        return replace(known, row=row)

    def _read(self, row: StudyRow) -> Study:
        number = row.id
        found, pictures = self._database.read(
            lambda connection: (studies.with_items(connection, number), media.sizes(connection, number))
        )
        if found is None:
            raise not_found("study", number)
        # The row belongs to the items, which may have been replaced since the caller read its own.
        row, content = found
        earlier = EarlierItems(self._database, row.id)
        study = Study(row, configured(row.configuration), unpack_items(content), pictures, earlier)
        with self._lock:
            self._known[row.id] = study
        return study
