"""Routes of the pages on which researchers look at a study's items, edit the study and duplicate it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from fastapi import APIRouter, Request
from starlette.datastructures import FormData, UploadFile
from starlette.responses import RedirectResponse, Response

from pairseek.errors import InvalidItems, InvalidParameter
from pairseek.web.access.auth import Account
from pairseek.web.errors import Problem, problem_of
from pairseek.web.routes.researcher import items_in_form
from pairseek.web.routes.researcher_access import CsrfChecked, Researcher, TheService, submitted_form
from pairseek.web.service import Service
from pairseek.web.sessions.warmup import warm_study
from pairseek.web.studies import creation, duplication, editing
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.uploads import MAX_FILE_BYTES
from pairseek.web.views.editing import edit_page
from pairseek.web.views.gallery import gallery_page

router = APIRouter(include_in_schema=False)

_NAMES = {"true": True, "false": False, "": None}
_ROW_FIELD = re.compile(r"(label|remove)-(\d{1,6})")


@router.get("/studies/{slug}/items")
def show_items(
    slug: str, request: Request, service: TheService, who: Researcher, page: int = 1, edit: Literal["", "1"] = ""
) -> Response:
    """Show the items of a study as people see them."""
    study = service.catalogue.by_slug(slug)
    return service.page(request, "gallery", gallery_page(service, who, study, page=page, editing=bool(edit)))


@router.post("/studies/{slug}/items")
async def add_items(slug: str, request: Request, service: TheService, who: Researcher) -> Response:
    """Add items to a study whose items have no coordinates."""
    async with submitted_form(request, service) as form:

        def added() -> Response:
            study = service.catalogue.by_slug(slug)

            def add() -> None:
                items, files = items_in_form(form, study.configuration)
                creation.add_items(service.database, study, items, who=who.name, files=files)

            return _items_changed(request, service, who, study, add)

        return await service.run_heavy(added)


@router.post("/studies/{slug}/items/edit")
async def edit_items(slug: str, request: Request, service: TheService, who: Researcher) -> Response:
    """Change the labels of items, remove items, or replace all of them, if nobody has answered."""
    async with submitted_form(request, service) as form:

        def edited() -> Response:
            study = service.catalogue.by_slug(slug)
            return _items_changed(request, service, who, study, lambda: _edit_items(service, who, study, form), form)

        return await service.run_heavy(edited)


def _edit_items(service: Service, who: Account, study: Study, form: FormData) -> None:
    if form.get("replace"):
        items, files = items_in_form(form, study.configuration)
        editing.change_items(service.database, study, items, who=who.name, files=files)
    else:
        if form.get("additions", str(study.row.additions)) != str(study.row.additions):
            raise creation.items_changed(study.row.slug)
        labels, removed = _labels(form, study)
        if not labels and not removed:
            return
        items = editing.relabelled(study.items, labels, removed)
        editing.change_items(service.database, study, items, who=who.name)
    service.housekeeper.clear_soon()
    service.run_later(lambda: warm_study(service.catalogue.by_slug(study.row.slug)))


def _labels(form: FormData, study: Study) -> tuple[dict[int, str], set[int]]:
    """Return the labels that have changed, by row, and the rows to remove."""
    labels: dict[int, str] = {}
    removed: set[int] = set()
    for name, value in form.multi_items():
        match = _ROW_FIELD.fullmatch(name)
        if match is None or not isinstance(value, str) or int(match[2]) >= study.items.n:
            continue
        row = int(match[2])
        if match[1] == "remove":
            removed.add(row)
        elif value.strip() != study.items.labels[row]:
            labels[row] = value.strip()
    return labels, removed


def _items_changed(
    request: Request,
    service: Service,
    who: Account,
    study: Study,
    change: Callable[[], None],
    form: FormData | None = None,
) -> Response:
    """Change items and return to the gallery; show it with the error if that fails."""
    try:
        change()
    except (InvalidParameter, InvalidItems, Problem) as error:
        is_editing, errors = form is not None, {"items": str(error)}
        page = gallery_page(service, who, study, page=_page(form), editing=is_editing, errors=errors)
        return service.page(request, "gallery", page, status=problem_of(error).status)
    return RedirectResponse(f"/studies/{study.row.slug}/items?page={_page(form)}", 303)


def _page(form: FormData | None) -> int:
    page = "" if form is None else str(form.get("page", ""))
    return int(page) if page.isascii() and page.isdigit() and len(page) < 7 else 1


@router.get("/studies/{slug}/edit")
def show_edit(slug: str, request: Request, service: TheService, who: Researcher) -> Response:
    """Show the form with the texts and the appearance of a study."""
    return service.page(request, "edit", edit_page(service, who, service.catalogue.by_slug(slug)))


@router.post("/studies/{slug}/edit")
async def edit_study(slug: str, request: Request, service: TheService, who: Researcher) -> Response:
    """Change the submitted settings of a study."""
    async with submitted_form(request, service, max_files=1) as form:
        return await service.run_heavy(lambda: _edit_study(slug, request, service, who, form))


def _edit_study(slug: str, request: Request, service: Service, who: Account, form: FormData) -> Response:
    study = service.catalogue.by_slug(slug)
    values = {name: str(value) for name, value in form.multi_items() if isinstance(value, str)}
    sent = form.get("logo")
    logo = sent if isinstance(sent, UploadFile) and sent.filename else None
    try:
        editing.edit_settings(
            service.database,
            study,
            _settings(values),
            who=who.name,
            logo=None if logo is None else lambda: logo.file.read(MAX_FILE_BYTES + 1),
            without_logo=values.get("logo.remove") == "true",
        )
    except (InvalidParameter, InvalidItems) as error:
        field = error.field if isinstance(error, InvalidParameter) and error.field else "logo"
        data = edit_page(service, who, study, values, {field: str(error)})
        return service.page(request, "edit", data, status=problem_of(error).status)
    back = "/items" if values.get("back") == "items" else ""
    return RedirectResponse(f"/studies/{slug}{back}", 303)


def _settings(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings in the fields of the form; an empty consent or colour means none."""
    settings: dict[str, Any] = {
        name: values[name].strip() for name in ("title", "instructions", "consent", "debrief") if name in values
    }
    if "consent" in settings:
        settings["consent"] = settings["consent"] or None
    if "accent" in values:
        settings["accent"] = values["accent"].strip() if values.get("accent.own") == "true" else None
    if values.get("names", "unchanged") in _NAMES:
        settings["names"] = _NAMES[values["names"]]
    return settings


@router.post("/studies/{slug}/duplicate", dependencies=[CsrfChecked])
def duplicate_study(slug: str, service: TheService, who: Researcher) -> Response:
    """Create a closed copy of a study without people."""
    copy = duplication.duplicate(service.database, service.catalogue.by_slug(slug), who=who.name)
    service.run_later(lambda: warm_study(service.catalogue.by_slug(copy)))
    return RedirectResponse(f"/studies/{copy}", 303)
