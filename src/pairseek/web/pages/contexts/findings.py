"""Contexts of the findings of a study and of its report."""

from __future__ import annotations

from typing import TypedDict

from pairseek.web.pages.contexts.account import User
from pairseek.web.pages.contexts.maps import GroupMap
from pairseek.web.pages.contexts.shared import CardSchema
from pairseek.web.pages.contexts.study import Quality, StudyContext


class RankRow(TypedDict):
    """Item in the group ranking; see `pairseek.people.ranking.RankedItem`."""

    card: CardSchema
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
    """Segment of people: what they like best, and what they like more than others do."""

    number: int
    share: float
    favourites: list[CardSchema]
    distinctive: list[CardSchema]


class QualityRow(Quality):
    """Data quality of a person's answers; ``trust`` is the probability that they are not random.

    If there are several segments, ``segment`` is the person's most probable one and ``chance`` its probability.
    """

    session: str
    name: str | None
    answers: int
    median_seconds: float | None
    voided: bool
    left_out: bool
    trust: float | None
    segment: int | None
    chance: float | None


class NothingContext(TypedDict):
    """Reason for a missing ranking: a message key with its count, or a text for a reason without a message."""

    reason: str
    count: int
    text: str


class BestItem(TypedDict):
    """Item that a group chooses most, with the 90 % interval of its share."""

    card: CardSchema
    share: float
    share_low: float
    share_high: float


class OptionContext(TypedDict):
    """People who gave the same answer, and what they choose most; empty if they are too few."""

    option: str
    people: int
    best: list[BestItem]


class QuestionContext(TypedDict):
    """Groups by the answers to one of the researcher's own questions."""

    text: str
    options: list[OptionContext]


class FindingsContext(TypedDict):
    """Findings of a study; ``problem`` says why the ranking is missing, if it is.

    ``everyone`` says whether the ranking includes the ``left_out`` people with void or flagged answers, and
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
    groups: list[QuestionContext]
    quality: list[QualityRow]


class FindingsPage(TypedDict):
    """``findings``: the findings of a study, None until they are computed; ``current`` if they include all answers.

    ``computation`` is the number of the computation that includes all answers.
    """

    user: User
    study: StudyContext
    findings: FindingsContext | None
    current: bool
    computation: int
    languages: list[str]


class CodebookRow(TypedDict):
    """Column of an exported table."""

    table: str
    column: str
    meaning: str


class ReportPage(TypedDict):
    """``_report``: the self-contained report of a study; ``balanced`` if the first people were asked balanced pairs."""

    title: str
    slug: str
    question: str | None
    made: str
    version: str
    findings: FindingsContext
    balanced: bool
    codebook: list[CodebookRow]
