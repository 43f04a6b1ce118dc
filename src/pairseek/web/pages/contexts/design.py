"""Contexts of the pages on which researchers look at a study's items and edit the study."""

from __future__ import annotations

from typing import TypedDict

from pairseek.web.pages.contexts.account import User
from pairseek.web.pages.contexts.items import GalleryContext
from pairseek.web.pages.contexts.shared import ImageSchema
from pairseek.web.pages.contexts.study import Paging, StudyContext


class GalleryPage(TypedDict):
    """``gallery``: all items of a study, paged.

    ``editing``: whether labels can be edited now, ``editable``: whether that is possible, because nobody has answered.
    ``begun``: the number of people who have begun. ``additions`` identifies the version of the items. ``extensible``:
    whether items can be added.
    """

    user: User
    study: StudyContext
    gallery: GalleryContext
    paging: Paging
    editing: bool
    editable: bool
    begun: int
    additions: int
    extensible: bool
    formats: list[str]
    errors: dict[str, str]


class ShadesContext(TypedDict):
    """Shades of the accent on light and on dark pages; ``adjusted`` if neither is the chosen colour."""

    light: str
    dark: str
    adjusted: bool


class EditPage(TypedDict):
    """``edit``: the form for texts and appearance; ``usual`` is the accent of pages without their own."""

    user: User
    study: StudyContext
    values: dict[str, str]
    errors: dict[str, str]
    logo: ImageSchema | None
    shades: ShadesContext | None
    usual: str
    started: int
