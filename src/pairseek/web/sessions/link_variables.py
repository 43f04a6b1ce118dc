"""Further variables in a participant's link, which a session keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pairseek.core.validation import MAX_ID_LENGTH

MAX_VARIABLES = 10
"""Largest number of variables of a session."""
NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9_.-]{0,39}$"
"""Pattern of the names of variables that are kept."""


def variables_of(parameters: Mapping[str, str], known: frozenset[str]) -> dict[str, str]:
    """Return the first variables of a link that can be kept, besides the ``known`` ones.

    A variable whose name does not match the pattern, or whose value is empty or too long, is left out: panels and mail
    programs add parameters of their own, which must not keep anybody from taking part.
    """
    kept: dict[str, str] = {}
    for name, value in parameters.items():
        plain = "".join(ch for ch in value if ch.isprintable()).strip()
        is_kept = name not in known and name.isascii() and re.match(NAME_PATTERN, name) and len(plain) <= MAX_ID_LENGTH
        if is_kept and plain and len(kept) < MAX_VARIABLES:
            kept[name] = plain
    return kept
