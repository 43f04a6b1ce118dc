"""`PgvectorIndex`: items in a PostgreSQL table with the extension pgvector."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairseek.core.types import FloatArray, ItemId
from pairseek.core.validation import without_numpy
from pairseek.errors import MissingExtra
from pairseek.indexes.base import Hit
from pairseek.model.catalogues import range_of

if TYPE_CHECKING:
    from psycopg import Connection


class PgvectorIndex:
    """An index in a table with the columns ``id``, ``vector`` and ``payload``; PostgreSQL computes the inner products.

    Without a pgvector index the results are exact. For millions of items an approximate one is faster: ``CREATE INDEX
    ON drinks USING hnsw (vector vector_ip_ops)``. A filter is a mapping from fields of the payload to a value or a list
    of values, or a ``psycopg.sql`` condition.

    Parameters
    ----------
    connection
        A psycopg 3 connection.
    table
        Name of the table. It is created if it does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> import psycopg
    >>> from pairseek.indexes import PgvectorIndex
    >>> connection = psycopg.connect("postgresql://localhost/shop", autocommit=True)
    >>> index = PgvectorIndex(connection, "drinks")
    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> index.add(["tea", "coffee", "cocoa"], vectors, {"hot": [True, True, False]})
    >>> index.best(np.array([0.5, 2.0]), 2)
    [('cocoa', 2.5), ('coffee', 2.0)]
    >>> index.best(np.array([0.5, 2.0]), 2, where={"hot": True}, exclude=["coffee"])
    [('tea', 0.5)]
    >>> connection.close()
    """

    def __init__(self, connection: Connection, table: str) -> None:
        try:
            from psycopg import sql
        except ImportError:
            raise MissingExtra("PgvectorIndex", "pgvector") from None
        self.connection, self._sql, self._table = connection, sql, sql.Identifier(table)

    def add(self, ids: Sequence[ItemId], vectors: FloatArray, payload: Mapping[str, Sequence[Any]]) -> None:
        """Add items, or replace those with the same ids."""
        create = (
            "CREATE TABLE IF NOT EXISTS {} (id text PRIMARY KEY, vector vector({}) NOT NULL, payload jsonb NOT NULL)"
        )
        float32_rows = np.asarray(vectors, dtype=np.float32).tolist()
        with self.connection.transaction(), self.connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
            cursor.execute(self._statement(create, vectors.shape[1]))
            cursor.execute(self._statement("CREATE TEMPORARY TABLE incoming (LIKE {}) ON COMMIT DROP"))
            with cursor.copy("COPY incoming FROM STDIN") as copy:
                for row, name in enumerate(ids):
                    copy.write_row((json.dumps(name), json.dumps(float32_rows[row]), _fields(payload, row)))
            cursor.execute(
                self._statement(
                    "INSERT INTO {} SELECT * FROM incoming "
                    "ON CONFLICT (id) DO UPDATE SET vector = EXCLUDED.vector, payload = EXCLUDED.payload"
                )
            )

    def remove(self, ids: Sequence[ItemId]) -> None:
        """Remove items."""
        names = [json.dumps(name) for name in ids]
        with self.connection.transaction(), self.connection.cursor() as cursor:
            cursor.execute(self._statement("DELETE FROM {} WHERE id = ANY({}::text[])", names))

    def update(self, ids: Sequence[ItemId], payload: Mapping[str, Sequence[Any]]) -> None:
        """Change fields of the payload."""
        with self.connection.transaction(), self.connection.cursor() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE changed (id text, payload jsonb) ON COMMIT DROP")
            with cursor.copy("COPY changed FROM STDIN") as copy:
                for row, name in enumerate(ids):
                    copy.write_row((json.dumps(name), _fields(payload, row)))
            cursor.execute(
                self._statement(
                    "UPDATE {} AS kept SET payload = kept.payload || changed.payload FROM changed "
                    "WHERE kept.id = changed.id"
                )
            )

    def best(
        self,
        query: FloatArray,
        count: int,
        *,
        where: object = None,
        only: Sequence[ItemId] | None = None,
        exclude: Sequence[ItemId] = (),
    ) -> list[Hit]:
        """Return the items with the highest inner products, best first; an approximate pgvector index may miss some."""
        sql, target = self._sql, json.dumps(np.asarray(query, dtype=np.float32).tolist())
        conditions = [] if where is None or isinstance(where, Mapping) else [where]
        for key, value in where.items() if isinstance(where, Mapping) else ():
            if isinstance(value, Mapping):
                # The SQL/JSON filter skips texts and missing values, which are outside any range.
                path = " && ".join(f"@ {sign} {end!r}" for sign, end in _finite_ends(key, value))
                conditions.append(sql.SQL("payload -> {} @? {}::jsonpath").format(key, f"$ ? ({path})"))
                continue
            values = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
            texts = [json.dumps(without_numpy(accepted)) for accepted in values]
            conditions.append(sql.SQL("payload -> {} = ANY({}::jsonb[])").format(key, texts))
        for names, condition in ((only, "id = ANY({}::text[])"), (exclude or None, "id <> ALL({}::text[])")):
            if names is not None:
                conditions.append(sql.SQL(condition).format([json.dumps(name) for name in names]))
        filter_condition = sql.SQL(" AND ").join(conditions) if conditions else sql.SQL("true")
        # The operator <#> is the negative inner product, because indexes only support ascending order.
        select = "SELECT id, -(vector <#> {}::vector) FROM {} WHERE {} ORDER BY vector <#> {}::vector, id LIMIT {}"
        statement = sql.SQL(select).format(target, self._table, filter_condition, target, count)
        with self.connection.transaction(), self.connection.cursor() as cursor:
            return [(json.loads(name), float(score)) for name, score in cursor.execute(statement).fetchall()]

    def _statement(self, text: str, *values: int | list[str]) -> Any:
        return self._sql.SQL(text).format(self._table, *values)


def _finite_ends(key: str, value: Mapping[str, Any]) -> list[tuple[str, float]]:
    low, high = range_of(key, value)
    return [(sign, end) for sign, end in ((">=", low), ("<=", high)) if np.isfinite(end)]


def _fields(payload: Mapping[str, Sequence[Any]], row: int) -> str:
    """Return a row of the payload as JSON."""
    return json.dumps({key: without_numpy(column[row]) for key, column in payload.items()})
