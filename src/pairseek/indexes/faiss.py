"""`FaissIndex`: items in a FAISS index, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pairseek.core.types import FloatArray, ItemId
from pairseek.errors import MissingExtra
from pairseek.indexes.base import Hit
from pairseek.indexes.exact import InMemoryIndex


class FaissIndex(InMemoryIndex):
    """A FAISS index for inner products, with the payload of the items kept next to it.

    Not every FAISS index can delete vectors, so removed and replaced items stay in it and are skipped. Build a new
    index when they are many.

    Parameters
    ----------
    index
        A trained, empty FAISS index with the inner product metric. None: ``IndexFlatIP``, which is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from pairseek.indexes import FaissIndex
    >>> index = FaissIndex()
    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> index.add(["tea", "coffee", "cocoa"], vectors, {"hot": [True, True, False]})
    >>> index.best(np.array([0.5, 2.0]), 2)
    [('cocoa', 2.5), ('coffee', 2.0)]
    >>> index.best(np.array([0.5, 2.0]), 2, where={"hot": True}, exclude=["coffee"])
    [('tea', 0.5)]
    """

    def __init__(self, index: Any = None) -> None:
        try:
            import faiss
        except ImportError:
            raise MissingExtra("FaissIndex", "faiss") from None
        # Its type hints describe the C++ signatures, not the Python wrappers.
        self._faiss: Any = faiss
        super().__init__()
        self._index = index

    def add(self, ids: Sequence[ItemId], vectors: FloatArray, payload: Mapping[str, Sequence[Any]]) -> None:
        """Add items, or replace those with the same ids."""
        self._payload.add(ids, payload)
        if self._index is None:
            self._index = self._faiss.IndexFlatIP(vectors.shape[1])
        self._index.add(np.ascontiguousarray(vectors, dtype=np.float32))

    def best(
        self,
        query: FloatArray,
        count: int,
        *,
        where: object = None,
        only: Sequence[ItemId] | None = None,
        exclude: Sequence[ItemId] = (),
    ) -> list[Hit]:
        """Return the items with the highest inner products among those that pass the filter of `PayloadTable`."""
        if self._index is None:
            return []
        mask = self._payload.mask(where, only, exclude)
        parameters = None
        if mask is not None:
            bits = np.packbits(mask, bitorder="little")
            parameters = self._faiss.SearchParameters(sel=self._faiss.IDSelectorBitmap(bits))
        scores, rows = self._index.search(np.asarray(query, dtype=np.float32)[None], count, params=parameters)
        hits = zip(rows[0].tolist(), scores[0].tolist(), strict=True)
        return [(self._payload.ids[row], score) for row, score in hits if row >= 0]
