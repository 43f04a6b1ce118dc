"""Routes of the participant's browser for the researcher's own questions."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from pairseek.web.access.security import check_form
from pairseek.web.routes.participant import TheService, TheSession, session_of, speak_like
from pairseek.web.studies.questions import Stage, read_replies
from pairseek.web.views.own_questions import questions_page

router = APIRouter(include_in_schema=False)

# Largest number of fields of the form.
_MAX_FIELDS = 20


@router.get("/s/{slug}/questions")
def show_questions(
    slug: str, request: Request, service: TheService, row: TheSession, stage: Literal["before", "after"] | None = None
) -> Response:
    """Show the questions before the pairs, or those after them once the pairs are answered, with earlier replies."""
    study = speak_like(request, service.catalogue.by_id(row.study_id))
    due: Stage = "after" if row.finished_at is not None and stage != "before" else "before"
    questions = [question for question in study.configuration.questions if question.when == due]
    if not questions or row.confirmed_at is not None or (due == "before" and not row.accepts_answers):
        return RedirectResponse(f"/s/{slug}/{'run' if row.finished_at is None else 'result'}", 303)
    earlier = {name: study.words.number(reply, 15) for name, reply in ((row.replies or {}).get(due) or {}).items()}
    data = questions_page(study, row, due, earlier, {})
    return service.page(request, "questions", data, language=study.configuration.language)


@router.post("/s/{slug}/questions")
async def send_replies(slug: str, request: Request, service: TheService) -> Response:
    """Store the replies of a stage, or show what is missing."""
    async with request.form(max_files=0, max_fields=_MAX_FIELDS) as form:
        texts = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    return await service.run_in_turn(lambda: _stored(slug, request, service, texts))


def _stored(slug: str, request: Request, service: TheService, texts: dict[str, str]) -> Response:
    row = session_of(slug, request, service)
    study = speak_like(request, service.catalogue.by_id(row.study_id))
    check_form(request, service.secret, texts.get("csrf"))
    service.rates.answers.check(row.id)
    stage: Stage = "after" if texts.get("stage") == "after" else "before"
    onward = RedirectResponse(f"/s/{slug}/{'result' if stage == 'after' else 'run'}", 303)
    if stage == "after" and row.finished_at is None:
        return RedirectResponse(f"/s/{slug}/run", 303)
    questions = [question for question in study.configuration.questions if question.when == stage]
    typed = {question.name: texts.get(f"q-{question.name}", "") for question in questions}
    replies, wrong = read_replies(questions, typed)
    if wrong:
        data = questions_page(study, row, stage, typed, wrong)
        return service.page(request, "questions", data, status=422, language=study.configuration.language)
    service.sessions.reply(row, stage, replies)
    return onward
