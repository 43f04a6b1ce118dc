"""Temporary additional language, added as CONTRIBUTING.md describes."""

from __future__ import annotations

import contextlib
import json
import shutil

import pytest

from pairseek.core import messages

ITALIAN = "it"


@contextlib.contextmanager
def with_italian(folder, italian=None):
    """Add Italian to the catalogues, in a copy of their folder; by default its messages are the English ones."""
    shutil.copytree(messages.FOLDER, folder / "messages", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    english = json.loads((folder / "messages" / "en.json").read_text(encoding="utf-8"))
    own = {**english, "language.name": "Italiano"} if italian is None else italian
    (folder / "messages" / f"{ITALIAN}.json").write_text(json.dumps(own), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "FOLDER", folder / "messages")
        try:
            forget()
            yield
        finally:
            forget()


def forget() -> None:
    """Clear the cached catalogues."""
    messages.languages.cache_clear()
    messages.words.cache_clear()
