"""Settings of the server, from options or environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Self

from pairseek.errors import InvalidParameter

VARIABLE_PREFIX = "PAIRSEEK_"
PREFETCH_CHOICES = ("media", "always", "never")
"""Values of the setting ``prefetch``."""


@dataclass(frozen=True)
class Settings:
    """Settings of the server; the environment variable of each is ``PAIRSEEK_`` and its name in capitals.

    Attributes
    ----------
    database
        File path, ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``.
    secret
        Key that signs cookies and forms; if empty, a key is generated and stored in the database.
    password
        Password of the first user, ``admin``; if empty, a password is generated and printed once.
    address
        Address at which participants reach the service, such as ``https://studies.example.org``, for links shown to a
        researcher who works on the server itself; if empty, the machine's address in its network.
    https
        Send cookies over TLS only, and enable HSTS.
    trusted_proxies
        Comma-separated addresses or networks of proxies whose forwarding headers are trusted; empty: no proxies.
    cors_origins
        Comma-separated origins, such as ``https://shop.example``, whose pages may call the HTTP API from the browser;
        ``*``: any origin; empty: no other origin.
    kept_sessions
        Number of sessions cached by a worker, about 12 kB each.
    prefetch
        When to prefetch the next pair for each possible answer: ``"media"`` (only for items with pictures, sounds or
        videos, which the page then loads in advance), ``"always"`` or ``"never"``.
    most_sessions
        Maximum number of people's sessions in a study.
    most_body
        Maximum size of a request in bytes, except for uploads.
    most_upload
        Maximum size of an upload in bytes.
    starts_per_minute
        Rate limit of new sessions per address, across all workers and servers.
    starts_per_day
        Daily limit of new sessions per address, across all workers and servers.
    answers_per_minute
        Rate limit of answers, undos and losses of focus per session and worker.
    calls_per_minute
        Rate limit of API calls per token and worker.
    requests_per_minute
        Rate limit of requests per address and worker, except for static files and pictures.
    most_connections
        Maximum number of open connections per worker; reduced if the system allows few file descriptors.
    most_connections_of_address
        Maximum number of open connections per address and worker, except for trusted proxies.
    drain_seconds
        Seconds for which a server that is shutting down keeps serving, while ``/readyz`` reports the shutdown.
    """

    database: str = "pairseek.db"
    secret: str = ""
    password: str = ""
    https: bool = False
    address: str = ""
    trusted_proxies: str = ""
    cors_origins: str = ""
    kept_sessions: int = 5000
    most_sessions: int = 10_000
    prefetch: str = "media"
    most_body: int = 256_000
    most_upload: int = 200_000_000
    starts_per_minute: int = 300
    starts_per_day: int = 2000
    answers_per_minute: int = 600
    calls_per_minute: int = 6000
    requests_per_minute: int = 12_000
    most_connections: int = 2000
    most_connections_of_address: int = 500
    drain_seconds: int = 0

    def __post_init__(self) -> None:
        if self.prefetch not in PREFETCH_CHOICES:
            choices = ", ".join(PREFETCH_CHOICES)
            raise InvalidParameter(f"{VARIABLE_PREFIX}PREFETCH is {self.prefetch!r}: give one of {choices}")

    @property
    def proxies(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Networks of the trusted proxies."""
        return tuple(_network(text) for text in self.trusted_proxies.split(",") if text.strip())

    @property
    def origins(self) -> tuple[str, ...]:
        """Origins whose pages may call the HTTP API."""
        return tuple(_origin(text.strip()) for text in self.cors_origins.split(",") if text.strip())

    @classmethod
    def of(cls, environment: Mapping[str, str] | None = None, **overrides: object) -> Self:
        """Read the settings from the environment; overrides that are not None take precedence."""
        source = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for setting in fields(cls):
            name = VARIABLE_PREFIX + setting.name.upper()
            if name in source:
                values[setting.name] = _read(name, source[name], type(setting.default))
        return cls(**values | {key: value for key, value in overrides.items() if value is not None})


def _origin(text: str) -> str:
    if text != "*" and not re.fullmatch(r"https?://[A-Za-z0-9.\-\[\]:]+", text):
        raise InvalidParameter(
            f"{VARIABLE_PREFIX}CORS_ORIGINS contains {text[:50]!r}: give origins without a path, such as "
            f"https://shop.example"
        )
    return text


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError:
        raise InvalidParameter(
            f"{VARIABLE_PREFIX}TRUSTED_PROXIES contains {text.strip()[:50]!r}: give addresses or networks of proxies, "
            f"such as 127.0.0.1,10.0.0.0/8"
        ) from None


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
        if not text.isascii() or not text.strip().isdigit():
            raise InvalidParameter(f"{name} is {text!r}: give a whole number")
        return int(text)
    return text
