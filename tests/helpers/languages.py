"""A language that is added as CONTRIBUTING.md says, for the time of a test."""

from __future__ import annotations

import contextlib
import json
import shutil

import pytest

from pairseek.web.pages import text

FRENCH = "fr"


@contextlib.contextmanager
def french(folder):
    """Use the catalogues from a folder, where French joins those of the package: a copy of the English one."""
    shutil.copytree(text.FOLDER, folder / "messages")
    messages = json.loads((folder / "messages" / "en.json").read_text(encoding="utf-8")) | {"language.name": "Français"}
    (folder / "messages" / f"{FRENCH}.json").write_text(json.dumps(messages), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "FOLDER", folder / "messages")
        try:
            forget()
            yield
        finally:
            forget()


def forget() -> None:
    """Read the catalogues again."""
    text.languages.cache_clear()
    text.words.cache_clear()
