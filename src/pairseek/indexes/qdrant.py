"""`QdrantIndex`: items in a Qdrant collection."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairseek.core.types import FloatArray, ItemId
from pairseek.core.validation import without_numpy
from pairseek.errors import MissingExtra
from pairseek.indexes.base import Hit
from pairseek.model.catalogues import range_of

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

_NAMESPACE = uuid.UUID("6f1f2a0e-4f0b-4a53-9a4e-0f7b8f6c2d11")
_BATCH_SIZE = 1000
_ID_FIELD = "pairseek_id"


class QdrantIndex:
    """A Qdrant collection with the distance ``DOT``.

    Filters are Qdrant's own (``models.Filter``), or a mapping from fields of the payload to a value or a list of
    values.

    Parameters
    ----------
    client
        A ``QdrantClient`` connected to a server, or ``QdrantClient(":memory:")``.
    collection
        Name of the collection. It is created if it does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from qdrant_client import QdrantClient
    >>> from pairseek.indexes import QdrantIndex
    >>> index = QdrantIndex(QdrantClient(":memory:"), "drinks")
    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> index.add(["tea", "coffee", "cocoa"], vectors, {"hot": [True, True, False]})
    >>> index.best(np.array([0.5, 2.0]), 2)
    [('cocoa', 2.5), ('coffee', 2.0)]
    >>> index.best(np.array([0.5, 2.0]), 2, where={"hot": True}, exclude=["coffee"])
    [('tea', 0.5)]
    """

    def __init__(self, client: QdrantClient, collection: str) -> None:
        try:
            from qdrant_client import models
        except ImportError:
            raise MissingExtra("QdrantIndex", "qdrant") from None
        self.client, self.collection, self._models = client, collection, models

    def add(self, ids: Sequence[ItemId], vectors: FloatArray, payload: Mapping[str, Sequence[Any]]) -> None:
        """Add items, or replace those with the same ids."""
        models = self._models
        if not self.client.collection_exists(self.collection):
            size = models.VectorParams(size=vectors.shape[1], distance=models.Distance.DOT)
            self.client.create_collection(self.collection, vectors_config=size)
        for start in range(0, len(ids), _BATCH_SIZE):
            batch = range(start, min(start + _BATCH_SIZE, len(ids)))
            self.client.upsert(
                self.collection,
                models.Batch(
                    ids=[_point_id(ids[row]) for row in batch],
                    vectors=np.asarray(vectors[batch.start : batch.stop], dtype=np.float32).tolist(),
                    payloads=[{_ID_FIELD: ids[row], **_fields(payload, row)} for row in batch],
                ),
            )

    def remove(self, ids: Sequence[ItemId]) -> None:
        """Remove items."""
        points = self._models.PointIdsList(points=[_point_id(name) for name in ids])
        self.client.delete(self.collection, points)

    def update(self, ids: Sequence[ItemId], payload: Mapping[str, Sequence[Any]]) -> None:
        """Change fields of the payload."""
        present = self.client.retrieve(self.collection, [_point_id(name) for name in ids], with_payload=False)
        known = {point.id for point in present}
        # Many items change alike, as when they go out of stock.
        alike: dict[str, tuple[dict[str, Any], list[Any]]] = {}
        for row, point in enumerate(map(_point_id, ids)):
            if point in known:
                fields = _fields(payload, row)
                alike.setdefault(json.dumps(fields, sort_keys=True), (fields, []))[1].append(point)
        for fields, points in alike.values():
            self.client.set_payload(self.collection, fields, points)

    def best(
        self,
        query: FloatArray,
        count: int,
        *,
        where: object = None,
        only: Sequence[ItemId] | None = None,
        exclude: Sequence[ItemId] = (),
    ) -> list[Hit]:
        """Return the items with the highest inner products, best first; Qdrant's approximate search may miss some."""
        models = self._models
        if isinstance(where, Mapping):
            where = models.Filter(must=[self._condition(key, value) for key, value in where.items()])
        must = [where] if where is not None else []
        if only is not None:
            must.append(models.HasIdCondition(has_id=[_point_id(name) for name in only]))
        barred = [models.HasIdCondition(has_id=[_point_id(name) for name in exclude])] if exclude else None
        query_filter = models.Filter(must=must, must_not=barred) if must or barred else None
        points: list[Any] = self.client.query_points(
            self.collection, query=np.asarray(query, dtype=np.float32).tolist(), query_filter=query_filter, limit=count
        ).points
        return [(point.payload[_ID_FIELD], float(point.score)) for point in points]

    def _condition(self, key: str, value: object) -> Any:
        models = self._models
        if isinstance(value, Mapping):
            low, high = range_of(key, value)
            ends = {name: end for name, end in (("gte", low), ("lte", high)) if np.isfinite(end)}
            return models.FieldCondition(key=key, range=models.Range(**ends))
        if isinstance(value, list | tuple | set | frozenset):
            return models.FieldCondition(key=key, match=models.MatchAny(any=list(value)))
        match = models.MatchValue(value=value)
        return models.FieldCondition(key=key, match=match)


def _point_id(item: ItemId) -> str:
    """Return the id of an item's point; Qdrant requires a number or a UUID."""
    return str(uuid.uuid5(_NAMESPACE, repr(item)))


def _fields(payload: Mapping[str, Sequence[Any]], row: int) -> dict[str, Any]:
    """Return a row of the payload."""
    return {key: without_numpy(column[row]) for key, column in payload.items()}
