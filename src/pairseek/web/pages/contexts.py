"""What each page is made from: the shapes that the service hands to `render`.

Plain data only. A key named ``*_html`` is already sanitized; everything else is shown as text. ``csrf`` is the token
that every form sends back. Times are ISO 8601.
"""

from __future__ import annotations

from typing import TypedDict

#: x, y, colour as ``#rrggbb`` or None, label.
Dot = tuple[float, float, str | None, str | None]


class ImageContext(TypedDict):
    """An item's picture."""

    src: str
    srcset: str | None
    width: int
    height: int
    alt: str


class CardContext(TypedDict):
    """An item as people see it; what it does not have is None."""

    id: str
    label: str | None
    text: str | None
    html: str | None
    colour: str | None
    image: ImageContext | None
    audio: str | None
    video: str | None


class PairContext(TypedDict):
    """A query: two items side by side."""

    query: str
    number: int
    left: CardContext
    right: CardContext


class ProgressContext(TypedDict):
    """How far a person is; ``total`` where it is known, else ``remaining`` is the forecast."""

    answered: int
    total: int | None
    remaining: int | None
    share: float


class ActionsContext(TypedDict):
    """What is offered now; ``undo`` is the query that would be taken back."""

    undo: str | None
    tie: bool
    skip: bool


class StateContext(TypedDict):
    """Where a session stands: ``asking``, ``finished`` or ``closed``."""

    status: str
    query: PairContext | None
    progress: ProgressContext
    can: ActionsContext
    result: str | None


class ErrorContext(TypedDict):
    """The one shape of an error."""

    code: str
    message: str
    received: object
    hint: str | None


class StudyHead(TypedDict):
    """What every page of a participant says of the study."""

    slug: str
    title: str


class StartPage(TypedDict):
    """``start``: consent and instructions; ``begun`` for a session that goes on."""

    study: StudyHead
    consent_html: str | None
    instructions_html: str | None
    answers: int | None
    csrf: str
    preview: bool
    begun: bool


class PracticeContext(TypedDict):
    """Two cards to try on."""

    left: CardContext
    right: CardContext


class Offers(TypedDict):
    """What the study offers at all."""

    undo: bool
    tie: bool
    skip: bool


class RunPage(TypedDict):
    """``run``: the pairs. ``session`` is a public name of the session, under which the browser keeps what is unsent.

    ``practice`` is None, a pair, or True for a pair that the page brings along.
    """

    study: StudyHead
    session: str
    question: str | None
    state: StateContext
    offers: Offers
    practice: PracticeContext | bool | None
    preview: bool


class MapData(TypedDict):
    """Items in two dimensions, the estimate, and the outline of its credible region as points around it."""

    items: list[Dot]
    point: tuple[float, float]
    ellipse: list[tuple[float, float]]


class Near(TypedDict):
    """An item near the estimate, and how probably it is the best of all."""

    card: CardContext
    probability: float


class LearnedContext(TypedDict):
    """A sentence: a key of the catalogue under ``learned.``, and its numbers."""

    key: str
    values: dict[str, object]


class ResultPage(TypedDict):
    """``result``: what was found. ``redirect`` is where the person came from, ``code`` what they bring back.

    ``wait`` is the number of seconds until the page goes there by itself, None where it does not.
    """

    study: StudyHead
    map: MapData | None
    nearest: list[Near]
    learned: list[LearnedContext]
    answers: int
    debrief_html: str | None
    mine: str
    redirect: str | None
    wait: int | None
    code: str | None
    preview: bool


class DeclinedPage(TypedDict):
    """``declined``: no consent."""

    study: StudyHead
    redirect: str | None
    code: str | None


class ClosedPage(TypedDict):
    """``closed``: the study takes no answers; ``mine`` where the person has data."""

    study: StudyHead
    mine: str | None


class ErrorPage(TypedDict):
    """``error``: any status from 400 up; ``back`` is a way on."""

    status: int
    error: ErrorContext
    back: str | None


class User(TypedDict):
    """Who is signed in."""

    name: str


class LoginPage(TypedDict):
    """``login``."""

    csrf: str
    next: str | None
    name: str
    error: ErrorContext | None


class StudyContext(TypedDict):
    """A study in the list; ``status`` is ``draft``, ``open`` or ``closed``."""

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
    """``studies``."""

    user: User
    csrf: str
    studies: list[StudyContext]


class NewStudyPage(TypedDict):
    """``study_new``: ``values`` are what was sent, ``errors`` a sentence for a field's name ("" for the whole).

    A field is named by its place in the study's file: ``title``, ``offer.tie`` (sent as "true" if ticked),
    ``completion.codes.finished``. ``items``, ``images`` and ``yaml`` are files. ``attention`` is lines of
    ``left, right, answer``, and ``more`` is YAML with any further settings.
    """

    user: User
    csrf: str
    strategies: list[str]
    stops: list[str]
    responses: list[str]
    noises: list[str]
    priors: list[str]
    languages: list[str]
    values: dict[str, str]
    errors: dict[str, str]


class LiveContext(TypedDict):
    """What changes while one looks; also ``/studies/{slug}/live.json``."""

    status: str
    started: int
    finished: int
    answers: int
    answers_per_minute: float
    median_seconds: float | None
    latency_ms: float | None
    updated: str


class Quality(TypedDict):
    """Signs of care; ``flags`` are keys of the catalogue under ``flag.``."""

    consistency: float | None
    attention: float | None
    left_share: float | None
    fast_share: float | None
    flags: list[str]


class PersonRow(TypedDict):
    """A session in a study's list; ``status`` is ``asking``, ``finished`` or ``declined``."""

    session: str
    name: str | None
    status: str
    answers: int
    started: str
    median_seconds: float | None
    simulated: bool
    voided: bool
    quality: Quality


class MapPoint(TypedDict):
    """A person's estimate on the study's map."""

    session: str
    name: str | None
    point: tuple[float, float]
    radius: float
    simulated: bool
    voided: bool


class StudyMap(TypedDict):
    """All estimates over the items."""

    items: list[Dot]
    people: list[MapPoint]


class AuditRow(TypedDict):
    """Who did what, when and why; ``action`` is a key of the catalogue under ``audit.``."""

    when: str
    who: str
    action: str
    what: str
    reason: str | None


class Paging(TypedDict):
    """Which part of a list is shown; ``first`` is the number of its first row, from 1."""

    page: int
    pages: int
    first: int
    total: int


class Column(TypedDict):
    """A column of coordinates, counted from 1: smallest and largest value, and standard deviation."""

    number: int
    low: float
    high: float
    deviation: float


class Scales(TypedDict):
    """The columns with the largest and the smallest standard deviation."""

    widest: Column
    narrowest: Column


class StudyPage(TypedDict):
    """``study``: the dashboard; ``filling`` is the number of simulated people who were just asked for.

    ``scales`` is there where the columns of the items differ too much in scale, and else None.
    """

    user: User
    csrf: str
    study: StudyContext
    link: str
    live: LiveContext
    map: StudyMap
    people: list[PersonRow]
    paging: Paging
    audit: list[AuditRow]
    configuration: str
    filling: int
    scales: Scales | None


class AnswerRow(TypedDict):
    """One answer of a person; ``kind`` is a key of the catalogue under ``kind.``."""

    index: int
    query: str
    left: str
    right: str
    outcome: str
    rt_ms: int | None
    answered: str
    kind: str
    voided: bool


class Track(TypedDict):
    """The estimate after each answer, the first first, in the map's plane, and its radius."""

    points: list[tuple[float, float]]
    radii: list[float]


class PersonMap(TypedDict):
    """Items, posterior samples and the way of the estimate."""

    items: list[Dot]
    samples: list[tuple[float, float]]
    track: Track


class IntervalContext(TypedDict):
    """A number with the ends of its interval."""

    median: float
    low: float
    high: float


class ReliabilityContext(TypedDict):
    """How a person answers; ``word`` is a key of the catalogue under ``manner.``."""

    word: str
    agreement: IntervalContext
    k: IntervalContext
    lapse: IntervalContext


class PersonPage(TypedDict):
    """``person``: one participant."""

    user: User
    csrf: str
    study: StudyContext
    person: PersonRow
    reliability: ReliabilityContext | None
    ids: dict[str, str]
    map: PersonMap
    answers: list[AnswerRow]
    nearest: list[Near]
    audit: list[AuditRow]


class TokenRow(TypedDict):
    """An API token: never its secret."""

    id: str
    name: str
    scopes: list[str]
    created: str
    used: str | None
    revoked: str | None


class TokensPage(TypedDict):
    """``tokens``: ``fresh`` is the secret of a token just made, shown once."""

    user: User
    csrf: str
    tokens: list[TokenRow]
    scopes: list[str]
    fresh: str | None
    error: ErrorContext | None


class Shape(TypedDict):
    """What an operation takes or gives: a name, and its schema as text."""

    name: str
    schema: str


class Parameter(TypedDict):
    """A part of an address."""

    name: str
    place: str
    description: str | None


class Operation(TypedDict):
    """One call of the HTTP API."""

    id: str
    method: str
    path: str
    description: str
    parameters: list[Parameter]
    takes: Shape | None
    gives: Shape | None


class DocsPage(TypedDict):
    """``docs``: the HTTP API."""

    operations: list[Operation]
