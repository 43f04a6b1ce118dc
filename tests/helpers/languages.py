"""Temporary additional language, in a folder outside the package."""

from __future__ import annotations

import contextlib
import json

import pytest

from pairseek.core import messages
from pairseek.core.messages import reading

ITALIAN = "it"


@contextlib.contextmanager
def with_italian(folder, italian=None):
    """Add Italian to the catalogues, in a folder of its own; by default its messages are the English ones."""
    own = {**messages.words().messages, "language.name": "Italiano"} if italian is None else italian
    with with_catalogues(folder, {ITALIAN: own}):
        yield


@contextlib.contextmanager
def with_catalogues(folder, files):
    """Use a folder with these further catalogues, given by language as messages or as the text of the file."""
    further = folder / "messages"
    further.mkdir()
    for language, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (further / f"{language}.json").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(reading.FOLDER_VARIABLE, str(further))
        try:
            forget()
            yield
        finally:
            patch.undo()
            forget()


def forget() -> None:
    """Clear the cached catalogues."""
    reading.catalogues.cache_clear()
    messages.languages.cache_clear()
    messages.words.cache_clear()
    messages._templates.cache_clear()
