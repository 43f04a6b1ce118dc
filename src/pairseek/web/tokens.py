"""Random tokens and their hashes."""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    """Return a random token of 256 bits."""
    return secrets.token_urlsafe(32)


def hashed(token: str) -> str:
    """Return the hash of a token, which is what the store contains."""
    return hashlib.sha256(token.encode()).hexdigest()


def bearer(header: str | None) -> str:
    """Return the token of an ``Authorization`` header, however its scheme is written; empty if there is none."""
    return (header or "").partition(" ")[2].strip()
