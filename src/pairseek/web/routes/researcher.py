"""Routes of the researcher's pages about studies and participants."""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import numpy as np
from fastapi import APIRouter, Depends, Form, Request
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from pairseek.errors import InvalidItems, InvalidParameter, PairseekError
from pairseek.model.items import Items
from pairseek.store import sessions, studies
from pairseek.store.database import stamp
from pairseek.store.sessions import SessionRow
from pairseek.web.access.auth import Account
from pairseek.web.access.security import set_cookie
from pairseek.web.errors import Problem, invalid, not_found, problem_of
from pairseek.web.learning import populations, similarity
from pairseek.web.pages import languages, render_report
from pairseek.web.routes.downloads import bundle_reply, table_reply
from pairseek.web.routes.participant import cookie_of
from pairseek.web.routes.researcher_access import (
    CsrfChecked,
    FormText,
    Researcher,
    TheService,
    same_name,
    submitted_form,
)
from pairseek.web.service import Service, page_language
from pairseek.web.sessions import forgetting, simulated
from pairseek.web.sessions.forgetting import NothingToDelete
from pairseek.web.sessions.warmup import warm_study
from pairseek.web.studies import creation, forms
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.configuration import StudyConfiguration
from pairseek.web.studies.uploads import MAX_FILES, Files
from pairseek.web.views import researcher as views
from pairseek.web.views.findings import report_page
from pairseek.web.views.links import public_address
from pairseek.web.views.similarity import similarity_page

router = APIRouter(include_in_schema=False)


@router.get("/")
def home() -> Response:
    """Redirect to the list of studies."""
    return RedirectResponse("/studies", 303)


@router.get("/studies")
def list_studies(request: Request, service: TheService, who: Researcher) -> Response:
    """Show the list of studies."""
    return service.page(request, "studies", views.studies_page(service, who))


@router.get("/studies/new")
def new_study(request: Request, service: TheService, who: Researcher) -> Response:
    """Show the form for a new study."""
    return service.page(request, "study_new", views.new_study_page(who, {}, {}, language=page_language(request)))


@router.post("/studies/new")
async def make_study(request: Request, service: TheService, who: Researcher) -> Response:
    """Create a study from the form or from a YAML file."""
    try:
        async with submitted_form(request, service) as form:
            return await service.run_heavy(lambda: _create_or_explain(request, service, who, form))
    except HTTPException as error:
        if isinstance(error.__cause__, PairseekError):
            raise
        raise invalid(
            "the form cannot be read, or has too many parts",
            str(error.detail)[:100],
            f"Send at most {MAX_FILES:,} files.",
            "invalid_form",
        ) from None


@router.get("/studies/new/texts.json")
def usual_texts(who: Researcher, language: str = "") -> Response:  # noqa: ARG001 - any signed-in user
    """Return the texts that participants see in a language, by field of the form."""
    return JSONResponse({text["name"]: text["usual"] for text in views.text_fields(language)})


@router.post("/studies/new/columns")
async def show_columns(request: Request, service: TheService, _: Researcher) -> Response:
    """Show which columns of an item list would become coordinates."""
    async with submitted_form(request, service, max_files=1) as form:
        return await service.run_heavy(lambda: _columns(request, service, form))


def _columns(request: Request, service: Service, form: FormData) -> Response:
    items, problem = None, None
    try:
        items, _ = items_in_form(form)
    except InvalidItems as error:
        problem = str(error)
    return service.page(request, "_columns", views.columns_part(items, problem))


def _create_or_explain(request: Request, service: Service, who: Account, form: FormData) -> Response:
    values = {name: str(value)[:20_000] for name, value in form.multi_items() if isinstance(value, str)}
    if "coordinates" in values:
        values["coordinates"] = json.dumps([str(name) for name in form.getlist("coordinates") if name])
    try:
        slug = _create_from_form(service, who.name, form, values)
    except (InvalidParameter, InvalidItems, Problem) as error:
        data = views.new_study_page(who, values, {forms.field_of(error, values): str(error)})
        return service.page(request, "study_new", data, status=problem_of(error).status)
    service.run_later(lambda: warm_study(service.catalogue.by_slug(slug)))
    return RedirectResponse(f"/studies/{slug}", 303)


def _create_from_form(service: Service, who: str, form: FormData, values: dict[str, str]) -> str:
    record = forms.record_of(form.get("yaml"), values)
    configuration, is_open = creation.from_record(record)
    items, files = items_in_form(form, configuration)
    return creation.create_study(service.database, configuration, items, is_open=is_open, who=who, files=files)


def items_in_form(form: FormData, configuration: StudyConfiguration | None = None) -> tuple[Items, Files]:
    """Read the items of a form with their files."""
    uploads = [file for file in form.getlist("images") if isinstance(file, UploadFile) and file.filename]
    files = forms.files_of(uploads)
    sent = form.get("items")
    if isinstance(sent, UploadFile) and sent.filename:
        return creation.items_sent(sent.filename, sent.file.read(), files, configuration), files
    return creation.items_sent("", None, files, configuration), files


@router.get("/studies/{slug}")
def show_study(
    slug: str,
    request: Request,
    service: TheService,
    who: Researcher,
    filling: int = 0,
    page: int = 1,
    learning: int = 0,
) -> Response:
    """Show the dashboard of a study."""
    study = service.catalogue.by_slug(slug)
    link = f"{public_address(str(request.base_url), service.settings.address)}/s/{slug}"
    filling = min(max(0, filling), simulated.MAX_SESSIONS)
    if study.configuration.is_similarity:
        context = similarity_page(service, who, study, link, simulating=filling, page=page, learning=bool(learning))
        return service.page(request, "similarity", context)
    data = views.study_page(service, who, study, link, simulating=filling, page=page, learning=bool(learning))
    return service.page(request, "study", data)


@router.get("/studies/{slug}/live.json")
def live(slug: str, service: TheService, who: Researcher) -> Response:  # noqa: ARG001 - any signed-in user
    """Return the figures that the dashboard keeps refreshing."""
    return JSONResponse(views.live_figures(service, service.catalogue.by_slug(slug)))


@router.get("/studies/{slug}/findings")
def show_findings(
    slug: str, request: Request, service: TheService, who: Researcher, everyone: Literal["", "1"] = ""
) -> Response:
    """Show the findings of a study; if a background thread is still computing them, the page waits for it."""
    study = service.catalogue.by_slug(slug)
    if study.configuration.is_similarity:
        # Similarity judgements do not rank anything.
        return RedirectResponse(f"/studies/{slug}", 303)
    return service.page(request, "findings", views.findings_page(service, who, study, everyone=bool(everyone)))


@router.get("/studies/{slug}/findings.json")
def findings_state(
    slug: str,
    service: TheService,
    who: Researcher,  # noqa: ARG001 - any signed-in user
    since: int | None = None,
) -> Response:
    """Return whether the findings include all answers, or those that the computation ``since`` includes."""
    status = service.findings.status(service.catalogue.by_slug(slug), since)
    return JSONResponse({"current": status.is_current, "computed_at": status.computed_at})


@router.get("/studies/{slug}/report.html")
def download_report(
    slug: str,
    service: TheService,
    who: Researcher,  # noqa: ARG001 - any signed-in user
    language: str = "en",
    everyone: Literal["", "1"] = "",
) -> Response:
    """Return the report of a study as one file, from the latest findings; without any, wait for them."""
    study = service.catalogue.by_slug(slug)
    if study.configuration.is_similarity:
        return RedirectResponse(f"/studies/{slug}", 303)
    if language not in languages():
        raise invalid(
            f"there is no report in the language {language[:20]!r}", language[:20], f"Use {' or '.join(languages())}."
        )
    findings = service.findings.look(study).findings or service.findings.wait_for_current(study)
    data = report_page(service.database, study, findings, everyone=bool(everyone), language=language)
    headers = {"content-disposition": f'attachment; filename="{slug}-report-{language}.html"'}
    return HTMLResponse(render_report(data, language=language), headers=headers)


@router.post("/studies/{slug}/open", dependencies=[CsrfChecked])
def open_study(slug: str, service: TheService, who: Researcher) -> Response:
    """Open a study, so that it accepts answers."""
    creation.set_open(service.database, service.catalogue.row(slug), is_open=True, who=who.name)
    return RedirectResponse(f"/studies/{slug}", 303)


@router.post("/studies/{slug}/close", dependencies=[CsrfChecked])
def close_study(slug: str, service: TheService, who: Researcher) -> Response:
    """Close a study, so that it accepts no answers."""
    creation.set_open(service.database, service.catalogue.row(slug), is_open=False, who=who.name)
    return RedirectResponse(f"/studies/{slug}", 303)


@router.post("/studies/{slug}/preview", dependencies=[CsrfChecked])
def preview(slug: str, service: TheService, who: Researcher) -> Response:  # noqa: ARG001 - any signed-in user
    """Begin a preview session, which is deleted later."""
    study = service.catalogue.by_slug(slug)
    old = stamp(datetime.now(UTC) - timedelta(hours=2))
    service.database.write(lambda connection: sessions.delete_previews(connection, old))
    _, token = service.sessions.open(study, {}, kind="preview")
    response = RedirectResponse(f"/s/{slug}", 303)
    set_cookie(response, cookie_of(slug), token, service.settings, path=f"/s/{slug}", days=2 / 24)
    return response


@router.post("/studies/{slug}/simulate", dependencies=[CsrfChecked])
def simulate(slug: str, service: TheService, who: Researcher, count: Annotated[int, Form()] = 10) -> Response:
    """Simulate participants in the background."""
    if not 1 <= count <= simulated.MAX_SESSIONS:
        raise invalid(f"the number of simulated people is {count}", count, f"Give 1 to {simulated.MAX_SESSIONS}.")
    study = service.catalogue.by_slug(slug)
    rng = np.random.default_rng(secrets.randbits(64))
    service.database.write(lambda connection: studies.log_action(connection, who.name, "simulate", slug, count=count))
    service.run_later(lambda: simulated.simulate_sessions(service.sessions, service.gate, study, count, rng))
    return RedirectResponse(f"/studies/{slug}?filling={count}", 303)


@router.post("/studies/{slug}/population", dependencies=[CsrfChecked])
def learn_now(slug: str, service: TheService, who: Researcher) -> Response:
    """Let the study learn from its finished sessions in the background; sessions that begin later use the result."""
    study = service.catalogue.by_slug(slug)
    (similarity if study.configuration.is_similarity else populations).check(service.database, study)
    service.learner.request(study, who.name)
    return RedirectResponse(f"/studies/{slug}?learning=1#population", 303)


@router.post("/studies/{slug}/search", dependencies=[CsrfChecked])
def create_study_from_map(slug: str, service: TheService, who: Researcher) -> Response:
    """Create a preference study from the map of a similarity study."""
    new_slug = similarity.create_preference_study(service.database, service.catalogue.by_slug(slug), who.name)
    service.run_later(lambda: warm_study(service.catalogue.by_slug(new_slug)))
    return RedirectResponse(f"/studies/{new_slug}", 303)


@router.post("/studies/{slug}/learning", dependencies=[CsrfChecked])
def set_learning(
    slug: str,
    service: TheService,
    who: Researcher,
    learn: Annotated[Literal["auto", "off"] | None, Form()] = None,
    version: Annotated[int | None, Form(ge=0)] = None,
) -> Response:
    """Switch automatic learning on or off, or choose the version that sessions begin with."""
    study = service.catalogue.by_slug(slug)
    if version is not None:
        populations.choose_version(service.database, study, who.name, version)
    elif learn is not None:
        populations.switch(service.database, study, who.name, is_on=learn == "auto")
        service.learner.check_soon()
    return RedirectResponse(f"/studies/{slug}#population", 303)


@router.get("/studies/{slug}/delete")
def confirm_study(slug: str, request: Request, service: TheService, who: Researcher) -> Response:
    """Ask for confirmation before deleting a study."""
    study = service.catalogue.by_slug(slug)
    return service.page(request, "confirm", views.confirm_study(service, who, study, wrong=False))


@router.post("/studies/{slug}/delete", dependencies=[CsrfChecked])
def delete_study(slug: str, request: Request, service: TheService, who: Researcher, name: FormText = "") -> Response:
    """Delete a study if its name was typed.

    A study that is already gone counts as deleted, so a double click succeeds.
    """
    if service.database.read(lambda connection: studies.by_slug(connection, slug)) is None:
        return RedirectResponse("/studies", 303)
    study = service.catalogue.by_slug(slug)
    if not same_name(name, slug):
        data = views.confirm_study(service, who, study, wrong=True)
        return service.page(request, "confirm", data, status=422)
    forgetting.delete_study(service.database, study, who.name)
    service.housekeeper.clear_soon()
    return RedirectResponse("/studies", 303)


@router.get("/studies/{slug}/people/{session}/forget")
def confirm_person(slug: str, session: str, request: Request, service: TheService, who: Researcher) -> Response:
    """Ask for confirmation before forgetting a participant."""
    study, row = _study_and_session(service, slug, session)
    return service.page(request, "confirm", views.confirm_participant(service, who, study, row, wrong=False))


@router.post("/studies/{slug}/people/{session}/forget", dependencies=[CsrfChecked])
def forget_person(
    slug: str, session: str, request: Request, service: TheService, who: Researcher, name: FormText = ""
) -> Response:
    """Forget a participant if the name was typed; one who is already gone counts as forgotten."""
    if service.sessions.by_id(session) is None:
        return RedirectResponse(f"/studies/{slug}", 303)
    study, row = _study_and_session(service, slug, session)
    if not same_name(name, views.display_name(row)):
        data = views.confirm_participant(service, who, study, row, wrong=True)
        return service.page(request, "confirm", data, status=422)
    with suppress(NothingToDelete):
        forgetting.forget(service.database, study, views.person_id(row), who.name)
    service.housekeeper.clear_soon()
    return RedirectResponse(f"/studies/{slug}", 303)


@router.get("/studies/{slug}/people/{session}")
def show_person(slug: str, session: str, request: Request, service: TheService, who: Researcher) -> Response:
    """Show one participant."""
    study, row = _study_and_session(service, slug, session)
    return service.page(request, "person", views.person_page(service, who, study, row))


@dataclass(frozen=True, slots=True)
class SessionMark:
    """Decision to void or restore a participant or an answer, with author and reason."""

    slug: str
    row: SessionRow
    action: str
    reason: str
    who: str

    def put(self, service: Service, query: str | None) -> Response:
        """Store the decision and redirect to the participant."""
        if not self.reason:
            raise invalid("no reason was given", self.reason, "Give a short reason; it is stored in the audit log.")
        values = (self.row.id, query, self.action, self.reason, self.who)
        service.database.write(lambda connection: sessions.mark(connection, *values))
        return RedirectResponse(f"/studies/{self.slug}/people/{self.row.id}", 303)


def session_mark(
    slug: str,
    session: str,
    action: Literal["void", "restore"],
    service: TheService,
    who: Researcher,
    reason: Annotated[str, Form(max_length=500)] = "",
) -> SessionMark:
    """Return the decision that was submitted in the form."""
    _, row = _study_and_session(service, slug, session)
    return SessionMark(slug, row, action, reason.strip(), who.name)


SubmittedMark = Annotated[SessionMark, Depends(session_mark)]


@router.post("/studies/{slug}/people/{session}/{action}", dependencies=[CsrfChecked])
def mark_person(service: TheService, mark: SubmittedMark) -> Response:
    """Void or restore a participant."""
    return mark.put(service, None)


@router.post("/studies/{slug}/people/{session}/answers/{query}/{action}", dependencies=[CsrfChecked])
def mark_answer(query: str, service: TheService, mark: SubmittedMark) -> Response:
    """Void or restore an answer."""
    if not any(pair.name == query for pair in service.sessions.snapshot(mark.row).done):
        raise not_found("answer", query)
    return mark.put(service, query)


@router.get("/studies/{slug}/export/{table}.{ending}")
async def export_table(
    slug: str,
    table: Literal["answers", "participants", "estimates", "items", "ranking", "people"],
    ending: Literal["csv", "parquet"],
    service: TheService,
    who: Researcher,  # noqa: ARG001 - any signed-in user
) -> Response:
    """Export a table with the current data of a study."""
    study = await service.run_for_result(lambda: service.catalogue.by_slug(slug))
    return await table_reply(service, study, table, ending, for_excel=True)


@router.get("/studies/{slug}/bundle.zip")
async def export_bundle(
    slug: str,
    service: TheService,
    who: Researcher,  # noqa: ARG001 - any signed-in user
) -> Response:
    """Export the study as a zip."""
    return await bundle_reply(service, await service.run_for_result(lambda: service.catalogue.by_slug(slug)))


def _study_and_session(service: Service, slug: str, session: str) -> tuple[Study, SessionRow]:
    study, row = service.catalogue.by_slug(slug), service.sessions.by_id(session)
    if row is None or row.study_id != study.row.id or row.kind == "preview":
        raise not_found("participant", session[:64])
    return study, row
