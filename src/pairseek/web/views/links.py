"""Link of a study as participants reach it, and its QR code."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import segno

from pairseek.web.pages.contexts.study import QrCode

# White modules around a code, which scanners need.
_BORDER = 4


def public_address(requested: str, known: str) -> str:
    """Return the address for participants: that of the request, or the known one if only this computer reaches that."""
    return (known if known and is_local(requested) else requested).rstrip("/")


def is_local(address: str) -> bool:
    """Return whether only this computer reaches the address."""
    host = urlsplit(address).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def qr_code(link: str) -> QrCode:
    """Return the QR code of a link, as one stroke for each run of dark modules."""
    code = segno.make(link, error="m", micro=False)
    rows = [bytes(row) for row in code.matrix]
    strokes = []
    for y, row in enumerate(rows):
        x = 0
        while x < len(row):
            length = 1
            while x + length < len(row) and row[x + length] == row[x]:
                length += 1
            if row[x]:
                strokes.append(f"M{x + _BORDER} {y + _BORDER}.5h{length}")
            x += length
    return {"local": is_local(link), "size": len(rows) + 2 * _BORDER, "path": "".join(strokes)}
