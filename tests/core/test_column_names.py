"""Tests of column roles: names given by the caller, and names of public datasets."""

from __future__ import annotations

from pathlib import Path

import pytest

import pairseek as ps
from pairseek.errors import InvalidChoices, InvalidItems, InvalidParameter, InvalidTriplets

RATINGS = [("1", "31", 2.5), ("1", "1029", 3.0), ("7", "31", 4.0)]


def written(folder: Path, name: str, header: str, separator: str = ",", more: str = "9") -> Path:
    path = folder / name
    rows = [separator.join([*map(str, row), more]) for row in RATINGS]
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("name", "header", "separator", "renamed"),
    [
        ("ratings.csv", "userId,movieId,rating,timestamp", ",", {"person": "userId", "item": "movieId"}),
        (
            "amazon.csv",
            "reviewerID,asin,overall,unixReviewTime",
            ",",
            {"person": "reviewerID", "item": "asin", "rating": "overall"},
        ),
        (
            "ml.inter",
            "user_id:token\titem_id:token\trating:float\ttimestamp:float",
            "\t",
            {"person": "user_id:token", "item": "item_id:token"},
        ),
        ("plain.csv", "Person,Item,Rating,when", ",", {}),
    ],
)
def test_public_datasets_are_read_as_they_are(
    tmp_path: Path, name: str, header: str, separator: str, renamed: dict[str, str]
) -> None:
    choices = ps.Choices.read(written(tmp_path, name, header, separator))
    assert choices.hash == ps.Choices.from_ratings(RATINGS).hash
    assert choices.renamed_columns == renamed
    assert all(any(column in note for note in choices.notes) for column in renamed.values())


def test_columns_of_any_name_are_read_in_files_and_frames(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    import pandas as pd

    roles = {"person": "shopper", "item": "sku", "rating": "stars"}
    expected = ps.Choices.from_ratings(RATINGS)
    # The file's own column "item" is something else: the caller's role wins.
    path = written(tmp_path, "orders.csv", "shopper,sku,stars,item")
    assert ps.Choices.read(path, columns=roles).hash == expected.hash
    frame = pd.DataFrame(RATINGS, columns=list(roles.values()))
    assert ps.Choices.from_frame(frame, columns=roles).hash == expected.hash


def test_a_mistake_in_a_cell_is_reported_under_the_name_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("shopper,sku,stars\nann,7,many\n")
    with pytest.raises(InvalidChoices):
        ps.Choices.read(path, columns={"person": "shopper", "item": "sku", "rating": "stars"})


def test_items_take_roles_and_recognize_public_ids(tmp_path: Path) -> None:
    path = tmp_path / "movies.csv"
    path.write_text("movieId,imdb_score,title,year\n31,1.5,Dangerous Minds,1995\n1029,0.5,Dumbo,1941\n")
    items = ps.Items.from_csv(path, columns={"label": "title"}, keep=["year"])
    assert items.ids == ("31", "1029")
    assert items.labels == ("Dangerous Minds", "Dumbo")
    by_title = ps.Items.from_csv(path, columns={"id": "title"}, coordinates=["imdb_score"])
    assert by_title.ids == ("Dangerous Minds", "Dumbo")
    assert set(by_title.data) == {"movieId", "year"}


def test_a_column_called_like_an_assigned_role_becomes_data(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("id,sku,x\na,s1,0.5\nb,s2,1.5\n")
    items = ps.Items.from_csv(path, columns={"id": "sku"})
    assert items.ids == ("s1", "s2")
    assert items.data["(id)"] == ("a", "b")


def test_triplets_take_roles(tmp_path: Path) -> None:
    path = tmp_path / "judgements.csv"
    path.write_text("reference,more,less,who\na,b,c,1\nb,a,c,2\n")
    roles = {"anchor": "reference", "near": "more", "far": "less"}
    triplets = ps.embed.Triplets.from_csv(path, columns=roles)
    assert triplets.rows.tolist() == [[0, 1, 2], [1, 0, 2]]
    with pytest.raises(InvalidTriplets, match="'closer'"):
        ps.embed.Triplets.from_csv(path, columns={"anchor": "closer"})


@pytest.mark.parametrize(
    "columns",
    [{"buyer": "shopper"}, {"person": "shopper", "item": "shopper"}, "shopper"],
    ids=["unknown role", "one column twice", "no dict"],
)
def test_invalid_roles_name_the_argument(tmp_path: Path, columns: object) -> None:
    path = written(tmp_path, "orders.csv", "shopper,sku,stars,when")
    with pytest.raises(InvalidParameter) as caught:
        ps.Choices.read(path, columns=columns)  # type: ignore[arg-type]
    assert caught.value.field == "columns"


def test_a_missing_column_and_a_file_without_columns_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "orders.csv", "shopper,sku,stars,when")
    with pytest.raises(InvalidChoices):
        ps.Choices.read(path, columns={"person": "customer"})
    with pytest.raises(InvalidItems):
        ps.Items.from_csv(path, columns={"label": "name"})
    (tmp_path / "order.soc").write_text("# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n1: 1,2\n")
    with pytest.raises(InvalidParameter) as caught:
        ps.Choices.read(tmp_path / "order.soc", columns={"person": "x"})
    assert caught.value.field == "columns"
