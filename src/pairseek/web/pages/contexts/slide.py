"""Context of the slide about a ranking."""

from __future__ import annotations

from typing import TypedDict

from pairseek.web.pages.contexts.shared import CardSchema


class SlideRow(TypedDict):
    """Item on the slide: its card, with an embedded picture, and its place in the ranking."""

    card: CardSchema
    place: int
    tier: int
    share: float
    share_low: float
    share_high: float


class Slide(TypedDict):
    """Ranking as a slide: title, sentences, the first rows and the number of further items.

    ``note`` says that all people are simulated, or from how many answers the ranking comes.
    """

    title: str
    sentences: list[str]
    rows: list[SlideRow]
    further: int
    note: str
