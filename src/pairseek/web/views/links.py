"""Participants' link to a study, and its QR code."""

from __future__ import annotations

import ipaddress
from datetime import UTC
from urllib.parse import urlsplit

import segno

from pairseek.web.pages.contexts.study import QrCode, RecruitmentContext
from pairseek.web.studies.catalogue import Study

# Panels, and the variables with the placeholders that each replaces in a link.
_PANELS = {
    "prolific": (
        "Prolific",
        "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}",
    ),
    "mturk": ("MTurk", "workerId=${workerId}&assignmentId=${assignmentId}&hitId=${hitId}"),
    "sona": ("SONA", "survey_code=%SURVEY_CODE%"),
}
# Width in modules of the white border that scanners need.
_BORDER = 4


def public_address(requested: str, configured: str) -> str:
    """Return the address for participants: as requested, or as configured if the request was local."""
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


def recruitment_context(study: Study, link: str) -> RecruitmentContext:
    """Return the links for panels, the way back to them, the quota and the closing date in UTC."""
    configuration = study.configuration
    closes = None if configuration.closes is None else configuration.closes.astimezone(UTC)
    return {
        "panels": [
            {"name": name, "called": called, "link": f"{link}?{query}"} for name, (called, query) in _PANELS.items()
        ],
        "address": configuration.completion.address,
        "code": configuration.completion.codes.finished,
        "quota": configuration.quota,
        "closes": None if closes is None else closes.strftime("%Y-%m-%dT%H:%M"),
    }


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
