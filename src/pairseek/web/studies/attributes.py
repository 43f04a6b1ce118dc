"""Attributes of a study's items that change from day to day, such as stock, price and category.

They filter recommendations and change nothing else: not the catalogue's version, no session and no belief.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import sqlalchemy as sa
from cachetools import LRUCache

from pairseek.core.text import plural, quoted
from pairseek.core.types import BoolArray
from pairseek.errors import InvalidParameter
from pairseek.model.catalogues import Missing, matching_mask
from pairseek.model.items import Items
from pairseek.store import attributes as stored
from pairseek.store import studies
from pairseek.store.database import Database
from pairseek.web.errors import Problem
from pairseek.web.studies.catalogue import Study

AttributeValue: TypeAlias = bool | float | str
Changes: TypeAlias = Mapping[str, Mapping[str, AttributeValue | None]]
"""Values by attribute and item; None removes a value."""

MAX_ATTRIBUTES = 20
MAX_ATTRIBUTE_NAME_LENGTH = 64
MAX_ATTRIBUTE_TEXT_LENGTH = 200
_MAX_CACHED_STUDIES = 16
# Attempts to change attributes that others change at the same time.
_MAX_ATTEMPTS = 3


@dataclass(frozen=True, eq=False)
class ItemAttributes:
    """Attributes of the items of a study.

    Attributes
    ----------
    version
        Number of changes; 0 if there are no attributes.
    values
        Values by attribute and item.
    """

    version: int = 0
    values: Mapping[str, Mapping[str, AttributeValue]] = field(default_factory=dict)
    _columns: LRUCache[tuple[str, str], Any] = field(default_factory=lambda: LRUCache(2 * MAX_ATTRIBUTES), repr=False)

    @property
    def counts(self) -> dict[str, int]:
        """Number of items that have each attribute."""
        return {name: len(values) for name, values in sorted(self.values.items())}

    def changed(self, changes: Changes) -> dict[str, dict[str, AttributeValue]]:
        """Return the values after changes; an attribute without values disappears."""
        values = {name: dict(column) for name, column in self.values.items()}
        for name, column in changes.items():
            item_values = values.setdefault(name, {})
            for item, value in column.items():
                if value is None:
                    item_values.pop(item, None)
                else:
                    item_values[item] = value
        values = {name: column for name, column in values.items() if column}
        if len(values) > MAX_ATTRIBUTES:
            raise InvalidParameter(
                f"the items would have {len(values)} attributes, but can have at most {MAX_ATTRIBUTES}: remove some by "
                f"setting their values to null",
                field="attributes",
            )
        return values

    def mask(self, where: Mapping[str, object], items: Items) -> BoolArray:
        """Return an (n,) mask of the items with the required values, of attributes or of columns of their file."""
        needed = [name for name in where if name in self.values]
        columns: dict[str, Any] = {name: self._column(name, items) for name in needed}
        others = {name: column for name, column in items.data.items() if name not in columns}
        return matching_mask(where, others | columns, items.n)

    def _column(self, name: str, items: Items) -> Any:
        key = name, items.hash
        column = self._columns.get(key)
        if column is None:
            values = self.values[name]
            column = np.array([values.get(str(item)) for item in items.ids], dtype=object)
            self._columns[key] = column
        return column


class AttributeCache:
    """Attributes of studies, kept in memory until another version is stored."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache: LRUCache[int, ItemAttributes] = LRUCache(_MAX_CACHED_STUDIES)

    def of_study(self, study_id: int) -> ItemAttributes:
        """Return the current attributes of a study's items."""
        version = self._database.read(lambda connection: stored.version(connection, study_id))
        current = self._cache.get(study_id)
        if current is None or current.version != version:
            current = _read(self._database, study_id)
            self._cache[study_id] = current
        return current


def _read(database: Database, study_id: int) -> ItemAttributes:
    row = database.read(lambda connection: stored.content(connection, study_id))
    return ItemAttributes() if row is None else ItemAttributes(row[0], json.loads(zlib.decompress(row[1])))


def set_attributes(
    database: Database, study: Study, changes: Changes, *, missing: Missing, who: str
) -> tuple[ItemAttributes, int]:
    """Change attributes of a study's items; return all attributes, and the number of unknown ids that were skipped."""
    _check_changes(changes)
    known = {str(name) for name in study.all_items.ids}
    unknown = [item for item in dict.fromkeys(_items_of(changes)) if item not in known]
    if unknown and missing == "error":
        raise InvalidParameter(
            f"the study {study.row.slug!r} does not have {quoted(unknown)} ({plural(len(unknown), 'unknown item')}): "
            f'remove them, or send "missing": "ignore"',
            field="attributes",
        )
    changes = {
        name: {item: value for item, value in item_values.items() if item in known}
        for name, item_values in changes.items()
    }
    for _ in range(_MAX_ATTEMPTS):
        current = _read(database, study.row.id)
        values = current.changed(changes)
        if values == current.values:
            return current, len(unknown)
        if _store(database, study, current.version, values, who):
            return ItemAttributes(current.version + 1, values), len(unknown)
    raise Problem(
        409,
        "attributes_changed",
        f"the attributes of the study {study.row.slug!r} are being changed by others",
        received=study.row.slug,
        hint="Send the request again.",
    )


def _store(
    database: Database, study: Study, version: int, values: Mapping[str, Mapping[str, AttributeValue]], who: str
) -> bool:
    packed = zlib.compress(json.dumps(values, separators=(",", ":")).encode())

    def change(connection: sa.Connection) -> bool:
        if not stored.replace(connection, study.row.id, version, packed):
            return False
        studies.log_action(connection, who, "set_attributes", study.row.slug, attributes=len(values))
        return True

    try:
        return database.write(change)
    except sa.exc.IntegrityError:
        return False


def _items_of(changes: Changes) -> Iterable[str]:
    for column in changes.values():
        yield from column


def _check_changes(changes: Changes) -> None:
    for name, column in changes.items():
        if not name.strip() or len(name) > MAX_ATTRIBUTE_NAME_LENGTH or "\0" in name:
            raise InvalidParameter(
                f"an attribute is called {name[:80]!r}: give a name of 1 to {MAX_ATTRIBUTE_NAME_LENGTH} characters",
                field="attributes",
            )
        for item, value in column.items():
            is_long = isinstance(value, str) and len(value) > MAX_ATTRIBUTE_TEXT_LENGTH
            if is_long or (isinstance(value, float) and not np.isfinite(value)):
                raise InvalidParameter(
                    f"the attribute {name!r} of {item[:80]!r} is {str(value)[:80]!r}: give true or false, a finite "
                    f"number, or a text of at most {MAX_ATTRIBUTE_TEXT_LENGTH} characters",
                    field="attributes",
                )
