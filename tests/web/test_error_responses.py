"""Error responses: what was received is quoted without writing all of it."""

import pytest

from pairseek.web.access.error_responses import _shortened


class Counted:
    """Value that counts how often it is written."""

    count = 0

    def __repr__(self):
        Counted.count += 1
        return "x"


@pytest.mark.parametrize("value", [None, True, 3, 2.5, 'a"b', "x" * 198])
def test_short_values_are_quoted_as_they_are(value):
    assert _shortened(value) == value


@pytest.mark.parametrize("value", [["a"] * 1000, {"a": [1] * 1000}, "x" * 10_000_000, b"x" * 10_000_000, "\0" * 190])
def test_long_values_are_cut(value):
    assert len(str(_shortened(value))) <= 200
    assert str(_shortened(value)).endswith("...")


def test_a_value_of_many_parts_is_not_written_in_full():
    Counted.count = 0
    _shortened({"items": [[Counted()] * 1000] * 1000})
    assert 0 < Counted.count <= 10_000
