"""Triplets: what they accept, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from pairseek.embed import Triplets, simulate_triplets
from pairseek.errors import InvalidTriplets


def write_csv(folder, text):
    path = folder / "triplets.csv"
    path.write_text(text, encoding="utf-8")
    return path


def by_id(triplets):
    return [tuple(triplets.ids[i] for i in row) for row in triplets.rows.tolist()]


def test_an_array_is_anchor_near_far():
    triplets = Triplets([[0, 1, 2], [3, 2, 0]])
    assert triplets.n == 4
    assert triplets.unseen == ()
    assert Triplets([[0, 1, 2]], ids=["a", "b", "c", "d"]).unseen == ("d",)


def test_triplets_may_repeat_and_contradict_each_other():
    assert len(Triplets([[0, 1, 2], [0, 1, 2], [0, 2, 1]])) == 3


def test_ordered_lists_of_cblearn_are_read():
    assert Triplets.from_ordered([[0, 1, 2, 3]]).rows.tolist() == [[0, 1, 2], [0, 1, 3], [0, 2, 3]]
    swapped = Triplets.from_ordered([[0, 1, 2], [0, 1, 2]], [1, -1])
    assert swapped.rows.tolist() == [[0, 1, 2], [0, 2, 1]]
    assert Triplets.from_ordered([[0, 1, 2]], [False]).rows.tolist() == [[0, 2, 1]]


@pytest.mark.parametrize(
    "text",
    [
        "anchor,near,far\nplum,cherry,leek\nleek,plum,cherry\n",
        "plum,cherry,leek\nleek,plum,cherry\n",
        "head,left,right,winner,loser,puid\nplum,leek,cherry,cherry,leek,9\nleek,plum,cherry,plum,cherry,9\n",
        "Center,Left,Right,Answer\nplum,leek,cherry,cherry\nleek,plum,cherry,plum\n",
        "far,anchor,near\r\nleek,plum,cherry\r\n\r\ncherry,leek,plum\r\n",
    ],
    ids=["ids", "bare", "salmon", "left and right", "any order"],
)
def test_files_of_every_format_are_read(tmp_path, text):
    triplets = Triplets.from_csv(write_csv(tmp_path, text))
    assert by_id(triplets) == [("plum", "cherry", "leek"), ("leek", "plum", "cherry")]


def test_numeric_ids_are_sorted_as_numbers(tmp_path):
    triplets = Triplets.from_csv(write_csv(tmp_path, "head,winner,loser\n10,9,2\n"))
    assert triplets.ids == (2, 9, 10)
    assert Triplets.from_csv(write_csv(tmp_path, "007,9,2\n")).ids == ("007", "2", "9")


def test_a_file_that_was_written_reads_back(tmp_path):
    triplets = Triplets.from_ids([("b", "a", "c"), ("c", "a", "b")])
    triplets.to_csv(tmp_path / "t.csv")
    assert by_id(Triplets.from_csv(tmp_path / "t.csv")) == by_id(triplets)


def test_lines_are_selected_by_column(tmp_path):
    path = write_csv(tmp_path, "head,winner,loser,alg\n0,1,2,Test\n1,2,0,Random\n")
    assert by_id(Triplets.from_csv(path, where={"alg": "Test"})) == [(0, 1, 2)]
    with pytest.raises(InvalidTriplets):
        Triplets.from_csv(path, where={"alg": "Tset"})
    with pytest.raises(InvalidTriplets):
        Triplets.from_csv(path, where={"arm": "Test"})


def test_triplets_match_items_by_id_or_its_text():
    items = ps.Items(np.eye(3), ids=["2", "9", "10"])
    assert Triplets([[0, 1, 2]], ids=[10, 9, 2]).among(items).tolist() == [[2, 1, 0]]


def test_a_split_and_folds_have_every_triplet_once():
    triplets = simulate_triplets(ps.Items(np.random.default_rng(0).normal(size=(20, 2))), 101, 3)
    most, held = triplets.split(0.2, 1)
    assert (len(most), len(held)) == (81, 20)
    together = sorted([*most.rows.tolist(), *held.rows.tolist()])
    assert together == sorted(triplets.rows.tolist())
    folds = list(triplets.folds(4, 1))
    assert sorted(row for _, held in folds for row in held.rows.tolist()) == together
    assert {len(most) + len(held) for most, held in folds} == {101}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("anchor,near,far\na,b,c\na,b,b\n", r"line 3: 'a', 'b', 'b' names 'b' twice"),
        ("anchor,near,far\na,b,c\na,,c\n", r"line 3: 'a', '', 'c' lacks an item"),
        ("anchor,near,far\na,b,c\nnan,b,c\n", r"line 3: 'nan', 'b', 'c' lacks an item"),
        ("anchor,near,far\na,b,x\n", r"line 2: 'x' is not among the 3 items \('a' to 'c'\)"),
        ("head,left,right,winner\na,b,c,d\n", r"line 2: the answer 'd' is neither 'b' nor 'c'"),
        ("anchor,near,far\na,b\n", r"line 2: 2 cells, but 3 in the first line"),
        ("anchor,near,far\n", "holds no triplets"),
        ("one,two\n1,2\n", "name them anchor, near and far"),
        ("", "is empty"),
    ],
)
def test_an_error_in_a_file_names_line_and_value(tmp_path, text, message):
    with pytest.raises(InvalidTriplets, match=message):
        Triplets.from_csv(write_csv(tmp_path, text), ids=["a", "b", "c"])


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InvalidTriplets):
        Triplets.from_csv(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1, 1]], r"triplet 0 is \(0, 1, 1\) and names an item twice"),
        ([[0, 1, 2], [0, 1, 9]], r"triplet 1 names the unknown item 9: there are 4 items"),
        ([[0, -1, 2]], r"unknown item -1"),
        ([[0, 1, float("nan")]], r"triplet 0 has nan in column 2"),
        ([[0, 1, 1.5]], r"has 1.5 in column 2"),
        ([[0, 1]], r"shape \(1, 2\): give \(m, 3\)"),
        (np.empty((0, 3)), "at least one"),
        ([["a", "b", "c"]], "Triplets.from_ids"),
        ([[0, 1, 2], [0]], "not a table"),
    ],
)
def test_an_error_in_an_array_names_its_place(rows, message):
    with pytest.raises(InvalidTriplets, match=message):
        Triplets(rows, ids=["a", "b", "c", "d"])


def test_ids_may_be_an_array():
    assert Triplets([[0, 1, 2]], ids=np.array([5, 6, 7])).ids == (5, 6, 7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Triplets([[0, 1, 2]], ids=["a", "b", "a"]), "two items have the id 'a'"),
        (
            lambda: Triplets([[0, 1, 2]], ids=[10, 9, 7]).among(ps.Items(np.eye(3), ids=["2", "9", "10"])),
            "triplet 0 names the item 7, which is not among the 3 items",
        ),
        (lambda: Triplets.from_ordered([[0, 1, 2]], [1, 1]), "give a response for each row of three"),
        (lambda: Triplets.from_ordered([[0, 1, 2]], [3]), "give 1 or -1"),
    ],
)
def test_items_and_responses_that_do_not_fit_are_refused(make, message):
    with pytest.raises(InvalidTriplets, match=message):
        make()


def test_shares_and_folds_out_of_range_are_refused():
    triplets = Triplets([[0, 1, 2], [1, 2, 0]])
    with refused("share"):
        triplets.split(1.0, 0)
    with refused("folds"):
        list(triplets.folds(3, 0))


def test_simulated_triplets_are_uniform_and_follow_the_model():
    items = ps.Items(np.random.default_rng(1).normal(size=(5, 2)))
    triplets = simulate_triplets(items, 30_000, 7)
    unordered = [(i, *sorted((j, k))) for i, j, k in triplets.rows.tolist()]
    counts = np.array([unordered.count(row) for row in sorted(set(unordered))])
    # 30 different triplets, 1000 expected of each: five standard deviations of a Poisson count.
    assert len(counts) == 30
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000)
    assert ps.metrics.triplet_error(items, triplets.rows) == 0.0
    response = ps.Logistic(1.5, "normalized")
    noisy = simulate_triplets(items, 30_000, 8, response=response).rows
    points = items.coordinates
    slopes, offsets = response.planes(points[noisy[:, 1]], points[noisy[:, 2]])
    chance = response.probability(np.abs((slopes * points[noisy[:, 0]]).sum(axis=1) + offsets))
    right = 1.0 - ps.metrics.triplet_error(items, noisy)
    assert right == pytest.approx(chance.mean(), abs=4 * np.sqrt(0.25 / 30_000))
