"""Secrets that open something: drawn once, told once, stored as a hash."""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    """256 bits that nobody can guess."""
    return secrets.token_urlsafe(32)


def hashed(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
