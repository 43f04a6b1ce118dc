"""Reader of text tables as spreadsheets write them in various locales, and the roles of item columns."""

from __future__ import annotations

import itertools
import re
import time
from pathlib import Path

import numpy as np
import pytest

import pairseek
from pairseek.embed import Triplets
from pairseek.errors import InvalidChoices, InvalidItems
from pairseek.model.items import Items
from pairseek.people.population import Choices
from pairseek.web.studies.items import read_items

ITEMS = [["id", "label", "x", "y"], ["i0", "Café crème", "0.5", "1"], ["i1", "Thé, noir", "-1.25", "2"]]
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252")
SEPARATORS = {"commas": ",", "semicolons": ";", "tabs": "\t"}


def written(rows, separator=",", encoding="utf-8", decimal="."):
    """Return a table as a spreadsheet saves it."""
    quoted = [[f'"{cell}"' if separator in cell else cell for cell in row] for row in rows]
    if decimal == ",":
        quoted = [[cell.replace(".", ",") for cell in row] for row in quoted]
    return "".join(separator.join(row) + "\r\n" for row in quoted).encode(encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("separator", SEPARATORS.values(), ids=SEPARATORS)
@pytest.mark.parametrize("decimal", [".", ","])
def test_items_are_the_same_whatever_the_spreadsheet_writes(tmp_path, separator, encoding, decimal):
    if decimal == separator:
        pytest.skip("a comma is one of the two")
    path = tmp_path / "a.csv"
    path.write_bytes(written(ITEMS, separator, encoding, decimal))
    for items in (Items.from_csv(path), read_items(path), read_items(path, content=path.read_bytes())):
        assert items.ids == ("i0", "i1")
        assert items.labels == ("Café crème", "Thé, noir")
        assert items.coordinates.tolist() == [[0.5, 1.0], [-1.25, 2.0]]


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt"])
@pytest.mark.parametrize(
    ("separator", "encoding"), list(itertools.product(SEPARATORS.values(), ("utf-8", "utf-16", "cp1252")))
)
def test_ratings_choices_and_triplets_are_read_alike(tmp_path, separator, encoding, ending):
    def file(name, rows):
        path = tmp_path / f"{name}.{ending}"
        path.write_bytes(written(rows, separator, encoding))
        return path

    ratings = file("r", [["person", "item", "rating"], ["Zoë", "Thé", "4.5"], ["Zoë", "Café", "2"]])
    pairs = file("p", [["person", "winner", "loser"], ["Zoë", "Thé", "Café"]])
    triplets = file("t", [["anchor", "near", "far"], ["Thé", "Café", "Eau"]])
    assert Choices.read(ratings).people == ("Zoë",)
    assert set(Choices.read(pairs).ids) == {"Thé", "Café"}
    assert set(Triplets.from_csv(triplets).ids) == {"Thé", "Café", "Eau"}


def test_every_reader_of_a_table_is_the_one_reader():
    # Another one would know nothing of semicolons. PrefLib's files are no tables.
    folder = Path(pairseek.__file__).parent
    readers = [
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(r"csv\.(reader|DictReader)\(|utf-8-sig", path.read_text(encoding="utf-8"))
    ]
    assert sorted(readers) == ["core/csv.py", "people/formats/preflib.py"]


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\r\nid;x\r\na;1\r\nb;2\r\n",
        "id;x;;\r\na;1;;\r\nb;2;;\r\n;;;\r\n",
        "id\tx\na\t1\nb\t2\n",
        '"id";"x"\n"a";"1"\n"b";"2"\n',
    ],
    ids=["declared", "empty columns and rows", "tabs", "quoted"],
)
def test_what_spreadsheets_add_does_no_harm(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    items = Items.from_csv(path)
    assert (items.ids, items.coordinates.tolist()) == (("a", "b"), [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("id;prix, EUR\n1;3,50\n2;2,20\n3;1,10\n", None),
        ("id;label\n1;Doe, John\n2;Poe, Ann\n", ["Doe, John", "Poe, Ann"]),
        ("id\tlabel\n1\tDoe, J; x\n2\tPoe, A; y\n", ["Doe, J; x", "Poe, A; y"]),
    ],
)
def test_a_comma_in_every_row_does_not_hide_semicolons_and_tabs(tmp_path, text, labels):
    path = tmp_path / "a.csv"
    path.write_text(text)
    if labels is None:
        items = Items.from_csv(path)
        assert items.coordinates.ravel().tolist() == [3.5, 2.2, 1.1]
    else:
        items = read_items(path)
        assert list(items.labels) == labels
    assert [str(name) for name in items.ids] == [str(place) for place in range(1, items.n + 1)]


def test_the_separator_is_the_one_that_fits_all_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id;label, as shown;x\na;one;1\nb;two, three;2\n")
    assert Items.from_csv(path, keep=["label, as shown"]).data["label, as shown"] == ("one", "two, three")
    path.write_text('id,"label;x",y\na,"1;2",1\nb,3,2\n')
    assert Items.from_csv(path, keep=["label;x"]).data["label;x"] == ("1;2", "3")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04rest", "is a workbook or an archive: give a workbook the name .xlsx"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "is not a text file: save it as CSV in UTF-8|is damaged"),
        ("id,x\nä,1\nö,2\nü".encode()[:-1], "is damaged in line 4: save it again as CSV in UTF-8"),
        (
            b"id;x;y\na;0,5;1.5\nb;1,5;2\n",
            "has the numbers 1,5 and 1.5: use decimal commas throughout or decimal points",
        ),
        (b"id;x\na;0.5\nb;1,5\n", "has the numbers 1,5 and 0.5"),
        (b"id;x\na;1.234,5\nb;2\n", "'1.234,5' is not a number"),
        (b'id,x\na,"0,5"\nb,1\n', "'0,5' is not a number"),
    ],
)
def test_what_could_be_misread_is_refused(tmp_path, content, message):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidItems, match=message):
        Items.from_csv(path)


def test_quotes_after_accents_are_no_damage(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("id;label;x\na;\u00abCAF\u00c9\u00bb;1\nb;\u201eSpa\u00df\u201c;2\n".encode("cp1252"))
    assert Items.from_csv(path).labels == ("\u00abCAF\u00c9\u00bb", "\u201eSpa\u00df\u201c")


def test_ratings_with_decimal_commas_and_points_are_refused(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("person;item;rating\n1;a;1,5\n1;b;2.5\n")
    with pytest.raises(InvalidChoices):
        Choices.read(path)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("id,x\na,1\n,2\n", "line 3, column 'id': the id is blank"),
        ("wine,x\na,1\n ,2\n", "line 3, column 'wine': the id is blank"),
        ("id,label,x\na,A,1\nb,,2\n", "line 3, column 'label': the label is blank"),
        ("id,text\na,A\nb,\n", "line 3, column 'text': the text is blank and the item has nothing else to show"),
        ("id,text,image\na,A,\nb,,\n", "line 3, column 'text': the text is blank"),
    ],
)
def test_blank_ids_labels_and_texts_are_refused_with_their_place(tmp_path, text, place):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InvalidItems, match=place):
        read_items(path)


def test_an_item_may_have_a_picture_instead_of_a_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,text,image\na,A,\nb,,b.png\n")
    assert read_items(path).data["text"] == ("A", "")


class TestColumns:
    """Which columns are coordinates, and which are data."""

    TEXT = "id,label,x,y,price,country,note\na,A,0,1,9.5,fr,old\nb,B,1,0,12,de,7\nc,C,1,1,8,it,dry\n"

    def path(self, tmp_path, text=TEXT):
        path = tmp_path / "a.csv"
        path.write_text(text)
        return path

    def test_numbers_are_coordinates_and_texts_are_data(self, tmp_path):
        items = Items.from_csv(self.path(tmp_path))
        assert items.columns == ("x", "y", "price")
        assert dict(items.data) == {"country": ("fr", "de", "it"), "note": ("old", "7", "dry")}
        said = "coordinates: x, y, price; kept as data: country, note"
        assert items.columns_note == said
        assert repr(items).endswith(f"; {said})")

    def test_named_coordinates_leave_the_rest_as_data(self, tmp_path):
        path = self.path(tmp_path)
        for items in (Items.from_csv(path, coordinates=["x", "y"]), Items.from_file(path, coordinates=["y", "x"])):
            assert (items.columns, items.d) == (("x", "y"), 2)
            assert items.data["price"] == ("9.5", "12", "8")
            assert items.ids == ("a", "b", "c")

    def test_an_empty_list_means_no_coordinates(self, tmp_path):
        items = Items.from_csv(self.path(tmp_path), coordinates=[])
        assert (items.d, items.n, sorted(items.data)) == (0, 3, ["country", "note", "price", "x", "y"])
        assert items.columns_note == "no coordinates; kept as data: x, y, price, country, note"

    def test_frames_and_parquet_have_the_same_rule(self, tmp_path):
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        frame = pandas.read_csv(self.path(tmp_path))
        frame.to_parquet(tmp_path / "a.parquet")
        for items in (
            Items.from_frame(frame, coordinates=["x", "y"]),
            Items.from_csv(tmp_path / "a.parquet", coordinates=["x", "y"]),
            Items.from_file(tmp_path / "a.parquet", coordinates=["x", "y"]),
        ):
            assert (items.columns, list(items.data)) == (("x", "y"), ["price", "country", "note"])
        assert Items.from_frame(frame).columns == ("x", "y", "price")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"coordinates": ["x", "z"]}, "has no column 'z': its columns are id, label"),
            ({"coordinates": ["country"]}, "line 2, column 'country': 'fr' is not a number"),
            ({"coordinates": ["x"], "keep": ["x"]}, "'x' is in both coordinates and keep"),
            ({"coordinates": "x"}, r"coordinates is 'x': give a list of columns, such as \['x'\]"),
        ],
    )
    def test_wrong_choices_are_refused(self, tmp_path, options, message):
        with pytest.raises(InvalidItems, match=message):
            Items.from_csv(self.path(tmp_path), **options)

    def test_a_typing_mistake_among_numbers_is_no_data(self, tmp_path):
        path = self.path(tmp_path, "id,x,y\na,1,2\nb,O.5,1\nc,3,1\n")
        with pytest.raises(InvalidItems):
            Items.from_csv(path)
        with pytest.raises(InvalidItems):
            read_items(path)
        assert Items.from_csv(path, coordinates=["y"]).data["x"] == ("1", "O.5", "3")

    def test_arrays_have_no_columns_to_choose(self, tmp_path):
        np.save(tmp_path / "a.npy", np.eye(3))
        with pytest.raises(InvalidItems):
            Items.from_file(tmp_path / "a.npy", coordinates=["x"])
        assert Items.from_file(tmp_path / "a.npy").columns_note is None


@pytest.mark.parametrize(
    "content", [b"id,x\n" + b"\n" * 50_000_000, b"id" + b",x" * 6_000_000, b"id\tx" + b"\t1" * 6_000_000]
)
def test_an_upload_with_too_many_cells_or_lines_is_refused_before_it_is_read(content):
    began = time.process_time()
    with pytest.raises(InvalidItems, match=r"lines and .* separators"):
        read_items(Path("a.csv"), content=content)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("blank", ["", "\n", "\r\n", "\r", "  \n\t\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blank_lines_before_the_header_are_skipped(blank, end):
    content = f"{blank}id\tx{end}a\t1{end}b\t2".encode()
    assert read_items(Path("a.csv"), content=content).coordinates.tolist() == [[1.0], [2.0]]
