"""Links and QR codes that a researcher sends."""

from __future__ import annotations

import re

import pytest
import segno

from pairseek.web.views.links import is_local, public_address, qr_code


@pytest.mark.parametrize(
    ("requested", "known", "shown"),
    [
        ("http://127.0.0.1:8421/", "http://192.0.2.7:8421", "http://192.0.2.7:8421"),
        ("http://localhost:8421/", "https://studies.example.org/", "https://studies.example.org"),
        ("http://[::1]:8421/", "http://192.0.2.7:8421", "http://192.0.2.7:8421"),
        ("http://127.0.0.1:8421/", "", "http://127.0.0.1:8421"),
        ("https://studies.example.org/", "http://192.0.2.7:8421", "https://studies.example.org"),
    ],
)
def test_the_address_of_the_network_replaces_that_of_the_computer(requested, known, shown):
    assert public_address(requested, known) == shown


def test_only_loopback_addresses_are_local():
    assert [
        is_local(f"http://{host}/s/x") for host in ("127.0.0.1:80", "localhost", "[::1]", "192.0.2.7", "a.org")
    ] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_the_code_has_the_dark_modules_of_the_library():
    link = "http://192.0.2.7:8421/s/wine"
    found = qr_code(link)
    drawn = set()
    for x, y, length in re.findall(r"M(\d+) (\d+)\.5h(\d+)", found["path"]):
        drawn |= {(int(x) + place, int(y)) for place in range(int(length))}
    code = segno.make(link, error="m", micro=False)
    dark = {(x + 4, y + 4) for y, row in enumerate(code.matrix) for x, module in enumerate(row) if module}
    assert drawn == dark
    assert found["size"] == len(code.matrix) + 8
    assert not found["local"]
