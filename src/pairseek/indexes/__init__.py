"""Catalogues of millions of items to recommend from: exact by numpy, or in FAISS, Qdrant or PostgreSQL.

The expected utility of an item, appeal - k E|w - x|², is linear in a vector that depends only on the item: for the
mean μ of the belief and any origin o it is k (2 (μ - o)·(x - o) + appeal/k - |x - o|²), up to a constant shared by all
items. The best items are therefore those with the highest inner product of (2 (μ - o), 1) and
(x - o, appeal/k - |x - o|²), and any vector database can find them. An unknown curvature of the utility adds a
coordinate to x, as it does in a search.

Examples
--------
>>> import pairseek as ps
>>> from pairseek.indexes import CatalogueIndex, ExactIndex
>>> items = ps.datasets.colours()
>>> search = ps.Search(items, rng=7)
>>> catalogue = CatalogueIndex.of(ExactIndex(), items, search)
>>> len(search.recommend(3, among=catalogue))
3
"""

from pairseek.indexes.base import CatalogueIndex, Hit, VectorIndex
from pairseek.indexes.exact import ExactIndex
from pairseek.indexes.faiss import FaissIndex
from pairseek.indexes.pgvector import PgvectorIndex
from pairseek.indexes.qdrant import QdrantIndex

__all__ = ["CatalogueIndex", "ExactIndex", "FaissIndex", "Hit", "PgvectorIndex", "QdrantIndex", "VectorIndex"]
