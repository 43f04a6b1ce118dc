"""View of the page with the researcher's own questions."""

from __future__ import annotations

from collections.abc import Mapping

from pairseek.store.sessions import SessionRow
from pairseek.web.pages.contexts.own_questions import QuestionField, QuestionsPage
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.questions import MAX_REPLY_LENGTH, Question, Stage
from pairseek.web.views.participant import study_head


def questions_page(
    study: Study, row: SessionRow, stage: Stage, typed: Mapping[str, str], wrong: Mapping[str, str]
) -> QuestionsPage:
    """Return the context of the page with the questions of a stage, what was typed, and what is wrong with it."""
    questions = [question for question in study.configuration.questions if question.when == stage]
    return {
        "study": study_head(study),
        "stage": stage,
        "questions": [_field(study, question, typed, wrong) for question in questions],
        "wrong": len(wrong),
        "preview": row.kind == "preview",
    }


def _field(study: Study, question: Question, typed: Mapping[str, str], wrong: Mapping[str, str]) -> QuestionField:
    key, words = wrong.get(question.name), study.words
    if key == "questions.range" and (question.low is None or question.high is None):
        key = "questions.least" if question.high is None else "questions.most"
    bounds = {name: words.number(bound, 9) for name, bound in (("low", question.low), ("high", question.high))}
    return {
        "name": question.name,
        "text": question.text,
        "kind": question.kind,
        "options": question.options,
        "required": question.required,
        "typed": typed.get(question.name, ""),
        "problem": None if key is None else words.say(key, count=MAX_REPLY_LENGTH, **bounds),
    }
