"""Context of the page with the researcher's own questions."""

from __future__ import annotations

from typing import TypedDict

from pairseek.web.pages.contexts.participant import StudyHead


class QuestionField(TypedDict):
    """Question with what was typed, and the problem with it; ``kind`` is choice, number or text."""

    name: str
    text: str
    kind: str
    options: list[str]
    required: bool
    typed: str
    problem: str | None


class QuestionsPage(TypedDict):
    """``questions``: the questions of a ``stage``, ``before`` or ``after`` the pairs; ``wrong`` counts the problems."""

    study: StudyHead
    stage: str
    questions: list[QuestionField]
    wrong: int
    preview: bool
