"""Catalogue of studies, cached in memory because configurations never change, and items only when some are added."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from pairseek.core.media import loaded_media
from pairseek.model.items import Items
from pairseek.store import media, studies
from pairseek.store.database import Database
from pairseek.store.studies import StudyRow
from pairseek.web.errors import not_found
from pairseek.web.pages.contexts import CardContext
from pairseek.web.studies.cards import card
from pairseek.web.studies.configuration import StudyConfiguration, configured, unpack_items

_KEPT = 32


@dataclass(frozen=True, eq=False)
class Study:
    """Study with its items."""

    row: StudyRow
    configuration: StudyConfiguration
    items: Items
    pictures: dict[str, list[tuple[int, int]]] = field(repr=False)

    @property
    def has_media(self) -> bool:
        """Whether a page must load something to show the items: pictures, sounds or videos."""
        return bool(self.pictures) or any(name in self.items.data for name in loaded_media())

    def card(self, item: str) -> CardContext:
        """Return the card of an item."""
        return card(self.items, self.items.index(item), self.pictures, f"/media/{self.row.slug}")


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
        self._known: OrderedDict[int, Study] = OrderedDict(known or {})

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
            if study_id in self._known:
                self._known.move_to_end(study_id)
                return self._known[study_id]
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
        return Study(row, known.configuration, known.items, known.pictures)

    def _read(self, row: StudyRow) -> Study:
        content, pictures = self._database.read(
            lambda connection: (studies.items(connection, row.id), media.sizes(connection, row.id))
        )
        study = Study(row, configured(row.configuration), unpack_items(content), pictures)
        with self._lock:
            self._known[row.id] = study
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return study
