"""Column names of a table and the roles they stand for, such as ``userId`` for the person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pairseek.errors import InvalidParameter, PairseekError

DATASET_ID_COLUMNS = ("movieid", "parent_asin", "asin")
"""Columns of item ids in MovieLens and Amazon files, apart from names that end in ``_id``."""
_KNOWN_COLUMNS = {
    "person": ("userid", "user_id", "reviewerid", "customer_id", "visitorid"),
    "item": (*DATASET_ID_COLUMNS, "product_id", "item_id", "itemid"),
    "rating": ("overall", "star_rating"),
    "event": ("event_type",),
}
# RecBole appends the type of a column to its name, as in "user_id:token".
_RECBOLE_TYPE = re.compile(r":(token|token_seq|float|float_seq)$")


@dataclass(frozen=True)
class Header:
    """Column names of a table.

    Attributes
    ----------
    written
        Names in the file.
    names
        Names by which readers look columns up: without case, or the role if a column has one.
    """

    written: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, written: Sequence[str]) -> Self:
        """Return a header without roles."""
        return cls(tuple(written), tuple(map(plain_name, written)))

    @property
    def renamed(self) -> dict[str, str]:
        """Written names of the columns that have a role under another name, by role."""
        pairs = zip(self.written, self.names, strict=True)
        return {name: column for column, name in pairs if name and name != plain_name(column)}

    def with_roles(
        self, columns: Mapping[str, str] | None, roles: Sequence[str], source: str, error: type[PairseekError]
    ) -> Header:
        """Assign roles: those that the caller names, and recognized names for roles that are still free."""
        assigned = assigned_columns(columns, roles, self.written, source, error)
        positions = {role: self.written.index(column) for role, column in assigned.items()}
        # A column that happens to be called like a role assigned elsewhere must not shadow it.
        names = ["" if name in positions else name for name in self.names]
        for role, position in positions.items():
            names[position] = role
        for role, known in _KNOWN_COLUMNS.items():
            column = next((name for name in known if name in names), None)
            if column is not None and role in roles and role not in names:
                names[names.index(column)] = role
        return Header(self.written, tuple(names))


def plain_name(column: str) -> str:
    """Return a column name without case, surrounding space and the type that RecBole appends.

    Examples
    --------
    >>> plain_name(" User_ID:token")
    'user_id'
    """
    return _RECBOLE_TYPE.sub("", column.strip().casefold())


def assigned_columns(
    columns: Mapping[str, str] | None,
    roles: Sequence[str],
    written: Sequence[str],
    source: str,
    error: type[PairseekError],
) -> dict[str, str]:
    """Check a mapping from roles to columns, and return it."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise InvalidParameter(
            f"columns is {columns!r}: give a dict from roles to columns, such as {{{roles[0]!r}: 'userId'}}",
            field="columns",
        )
    owner: dict[str, str] = {}
    for role, column in columns.items():
        if role not in roles:
            raise InvalidParameter(
                f"columns assigns the unknown role {role!r}: use {', '.join(roles)}", field="columns"
            )
        if column in owner:
            raise InvalidParameter(
                f"columns assigns the column {column!r} to both {owner[column]!r} and {role!r}: choose one",
                field="columns",
            )
        owner[column] = role
        if column not in written:
            raise error(f"{source} has no column {column!r}: its columns are {', '.join(written)}")
    return dict(columns)
