"""Contexts of the participant's pages."""

from __future__ import annotations

from typing import TypedDict

from pairseek.web.pages.contexts.maps import MapData
from pairseek.web.pages.contexts.shared import CardSchema, ErrorSchema, ImageSchema, StateSchema


class StudyHead(TypedDict):
    """Study's name, logo and style sheet with its colour on the participant's pages."""

    slug: str
    title: str
    style: str | None
    logo: ImageSchema | None


class StartPage(TypedDict):
    """``start``: consent and instructions; ``begun`` if a session will be resumed.

    ``texts`` identifies what the page shows, and ``changed`` says that it changed after the visitor had opened it.
    """

    study: StudyHead
    consent_html: str | None
    instructions_html: str | None
    answers: int | None
    preview: bool
    begun: bool
    texts: str
    changed: bool


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

    ``practice`` is None, a pair, or True for the page's built-in pair. ``prefetch``: whether the service computes the
    next pairs in advance. ``similarity``: whether pairs have an anchor. ``play``: how much of each sound and video must
    be played before a choice, in seconds or ``"end"`` for all of it; None if there is nothing to play.
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
    """Recommended item; ``probability`` is its probability of being the best.

    ``share`` is the probability that it is chosen over a random other item, None in sessions of an unusable model
    version.
    """

    card: CardSchema
    probability: float
    share: float | None


class LearnedContext(TypedDict):
    """Sentence: a message key under ``learned.`` with its values."""

    key: str
    values: dict[str, object]


class ResultPage(TypedDict):
    """``result``: the result. ``redirect`` is the completion URL, ``code`` the completion code.

    ``wait`` is the number of seconds until the page redirects to the completion URL, None if it does not. ``goal``
    decides what is shown: a map with the nearest items, a pick with alternatives, or a list. ``first``: whether the
    study had learned nothing yet when the session began; then ``before`` is the number of earlier people whose answers
    the result uses as well.
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
    """``closed``: the study accepts no answers, or is ``full``; ``mine`` links to the person's data, if any.

    ``redirect`` and ``code`` lead from a full study back to the panel.
    """

    study: StudyHead
    mine: str | None
    full: bool
    redirect: str | None
    code: str | None


class ErrorPage(TypedDict):
    """``error``: an error with its status; ``back`` is the page to return to."""

    status: int
    error: ErrorSchema
    back: str | None
