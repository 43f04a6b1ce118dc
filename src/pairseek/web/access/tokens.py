"""Tokens and their hashes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets


def new_token() -> str:
    """Return a random token of 256 bits."""
    return secrets.token_urlsafe(32)


def derived_token(nonce: str, session_id: str) -> str:
    """Return the session token of whoever holds a random nonce."""
    code = hmac.new(nonce.encode(), f"session:{session_id}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(code).rstrip(b"=").decode()


def hash_token(token: str) -> str:
    """Return the hash of a token, which is stored instead of the token."""
    return hashlib.sha256(token.encode()).hexdigest()


def token_of_header(header: str | None) -> str:
    """Return the token of an ``Authorization`` header, whatever its scheme; empty without one."""
    return (header or "").partition(" ")[2].strip()
