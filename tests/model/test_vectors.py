"""`Items.from_vectors`: the map, its dimension, tables and files, and what users get wrong."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import pairseek as ps
from pairseek.model.vectors import principal_map


def catalogue(n=400, length=48, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((length, length)))[0]
    return rng.standard_normal((n, length)) * np.arange(1, length + 1) ** (-power / 2) @ turn + 3.0


def test_coordinates_are_the_principal_components_on_one_scale():
    vectors = catalogue()
    items = ps.Items.from_vectors(vectors, dimension=5)
    centred = vectors - vectors.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    expected = left[:, :5] * values[:5]
    expected /= np.sqrt(np.mean(np.var(expected, axis=0, ddof=1)))
    signs = np.sign(np.sum(expected * items.coordinates, axis=0))
    # Axes are rounded to single precision, so that coordinates of about 1 agree to about 1e-6.
    assert np.abs(items.coordinates - signs * expected).max() < 1e-5


def test_fewer_items_than_numbers_give_the_same_axes():
    vectors = catalogue(n=30)
    items = ps.Items.from_vectors(vectors, dimension=4)
    values = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False)
    kept = items.vector_map.provenance["variance_kept"]
    assert kept == pytest.approx(np.sum(values[:4] ** 2) / np.sum(values**2))


def test_three_axes_are_kept_for_each_answer_as_far_as_they_explain_anything():
    vectors = catalogue(length=200)
    assert [ps.Items.from_vectors(vectors, answers=answers).d for answers in (3, 10, 30)] == [9, 30, 64]
    flat = catalogue()[:, :1] * np.arange(1.0, 9.0) + 1e-3 * catalogue(seed=1)[:, :8]
    assert ps.Items.from_vectors(flat, standardize=False).d == 1


def test_new_vectors_are_placed_by_the_same_map(tmp_path):
    vectors = catalogue()
    items = ps.Items.from_vectors(vectors, ids=[f"p{i}" for i in range(400)])
    some = ps.Items.from_vectors(vectors[5:9], ids=list("abcd"), vector_map=items.vector_map)
    assert np.array_equal(some.coordinates, items.coordinates[5:9])
    items.vector_map.save(tmp_path / "map.json")
    again = ps.VectorMap.load(tmp_path / "map.json")
    assert np.array_equal(again.place(vectors[:3]), items.coordinates[:3])
    assert again.provenance == items.vector_map.provenance
    assert pickle.loads(pickle.dumps(items)).vector_map.place(vectors[:1]).shape == (1, items.d)
    with pytest.raises(ps.errors.InvalidItems, match="47 components but the map takes 48"):
        again.place(vectors[:, :47])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_precision_of_the_vectors_does_not_matter(dtype):
    items = ps.Items.from_vectors(catalogue().astype(dtype), dimension=3)
    assert items.coordinates.dtype == np.float64


def test_columns_of_different_units_are_standardized_and_embeddings_are_not():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((200, 4)) * [120.0, 1.0, 0.2, 5.0]
    assert ps.Items.from_vectors(table).vector_map.provenance["standardized"]
    assert not ps.Items.from_vectors(catalogue()).vector_map.provenance["standardized"]
    assert not ps.Items.from_vectors(table, standardize=False).vector_map.provenance["standardized"]
    # A column that is constant counts for nothing, in either case.
    dead = np.column_stack([catalogue(), np.full(400, 7.1)])
    items = ps.Items.from_vectors(dead)
    assert np.all(items.vector_map.axes[-1] == 0)


def test_files_frames_and_mappings(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    vectors = catalogue(n=50, length=8)
    ids = [f"sku-{i}" for i in range(50)]
    expected = ps.Items.from_vectors(vectors, ids)
    np.save(tmp_path / "v.npy", vectors)
    assert np.array_equal(ps.Items.from_vectors(tmp_path / "v.npy").coordinates, expected.coordinates)
    assert ps.Items.from_vectors(dict(zip(ids, vectors, strict=True))) == expected
    flat = pyarrow.array(vectors.ravel())
    for column in (pyarrow.array(vectors.tolist()), pyarrow.FixedSizeListArray.from_arrays(flat, 8)):
        table = pyarrow.table({"id": ids, "embedding": column, "colour": ["red"] * 50, "label": ids})
        parquet.write_table(table, tmp_path / "v.parquet")
        for source in (table, str(tmp_path / "v.parquet")):
            items = ps.Items.from_vectors(source)
            assert items == expected
            assert items.data["colour"] == ("red",) * 50
    wide = pyarrow.table({"product_id": ids, **{f"x{i}": vectors[:, i] for i in range(8)}})
    assert ps.Items.from_vectors(wide) == expected


class Frame:
    """The part of a data frame that the reader uses."""

    def __init__(self, columns):
        self.columns = list(columns)
        self._columns = columns

    def __getitem__(self, name):
        return self._columns[name]


def test_any_frame_with_columns_is_read():
    vectors = catalogue(n=20, length=6)
    rows = np.empty(20, dtype=object)
    rows[:] = list(vectors)
    frame = Frame({"id": np.arange(20), "vector": rows})
    assert ps.Items.from_vectors(frame) == ps.Items.from_vectors(vectors)


def bad(vectors, row, column, value):
    out = np.array(vectors)
    out[row, column] = value
    return out


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda v: ps.Items.from_vectors(bad(v, 7, 3, np.nan)),
            "InvalidItems",
            "component 3 of the vector of item 7 is nan",
        ),
        (
            lambda v: ps.Items.from_vectors(bad(v, 7, 3, np.inf), ids=[f"p{i}" for i in range(400)]),
            "InvalidItems",
            "'p7'",
        ),
        (lambda v: ps.Items.from_vectors([*v[:3].tolist(), [1.0]]), "InvalidItems", "item 3 has 1 components"),
        (lambda v: ps.Items.from_vectors(v[0]), "InvalidItems", "1 axes"),
        (lambda v: ps.Items.from_vectors(v[:1]), "InvalidItems", "is 1 vector"),
        (lambda v: ps.Items.from_vectors(np.ones((5, 4))), "InvalidItems", "are the same"),
        (lambda v: ps.Items.from_vectors(v, ids=[1, 2]), "InvalidItems", "2 ids for 400"),
        (lambda v: ps.Items.from_vectors(v, dimension=49), "InvalidParameter", "at most 48"),
        (lambda v: ps.Items.from_vectors(v, dimension="few"), "InvalidParameter", "dimension is 'few'"),
        (
            lambda v: ps.Items.from_vectors(v, dimension=0),
            "InvalidParameter",
            "dimension is 0: give a whole number, at least 1, or 'auto'$",
        ),
        (
            lambda v: ps.Items.from_vectors(v, answers="auto"),
            "InvalidParameter",
            "answers is 'auto': give a whole number, at least 1$",
        ),
        (lambda v: ps.Items.from_vectors(v, standardize=3), "InvalidParameter", "standardize is 3"),
        (lambda v: ps.Items.from_vectors(v, vector_map="map"), "InvalidParameter", "vector_map is 'map'"),
        (lambda v: ps.Items.from_vectors("none.npy"), "InvalidItems", "no file"),
        (lambda v: ps.Items.from_vectors(v * 1e200), "InvalidItems", "overflow"),
        (lambda v: ps.Items.from_vectors(Frame({"id": np.arange(3)})), "InvalidItems", "no vectors"),
        (lambda v: ps.Items.from_vectors([["a", "b"], ["c", "d"]]), "InvalidItems", "table of numbers"),
        (lambda v: ps.Items.from_vectors(v + 1j), "InvalidItems", "complex"),
    ],
)
def test_invalid_vectors_are_rejected_with_the_reason(call, error, words):
    with pytest.raises(getattr(ps.errors, error), match=words):
        call(catalogue())


def test_many_coordinates_give_a_warning_with_the_remedy():
    vectors = catalogue(length=384)
    with pytest.warns(ps.DimensionWarning, match=r"384 coordinates, and 30 principal axes explain .*from_vectors"):
        ps.Items(vectors)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.Items.from_vectors(vectors)
        ps.Items(vectors[:, :64])


def test_a_map_of_mismatched_shapes_is_rejected():
    with pytest.raises(ps.errors.InvalidParameter) as caught:
        ps.VectorMap(np.zeros(3), np.zeros((4, 2)))
    assert str(caught.value) == ("centre has shape (3,), axes (4, 2) and offset (2,): give (D,), (D, d) and (d,)")
    with pytest.raises(ps.errors.InvalidParameter, match=r"and offset \(3,\)"):
        ps.VectorMap(np.zeros(4), np.zeros((4, 2)), offset=np.zeros(3))
    assert principal_map(catalogue()).provenance["chosen"]
