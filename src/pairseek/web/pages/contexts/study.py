"""Contexts of the researcher's pages of a study."""

from __future__ import annotations

from typing import TypedDict

from pairseek.web.pages.contexts.account import AuditRow, User
from pairseek.web.pages.contexts.maps import PersonMap, StudyMap
from pairseek.web.pages.contexts.participant import Near
from pairseek.web.pages.contexts.shared import CardSchema, ReliabilitySchema


class StudyContext(TypedDict):
    """Study in the list; ``status`` is ``open`` or ``closed``."""

    slug: str
    title: str
    status: str
    items: int
    started: int
    finished: int
    answers: int
    created: str
    last_answer: str | None


class StudiesPage(TypedDict):
    """``studies``: the list of studies."""

    user: User
    studies: list[StudyContext]


class ColumnsContext(TypedDict):
    """Columns of the list of things that are coordinates, and further columns that were kept as data."""

    coordinates: list[str]
    data: list[str]


class ColumnsPart(TypedDict):
    """``_columns``: part of the form for a new study about its list of ``count`` things, or the ``problem`` with it."""

    count: int
    columns: ColumnsContext | None
    problem: str | None


class NewStudyPage(TypedDict):
    """``study_new``: submitted ``values``, and ``errors`` by field name ("" for the whole form).

    A field is named by its place in the study's file: ``title``, ``offer.tie`` (sent as "true" if ticked),
    ``completion.codes.finished``. ``items``, ``images`` and ``yaml`` are files. ``attention`` is lines of
    ``left, right, answer``, and ``more`` is YAML with any further settings. ``columns`` are the columns of the items
    file that the form names besides id and coordinates. ``formats`` are those of tables that can be read.
    """

    user: User
    columns: list[str]
    formats: list[str]
    strategies: list[str]
    goals: list[str]
    stops: list[str]
    responses: list[str]
    noises: list[str]
    priors: list[str]
    languages: list[str]
    values: dict[str, str]
    errors: dict[str, str]


class LiveContext(TypedDict):
    """Figures that the dashboard refreshes; also served at ``/studies/{slug}/live.json``."""

    status: str
    started: int
    finished: int
    answers: int
    answers_per_minute: float
    median_seconds: float | None
    latency_ms: float | None
    updated: str


class Quality(TypedDict):
    """Quality indicators: shares, the median reaction time, and conspicuous ones by name.

    ``flags`` are keys of the catalogue under ``flag.``.
    """

    consistency: float | None
    attention: float | None
    left_share: float | None
    fast_share: float | None
    median_ms: float | None
    flags: list[str]


class PersonRow(TypedDict):
    """Session in the list of a study; ``status`` is ``asking`` or ``finished``."""

    session: str
    name: str | None
    status: str
    answers: int
    started: str
    median_seconds: float | None
    simulated: bool
    voided: bool
    quality: Quality


class Paging(TypedDict):
    """Page of a list; ``first`` is the number of its first row, counted from 1."""

    page: int
    pages: int
    first: int
    total: int


class Column(TypedDict):
    """Coordinate column, counted from 1: minimum, maximum and standard deviation."""

    number: int
    low: float
    high: float
    deviation: float


class Scales(TypedDict):
    """Columns with the largest and the smallest standard deviation."""

    widest: Column
    narrowest: Column


class RetentionContext(TypedDict):
    """Days for which participants' data are kept; ``after`` is ``session`` or ``close``."""

    days: int
    after: str


class VersionRow(TypedDict):
    """Version of what a study has learned; ``before`` and ``after`` are shares of held-out answers of so many people as
    were ``measured``, and ``random`` of answers to random pairs.
    """

    version: int
    when: str
    who: str
    sessions: int | None
    dimension: int | None
    given: bool
    before: float | None
    after: float | None
    measured: int
    random: float | None
    pairs: int
    dropped: bool
    current: bool


class LearningContext(TypedDict):
    """State of the learning of a study from its own people.

    ``on`` says whether it learns by itself, ``requested`` whether it was just asked to, ``finished`` the sessions that
    count, ``due`` the number at which it learns next, ``current`` the version with which sessions begin, and
    ``extensible`` whether items can be added.
    """

    on: bool
    requested: bool
    finished: int
    due: int
    current: int | None
    failure: str | None
    failed: str | None
    versions: list[VersionRow]
    extensible: bool


class QrCode(TypedDict):
    """QR code of a link as a path of strokes in a square; ``local`` where only this computer reaches the link."""

    local: bool
    size: int
    path: str


class StudyPage(TypedDict):
    """``study``: the dashboard; ``filling`` is the number of simulated people requested just before.

    ``scales`` is there where the columns of the items differ too much in scale, and else None.
    """

    user: User
    study: StudyContext
    link: str
    qr: QrCode
    live: LiveContext
    map: StudyMap
    people: list[PersonRow]
    paging: Paging
    audit: list[AuditRow]
    configuration: str
    filling: int
    columns: ColumnsContext
    formats: list[str]
    scales: Scales | None
    retention: RetentionContext | None
    learning: LearningContext


class AnswerRow(TypedDict):
    """Answer of a person; ``kind`` is a key of the catalogue under ``kind.``; ``anchor`` in a similarity study."""

    index: int
    query: str
    anchor: CardSchema | None
    left: CardSchema
    right: CardSchema
    outcome: str
    rt_ms: int | None
    answered: str
    kind: str
    voided: bool


class PersonPage(TypedDict):
    """``person``: one participant."""

    user: User
    study: StudyContext
    person: PersonRow
    reliability: ReliabilitySchema | None
    ids: dict[str, str]
    map: PersonMap
    answers: list[AnswerRow]
    nearest: list[Near]
    audit: list[AuditRow]
