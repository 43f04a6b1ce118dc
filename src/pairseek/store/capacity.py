"""Limits of the columns in SQLite and PostgreSQL.

SQLite stores 64-bit integers and text of any length, with NUL; PostgreSQL refuses them. The store refuses such values
in both, so that a backup of either database can be restored into the other. SQLite databases of earlier versions may
hold such values: their studies continue, and their backups can be restored into SQLite.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from pairseek.core.validation import obstacle_to_storing
from pairseek.errors import InvalidParameter

# Largest value of PostgreSQL's type `integer`.
_MAX_INTEGER = 2**31 - 1
# Ids of items are checked where items come in.
_ITEM_IDS = frozenset({"left", "right"})
RESTORES_OPTION = "restores"
"""Execution option of a connection that restores a backup."""


def refuse_unstorable(
    connection: sa.Connection, _cursor: object, _statement: str, _parameters: object, context: Any, _many: object
) -> None:
    """Raise an `InvalidParameter` before a statement if one of the databases could not store its values."""
    if context is None or context.compiled is None or not (context.isinsert or context.isupdate):
        return
    is_sqlite = connection.dialect.name == "sqlite"
    if is_sqlite and connection.get_execution_options().get(RESTORES_OPTION):
        return
    unchecked = _ITEM_IDS if is_sqlite else frozenset()
    kinds = {name: bind.type for name, bind in context.compiled.binds.items() if name not in unchecked}
    for row in context.compiled_parameters:
        for name, kind in kinds.items():
            obstacle = _obstacle(kind, row.get(name))
            if obstacle is not None:
                table = context.compiled.statement.table.name
                raise InvalidParameter(
                    f"the value of {name!r} for the table {table!r} cannot be stored: {obstacle}; change it"
                )


def _obstacle(kind: sa.types.TypeEngine[Any], value: object) -> str | None:
    if isinstance(value, str) and isinstance(kind, sa.String):
        return obstacle_to_storing(value, kind.length)
    if isinstance(value, int) and isinstance(kind, sa.Integer) and not isinstance(kind, sa.BigInteger):
        return None if abs(value) <= _MAX_INTEGER else f"it is larger than {_MAX_INTEGER:,}"
    return None
