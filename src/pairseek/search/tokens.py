"""Signed tokens that hold the events of a search in a few bytes per answer, for back ends without a store.

A token is the base64url text of a payload and its HMAC-SHA256, truncated to 16 bytes. The payload identifies the
catalogues and the configuration by the first bytes of their hashes, and holds the model version, the seed, the time of
expiry and one integer in mixed radix. That integer encodes each event: the rows of its two items, its outcome, and
whether it answers a query.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pairseek.core.validation import is_number
from pairseek.errors import ExpiredToken, InvalidParameter, InvalidToken

Key: TypeAlias = str | bytes | Sequence[str | bytes]
"""A secret of at least 16 bytes, or several: the first one signs, and all are accepted."""
TOKEN_FORMAT = 2
# The previous format, whose payload lacks the model version.
_FORMAT_WITHOUT_MODEL = 1
_MAC_CONTEXT = b"pairseek search token"
# Number of bytes kept of the signature, of a catalogue's hash and of the configuration's hash.
_MAC_BYTES = 16
_HASH_BYTES = 8
_CONFIGURATION_BYTES = 4
_MIN_KEY_BYTES = 16
_MAX_TOKEN_LENGTH = 1 << 16
# Format and model version.
_VERSION_BYTES = struct.Struct("<BB")
# Number of catalogues, hash of the configuration, seed, expiry in seconds since 1970 (0: never), number of events, and
# number of pending queries.
_HEADER = struct.Struct("<B4sQIHH")
_CATALOGUE = struct.Struct(f"<{_HASH_BYTES}sI")
_OUTCOMES = ("l", "r", "t", "s")
# Kinds of event: an observation, an answer to the query asked directly before it, and an answer to any other query.
_OBSERVATION = 0
_NEXT_ANSWER = 1
_OTHER_ANSWER = 2
# Base for the number of events before a query.
_EVENTS_BASE = 1 << 17
# Base for the index of a query among those asked after the same events.
_INDEX_BASE = 1 << 12


@dataclass(frozen=True)
class PackedEvent:
    """An event, with items as rows of the token's concatenated catalogues.

    Attributes
    ----------
    left, right
        Rows of the items.
    outcome
        ``"l"`` or ``"r"`` for the winner, ``"t"`` for a tie or ``"s"`` for a skip, as in light records.
    query
        The answered query, as the number of events before it and its index; None for an observation.
    """

    left: int
    right: int
    outcome: str
    query: tuple[int, int] | None


@dataclass(frozen=True)
class TokenContent:
    """Content of a token.

    Attributes
    ----------
    catalogues
        Hashes and sizes of the catalogues: the present one first, then those of removed items.
    model
        Model version; None in a token of the previous format, which lacks it.
    configuration
        Hash of the configuration.
    seed
        Seed of the search.
    events
        Events in their order.
    pending
        Pending queries: rows of left and right, number of events before the query, and its index.
    """

    catalogues: tuple[tuple[str, int], ...]
    model: int | None
    configuration: str
    seed: int
    events: tuple[PackedEvent, ...]
    pending: tuple[tuple[int, int, int, int], ...]


def short_catalogue_hash(text: str) -> str:
    """Return the part of a catalogue's hash that a token holds."""
    return text[: 2 * _HASH_BYTES]


def short_configuration_hash(text: str) -> str:
    """Return the part of a configuration's hash that a token holds."""
    return text[: 2 * _CONFIGURATION_BYTES]


def secrets_of(key: Key) -> list[bytes]:
    """Return the secrets as bytes; the first one signs."""
    values = [key] if isinstance(key, str | bytes) else list(key) if isinstance(key, Sequence) else []
    texts = [value.encode() if isinstance(value, str) else value for value in values]
    secrets = [value for value in texts if isinstance(value, bytes) and len(value) >= _MIN_KEY_BYTES]
    if not secrets or len(secrets) < len(texts):
        raise InvalidParameter(
            f"key must be a secret of at least {_MIN_KEY_BYTES} bytes, or a list of such secrets: use "
            f"secrets.token_bytes(32)",
            field="key",
        )
    return secrets


def sign(content: TokenContent, key: Key, lifetime: float | None = None) -> str:
    """Return a token that expires after `lifetime` seconds, or never if it is None."""
    secret = secrets_of(key)[0]
    if lifetime is not None and not (is_number(lifetime) and 0 < lifetime < 2**31):
        raise InvalidParameter(
            f"lifetime is {lifetime!r}: give a number of seconds, above 0 and below 2^31", field="lifetime"
        )
    expiry = 0 if lifetime is None else int(time.time() + lifetime)
    if not 0 <= content.seed < 1 << 64:
        raise InvalidParameter(
            f"the seed is {content.seed}, but a token holds a seed from 0 to 2^64 - 1: use another rng=..."
        )
    if content.model is None or not 0 <= content.model < 1 << 8:
        raise InvalidParameter(f"the model version is {content.model}: give a whole number from 0 to 255")
    configuration = bytes.fromhex(short_configuration_hash(content.configuration))
    events, pending = len(content.events), len(content.pending)
    if max(events, pending) >= 1 << 16:
        raise InvalidParameter(
            f"the search has {events} events and {pending} pending queries, but a token holds at most 65,535 of each: "
            f"use to_dict()"
        )
    head = _VERSION_BYTES.pack(TOKEN_FORMAT, content.model)
    head += _HEADER.pack(len(content.catalogues), configuration, content.seed, expiry, events, pending)
    for name, n in content.catalogues:
        head += _CATALOGUE.pack(bytes.fromhex(short_catalogue_hash(name)), n)
    payload = head + _pack_events(content)
    signed = payload + _mac(secret, payload)
    return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()


def verify(token: str, key: Key) -> TokenContent:
    """Return the content of a token if one of the secrets signed it and it has not expired."""
    secrets = secrets_of(key)
    if not isinstance(token, str) or not token or len(token) > _MAX_TOKEN_LENGTH:
        raise InvalidToken("the token is not text, or is empty or too long: send the token that to_token() returned")
    try:
        signed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidToken(
            "the token is not base64url text, so it was cut or changed in transit: send what to_token() returned"
        ) from None
    payload, mac = signed[:-_MAC_BYTES], signed[-_MAC_BYTES:]
    if not any(hmac.compare_digest(mac, _mac(secret, payload)) for secret in secrets):
        raise InvalidToken(
            "the token's signature does not match, so it was changed, or signed with another key: begin a new session"
        )
    if payload[0] not in (TOKEN_FORMAT, _FORMAT_WITHOUT_MODEL):
        raise InvalidToken(
            f"the token has format {payload[0]}, but this pairseek reads {TOKEN_FORMAT}: begin a new session"
        )
    model = payload[1] if payload[0] == TOKEN_FORMAT else None
    start = 1 if model is None else _VERSION_BYTES.size
    catalogues, configuration, seed, expiry, events, pending = _HEADER.unpack_from(payload, start)
    start += _HEADER.size
    if expiry and time.time() > expiry:
        raise ExpiredToken(f"the token expired {time.time() - expiry:.0f} seconds ago: begin a new session")
    end = start + catalogues * _CATALOGUE.size
    catalogue_list = tuple((name.hex(), int(n)) for name, n in _CATALOGUE.iter_unpack(payload[start:end]))
    packed = int.from_bytes(payload[end:], "little")
    content = TokenContent(catalogue_list, model, configuration.hex(), seed, (), ())
    return _unpack_events(content, packed, events, pending)


def _mac(secret: bytes, payload: bytes) -> bytes:
    return hmac.new(secret, _MAC_CONTEXT + payload, hashlib.sha256).digest()[:_MAC_BYTES]


def _pack_events(content: TokenContent) -> bytes:
    n = sum(size for _, size in content.catalogues)
    digits: list[tuple[int, int]] = []
    for number, event in enumerate(content.events):
        digits += [(event.left, n), (event.right, n), (_OUTCOMES.index(event.outcome), len(_OUTCOMES))]
        kind = _OBSERVATION if event.query is None else _NEXT_ANSWER if event.query == (number, 0) else _OTHER_ANSWER
        digits.append((kind, 3))
        if kind == _OTHER_ANSWER:
            assert event.query is not None
            digits += [(event.query[0], _EVENTS_BASE), (event.query[1], _INDEX_BASE)]
    for left, right, events, index in content.pending:
        digits += [(left, n), (right, n), (events, _EVENTS_BASE), (index, _INDEX_BASE)]
    value = 0
    for digit, base in reversed(digits):
        value = value * base + digit
    return value.to_bytes((value.bit_length() + 7) // 8, "little")


def _unpack_events(content: TokenContent, value: int, events: int, pending: int) -> TokenContent:
    n = sum(size for _, size in content.catalogues)

    def digit(base: int) -> int:
        nonlocal value
        value, remainder = divmod(value, base)
        return remainder

    unpacked = []
    for number in range(events):
        left, right, outcome, kind = digit(n), digit(n), digit(len(_OUTCOMES)), digit(3)
        query = (
            None
            if kind == _OBSERVATION
            else (number, 0)
            if kind == _NEXT_ANSWER
            else (digit(_EVENTS_BASE), digit(_INDEX_BASE))
        )
        unpacked.append(PackedEvent(left, right, _OUTCOMES[outcome], query))
    queries = tuple((digit(n), digit(n), digit(_EVENTS_BASE), digit(_INDEX_BASE)) for _ in range(pending))
    return replace(content, events=tuple(unpacked), pending=queries)
