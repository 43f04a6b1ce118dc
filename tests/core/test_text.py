"""Phrases and first characters of names."""

import pytest

from pairseek.core.text import initial


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Tea", "T"),
        ("<b>Bold</b> & more", "b"),
        ("& Sons", "S"),
        ("\u201cquoted\u201d", "q"),
        ("\U0001f469\u200d\U0001f680 space", "\U0001f469\u200d\U0001f680"),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7 two flags", "\U0001f1e9\U0001f1ea"),
        ("\U0001f44d\U0001f3fd good", "\U0001f44d\U0001f3fd"),
        ("e\u0301t\u00e9", "e\u0301"),
        ("\u05e9\u05dc\u05d5\u05dd", "\u05e9"),
        ("<>", "<"),
        ("...", "."),
        ("", ""),
    ],
)
def test_the_first_character_of_a_name_is_a_letter_or_a_whole_emoji(text, shown):
    assert initial(text) == shown
