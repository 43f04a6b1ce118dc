"""Contexts of the participant's pages."""

from __future__ import annotations

from typing import TypedDict

from pairseek.web.pages.contexts.maps import MapData
from pairseek.web.pages.contexts.shared import CardSchema, ErrorSchema, StateSchema


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

    anchor: CardSchema | None
    left: CardSchema
    right: CardSchema


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
    state: StateSchema
    offers: Offers
    practice: PracticeContext | bool | None
    play: str | float | None
    prefetch: bool
    preview: bool


class Near(TypedDict):
    """Recommended item: how probably it is the best of all, and is chosen over another item drawn at random.

    The latter is None for a session of another version of the model.
    """

    card: CardSchema
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
    error: ErrorSchema
    back: str | None
