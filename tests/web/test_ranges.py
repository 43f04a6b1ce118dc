"""Ranges of bytes, as RFC 9110 describes them."""

import pytest

from pairseek.web.routes.ranges import Unsatisfiable, byte_range

ETAG = '"abc"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bytes=0-", (0, 1000)),
        ("bytes=0-0", (0, 1)),
        ("bytes=10-19", (10, 20)),
        ("bytes=990-2000", (990, 1000)),
        ("bytes=-10", (990, 1000)),
        ("bytes=-5000", (0, 1000)),
        ("Bytes = 1 - 2", (1, 3)),
        ("bytes=20-10", None),
        ("bytes=-", None),
        ("bytes=a-b", None),
        ("lines=0-1", None),
        ("bytes=0-1,5-6", None),
        ("bytes=٣-٤", None),
        ("", None),
        (f"bytes=0-{'9' * 30}", None),
    ],
)
def test_a_range_is_read(text, expected):
    assert byte_range({"range": text}, 1000, ETAG) == expected


@pytest.mark.parametrize("text", ["bytes=1000-", "bytes=5000-6000", "bytes=-0"])
def test_a_range_beyond_the_end_is_not_satisfiable(text):
    with pytest.raises(Unsatisfiable):
        byte_range({"range": text}, 1000, ETAG)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [(ETAG, (0, 10)), ('"other"', None), ('W/"abc"', None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)],
)
def test_a_range_counts_only_for_the_version_that_the_client_has(condition, expected):
    assert byte_range({"range": "bytes=0-9", "if-range": condition}, 1000, ETAG) == expected
