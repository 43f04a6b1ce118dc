"""Settings of the server, from options or environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from pairseek.errors import InvalidParameter

PREFIX = "PAIRSEEK_"


@dataclass(frozen=True)
class Settings:
    """Settings of the server; each has an environment variable (``PAIRSEEK_`` and the name in capitals).

    Attributes
    ----------
    database
        A path, ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``.
    secret
        Signs what pages send back; empty: one that is drawn once and kept in the database.
    password
        Of the first user, ``admin``; empty: one is drawn and printed once.
    https
        Cookies are sent over TLS only, and browsers are told to keep to it.
    trusted_proxies
        Addresses, separated by commas, whose word about the visitor's address is believed.
    kept_sessions
        Sessions that a worker keeps in memory, about 12 kB each.
    prefetch
        Whether the next pair is prefetched while a person thinks.
    most_body
        Bytes that a request may have; an upload of items or pictures may have more.
    most_upload
        Bytes of an upload.
    starts_per_minute
        Sessions that may be begun from one address in a minute, in one worker.
    answers_per_minute
        Answers, undos and losses of focus that one session may send in a minute, to one worker.
    calls_per_minute
        Calls of the HTTP API that one token may make in a minute, in one worker.
    requests_per_minute
        Requests of any kind from one address in a minute, in one worker; files of pages and pictures are not counted.
    """

    database: str = "pairseek.db"
    secret: str = ""
    password: str = ""
    https: bool = False
    trusted_proxies: str = "127.0.0.1"
    kept_sessions: int = 5000
    prefetch: bool = True
    most_body: int = 256_000
    most_upload: int = 200_000_000
    starts_per_minute: int = 300
    answers_per_minute: int = 600
    calls_per_minute: int = 6000
    requests_per_minute: int = 12_000

    @classmethod
    def of(cls, environment: Mapping[str, str] | None = None, **given: Any) -> Self:
        """Read the settings from the environment; arguments that are not None take precedence."""
        source = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for one in fields(cls):
            name = PREFIX + one.name.upper()
            if name in source:
                values[one.name] = _read(name, source[name], type(one.default))
        return cls(**values | {key: value for key, value in given.items() if value is not None})


def _read(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        words = {
            "1": True,
            "true": True,
            "yes": True,
            "on": True,
            "0": False,
            "false": False,
            "no": False,
            "off": False,
        }
        if text.strip().lower() not in words:
            raise InvalidParameter(f"{name} is {text!r}: give true or false")
        return words[text.strip().lower()]
    if kind is int:
        if not text.strip().isdigit():
            raise InvalidParameter(f"{name} is {text!r}: give a whole number")
        return int(text)
    return text
