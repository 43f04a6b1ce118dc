"""Request and response schemas of the HTTP API; pages share those in `pairseek.web.pages.contexts.shared`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from pairseek.core.validation import MAX_ID_LENGTH
from pairseek.web.pages.contexts.shared import ErrorSchema, ReliabilitySchema, StateSchema
from pairseek.web.routes.item_bodies import ItemList
from pairseek.web.sessions.link_variables import MAX_VARIABLES, NAME_PATTERN
from pairseek.web.studies.questions import MAX_QUESTIONS, Stage


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ErrorReply(_Schema):
    """Error response."""

    error: ErrorSchema


class ForgetBody(_Schema):
    """Participant to forget."""

    participant: str = Field(
        min_length=1,
        max_length=MAX_ID_LENGTH,
        description="the participant's id from the link, Prolific id, or a session's id",
    )


class DeletedSchema(_Schema):
    """Result of a deletion."""

    sessions: int
    answers: int
    populations: list[int] = Field(description="versions of populations dropped because they were learned from it")


class UndoBody(_Schema):
    """Query whose answer is to be undone; it must be the last one answered."""

    query: str = Field(max_length=64, examples=["p1"])


class NewStudy(_Schema):
    """New study."""

    configuration: dict[str, Any] = Field(description="the settings of a study's file, without items and open")
    items: ItemList
    open: bool = True


class EditBody(_Schema):
    """Settings of a study to change; what is left out stays as it is."""

    title: str = Field(default="", description="title")
    instructions: str = Field(default="", description="Markdown")
    consent: str | None = Field(default=None, description="Markdown; null: people are not asked")
    debrief: str = Field(default="", description="Markdown")
    names: bool | None = Field(default=None, description="whether cards show names; null: those that somebody wrote")
    accent: str | None = Field(default=None, description="colour as #rrggbb; null: the usual one")


class DuplicateBody(_Schema):
    """Copy of a study."""

    slug: str | None = Field(default=None, max_length=64, description="its name in the link; null: a free one")


class OtherItems(_Schema):
    """New items of a study, in place of its present ones."""

    items: ItemList
    catalogue: str | None = Field(
        default=None, max_length=64, description="version of the items to be replaced; another version is a conflict"
    )


class CatalogueSchema(_Schema):
    """Version of the items of a study."""

    catalogue: str = Field(description="hash of the ids, coordinates and appeal of the items")
    items: int = Field(description="number of items")
    sessions: int = Field(description="number of sessions that began with them")
    replaced_at: str | None = Field(description="when they were replaced; null for the newest")


class StudySchema(_Schema):
    """Study."""

    slug: str
    title: str
    open: bool
    items: int
    dimensions: int
    catalogue: str = Field(description="version of the items: a hash of their ids, coordinates and appeal")
    created_at: str
    link: str
    configuration: dict[str, Any]


class ReplacementSchema(_Schema):
    """State of a replacement of items."""

    replacement: str = Field(description="id of the replacement, a hash of the items")
    state: Literal["running", "done", "failed"]
    catalogue: str = Field(description="version of the new items")
    status: int | None = Field(description="status of the error, as of a reply")
    error: ErrorSchema | None = Field(description="why it failed")
    at: str = Field(description="when it began")
    study: StudySchema | None = Field(description="the study, once it is done")


VariableName = Annotated[str, Field(pattern=NAME_PATTERN)]
VariableValue = Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH)]


class PopulationBody(_Schema):
    """Population to upload."""

    population: dict[str, Any] = Field(description="what Population.record() returns")


class ChosenPopulation(_Schema):
    """Population with which new sessions begin."""

    version: int = Field(ge=0, description="version of the population; 0 for none")


class PopulationSchema(_Schema):
    """Population of a study."""

    version: int
    name: str | None = Field(description="name under which it was uploaded; null if the study learned it")
    created_at: str
    created_by: str
    current: bool = Field(description="whether new sessions begin with it")
    dropped: bool = Field(description="whether it was dropped because somebody it was learned from was forgotten")


class NewSession(_Schema):
    """Ids of the participant, as far as they are known."""

    participant: str | None = Field(default=None, max_length=MAX_ID_LENGTH)
    prolific_pid: str | None = Field(default=None, max_length=MAX_ID_LENGTH)
    prolific_study: str | None = Field(default=None, max_length=MAX_ID_LENGTH)
    prolific_session: str | None = Field(default=None, max_length=MAX_ID_LENGTH)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    variables: dict[VariableName, VariableValue] = Field(
        default={}, max_length=MAX_VARIABLES, description="further facts to keep, such as the variables of a link"
    )


class RepliesBody(_Schema):
    """Replies to the researcher's own questions of a stage; those that are left out are not answered."""

    stage: Stage = Field(default="after", description="before or after the pairs")
    replies: dict[str, str | float] = Field(max_length=MAX_QUESTIONS, description="by the name of the question")


class LimitsBody(_Schema):
    """Quota and closing date of a study; null: none."""

    quota: int | None = Field(ge=1, le=1_000_000, description="number of finished sessions")
    closes: AwareDatetime | None = Field(description="with its offset from UTC: 2027-01-31T18:00+01:00")


class NewLinks(_Schema):
    """Participants who get a signed link."""

    participants: list[Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH)]] = Field(
        min_length=1, max_length=10_000
    )
    days: float = Field(default=30.0, gt=0, le=366, description="days until the links expire")


class LinkSchema(_Schema):
    """Signed link of a participant."""

    participant: str
    link: str


class OpenedSession(_Schema):
    """New session. The token gives access only to this session and is shown once."""

    session: str
    token: str
    state: StateSchema


class SessionSchema(_Schema):
    """Session in a list."""

    session: str
    catalogue: str = Field(description="version of the items that it began with")
    participant: str | None
    prolific_pid: str | None
    simulated: bool
    started_at: str
    finished_at: str | None
    reason: str | None
    variables: dict[str, str] = Field(description="further variables of the link")
    replies: dict[str, str | float] = Field(description="replies to the researcher's own questions")


class EstimateSchema(_Schema):
    """Estimated user point."""

    point: list[float]
    covariance: list[list[float]]
    radius: float = Field(description="radius of the ball around the point that contains 95 % of the posterior")
    answers: int
    reliability: ReliabilitySchema | None = Field(default=None, description="if the study leaves k or lapse unknown")


ItemName = Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH)]


_Value = bool | float | Annotated[str, Field(max_length=200)]


class AttributesBody(_Schema):
    """Changed attributes of items."""

    attributes: dict[str, dict[str, _Value | None]] = Field(
        description="values by attribute and item; null removes a value",
        examples=[{"in_stock": {"lamp": True, "chair": False}, "price": {"lamp": 39.5}}],
    )
    missing: Literal["error", "ignore"] = Field(
        default="error", description="what to do about ids that the study does not have"
    )


class AttributesSchema(_Schema):
    """Attributes of the items of a study."""

    attributes: dict[str, int] = Field(description="number of items that have each attribute")
    ignored: int = Field(default=0, description="number of ids that the study does not have")


class RangeSchema(_Schema):
    """Range of numbers, including its ends."""

    min: float | None = None
    max: float | None = None


class RecommendBody(_Schema):
    """Request for recommended items."""

    count: int = Field(default=5, ge=1, le=100)
    only: list[ItemName] | None = Field(
        default=None, max_length=200_000, description="ids of items that may be recommended; null: all"
    )
    exclude: list[ItemName] = Field(default=[], max_length=200_000, description="ids of items that may not")
    where: dict[str, _Value | Annotated[list[_Value], Field(max_length=1000)] | RangeSchema] | None = Field(
        default=None,
        description="required attributes: a value, a list of accepted values, or a range of numbers",
        examples=[{"in_stock": True, "price": {"max": 50}}],
    )
    missing: Literal["error", "ignore"] = Field(
        default="error", description="what to do about ids in only and exclude that are not in the catalogue"
    )
    diversity: float = Field(default=0.0, ge=0, le=1, description="minimum distance as a share of the typical distance")
    catalogue: str | None = Field(
        default=None,
        max_length=64,
        description="version of the study's items to recommend from; null: the version that the session began with",
    )


class RecommendationSchema(_Schema):
    """Recommended item."""

    id: str
    label: str
    probability: float = Field(description="probability of being the best item for this person")
    expected_utility: float
    distance: float
