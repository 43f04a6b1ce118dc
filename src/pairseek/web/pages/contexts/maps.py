"""Contexts of the maps: plain numbers for the pages to draw."""

from __future__ import annotations

from typing import TypedDict

from pairseek.web.pages.contexts.shared import CardSchema

Dot = tuple[float, float, str | None, str | None]
"""x, y, colour as ``#rrggbb`` or None, label."""


class MapData(TypedDict):
    """Items in two dimensions, the estimate, and the outline of its credible region.

    ``pictures`` contains (x, y, address) of the items' pictures if there are few items.
    """

    items: list[Dot]
    point: tuple[float, float]
    ellipse: list[tuple[float, float]]
    pictures: list[tuple[float, float, str]]


class MapPoint(TypedDict):
    """Estimate of a person on the map of the study."""

    session: str
    name: str | None
    point: tuple[float, float]
    radius: float
    simulated: bool
    voided: bool


class StudyMap(TypedDict):
    """Map of all estimates and items."""

    items: list[Dot]
    people: list[MapPoint]


class GroupItem(TypedDict):
    """Item on the map of a group, with its rank."""

    card: CardSchema
    point: tuple[float, float]
    place: int


class GroupPerson(TypedDict):
    """Person on the map of a group: estimate, outline of the 50 % credible ellipse, and segment."""

    point: tuple[float, float]
    outline: list[tuple[float, float]]
    segment: int


class GroupMap(TypedDict):
    """Map of items and people, with the names of its axes and the number of segments."""

    items: list[GroupItem]
    people: list[GroupPerson]
    axes: tuple[str, str]
    segments: int


class Track(TypedDict):
    """Estimate in the plane of the map and radius after each answer, in chronological order."""

    points: list[tuple[float, float]]
    radii: list[float]


class PersonMap(TypedDict):
    """Map of items, posterior samples and the track of the estimate."""

    items: list[Dot]
    samples: list[tuple[float, float]]
    track: Track


class PlacedItem(TypedDict):
    """Item on the map of a similarity study; ``undecided`` is the share of its comparisons that may be wrong."""

    card: CardSchema
    x: float
    y: float
    undecided: float
    vague: bool


class SimilarityDrawing(TypedDict):
    """Map of a similarity study as a drawing; ``side`` is the size of an item."""

    width: int
    height: int
    side: float
    items: list[PlacedItem]
