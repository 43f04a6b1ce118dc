"""A catalogue of a million items, 2,000 of them askable: the time of an answer and a question, of ten filtered
recommendations, and of a day's change of 2 % of the items.

    python benchmarks/catalogue.py
    python benchmarks/catalogue.py --n 200000 --d 16 --qdrant 20000

The reference, in the same run, is ``search.recommend`` from the items themselves, in double precision. FAISS and Qdrant
are measured if they are installed. Qdrant runs in its local mode, which is slow Python code, with fewer items.
"""

from __future__ import annotations

import argparse
import importlib.util
import time

import numpy as np

import pairseek as ps
from pairseek.indexes import CatalogueIndex, ExactIndex, FaissIndex, PgvectorIndex, QdrantIndex


def timed(function, repeats=5):
    function()
    wall, cpu = [], []
    for _ in range(repeats):
        began, worked = time.perf_counter(), time.process_time()
        found = function()
        wall.append(1e3 * (time.perf_counter() - began))
        cpu.append(1e3 * (time.process_time() - worked))
    return found, f"{np.median(wall):.0f} ms (median), {max(wall):.0f} ms (max), cpu {np.median(cpu):.0f} ms"


def a_day(shelf, items, rng):
    """Remove, add and move a third of 2 % of the items each, change the stock of 2 %, and time the four calls."""
    count = items.n // 150
    rows = rng.permutation(items.n)
    new = ps.Items(rng.standard_normal((count, items.d)), [f"new {i}" for i in range(count)])
    moved = items.subset(np.sort(rows[count : 2 * count]))
    sold = [items.ids[row] for row in rows[2 * count : 5 * count]]
    began = time.perf_counter()
    shelf.remove([items.ids[row] for row in rows[:count]])
    shelf.add(new, {"stock": [True] * count})
    shelf.add(moved, {"stock": [True] * count})
    shelf.update(sold, {"stock": [False] * len(sold)})
    return f"{time.perf_counter() - began:.2f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--d", type=int, default=16)
    parser.add_argument("--askable", type=int, default=2000)
    parser.add_argument("--answers", type=int, default=10)
    parser.add_argument("--pgvector", metavar="ADDRESS", help="PostgreSQL with the extension pgvector")
    parser.add_argument("--qdrant", type=int, default=20_000, help="number of items for Qdrant's local mode")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    n, d = arguments.n, arguments.d
    scale = 1.0 / np.sqrt(np.arange(1, d + 1))
    items = ps.Items(rng.standard_normal((n, d)) * scale, appeal=0.3 * rng.standard_normal(n))
    stock = rng.random(n) < 0.7
    search = ps.Search(items, askable=arguments.askable, rng=1)
    search.ask()
    wall, cpu = [], []
    for _ in range(arguments.answers):
        query = search.ask()
        began, worked = time.perf_counter(), time.process_time()
        search.tell(query, winner=query.left)
        search.ask()
        wall.append(1e3 * (time.perf_counter() - began))
        cpu.append(1e3 * (time.process_time() - worked))
    print(
        f"n = {n:,}, d = {d}, {arguments.askable:,} askable: an answer and the next question {np.median(wall):.0f} ms "
        f"(median), {max(wall):.0f} ms (max), cpu {np.median(cpu):.0f} and {max(cpu):.0f} ms"
    )
    mask = np.flatnonzero(stock)
    ids = [items.ids[row] for row in mask]
    exact, words = timed(lambda: search.recommend(10, only=stock), repeats=2)
    print(f"recommend 10 of {len(ids):,} from the items themselves: {words}")
    indexes = {"numpy": ExactIndex}
    if importlib.util.find_spec("faiss"):
        indexes["FAISS"] = FaissIndex
    for name, index in indexes.items():
        shelf = CatalogueIndex.of(index(), items, {"stock": stock}).where({"stock": True})
        found, words = timed(lambda shelf=shelf: search.recommend(10, among=shelf), repeats=9)
        common = len({one.id for one in found} & {one.id for one in exact})
        print(f"recommend 10 by {name} with the filter: {words}, recall {common / 10:.2f}")
        print(f"a day's change of 2 % by {name}: {a_day(shelf, items, rng)}")
    if importlib.util.find_spec("qdrant_client"):
        from qdrant_client import QdrantClient

        rows = np.sort(rng.choice(n, arguments.qdrant, replace=False))
        some = items.subset(rows)
        shelf = CatalogueIndex.of(QdrantIndex(QdrantClient(":memory:"), "shelf"), some, {"stock": stock[rows]})
        found, words = timed(lambda: search.recommend(10, among=shelf.where({"stock": True})), repeats=3)
        exact = search.recommend(10, among=some, only=stock[rows])
        common = len({one.id for one in found} & {one.id for one in exact})
        print(f"recommend 10 by Qdrant's local mode, {len(rows):,} items: {words}, recall {common / 10:.2f}")
        print(f"a day's change of 2 % by Qdrant's local mode: {a_day(shelf, some, rng)}")
    if arguments.pgvector:
        import psycopg

        with psycopg.connect(arguments.pgvector, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS shelf")
            shelf = CatalogueIndex.of(PgvectorIndex(connection, "shelf"), items, {"stock": stock})
            found, words = timed(lambda: search.recommend(10, among=shelf.where({"stock": True})), repeats=3)
            print(f"recommend 10 by pgvector without an index of its own: {words}")
            print(f"a day's change of 2 % by pgvector: {a_day(shelf, items, rng)}")


if __name__ == "__main__":
    main()
