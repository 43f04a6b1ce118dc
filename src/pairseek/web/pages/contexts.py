"""Template contexts: the data from which each page is rendered.

Contexts hold plain data only. Values of keys named ``*_html`` are sanitized HTML; all others are escaped. Times are
ISO 8601. The service adds the CSRF token of the forms to every context.
"""

from __future__ import annotations

from typing import TypedDict

#: x, y, colour as ``#rrggbb`` or None, label.
Dot = tuple[float, float, str | None, str | None]


class ImageContext(TypedDict):
    """Picture of an item."""

    src: str
    srcset: str | None
    width: int
    height: int
    alt: str


class CardContext(TypedDict):
    """Card that shows an item. ``name`` is the label, also where the card hides it; without one, the beginning of
    the text, or the name of the picture.

    ``media`` has the media of the item by name, in the order in which they are shown; ``markdown`` is sanitized HTML.
    """

    id: str
    label: str | None
    name: str
    media: dict[str, str | ImageContext]


class PairContext(TypedDict):
    """Query: two items side by side; in a similarity study below the ``anchor`` with which they are compared."""

    query: str
    number: int
    anchor: CardContext | None
    left: CardContext
    right: CardContext


class ProgressContext(TypedDict):
    """Progress of a session; ``remaining`` is a forecast where ``total`` is not known."""

    answered: int
    total: int | None
    remaining: int | None
    share: float


class ActionsContext(TypedDict):
    """Actions that are available now; ``undo`` is the query whose answer can be undone."""

    undo: str | None
    tie: bool
    skip: bool


class StateContext(TypedDict):
    """State of a session: ``asking``, ``finished`` or ``closed``."""

    status: str
    query: PairContext | None
    progress: ProgressContext
    can: ActionsContext
    result: str | None


class ErrorContext(TypedDict):
    """Error as the API sends it."""

    code: str
    message: str
    received: object
    hint: str | None


class StudyHead(TypedDict):
    """Study as the participant's pages name it."""

    slug: str
    title: str


class StartPage(TypedDict):
    """``start``: consent and instructions; ``begun`` for a session that is resumed."""

    study: StudyHead
    consent_html: str | None
    instructions_html: str | None
    answers: int | None
    preview: bool
    begun: bool


class PracticeContext(TypedDict):
    """Practice pair of two cards, with an anchor in a similarity study."""

    anchor: CardContext | None
    left: CardContext
    right: CardContext


class Offers(TypedDict):
    """Actions that the study offers."""

    undo: bool
    tie: bool
    skip: bool


class RunPage(TypedDict):
    """``run``: the pairs. ``session`` is the public name under which the browser stores unsent answers.

    ``practice`` is None, a pair, or True for a pair that the page brings along. ``prefetch``: the service has the next
    pairs before the answer. ``similarity``: pairs have an anchor. ``play``: how much of each sound and video is played
    before a choice, ``"end"`` or seconds; None in a study without any.
    """

    study: StudyHead
    similarity: bool
    session: str
    question: str | None
    state: StateContext
    offers: Offers
    practice: PracticeContext | bool | None
    play: str | float | None
    prefetch: bool
    preview: bool


class MapData(TypedDict):
    """Items in two dimensions, the estimate, and the outline of its credible region.

    ``pictures`` of items, where there are few, are places and addresses.
    """

    items: list[Dot]
    point: tuple[float, float]
    ellipse: list[tuple[float, float]]
    pictures: list[tuple[float, float, str]]


class Near(TypedDict):
    """Recommended item: how probably it is the best of all, and is chosen over another item drawn at random.

    The latter is None for a session of another version of the model.
    """

    card: CardContext
    probability: float
    share: float | None


class LearnedContext(TypedDict):
    """Sentence: a key of the catalogue under ``learned.`` and its values."""

    key: str
    values: dict[str, object]


class ResultPage(TypedDict):
    """``result``: the result. ``redirect`` is the completion URL, ``code`` the completion code.

    ``wait`` is the number of seconds until the page goes there by itself, None where it does not. ``goal`` decides what
    is shown: the map and the nearest items, one pick and others, or a list. ``first``: the study had learned nothing
    yet when the session began, and ``before`` people's answers were used beside the person's own.
    """

    study: StudyHead
    goal: str
    map: MapData | None
    nearest: list[Near]
    learned: list[LearnedContext]
    first: bool
    before: int
    answers: int
    debrief_html: str | None
    mine: str
    redirect: str | None
    wait: int | None
    code: str | None
    preview: bool


class DeclinedPage(TypedDict):
    """``declined``: the person did not give consent."""

    study: StudyHead
    redirect: str | None
    code: str | None


class ClosedPage(TypedDict):
    """``closed``: the study accepts no answers; ``mine`` links to the person's data, if there are any."""

    study: StudyHead
    mine: str | None


class ErrorPage(TypedDict):
    """``error``: any status from 400 up; ``back`` is the page to return to."""

    status: int
    error: ErrorContext
    back: str | None


class User(TypedDict):
    """Signed-in user; ``admin``: whether they are an administrator."""

    name: str
    admin: bool


class LoginPage(TypedDict):
    """``login``: the sign-in form."""

    next: str | None
    name: str
    error: ErrorContext | None


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
    """Quality indicators; ``flags`` are keys of the catalogue under ``flag.``."""

    consistency: float | None
    attention: float | None
    left_share: float | None
    fast_share: float | None
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


class AuditRow(TypedDict):
    """Entry of the audit log; ``action`` is a key of the catalogue under ``audit.``.

    ``study`` is named where entries of several studies are shown.
    """

    when: str
    who: str
    action: str
    what: str
    reason: str | None
    session: str | None
    study: str | None


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


class PlacedItem(TypedDict):
    """Item on the map of a similarity study; ``undecided`` is the share of orders around it that may be wrong."""

    card: CardContext
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


class CurveStep(TypedDict):
    """Error on the judgements kept apart, for one version of a map."""

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

    ``key`` and ``advice_key`` name its sentences among the messages, with ``numbers``; they are empty in earlier maps,
    whose sentences are English.
    """

    level: str
    name: str
    found: str
    advice: str
    key: str
    advice_key: str
    numbers: dict[str, object]


class SimilarityContext(TypedDict):
    """Newest map of a similarity study; ``forecast`` is None where very many judgements are needed."""

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
    vague: list[CardContext]
    vague_count: int
    curve: list[CurveStep]
    findings: list[FindingContext]


class SimilarityPage(StudyPage):
    """``similarity``: the dashboard of a similarity study; ``similarity`` is None before the first map."""

    similarity: SimilarityContext | None


class RankRow(TypedDict):
    """Item in the group ranking: see `pairseek.ranking.RankedItem`."""

    card: CardContext
    place: int
    tier: int
    share: float
    share_low: float
    share_high: float
    rank: float
    rank_low: int
    rank_high: int
    top_1: float
    top_3: float
    top_5: float
    answers: int


class SegmentContext(TypedDict):
    """Segment of people: what it likes best, and what it likes more than the others do."""

    number: int
    share: float
    favourites: list[CardContext]
    distinctive: list[CardContext]


class QualityRow(TypedDict):
    """Data quality of a person's answers; ``trust`` is the probability that the answers are not random.

    ``segment`` is the most probable one, with its probability ``chance``, if there are several.
    """

    session: str
    name: str | None
    answers: int
    median_seconds: float | None
    consistency: float | None
    attention: float | None
    left_share: float | None
    fast_share: float | None
    flags: list[str]
    voided: bool
    left_out: bool
    trust: float | None
    segment: int | None
    chance: float | None


class GroupItem(TypedDict):
    """Item on the map of a group, with its place in the ranking."""

    card: CardContext
    point: tuple[float, float]
    place: int


class GroupPerson(TypedDict):
    """Person on the map of a group: estimate, the ellipse that holds half of the posterior, and segment."""

    point: tuple[float, float]
    outline: list[tuple[float, float]]
    segment: int


class GroupMap(TypedDict):
    """Map of items and people, with the names of its axes and the number of segments."""

    items: list[GroupItem]
    people: list[GroupPerson]
    axes: tuple[str, str]
    segments: int


class NothingContext(TypedDict):
    """Why there is no ranking: a key of the message catalogue with its number, and the text where no key is known."""

    reason: str
    count: int
    text: str


class FindingsContext(TypedDict):
    """Findings of a study; ``problem`` says why there is no ranking.

    ``everyone`` says whether people whom the ranking leaves out are included, ``left_out`` how many they are, and
    ``simulated`` whether all people are simulated.
    """

    problem: NothingContext | None
    everyone: bool
    simulated: bool
    people: int
    answers: int
    left_out: int
    first: str | None
    last: str | None
    tiers: int
    unseen: int
    item_count: int
    ranking: list[RankRow]
    segments: list[SegmentContext]
    map: GroupMap | None
    quality: list[QualityRow]


class FindingsPage(TypedDict):
    """``findings``: what a study tells, None until it is computed; ``current`` if no answer has come since."""

    user: User
    study: StudyContext
    findings: FindingsContext | None
    current: bool
    languages: list[str]


class CodebookRow(TypedDict):
    """Column of an exported table."""

    table: str
    column: str
    meaning: str


class ReportPage(TypedDict):
    """``_report``: the stand-alone report of a study; ``balanced`` where its first people were asked balanced pairs."""

    title: str
    slug: str
    question: str | None
    made: str
    version: str
    findings: FindingsContext
    balanced: bool
    codebook: list[CodebookRow]


class AnswerRow(TypedDict):
    """Answer of a person; ``kind`` is a key of the catalogue under ``kind.``; ``anchor`` in a similarity study."""

    index: int
    query: str
    anchor: CardContext | None
    left: CardContext
    right: CardContext
    outcome: str
    rt_ms: int | None
    answered: str
    kind: str
    voided: bool


class Track(TypedDict):
    """Estimate after each answer in chronological order, in the plane of the map, with its radius."""

    points: list[tuple[float, float]]
    radii: list[float]


class PersonMap(TypedDict):
    """Map of items, posterior samples and the track of the estimate."""

    items: list[Dot]
    samples: list[tuple[float, float]]
    track: Track


class IntervalContext(TypedDict):
    """Median and credible interval of a number."""

    median: float
    low: float
    high: float


class ReliabilityContext(TypedDict):
    """Inferred reliability of a person; ``word`` is a key of the catalogue under ``manner.``."""

    word: str
    agreement: IntervalContext
    k: IntervalContext
    lapse: IntervalContext


class PersonPage(TypedDict):
    """``person``: one participant."""

    user: User
    study: StudyContext
    person: PersonRow
    reliability: ReliabilityContext | None
    ids: dict[str, str]
    map: PersonMap
    answers: list[AnswerRow]
    nearest: list[Near]
    audit: list[AuditRow]


class TokenRow(TypedDict):
    """API token, without its secret."""

    id: str
    name: str
    scopes: list[str]
    created: str
    used: str | None
    revoked: str | None
    owner: str
    expires: str
    expired: bool


class TokensPage(TypedDict):
    """``tokens``: ``fresh`` is the secret of a token that was just created, shown once, and ``expires`` its end.

    ``lifetimes`` are the numbers of days to choose from, and ``lifetime`` is the default.
    """

    user: User
    tokens: list[TokenRow]
    scopes: list[str]
    fresh: str | None
    expires: str | None
    lifetimes: list[int]
    lifetime: int
    error: ErrorContext | None


class ConfirmPage(TypedDict):
    """``confirm``: what is deleted, and a field for its name; ``wrong`` if another name was typed.

    ``kind`` is ``participant``, ``study`` or ``user``, and ``count`` the number of their sessions or tokens.
    ``consequences`` are keys of the catalogue under ``confirm.also.``.
    """

    user: User
    kind: str
    name: str
    count: int
    consequences: list[str]
    action: str
    back: str
    wrong: bool


class UserRow(TypedDict):
    """Account of a researcher; the last administrator is not ``removable``."""

    id: int
    name: str
    admin: bool
    tokens: int
    created: str
    removable: bool


class AdministrationPage(TypedDict):
    """``administration``: users, and the record of what was done in all studies."""

    user: User
    users: list[UserRow]
    audit: list[AuditRow]


class Shape(TypedDict):
    """Request or response schema of an operation: its name, and the schema as text."""

    name: str
    schema: str


class Parameter(TypedDict):
    """Path or query parameter of an operation."""

    name: str
    place: str
    description: str | None


class Operation(TypedDict):
    """Operation of the HTTP API."""

    id: str
    method: str
    path: str
    description: str
    parameters: list[Parameter]
    takes: Shape | None
    gives: Shape | None


class DocsPage(TypedDict):
    """``docs``: reference of the HTTP API."""

    operations: list[Operation]
