"""Declarations shared by pages and the HTTP API: types of contexts and schemas of replies.

Their names, docstrings and descriptions are part of the API description. Additional keys are not allowed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

_declared = with_config(ConfigDict(extra="forbid"))


@_declared
class ErrorSchema(TypedDict):
    """Error details."""

    code: Annotated[str, Field(description="identifier for programs")]
    message: Annotated[str, Field(description="description of the error")]
    received: Annotated[Any, Field(description="value that was received")]
    hint: Annotated[str | None, Field(description="advice on what to do")]


@_declared
class ImageSchema(TypedDict):
    """Picture of an item."""

    src: str
    srcset: str | None
    width: int
    height: int
    alt: str


@_declared
class CardSchema(TypedDict):
    """Item as participants see it."""

    id: str
    label: str | None
    # The label, even if the card hides it; without a label, the beginning of the text or the picture's name.
    name: str
    # In display order; Markdown is sanitized.
    media: Annotated[
        dict[str, str | ImageSchema],
        Field(description="what the card shows besides the label, by medium; markdown is HTML, image an object"),
    ]


@_declared
class PairSchema(TypedDict):
    """Query: two items to choose between; in a similarity study, to choose the one more like the anchor."""

    query: Annotated[str, Field(description="id of the query, to be sent with the answer")]
    number: int
    anchor: Annotated[CardSchema | None, Field(description="item to compare with; null in a preference study")]
    left: CardSchema
    right: CardSchema


@_declared
class ProgressSchema(TypedDict):
    """Progress of a session."""

    answered: int
    total: int | None
    remaining: Annotated[int | None, Field(description="forecast of the remaining answers")]
    share: float


@_declared
class ActionsSchema(TypedDict):
    """Actions that are available now."""

    undo: Annotated[str | None, Field(description="query whose answer can be undone")]
    tie: bool
    skip: bool


Status: TypeAlias = Literal["asking", "finished", "closed"]


@_declared
class StateSchema(TypedDict):
    """State of a session."""

    status: Status
    query: PairSchema | None
    progress: ProgressSchema
    can: ActionsSchema
    result: str | None


@_declared
class IntervalSchema(TypedDict):
    """Posterior median and 95 % credible interval of a number."""

    median: float
    low: float
    high: float


@_declared
class ReliabilitySchema(TypedDict):
    """Inferred reliability of the participant."""

    # Message key under ``manner.``.
    word: Literal["consistent", "noisy", "random"]
    agreement: Annotated[IntervalSchema, Field(description="share of answers that agree with the person's preference")]
    k: IntervalSchema
    lapse: Annotated[IntervalSchema, Field(description="share of answers that ignore the items")]
