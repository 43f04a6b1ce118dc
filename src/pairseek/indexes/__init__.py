"""Catalogues of millions of items to recommend from: exact by numpy, or in FAISS, Qdrant or PostgreSQL.

A person's expected utility of item x is appeal + linear·x + quadratic |x|² + constant, whatever k, the prior and the
curvature: only the coefficients depend on the person. The best items are therefore those whose vectors
(x, |x|², appeal) have the highest inner product with (linear, quadratic, 1), and any vector database can find them.

Examples
--------
>>> import pairseek as ps
>>> from pairseek.indexes import CatalogueIndex, ExactIndex
>>> items = ps.datasets.colours()
>>> search = ps.Search(items, rng=7)
>>> catalogue = CatalogueIndex.of(ExactIndex(), items)
>>> len(search.recommend(3, among=catalogue))
3
"""

from pairseek.indexes.base import CatalogueIndex, Hit, VectorIndex
from pairseek.indexes.exact import ExactIndex
from pairseek.indexes.faiss import FaissIndex
from pairseek.indexes.pgvector import PgvectorIndex
from pairseek.indexes.qdrant import QdrantIndex

__all__ = ["CatalogueIndex", "ExactIndex", "FaissIndex", "Hit", "PgvectorIndex", "QdrantIndex", "VectorIndex"]
