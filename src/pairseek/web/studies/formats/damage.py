"""Errors of sounds and videos that are cut off, damaged, or encoded in a way that browsers cannot play."""

from __future__ import annotations


class Unplayable(ValueError):
    """A file cannot be played; the message continues a sentence that begins with the name of the file."""


def cut_off(kind: str) -> Unplayable:
    """Return the error of a file that ends too early."""
    return Unplayable(f"is an incomplete {kind} file: it was cut off; export or copy it again")


def damaged(kind: str) -> Unplayable:
    """Return the error of a file whose structure is broken."""
    return Unplayable(f"is a damaged {kind} file: export it again")


def unsupported(kind: str, codec: str, advice: str) -> Unplayable:
    """Return the error of a file with a codec that browsers do not play."""
    return Unplayable(f"is encoded as {codec}, which many browsers do not play: export it as {advice} ({kind})")
