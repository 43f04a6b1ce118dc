"""Participants' link to a study, and its QR code."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import segno

from pairseek.web.pages.contexts.study import QrCode

# Width in modules of the white border that scanners need.
_BORDER = 4


def public_address(requested: str, configured: str) -> str:
    """Return the address for participants: that of the request, or the configured one if the request was local."""
    return (configured if configured and is_local(requested) else requested).rstrip("/")


def is_local(address: str) -> bool:
    """Return whether an address can be reached only from this computer."""
    host = urlsplit(address).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def qr_code(link: str) -> QrCode:
    """Return the QR code of a link, drawn as one stroke per run of dark modules."""
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
