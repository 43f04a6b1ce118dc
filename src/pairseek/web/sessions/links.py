"""Signed links, which prove the id of a participant until they expire."""

from __future__ import annotations

import hmac
import json
import re
import secrets
import time
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from pairseek.core.validation import MAX_ID_LENGTH
from pairseek.errors import InvalidParameter
from pairseek.store import people
from pairseek.store.database import Database
from pairseek.store.studies import StudyRow
from pairseek.web.access.security import signature
from pairseek.web.errors import Problem

LINK_DAYS = 30
"""Default number of days after which a link expires."""
MAX_LINK_DAYS = 366
SIGNATURE_PARAMETER = "signature"
# Hexadecimal digits of a signature: 128 bits.
_SIGNATURE_DIGITS = 32
_DAY_SECONDS = 86_400


def link_key(database: Database) -> str:
    """Return the key that signs links, shared by commands and servers; create it if necessary."""
    new_key = secrets.token_urlsafe(32)
    return database.write(lambda connection: people.secret(connection, new_key, "link_key"))


def signed_link(key: str, address: str, study: StudyRow, participant: str, days: float = LINK_DAYS) -> str:
    """Return the signed link of a participant to a study on the server at this address."""
    if not 0 < days <= MAX_LINK_DAYS:
        raise InvalidParameter(f"the number of days is {days:g}: give more than 0 and at most {MAX_LINK_DAYS}")
    if not 1 <= len(participant) <= MAX_ID_LENGTH or not participant.isprintable():
        raise InvalidParameter(
            f"the participant's id {participant[:50]!r} cannot be used: give 1 to {MAX_ID_LENGTH} printable characters"
        )
    until = int(time.time() + days * _DAY_SECONDS)
    values = {
        "participant": participant,
        "until": str(until),
        SIGNATURE_PARAMETER: _signature(key, study, participant, until),
    }
    return f"{address.rstrip('/')}/s/{study.slug}?{urlencode(values, quote_via=quote)}"


def verify_link(key: str, study: StudyRow, parameters: Mapping[str, str]) -> tuple[str, int]:
    """Return the participant and the Unix time of expiry of a signed link; raise a `Problem` if it is not valid."""
    participant, until = parameters.get("participant", ""), parameters.get("until", "")
    is_plausible = len(participant) <= MAX_ID_LENGTH and re.fullmatch(r"[1-9]\d{0,11}", until, re.ASCII)
    expected = _signature(key, study, participant, int(until)) if is_plausible else ""
    if not expected or not hmac.compare_digest(
        expected.encode(), parameters[SIGNATURE_PARAMETER].encode(errors="replace")
    ):
        raise Problem(
            403,
            "link_invalid",
            "this link is not valid: it was changed or belongs to another study",
            hint="Open the link exactly as you received it.",
        )
    return participant, int(until)


def is_valid(until: int) -> bool:
    """Return whether a link that expires at this time is still valid."""
    return time.time() < until


def link_expired() -> Problem:
    """Return the problem for a link that has expired."""
    return Problem(
        410, "link_expired", "this link has expired", hint="Ask the person who sent it to you for a new one."
    )


def invitation_needed() -> Problem:
    """Return the problem for a study that needs a signed link."""
    return Problem(
        403,
        "invitation_needed",
        "this study is open only to people who were sent a personal link",
        hint="Open the link exactly as you received it.",
    )


def _signature(key: str, study: StudyRow, participant: str, until: int) -> str:
    # The creation time distinguishes a study from a deleted one with the same slug.
    content = json.dumps([study.slug, study.created_at, participant, until])
    return signature(key, "link", content)[:_SIGNATURE_DIGITS]
