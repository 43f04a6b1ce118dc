"""Data frames and Parquet: what goes out comes back, and errors say what is missing."""

from __future__ import annotations

import builtins
import io
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pairseek as ps
from helpers.refusals import missing_extra, refused
from pairseek.core import frames
from pairseek.embed import Triplets
from pairseek.errors import InvalidChoices, InvalidItems
from pairseek.web.studies.items import read_items as read_study_items

BACKENDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
PAIRS = [("ann", "tea", "milk"), ("bob", "milk", "tea"), ("bob", "tea", "cocoa")]


def items_of(ids):
    points = np.random.default_rng(1).normal(size=(len(ids), 3))
    return ps.Items(
        points, ids=ids, labels=[f"<{name}>" for name in ids], appeal=[0.5, 0.0, -1.25], data={"c": ["x", "y", "z"]}
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("ids", [["a", "b", "c"], [7, 30, 100]])
def test_items_come_back_from_a_frame(backend, ids):
    items = items_of(ids)
    frame = items.to_frame(backend)
    assert isinstance(frame, BACKENDS[backend])
    back = ps.Items.from_frame(frame, keep=["c"])
    assert back == items
    assert (back.labels, dict(back.data)) == (items.labels, dict(items.data))


@pytest.mark.parametrize("backend", BACKENDS)
def test_choices_with_ties_come_back_from_a_frame(backend):
    choices = ps.Choices.from_pairs(PAIRS, tied=[("ann", "cocoa", "tea")])
    assert ps.Choices.from_frame(choices.to_frame(backend)).hash == choices.hash


@pytest.mark.parametrize("backend", BACKENDS)
def test_ratings_come_back_from_a_frame_with_ids_of_their_type(backend):
    rows = [("ann", 30, 1.0), ("ann", 7, 3.5), ("bob", 100, 2.0), ("bob", 7, 5.0)]
    choices = ps.Choices.from_ratings(rows)
    frame = choices.to_frame(backend)
    assert ps.Choices.from_frame(frame).ids == (7, 30, 100)
    assert ps.Choices.from_frame(frame).hash == choices.hash
    given = ps.Choices.from_frame(frame, ids=[100, 30, 7])
    assert given.hash == ps.Choices.from_ratings(rows, ids=[100, 30, 7]).hash


def test_rankings_go_into_a_frame():
    ranking = ps.rank(ps.Choices.from_pairs([(who, "a", "b") for who in "xyz"]))
    frame = ranking.to_frame("polars")
    assert frame["id"].to_list() == list(ranking.ids)


def test_a_named_index_and_vectors_are_read():
    frame = pd.DataFrame({"v": [[0.0, 1.0], [2.0, 3.0]]}, index=pd.Index(["a", "b"], name="id"))
    items = ps.Items.from_frame(frame)
    assert items.ids == ("a", "b")
    assert items.coordinates.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert ps.Items.from_frame(pl.DataFrame({"id": [1, 2], "v": [[0.0, 1.0], [2.0, 3.0]]})).d == 2


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"id": ["a", "b"], "x": [1.0, None]}), "row 1, column 'x': nan is not a finite number"),
        (pl.DataFrame({"id": ["a", "b"], "x": ["1", "y"]}), "row 1, column 'x': 'y' is not a number"),
        (pl.DataFrame({"id": ["a", "b"], "x": [None, 1.0]}), "row 0, column 'x': None is not a number"),
        (pl.DataFrame({"id": ["a", "b"]}), "the data frame has no coordinates"),
        (pl.DataFrame({"id": [], "x": []}), "no rows"),
        (pl.DataFrame({"id": ["a", "b"], "v": [[1.0], [1.0, 2.0]]}), "column 'v': the vectors differ in length"),
        (pl.LazyFrame({"id": ["a"]}), "lazyframe.*is not a data frame"),
        ([1, 2], "a builtins.list is not a data frame"),
    ],
)
def test_invalid_frames_of_items_are_refused(frame, message):
    with pytest.raises(InvalidItems, match=f"(?i){message}"):
        ps.Items.from_frame(frame)


def test_invalid_frames_of_choices_are_refused():
    with pytest.raises(InvalidChoices):
        ps.Choices.from_frame(pl.DataFrame({"person": ["a"], "x": [1]}))
    with pytest.raises(InvalidChoices):
        ps.Choices.from_frame(pd.DataFrame({"person": ["a"], "item": ["b"], "rating": [None]}))


def test_names_that_clash_are_refused():
    items = ps.Items([[0.0], [1.0]], data={"x0": ["a", "b"]})
    with pytest.raises(InvalidItems):
        items.to_frame()
    with refused("backend") as caught:
        items_of([1, 2, 3]).to_frame("excel")
    assert caught.value.field == "backend"


# Parquet


def test_items_are_read_from_parquet_as_from_csv(tmp_path):
    items = items_of([7, 30, 100])
    items.to_csv(tmp_path / "a.csv")
    items.to_frame("polars").write_parquet(tmp_path / "a.parquet")
    from_csv, from_parquet = (ps.Items.from_csv(tmp_path / f"a.{end}", keep=["c"]) for end in ("csv", "parquet"))
    assert from_csv == from_parquet
    assert from_parquet.ids == ("7", "30", "100")
    pq.write_table(items.to_frame("pyarrow").drop_columns(["c"]), tmp_path / "b.parquet")
    assert ps.Items.from_file(tmp_path / "b.parquet") == from_csv


def test_choices_ratings_and_triplets_are_read_from_parquet_as_from_csv(tmp_path):
    tables = {
        "pairs": ("person,winner,loser", [("ann", 1, 2), ("bob", 3, 1)]),
        "ratings": ("person,item,rating", [("ann", 1, 2.5), ("ann", 2, 4.0), ("bob", 3, 1.0), ("bob", 1, 0.0)]),
        "triplets": ("anchor,near,far", [(1, 2, 3), (2, 3, 1)]),
    }
    for name, (header, rows) in tables.items():
        frame = pl.DataFrame(rows, schema=header.split(","), orient="row")
        frame.write_csv(tmp_path / f"{name}.csv")
        frame.write_parquet(tmp_path / f"{name}.parquet")
    for name in ("pairs", "ratings"):
        assert ps.Choices.read(tmp_path / f"{name}.parquet").hash == ps.Choices.read(tmp_path / f"{name}.csv").hash
    first, second = (Triplets.read(tmp_path / f"triplets.{end}") for end in ("csv", "parquet"))
    assert first.rows.tolist() == second.rows.tolist()
    assert first.ids == second.ids


def test_a_study_takes_uploaded_parquet_and_bounds_what_it_unpacks(tmp_path, monkeypatch):
    path = tmp_path / "wines.parquet"
    pl.DataFrame({"id": [1, 2], "label": ["Merlot", "Port"], "colour": ["#aa0000", "#550000"]}).write_parquet(path)
    items = read_study_items(path, content=path.read_bytes())
    assert items.ids == ("1", "2")
    assert items.data["colour"] == ("#aa0000", "#550000")
    assert items.d == 0
    monkeypatch.setattr(frames, "MAX_UNPACKED_BYTES", 10)
    with pytest.raises(InvalidItems):
        read_study_items(path, content=path.read_bytes())
    assert read_study_items(path).n == 2


HOSTILE = {
    "missing cells": lambda: pa.table({f"c{k}": pa.nulls(200_000) for k in range(26)}),
    "true and false": lambda: pa.table({f"c{k}": pa.array([True] * 200_000) for k in range(26)}),
    "a long vector": lambda: pa.table({"v": pa.array([[None] * 5_000_001, []], pa.list_(pa.null()))}),
    "a repeated text": lambda: pa.table({"id": ["x" * 1_000_000] * 300}),
    "a repeated category": lambda: pa.table(
        {"id": pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int32()), ["x" * 1_000_000])}
    ),
    "lists of a repeated text": lambda: pa.table({"v": [["x" * 1_000_000] * 300]}),
    "repeated bytes": lambda: pa.table({"v": pa.array([bytes(1_000_000)] * 300, pa.binary(1_000_000))}),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_small_upload_that_unpacks_to_a_huge_table_is_refused_before_it_is_unpacked(kind):
    content = io.BytesIO()
    pq.write_table(HOSTILE[kind](), content, compression="zstd")
    assert content.tell() < 500_000
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(InvalidItems, match=r"an upload may have 5,000,000 cells|more than 256 MB|an upload has no"):
            read_study_items(Path("bomb.parquet"), content=content.getvalue())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
    assert pa.total_allocated_bytes() - before < 20_000_000


def test_an_upload_of_many_columns_is_refused_before_its_columns_are_read():
    table = pa.table({f"c{number}": [1.0, 2.0] for number in range(frames.MAX_COLUMNS + 1)})
    file = io.BytesIO()
    pq.write_table(table, file)
    with pytest.raises(InvalidItems, match=f"{frames.MAX_COLUMNS + 1:,} columns"):
        read_study_items(Path("a.parquet"), content=file.getvalue())


def test_uploaded_texts_numbers_and_vectors_are_read_as_from_a_file(tmp_path):
    path = tmp_path / "a.parquet"
    columns = {
        "id": [f"i{k}" for k in range(20_000)],
        "text": ["a", None, "b", "b"] * 5000,
        "kind": pa.array(["p", "q"] * 10_000).dictionary_encode(),
        "count": pa.array([1, 2] * 10_000).dictionary_encode(),
        "bytes": pa.array([b"ab", b"cd"] * 10_000, pa.binary(2)),
        "v": [[0.5, 1.5]] * 20_000,
    }
    pq.write_table(pa.table(columns), path)
    uploaded = frames.parquet_columns(path, InvalidItems, path.read_bytes())
    assert uploaded == frames.parquet_columns(path, InvalidItems)
    assert uploaded["kind"][:2] == ["p", "q"]
    assert uploaded["v1"][-1] == 1.5


@pytest.mark.parametrize("content", [b"", b"PAR1", b"id,x\na,1\n", b"PAR1" + bytes(50) + b"PAR1"])
def test_damaged_parquet_is_refused(tmp_path, content):
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(InvalidItems, match="cannot be read as Parquet"):
        ps.Items.from_file(path)
    with pytest.raises(InvalidChoices):
        ps.Choices.read(path)
    with pytest.raises(InvalidItems):
        ps.Items.from_file(tmp_path / "missing.parquet")


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"id": ["a", "b"], "x": [1.0, 2.0]}).write_parquet(path)
    real = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] in ("narwhals", "pyarrow"):
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for attempt in (
        lambda: ps.Items.from_frame(pd.DataFrame()),
        lambda: ps.Items.from_file(path),
        lambda: ps.Choices.read(path),
        lambda: items_of([1, 2, 3]).to_frame(),
    ):
        with missing_extra("frames"):
            attempt()
    with pytest.raises(InvalidItems):
        read_study_items(path, content=path.read_bytes())


def test_frames_are_imported_only_where_they_are_used():
    program = "import sys, pairseek; print(sorted({'narwhals', 'pandas', 'polars', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
