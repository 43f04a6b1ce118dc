"""What the HTTP API takes and gives, for its description and for the check of what comes in."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ErrorSchema(_Schema):
    """What went wrong."""

    code: str = Field(description="for programs")
    message: str = Field(description="what was wrong")
    received: Any = Field(description="what came instead")
    hint: str | None = Field(description="what to do")


class ErrorReply(_Schema):
    """The one shape of an error."""

    error: ErrorSchema


class ImageSchema(_Schema):
    """An item's picture."""

    src: str
    srcset: str | None
    width: int
    height: int
    alt: str


class CardSchema(_Schema):
    """An item as people see it."""

    id: str
    label: str | None
    name: str
    text: str | None
    html: str | None
    colour: str | None
    image: ImageSchema | None
    audio: str | None
    video: str | None


class PairSchema(_Schema):
    """Two items to choose between."""

    query: str = Field(description="name it in the answer")
    number: int
    left: CardSchema
    right: CardSchema


class ProgressSchema(_Schema):
    """How far it is."""

    answered: int
    total: int | None
    remaining: int | None = Field(description="forecast of the answers still to come")
    share: float


class ActionsSchema(_Schema):
    """What is offered now."""

    undo: str | None = Field(description="the query whose answer can be taken back")
    tie: bool
    skip: bool


class StateSchema(_Schema):
    """Where a session stands."""

    status: Literal["asking", "finished", "closed"]
    query: PairSchema | None
    progress: ProgressSchema
    can: ActionsSchema
    result: str | None


class AnswerBody(_Schema):
    """An answer to the current query."""

    query: str = Field(max_length=64, examples=["p1"])
    outcome: Literal["left", "right", "tie", "skip"]
    rt_ms: int | None = Field(default=None, ge=0, le=2**31 - 1, description="reaction time")
    shown_at: str | None = Field(default=None, max_length=32, pattern=r"^[0-9TZ:.+-]*$")
    sent_at: str | None = Field(default=None, max_length=32, pattern=r"^[0-9TZ:.+-]*$")
    attempt: int | None = Field(default=None, ge=0, le=2**31 - 1)


class UndoBody(_Schema):
    """Which answer to take back: the last one."""

    query: str = Field(max_length=64, examples=["p1"])


class NewItem(_Schema):
    """One item of a new study."""

    id: str = Field(min_length=1, max_length=200)
    coordinates: list[float] = Field(min_length=1, max_length=100)
    label: str | None = None
    appeal: float = 0.0
    text: str = ""
    colour: str = ""
    markdown: str = ""
    audio: str = ""
    video: str = ""


class NewStudy(_Schema):
    """A new study."""

    configuration: dict[str, Any] = Field(description="the settings of a study's file, without items and open")
    items: list[NewItem] = Field(min_length=2)
    open: bool = True


class StudySchema(_Schema):
    """A study."""

    slug: str
    title: str
    open: bool
    items: int
    dimensions: int
    created_at: str
    link: str
    configuration: dict[str, Any]


class NewSession(_Schema):
    """Who begins, as far as it is known."""

    participant: str | None = Field(default=None, max_length=200)
    prolific_pid: str | None = Field(default=None, max_length=200)
    prolific_study: str | None = Field(default=None, max_length=200)
    prolific_session: str | None = Field(default=None, max_length=200)
    seed: int | None = Field(default=None, ge=0, lt=2**63)


class OpenedSession(_Schema):
    """A new session. The token opens this session and nothing else; it is told once."""

    session: str
    token: str
    state: StateSchema


class SessionSchema(_Schema):
    """A session in a list."""

    session: str
    participant: str | None
    prolific_pid: str | None
    simulated: bool
    started_at: str
    finished_at: str | None
    reason: str | None


class IntervalSchema(_Schema):
    """A number that is not known: its median, and the ends between which 95 % of what is believed lies."""

    median: float
    low: float
    high: float


class ReliabilitySchema(_Schema):
    """How the person answers."""

    word: Literal["consistent", "noisy", "random"]
    agreement: IntervalSchema = Field(description="share of answers that follow the person's own taste")
    k: IntervalSchema
    lapse: IntervalSchema = Field(description="share of answers given without looking")


class EstimateSchema(_Schema):
    """Where the person is found to be."""

    point: list[float]
    covariance: list[list[float]]
    radius: float = Field(description="of the ball around the point that holds 95 % of the posterior")
    answers: int
    reliability: ReliabilitySchema | None = Field(default=None, description="where the study leaves k or lapse unknown")


class RecommendationSchema(_Schema):
    """An item for this person."""

    id: str
    label: str
    probability: float = Field(description="of being the best of all items for this person")
    expected_utility: float
    distance: float
