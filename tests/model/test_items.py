"""Items: content, validation messages and file formats."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.io import savemat

from helpers.refusals import read_only
from pairseek.errors import InvalidItems, UnknownItem
from pairseek.model.items import Items

POINTS = [[0.0, 0.5], [1.0, -0.25], [0.3, 2.0]]
FINITE = st.floats(-1e300, 1e300, allow_subnormal=True)


class TestItemsHold:
    def test_points_ids_labels_appeal_and_data(self):
        items = Items(POINTS, ids=["a", "b", 7], labels=["A", "B", "C"], appeal=[0, 1, -1], data={"price": [3, 4, 5]})
        assert (items.n, items.d, len(items)) == (3, 2, 3)
        assert items.coordinates.tolist() == POINTS
        assert items.ids == ("a", "b", 7)
        assert items.labels == ("A", "B", "C")
        assert items.appeal.tolist() == [0.0, 1.0, -1.0]
        assert dict(items.data) == {"price": (3, 4, 5)}
        assert [items.index(x) for x in ("a", "b", 7)] == [0, 1, 2]

    def test_default_ids_labels_appeal_and_data(self):
        items = Items(POINTS)
        assert items.ids == (0, 1, 2)
        assert items.labels == ("0", "1", "2")
        assert not items.appeal.any()
        assert dict(items.data) == {}

    def test_numpy_ids_become_plain_python_values(self):
        items = Items(POINTS, ids=np.array([5, 6, 7]))
        assert [type(x) for x in items.ids] == [int, int, int]
        assert items.index(np.int64(6)) == 1
        assert Items(POINTS, ids=np.array(["x", "y", "z"])).ids == ("x", "y", "z")

    def test_one_dimension_and_shared_points(self):
        assert Items([[0.0], [0.0], [1.0]]).d == 1

    def test_the_spread_of_the_papers_experiments(self):
        items = Items(np.random.default_rng(0).normal(size=(50, 3)))
        assert items.spread == pytest.approx(math.sqrt(np.trace(np.cov(items.coordinates.T))))

    def test_copies_that_later_changes_of_the_arguments_do_not_affect(self):
        points, appeal, prices = np.array(POINTS), np.zeros(3), [1, 2, 3]
        items = Items(points, appeal=appeal, data={"price": prices})
        before = items.hash
        points[0, 0], appeal[0] = 99.0, 99.0
        prices.append(4)
        assert items.coordinates[0, 0] == 0.0
        assert items.appeal[0] == 0.0
        assert items.data["price"] == (1, 2, 3)
        assert Items(POINTS, data={"price": [1, 2, 3]}).hash == before

    def test_read_only_values(self):
        items = Items(POINTS, data={"price": [1, 2, 3]})
        with read_only():
            items.coordinates[0, 0] = 1.0
        with read_only():
            items.appeal[0] = 1.0
        with pytest.raises(TypeError):
            items.data["price"] = ()
        with pytest.raises(dataclasses.FrozenInstanceError):
            items.ids = ()


class TestHash:
    def test_depends_only_on_the_content(self):
        items = Items(POINTS, ids=["a", "b", "c"])
        assert items == Items(np.array(POINTS), ids=("a", "b", "c"))
        assert hash(items) == hash(Items(POINTS, ids=["a", "b", "c"]))
        assert items != "something else"

    @pytest.mark.parametrize(
        "other",
        [
            Items([[0.0, 0.5], [1.0, -0.25], [0.3, math.nextafter(2.0, 3.0)]]),
            Items(POINTS, ids=[0, 1, 3]),
            Items(POINTS, ids=["0", "1", "2"]),
            Items(POINTS, appeal=[0, 0, 1e-9]),
            Items(POINTS[::-1]),
            Items(np.array(POINTS).reshape(2, 3)),
        ],
    )
    def test_changes_with_anything_that_a_search_depends_on(self, other):
        assert other.hash != Items(POINTS).hash
        assert other != Items(POINTS)


class TestItemsRefuse:
    @pytest.mark.parametrize(
        ("points", "message"),
        [
            *(
                (
                    [[0.0, 1.0], [2.0, 3.0], [4.0, bad]],
                    rf"coordinate 1 of item 2 is {bad} \(1 not finite in total\): remove the item or fill it in",
                )
                for bad in (math.nan, math.inf, -math.inf)
            ),
            ([[0.0, 1.0], [None, 3.0], [4.0, None]], r"coordinate 0 of item 1 is nan \(2 not finite in total\)"),
            ([[0.0, 1.0], [2.0]], r"do not form a table of numbers \(.*\): give n rows of d numbers each"),
            ([["red", 1.0], ["blue", 2.0]], r"coordinates do not form a table of numbers .*'red'"),
            (np.array(POINTS) * 1j, "do not form a table of numbers"),
            ([[1j, 0.0], [0.0, 1.0]], "do not form a table of numbers"),
            ("abc", "coordinates have 0 axes|do not form a table"),
            ({"x": 1}, "coordinates have 0 axes|do not form a table"),
            ([[0.0, 1.0]], "there is 1 item: a pair needs at least 2"),
            (np.empty((0, 3)), "there are no items: a pair needs at least 2"),
            (np.empty((4, 0)), "the 4 items have no coordinates: give at least one dimension"),
            (np.zeros(4), r"coordinates have 1 axes, shape .*: give an \(n, d\) array"),
            (np.zeros((2, 2, 2)), r"coordinates have 3 axes, shape .*: give an \(n, d\) array"),
            (np.zeros(()), r"coordinates have 0 axes, shape .*: give an \(n, d\) array"),
            ([[1.0, 2.0]] * 3, "all 3 items are at the same point: no pair would be informative"),
        ],
    )
    def test_coordinates_that_are_no_table_of_finite_numbers(self, points, message):
        with pytest.raises(InvalidItems, match=message):
            Items(points)

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({"ids": ["a", "b", "a"]}, "items 0 and 2 have the same id 'a': make ids unique"),
            ({"ids": ["a", 1.5, "c"]}, "id .* of item 1 is a float: use int or str"),
            ({"ids": ["a", None, "c"]}, "id .* of item 1 is a NoneType: use int or str"),
            ({"ids": ["a", True, "c"]}, "id .* of item 1 is a bool: use int or str"),
            ({"ids": ["a", (1,), "c"]}, "id .* of item 1 is a tuple: use int or str"),
            ({"ids": [1, 2]}, "2 ids for 3 items: give one per item"),
            ({"labels": ["x"] * 4}, "4 labels for 3 items: give one per item"),
            ({"appeal": [0.0, 1.0]}, r"appeal has shape \(2,\): give 3 numbers, one per item"),
            ({"appeal": [0.0, math.nan, 1.0], "ids": ["a", "b", "c"]}, "appeal of item 'b' is not finite"),
            ({"data": {"price": [1]}}, "1 values of the column 'price' for 3 items: give one per item"),
            ({"ids": 5}, "ids is 5: give a list of 3, one per item"),
            ({"ids": "abc"}, "ids is 'abc': give a list of 3"),
            ({"labels": 5}, "labels is 5: give a list of 3"),
            ({"appeal": ["x", 1, 2]}, r"appeal is \['x', 1, 2\] .*: give 3 numbers"),
            ({"appeal": [1j, 1, 2]}, "they are complex"),
            ({"data": {"a": 5}}, "values of the column 'a' is 5: give a list of 3"),
            ({"data": [1, 2, 3]}, r"data is \[1, 2, 3\]: give a dict"),
        ],
    )
    def test_columns_of_the_wrong_length_or_kind(self, more, message):
        with pytest.raises(InvalidItems, match=message):
            Items(POINTS, **more)

    @pytest.mark.parametrize(
        ("ids", "item", "message"),
        [
            (["5", "6", "7"], 7, r"^'7' is an id, 7 is not: ids read from a CSV file are text"),
            ([5, 6, 7], "7", r"^7 is an id, '7' is not"),
            (None, True, "no item has the id True"),
            *(
                (["a", "b", "c"], item, "no item has the id .*: the ids run from 'a' to 'c'")
                for item in ("d", 0, None, [1], 1.5)
            ),
        ],
    )
    def test_an_id_that_no_item_has(self, ids, item, message):
        with pytest.raises(UnknownItem, match=message):
            Items(POINTS, ids=ids).index(item)


class TestCopies:
    @pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
    def test_a_copy_is_the_same_and_as_immutable(self, again):
        items = Items(POINTS, ids=["a", 2, "c"], labels=["A", "B", "C"], appeal=[1, 2, 3], data={"price": [1, 2, 3]})
        twin = again(items)
        assert twin == items
        assert (twin.ids, twin.labels, dict(twin.data)) == (items.ids, items.labels, dict(items.data))
        for array in (twin.coordinates, twin.appeal):
            with read_only():
                array[0] = 5.0
        with pytest.raises(TypeError):
            twin.data["price"] = (1,)


class TestScaled:
    def test_follows_the_papers_rule(self):
        rng = np.random.default_rng(0)
        raw = Items(rng.normal(size=(200, 3)) @ np.diag([1.0, 3.0, 0.2]) + 5.0, appeal=rng.normal(size=200))
        scaled = raw.scaled()
        assert scaled.coordinates.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
        smallest = np.linalg.svd(scaled.coordinates, compute_uv=False)[-1] ** 2 / 199
        # Three standard deviations of the narrowest direction reach the corner, sqrt(d) from the centre.
        assert 3 * math.sqrt(smallest) == pytest.approx(math.sqrt(3))
        assert np.ptp((raw.coordinates - 5.0) / scaled.coordinates.std(axis=0), axis=0).min() > 0
        assert (scaled.ids, scaled.labels, scaled.appeal.tolist()) == (raw.ids, raw.labels, raw.appeal.tolist())

    def test_does_nothing_the_second_time(self):
        items = Items(np.random.default_rng(1).normal(size=(40, 4))).scaled()
        assert items.scaled().coordinates == pytest.approx(items.coordinates, abs=1e-12)

    def test_works_in_one_dimension(self):
        items = Items([[0.0], [1.0], [5.0]]).scaled()
        assert 3 * np.std(items.coordinates, ddof=1) == pytest.approx(1.0)

    def test_of_flat_items_is_an_error_that_names_the_direction(self):
        line = np.linspace(0, 1, 20)
        message = r"the items are flat: they do not vary along the direction \(-?0\.894, -?0\.447\)"
        with pytest.raises(InvalidItems, match=message):
            Items(np.stack([line, -2 * line], axis=1)).scaled()

    def test_gives_the_scale_factors_of_the_authors_where_their_data_is_present(self, shared):
        """Without the data: a synthetic table whose factor is known in closed form."""
        if shared is None:
            square = Items([[-1.0, -2.0], [-1.0, 2.0], [1.0, -2.0], [1.0, 2.0]])
            # Variances 4/3 and 16/3; factor sqrt(2)/(3 sqrt(4/3)).
            factor = square.scaled().coordinates[3, 0] / 1.0
            assert factor == pytest.approx(math.sqrt(2) / (3 * math.sqrt(4 / 3)), rel=1e-14)
            return
        published = json.loads((shared / "data" / "food10k" / "noise.json").read_text())
        for d, facts in published.items():
            raw = Items(np.load(shared / "data" / "food10k" / f"items-d{int(d):02d}.npy"))
            centred = raw.coordinates - raw.coordinates.mean(axis=0)
            row, column = np.unravel_index(np.argmax(np.abs(centred)), centred.shape)
            factor = raw.scaled().coordinates[row, column] / centred[row, column]
            assert factor == pytest.approx(facts["scale"], rel=1e-13), d


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


class TestCsv:
    @pytest.mark.filterwarnings("ignore::pairseek.ScaleWarning")  # coordinates are drawn
    @given(
        points=arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(1, 4)), elements=FINITE),
        appeal=st.floats(-1e6, 1e6),
        seed=st.integers(0, 1000),
    )
    def test_comes_back_as_it_was_written(self, tmp_path_factory, points, appeal, seed):
        points[0, 0], points[1, 0] = 0.0, 1.0
        n = len(points)
        texts = ["plain", "with, comma", 'with "quotes"', "a;b", "ünïcödé", "'single'"]
        labels = [texts[(seed + row) % 6] for row in range(n)]
        items = Items(
            points,
            ids=[f"item {row}" for row in range(n)],
            labels=labels,
            appeal=[appeal * row for row in range(n)],
            data={"price": [f"{row} €" for row in range(n)], "kind": labels},
        )
        path = tmp_path_factory.mktemp("csv") / "items.csv"
        items.to_csv(path)
        back = Items.from_csv(path, keep=["price", "kind"])
        assert back == items
        assert back.coordinates.tobytes() == items.coordinates.tobytes()
        assert (back.labels, dict(back.data)) == (items.labels, dict(items.data))

    @pytest.mark.parametrize(
        ("ids", "message"),
        [
            ([1, "1"], "the ids 1 and '1' are the same in a CSV file: rename one"),
            ([" a", "a"], "the id ' a' begins or ends with a space"),
            (["a", "b\t"], r"the id 'b\\t' begins or ends with a space"),
        ],
    )
    def test_ids_that_would_not_come_back_are_refused_when_writing(self, tmp_path, ids, message):
        with pytest.raises(InvalidItems, match=message):
            Items([[0.0, 1.0], [1.0, 0.0]], ids=ids).to_csv(tmp_path / "a.csv")
        assert not (tmp_path / "a.csv").exists()

    def test_whole_numbers_as_ids_come_back_as_text(self, tmp_path):
        Items([[0.0, 1.0], [1.0, 0.0]], ids=[7, 8]).to_csv(tmp_path / "a.csv")
        assert Items.from_csv(tmp_path / "a.csv").ids == ("7", "8")

    @pytest.mark.parametrize("name", ["id", "label", "x0", "ID"])
    def test_data_under_a_reserved_name_is_refused(self, tmp_path, name):
        items = Items([[0.0, 1.0], [1.0, 0.0]], data={name: ["a", "b"]})
        with pytest.raises(InvalidItems, match=f"data has a column '{name}'"):
            items.to_csv(tmp_path / "a.csv")
        assert not (tmp_path / "a.csv").exists()

    def test_reads_ids_labels_appeal_kept_columns_and_coordinates(self, tmp_path):
        text = "id,label,colour,x,appeal,y\nq1,First,red,0.5,1,2\nq2,Second,blue,-1e-3,-2,.25\n"
        items = Items.from_csv(write(tmp_path / "a.csv", text), keep=["colour"])
        assert items.ids == ("q1", "q2")
        assert items.labels == ("First", "Second")
        assert items.appeal.tolist() == [1.0, -2.0]
        assert items.coordinates.tolist() == [[0.5, 2.0], [-0.001, 0.25]]
        assert dict(items.data) == {"colour": ("red", "blue")}

    @pytest.mark.parametrize(
        ("header", "ids"), [("item", ("a", "b")), ("name", ("a", "b")), ("who", ("a", "b")), ("id", ("a", "b"))]
    )
    def test_finds_the_column_of_ids(self, tmp_path, header, ids):
        assert Items.from_csv(write(tmp_path / "a.csv", f"{header},x\na,1\nb,2\n")).ids == ids

    def test_numbers_in_the_first_column_are_coordinates_unless_it_is_named_id(self, tmp_path):
        assert Items.from_csv(write(tmp_path / "a.csv", "x,y\n1,2\n3,4\n")).d == 2
        named = Items.from_csv(write(tmp_path / "b.csv", "y,id\n1,20\n3,40\n"))
        assert (named.d, named.ids) == (1, ("20", "40"))

    @pytest.mark.parametrize(
        "header", ["ID", "Id", "Item", "NAME", "wine_id", "Wine_ID", "wine-id", "", "Unnamed: 0", "index"]
    )
    def test_a_column_of_ids_never_becomes_a_coordinate(self, tmp_path, header):
        items = Items.from_csv(write(tmp_path / "a.csv", f"{header},x,y\n0,1,2\n1,3,4\n"))
        assert items.ids == ("0", "1")
        assert items.coordinates.tolist() == [[1.0, 2.0], [3.0, 4.0]]

    def test_label_and_appeal_are_found_in_any_case(self, tmp_path):
        items = Items.from_csv(write(tmp_path / "a.csv", "ID,Label,APPEAL,x\n1,One,0.5,1\n2,Two,0,2\n"))
        assert (items.ids, items.labels, items.appeal.tolist(), items.d) == (("1", "2"), ("One", "Two"), [0.5, 0.0], 1)

    def test_a_numbering_of_the_rows_is_left_out_where_there_are_ids(self, tmp_path):
        items = Items.from_csv(write(tmp_path / "a.csv", ",id,x\n0,a,1\n1,b,2\n"))
        assert (items.ids, items.d) == (("a", "b"), 1)

    def test_a_table_whose_columns_were_numbered_by_another_tool_is_read(self, tmp_path):
        items = Items.from_csv(write(tmp_path / "a.csv", ",0,1\n0,.5,.6\n1,.7,.8\n"))
        assert (items.ids, items.coordinates.tolist()) == (("0", "1"), [[0.5, 0.6], [0.7, 0.8]])
        named = Items.from_csv(write(tmp_path / "b.csv", "wine,0,1\na,.5,.6\nb,.7,.8\n"))
        assert (named.ids, named.d) == (("a", "b"), 2)

    def test_a_second_column_of_ids_can_be_kept_as_data(self, tmp_path):
        items = Items.from_csv(write(tmp_path / "a.csv", "id,region_id,x\n1,5,2\n2,6,3\n"), keep=["region_id"])
        assert (items.ids, items.d, items.data["region_id"]) == (("1", "2"), 1, ("5", "6"))

    def test_a_byte_order_mark_blank_lines_spaces_and_other_line_ends_do_no_harm(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_bytes('\ufeffid, x ,y\r\n\r\n a ,1, 2\r\n   \r\n"b, c",3,4\r\n\r\n'.encode())
        items = Items.from_csv(path)
        assert items.ids == ("a", "b, c")
        assert items.coordinates.tolist() == [[1.0, 2.0], [3.0, 4.0]]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "id,x,y\na,1,2\n\nb,3,oops\n",
                r"a\.csv, line 4, column 'y': 'oops' is not a number; fix it, or keep it as data with keep=\['y'\]",
            ),
            # Lines are counted as an editor counts them.
            ('id,label,x\na,"two\nlines",1\nb,one,oops\n', "line 4, column 'x': 'oops' is not a number"),
            ("id,x\na,1\nb,nan\n", "line 3, column 'x': 'nan' is not a finite number"),
            ("id,x\na,inf\nb,2\n", "line 2, column 'x': 'inf' is not a finite number"),
            ("id,x\na,1\nb,\n", "line 3, column 'x': '' is not a number"),
            ("id,x,appeal\na,1,0\nb,2,much\n", "line 3, column 'appeal': 'much' is not a number"),
            ("id,x,y\na,1,2\nb,3\n", "line 3: expected 3 cells, received 2"),
            ("id,x,y\na,1,2,9\nb,3,4\n", "line 2: expected 3 cells, received 4"),
            ("id,x,x\na,1,2\nb,3,4\n", r"2 columns named 'x': rename or remove all but one"),
            ("", "is empty: give a header row, then one row per item"),
            ("\n  \n", "is empty: give a header row"),
            ("id,x\n", "has a header but no items: give one row per item"),
            ("id,label\na,A\nb,B\n", "has no coordinates: its columns are id, label"),
            ("id,x\na,1\na,2\n", "items 0 and 1 have the same id 'a'"),
            ("0.1,0.2\n0.3,0.4\n0.5,0.6\n", "begins with 0.1, 0.2, which looks like an item .* add a header row"),
            ("1,1\n2,3\n4,5\n", "begins with 1, 1, which looks like an item"),
            ("merlot,0.1,0.2\nriesling,0.3,0.4\npinot,1,2\n", "begins with merlot, 0.1, 0.2, which looks like an item"),
            (
                "wine_id,region_id,x\n1,1,2\n2,1,3\n",
                r"'wine_id' and 'region_id', which both look .* keep=\['region_id'\]",
            ),
            ("id,region_id,x\n1,1,2\n2,1,3\n", r"'id' and 'region_id', which both look like ids"),
            ("ID,id,x\n1,1,2\n2,2,3\n", "'ID' and 'id', which both look like ids"),
            (
                "id,Label,label,x\n1,1,2,3\n2,1,3,4\n",
                "'Label' and 'label': only one can be the label; rename the other, or keep it",
            ),
            ("x,\n1,2\n3,4\n", "column 2 has no name in the header"),
            (",x\n0.5,2\n3,4\n", "column 1 has no name in the header"),
            (",x\n3,2\n3,4\n", "column 1 has no name in the header"),
            ("id,x\na,1\n", "there is 1 item: a pair needs at least 2"),
            ("id,x\na,1\nb,1\n", "all 2 items are at the same point"),
        ],
    )
    def test_says_what_is_wrong(self, tmp_path, text, message):
        with pytest.raises(InvalidItems, match=message):
            Items.from_csv(write(tmp_path / "a.csv", text))

    def test_names_a_missing_file_or_column(self, tmp_path):
        with pytest.raises(InvalidItems):
            Items.from_csv(tmp_path / "missing.csv")
        path = write(tmp_path / "a.csv", "id,x\na,1\nb,2\n")
        with pytest.raises(InvalidItems):
            Items.from_csv(path, keep=["price"])

    def test_refuses_a_binary_file(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_bytes(b"\x89PNG\r\n\x1a\n\x01\x02" * 10)
        with pytest.raises(InvalidItems):
            Items.from_csv(path)


class TestFiles:
    def test_npy_npz_mat_and_csv_are_recognized_by_extension(self, tmp_path):
        points = np.array(POINTS)
        np.save(tmp_path / "a.npy", points)
        np.savez(tmp_path / "a.npz", coordinates=points, ids=np.array(["a", "b", "c"]))
        np.savez(tmp_path / "b.npz", X=points)
        savemat(tmp_path / "a.mat", {"X": points, "other": 3})
        Items(points).to_csv(tmp_path / "a.csv")
        for name in ("a.npy", "a.npz", "b.npz", "a.mat", "a.csv"):
            assert Items.from_file(tmp_path / name).coordinates.tolist() == POINTS, name
        assert Items.from_file(str(tmp_path / "a.npz")).ids == ("a", "b", "c")

    def test_says_what_is_wrong(self, tmp_path):
        np.savez(tmp_path / "a.npz", stuff=np.zeros(3))
        with pytest.raises(InvalidItems):
            Items.from_file(tmp_path / "a.npz")
        write(tmp_path / "a.json", "{}")
        with pytest.raises(InvalidItems):
            Items.from_file(tmp_path / "a.json")
        for ending in ("npy", "npz", "mat"):
            write(tmp_path / f"broken.{ending}", "not what it says")
            with pytest.raises(InvalidItems, match=rf"broken\.{ending} cannot be read as \.{ending}"):
                Items.from_file(tmp_path / f"broken.{ending}")
            with pytest.raises(InvalidItems, match=rf"there is no file .*missing\.{ending}"):
                Items.from_file(tmp_path / f"missing.{ending}")

    def test_never_runs_code_from_a_file(self, tmp_path):
        np.save(tmp_path / "a.npy", np.array([{"a": 1}, {"b": 2}], dtype=object), allow_pickle=True)
        with pytest.raises(InvalidItems):
            Items.from_file(tmp_path / "a.npy")
