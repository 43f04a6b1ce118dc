"""Contexts of the researcher's pages of a study."""

from __future__ import annotations

from typing import TypedDict

from pairseek.web.pages.contexts.account import AuditRow, User
from pairseek.web.pages.contexts.items import GalleryContext
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
    """Columns of an item list: coordinates, columns kept as data, and the one that gave the ``names`` of the items."""

    coordinates: list[str]
    data: list[str]
    names: str | None


class ColumnsPart(TypedDict):
    """``_columns``: part of the form for a new study that lists the columns of ``count`` items, or a ``problem``.

    ``labels`` are those of the items from which attention pairs can be picked.
    """

    count: int
    columns: ColumnsContext | None
    labels: list[str]
    problem: str | None


class TextField(TypedDict):
    """Field of the form for a text of participants: its name, and the text in the language of the study."""

    name: str
    usual: str


class NewStudyPage(TypedDict):
    """``study_new``: submitted ``values``, and ``errors`` by field name ("" for the whole form).

    Fields are named after their path in a study file: ``title``, ``offer.tie`` (sent as "true" if ticked),
    ``completion.codes.finished``. ``items``, ``images`` and ``yaml`` are files. ``attention`` contains lines of
    ``left, right, answer``, ``texts.KEY`` replaces a message, and ``more`` is YAML with any other settings. ``columns``
    are the columns of an items file that the form mentions besides id and coordinates. ``formats`` are the table
    formats that can be read.
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
    texts: list[TextField]
    values: dict[str, str]
    errors: dict[str, str]


class LiveContext(TypedDict):
    """Figures that the dashboard keeps refreshing, also served at ``/studies/{slug}/live.json``."""

    status: str
    started: int
    finished: int
    answers: int
    answers_per_minute: float
    median_seconds: float | None
    latency_ms: float | None
    updated: str


class Quality(TypedDict):
    """Quality indicators: shares, the median response time, and ``flags`` (message keys under ``flag.``)."""

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
    """Retention period in days, which starts ``after`` a ``session`` or the ``close`` of the study."""

    days: int
    after: str


class VersionRow(TypedDict):
    """Version learned by a study, with the share of answers that it predicts correctly.

    ``before`` and ``after`` are the shares of the held-out answers of ``measured`` people that the previous version and
    this version predict; ``random`` is this version's share of the answers to ``pairs`` random pairs.
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
    """Learning state of a study.

    ``on``: whether learning is automatic. ``requested``: whether it was just requested. ``finished``: the number of
    sessions that count. ``due``: the number at which the study learns next. ``current``: the version that sessions
    begin with. ``extensible``: whether items can be added.
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
    """QR code of a link as a path of strokes in a square; ``local`` if only this computer can reach the link."""

    local: bool
    size: int
    path: str


class PanelLink(TypedDict):
    """Link for a panel, with the placeholders that the panel replaces."""

    name: str
    called: str
    link: str


class RecruitmentContext(TypedDict):
    """Links for panels, completion URL and code, quota, and closing date in UTC as a form's field has it."""

    panels: list[PanelLink]
    address: str | None
    code: str | None
    quota: int | None
    closes: str | None


class StudyPage(TypedDict):
    """``study``: the dashboard; ``simulating`` is the number of simulated people just requested.

    ``scales`` is None unless the columns of the items differ too much in scale.
    """

    user: User
    study: StudyContext
    gallery: GalleryContext
    link: str
    recruitment: RecruitmentContext
    qr: QrCode
    live: LiveContext
    map: StudyMap
    people: list[PersonRow]
    paging: Paging
    audit: list[AuditRow]
    configuration: str
    simulating: int
    columns: ColumnsContext
    formats: list[str]
    scales: Scales | None
    retention: RetentionContext | None
    learning: LearningContext


class AnswerRow(TypedDict):
    """Answer of a person; ``kind`` is a message key under ``kind.``, and ``anchor`` is set in a similarity study."""

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
