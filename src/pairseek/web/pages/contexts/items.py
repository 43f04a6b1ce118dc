"""Contexts of a study's items as people see them."""

from __future__ import annotations

from typing import TypedDict

from pairseek.web.pages.contexts.shared import CardSchema


class MediumCount(TypedDict):
    """Number of items that have a medium."""

    medium: str
    count: int


class ItemSummary(TypedDict):
    """Summary of a study's items; ``named``: whether all, some or none of the cards show a name."""

    count: int
    media: list[MediumCount]
    dimensions: int
    named: str


class GalleryContext(TypedDict):
    """Cards of a study's items; ``names`` is the setting, and ``switchable`` whether it makes a difference."""

    summary: ItemSummary
    cards: list[CardSchema]
    names: bool | None
    switchable: bool
