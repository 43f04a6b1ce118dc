"""A language that is added as CONTRIBUTING.md says, for the time of a test."""

from __future__ import annotations

import contextlib
import json
import shutil

import pytest

from pairseek.core import messages

FRENCH = "fr"


@contextlib.contextmanager
def with_french(folder, french=None):
    """Use the catalogues from a folder, where French joins those of the package: a copy of the English one if None."""
    shutil.copytree(messages.FOLDER, folder / "messages", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    english = json.loads((folder / "messages" / "en.json").read_text(encoding="utf-8"))
    said = {**english, "language.name": "Français"} if french is None else french
    (folder / "messages" / f"{FRENCH}.json").write_text(json.dumps(said), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "FOLDER", folder / "messages")
        try:
            forget()
            yield
        finally:
            forget()


def forget() -> None:
    """Read the catalogues again."""
    messages.languages.cache_clear()
    messages.words.cache_clear()
