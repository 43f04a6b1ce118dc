"""Long JSON texts, read and written in pieces: the values are those of the standard library."""

from __future__ import annotations

import io
import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from pairseek.core import json_pieces
from pairseek.core.json_pieces import MAX_PIECE, JSONReader, written

values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
)


def read(text: bytes) -> object:
    reader = JSONReader(io.BytesIO(text))
    value = reader.tree()
    reader.end()
    return value


@given(values, some.integers(1, 9))
def test_values_are_read_as_by_the_standard_library_however_the_text_is_cut(value, size):
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")

    class Drops(io.BytesIO):
        def read(self, _=-1):
            return super().read(size)

    assert JSONReader(Drops(text)).tree() == json.loads(text)


@given(values)
def test_what_is_written_is_the_text_of_the_standard_library(value):
    assert "".join(written(value)) == json.dumps(value)


def test_long_lists_are_written_in_slices(monkeypatch):
    monkeypatch.setattr(json_pieces, "_ELEMENTS_PER_PIECE", 3)
    value = {"a": list(range(10)), "b": [], "c": {"d": [[1.5, "é"]] * 4}}
    pieces = list(written(value))
    assert "".join(pieces) == json.dumps(value)
    assert max(map(len, pieces)) <= 50


@pytest.mark.parametrize(
    "text",
    [b"", b"[1", b"[1,]", b"[1 2]", b"{", b'{"a"}', b'{"a":1,}', b"{a:1}", b"1 2", b'"\xff"', b"nul", b"[" * 100_000],
)
def test_what_is_not_json_is_an_error_at_its_position(text):
    with pytest.raises(json.JSONDecodeError) as caught:
        read(text)
    assert 0 <= caught.value.pos <= len(text)


def test_a_value_that_would_hold_the_interpreter_lock_for_long_is_refused_before_all_of_it_is_read():
    text = b'{"a": [' + b"[]," * MAX_PIECE + b"[]]}"
    assert len(read(text)["a"]) == MAX_PIECE + 1
    for sent, most, read_bytes in ((b"[" + text + b"]", math.inf, 3 * MAX_PIECE), (text, 1000, 200_000)):
        file = io.BytesIO(sent)
        with pytest.raises(json.JSONDecodeError, match="too long"):
            JSONReader(file).tree(most)
        assert file.tell() < read_bytes


def test_objects_are_read_up_to_a_number_of_members():
    text = b'{"a": {"b": 1, "c": 2, "d": 3}}'
    assert JSONReader(io.BytesIO(text)).tree(most_members=3) == json.loads(text)
    with pytest.raises(json.JSONDecodeError, match="more than 2 members"):
        JSONReader(io.BytesIO(text)).tree(most_members=2)


def test_blanks_take_little_time():
    began = time.process_time()
    assert read(b" \n" * 5_000_000 + b"1") == 1
    assert time.process_time() - began < 1
