"""Contexts of the dashboard of a similarity study."""

from __future__ import annotations

from typing import TypedDict

from pairseek.web.pages.contexts.maps import SimilarityDrawing
from pairseek.web.pages.contexts.shared import CardSchema
from pairseek.web.pages.contexts.study import StudyPage


class CurveStep(TypedDict):
    """Error of one version of a map on held-out judgements."""

    judgements: int
    error: float
    standard_error: float


class DimensionContext(TypedDict):
    """Cross-validated error for a number of dimensions."""

    dimensions: int
    error: float
    standard_error: float


class FindingContext(TypedDict):
    """Finding about a map; ``level`` is ``good``, ``note`` or ``act``.

    ``key`` and ``advice_key`` are message keys, and ``values`` their values. Older maps have no keys, only the English
    sentences ``found`` and ``advice``.
    """

    level: str
    name: str
    found: str
    advice: str
    key: str
    advice_key: str
    values: dict[str, object]


class SimilarityContext(TypedDict):
    """Newest map of a similarity study.

    ``apart`` is the number of held-out judgements, ``usual`` the number that a good map typically needs, and
    ``forecast`` the number after which only a share of ``goal`` is undecided, None if it is too large.
    """

    version: int
    created: str
    judgements: int
    apart: int
    error: float | None
    standard_error: float | None
    undecided: float
    goal: float
    forecast: int | None
    usual: int
    dimensions: int
    recommended: int
    tried: list[DimensionContext]
    k: float
    drawing: SimilarityDrawing
    vague: list[CardSchema]
    vague_count: int
    curve: list[CurveStep]
    findings: list[FindingContext]


class SimilarityPage(StudyPage):
    """``similarity``: the dashboard of a similarity study; ``similarity`` is None before the first map."""

    similarity: SimilarityContext | None
