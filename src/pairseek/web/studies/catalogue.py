"""Catalogue of studies, cached in memory until the version of their items or their settings change."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from cachetools import LRUCache

from pairseek.core.media import loaded_media, played_media
from pairseek.core.messages import Words, words
from pairseek.model.items import Items
from pairseek.store import media, studies
from pairseek.store.database import Database
from pairseek.store.studies import StudyRow
from pairseek.web.errors import not_found
from pairseek.web.pages.contexts.shared import CardSchema, ImageSchema
from pairseek.web.studies.attention import attention_items
from pairseek.web.studies.cards import card, picture
from pairseek.web.studies.configuration import StudyConfiguration, stored_configuration
from pairseek.web.studies.face import LOGO_PREFIX
from pairseek.web.studies.items import unpack_items

# Number of studies in memory.
_MAX_CACHED_STUDIES = 32
# Number of replaced item catalogues in memory, per study.
_MAX_CACHED_CATALOGUES = 4


class EarlierItems:
    """Replaced items of a study, read from the database on demand."""

    def __init__(self, database: Database, study_id: int) -> None:
        self._database, self._study_id = database, study_id
        self._lock = threading.RLock()
        self._cache: LRUCache[int, Items] = LRUCache(_MAX_CACHED_CATALOGUES)
        # The revision of the items, and all items as of it.
        self._all: tuple[int, Items] | None = None

    def of_catalogue(self, number: int) -> Items:
        """Return the items of the catalogue with this number."""
        with self._lock:
            if number not in self._cache:
                content = self._database.read(lambda c: studies.replaced_items(c, self._study_id, number))
                if content is None:
                    raise not_found("catalogue", number)
                self._cache[number] = unpack_items(content)
            return self._cache[number]

    def appended_to(self, items: Items, row: StudyRow) -> Items:
        """Return the newest items, followed by those that only earlier catalogues have."""
        with self._lock:
            if self._all is None or self._all[0] != row.additions:
                catalogues = self._database.read(lambda c: studies.replaced_catalogues(c, self._study_id))
                numbers = [catalogue.number for catalogue in catalogues]
                for number in reversed(numbers):
                    items = joined_items(items, self.of_catalogue(number))
                self._all = row.additions, items
            return self._all[1]


def joined_items(items: Items, others: Items) -> Items:
    """Return items, followed by the others that have new ids; all have the same dimension."""
    rows = [row for row, name in enumerate(others.ids) if items.find(name) < 0]
    if not rows:
        return items

    # `Items.subset` would refuse a single row.
    def column(name: str) -> tuple[object, ...]:
        first, second = (part.data.get(name, ("",) * part.n) for part in (items, others))
        return (*first, *(second[row] for row in rows))

    return Items._without_warnings(
        np.concatenate([items.coordinates, others.coordinates[rows]]) if items.d else None,
        (*items.ids, *(others.ids[row] for row in rows)),
        (*items.labels, *(others.labels[row] for row in rows)),
        np.concatenate([items.appeal, others.appeal[rows]]),
        {name: column(name) for name in dict.fromkeys([*items.data, *others.data])},
        items.columns,
    )


@dataclass(frozen=True, eq=False)
class Study:
    """Study with the items of its newest catalogue, or of the catalogue chosen by `with_catalogue`."""

    row: StudyRow
    configuration: StudyConfiguration
    items: Items
    pictures: dict[str, list[tuple[int, int]]] = field(repr=False)
    earlier: EarlierItems = field(repr=False)
    _newest: Items | None = None

    @property
    def words(self) -> Words:
        """Messages in the language of the study, with its own texts."""
        return words(self.configuration.language).with_texts(self.configuration.texts)

    @property
    def newest_items(self) -> Items:
        """Items of the newest catalogue, which new sessions get."""
        return self.items if self._newest is None else self._newest

    def with_catalogue(self, number: int) -> Study:
        """Return the study with the items of a catalogue, as the sessions that began with it see it."""
        if number == self.row.catalogue:
            return self if self._newest is None else replace(self, items=self._newest, _newest=None)
        return replace(self, items=self.earlier.of_catalogue(number), _newest=self.newest_items)

    @property
    def all_items(self) -> Items:
        """Items of all catalogues, each in its newest version; answers may be about any of them."""
        return self.newest_items if self.row.catalogue == 0 else self.earlier.appended_to(self.newest_items, self.row)

    @property
    def has_media(self) -> bool:
        """Whether pages load pictures, sounds or videos to show the items."""
        return any(not name.startswith(LOGO_PREFIX) for name in self.pictures) or any(
            name in self.items.data for name in loaded_media()
        )

    @property
    def has_players(self) -> bool:
        """Whether items have sounds or videos."""
        return any(name in self.items.data for name in played_media())

    def has_player(self, item: str) -> bool:
        """Return whether the card of an item has a player."""
        items = self._items_with(item)
        return any(items.data[name][items.index(item)] for name in played_media() if name in items.data)

    def card(self, item: str) -> CardSchema:
        """Return the card of an item."""
        items = self._items_with(item)
        names = self.configuration.names
        return card(items, items.index(item), self.pictures, f"/media/{self.row.slug}", names=names)

    @property
    def logo_name(self) -> str | None:
        """Stored name of the logo."""
        return next((name for name in self.pictures if name.startswith(LOGO_PREFIX)), None)

    @property
    def logo(self) -> ImageSchema | None:
        """Logo, whose alternative text is empty, because the title stands next to it."""
        name = self.logo_name
        return None if name is None else picture(name, self.pictures[name], f"/media/{self.row.slug}", "")

    def _items_with(self, item: str) -> Items:
        if self._attention_items is not None and self._attention_items.find(item) >= 0:
            return self._attention_items
        return self.items if self.items.find(item) >= 0 else self.all_items

    @cached_property
    def _attention_items(self) -> Items | None:
        return attention_items(self.configuration)


class Catalogue:
    """Studies of a database.

    Parameters
    ----------
    database
        Database of the studies.
    preloaded
        Studies that were read before the worker was forked, by id.
    """

    def __init__(self, database: Database, preloaded: Mapping[int, Study] | None = None) -> None:
        self._database = database
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._cache: LRUCache[int, Study] = LRUCache(_MAX_CACHED_STUDIES)
        for number, study in (preloaded or {}).items():
            # Database connections from before the fork must not be used.
            self._cache[number] = replace(study, earlier=EarlierItems(database, number))

    @property
    def cached_studies(self) -> dict[int, Study]:
        """Studies in memory, by id."""
        with self._lock:
            return dict(self._cache)

    def row(self, slug: str) -> StudyRow:
        """Return the current row of a study."""
        row = self._database.read(lambda connection: studies.by_slug(connection, slug))
        if row is None:
            raise not_found("study", slug)
        return row

    def by_slug(self, slug: str) -> Study:
        """Return the study with this slug."""
        return self._study(self.row(slug))

    def by_id(self, study_id: int) -> Study:
        """Return the study with this id."""
        with self._lock:
            study = self._cache.get(study_id)
        if study is not None:
            return study
        row = self._database.read(lambda connection: studies.by_id(connection, study_id))
        if row is None:
            raise not_found("study", study_id)
        return self._study(row)

    def reread(self, study_id: int) -> Study:
        """Return the study with this id, including items that were added since it was cached."""
        row = self._database.read(lambda connection: studies.by_id(connection, study_id))
        if row is None:
            raise not_found("study", study_id)
        return self._study(row)

    def clear_cache(self) -> None:
        """Remove deleted studies from the cache."""
        existing = {row.id for row in self._database.read(studies.all_studies)}
        with self._lock:
            for number in set(self._cache) - existing:
                del self._cache[number]

    def _study(self, row: StudyRow) -> Study:
        study = self._cached(row)
        if study is not None:
            return study
        # After a restart many requests arrive at once: one thread reads the study while the others wait.
        with self._reading:
            return self._cached(row) or self._read(row)

    def _cached(self, row: StudyRow) -> Study | None:
        with self._lock:
            study = self._cache.get(row.id)
        if study is None or study.row.additions != row.additions or study.row.configuration != row.configuration:
            return None
        return replace(study, row=row)

    def _read(self, row: StudyRow) -> Study:
        number = row.id
        stored, pictures = self._database.read(
            lambda connection: (studies.with_items(connection, number), media.sizes(connection, number))
        )
        if stored is None:
            raise not_found("study", number)
        # Use the row that was read with the items, which may have been replaced since the caller read the row.
        row, content = stored
        earlier = EarlierItems(self._database, row.id)
        study = Study(row, stored_configuration(row.configuration), unpack_items(content), pictures, earlier)
        with self._lock:
            self._cache[row.id] = study
        return study
