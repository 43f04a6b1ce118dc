"""Routes of the pages about signing in, users and API tokens."""

from __future__ import annotations

from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Form, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from pairseek.core.types import JSON
from pairseek.errors import PairseekError
from pairseek.store import people
from pairseek.web.access import auth
from pairseek.web.access.error_responses import local_path
from pairseek.web.access.rates import network_of
from pairseek.web.access.security import check_form, set_cookie
from pairseek.web.errors import Problem, not_found, problem_of
from pairseek.web.routes.researcher_access import (
    Administrator,
    CsrfChecked,
    FormText,
    Researcher,
    TheService,
    same_name,
)
from pairseek.web.service import Service
from pairseek.web.views import account as views

router = APIRouter(include_in_schema=False)


@router.get("/login")
def login_page(request: Request, service: TheService, next: str = "") -> Response:
    """Show the sign-in form."""
    return service.page(request, "login", {"next": local_path(next), "name": "", "error": None})


@router.post("/login")
async def login(
    request: Request,
    service: TheService,
    name: FormText = "",
    password: Annotated[str, Form(max_length=1000)] = "",
    csrf: FormText = "",
    next: FormText = "",
) -> Response:
    """Sign in."""
    check_form(request, service.secret, csrf)
    address = network_of(request.client.host if request.client else "")
    try:
        attempt = await run_in_threadpool(auth.register_attempt, service.database, name, address)
        # Attempts queue here instead of occupying threads that other requests need.
        token = await to_thread.run_sync(
            auth.verify_attempt, service.database, attempt, password, limiter=service.hashing
        )
    except Problem as problem:
        data = {"next": local_path(next), "name": name, "error": problem.record()["error"]}
        page = service.page(request, "login", data, status=problem.status)
        page.headers.update(problem.headers)
        return page
    response = RedirectResponse(local_path(next) or "/studies", 303)
    set_cookie(response, auth.LOGIN_COOKIE, token, service.settings, days=auth.LOGIN_HOURS / 24)
    return response


@router.post("/logout", dependencies=[CsrfChecked])
def logout(request: Request, service: TheService) -> Response:
    """Sign out."""
    auth.sign_out(service.database, request.cookies.get(auth.LOGIN_COOKIE))
    response = RedirectResponse("/login", 303)
    response.delete_cookie(auth.LOGIN_COOKIE)
    return response


@router.get("/administration")
def administration(request: Request, service: TheService, who: Administrator) -> Response:
    """Show the users and the audit log."""
    return service.page(request, "administration", views.administration_page(service, who))


@router.get("/administration/users/{number}/remove")
def confirm_user_removal(number: int, request: Request, service: TheService, who: Administrator) -> Response:
    """Ask for confirmation before removing a user."""
    row = _user(service, number)
    if row is None:
        raise not_found("user", number)
    return service.page(request, "confirm", views.confirm_user(service, who, row, wrong=False))


@router.post("/administration/users/{number}/remove", dependencies=[CsrfChecked])
def remove_user(
    number: int, request: Request, service: TheService, who: Administrator, name: FormText = ""
) -> Response:
    """Remove a user with all tokens if the name was typed; a user who is already gone counts as removed."""
    row = _user(service, number)
    if row is None:
        return RedirectResponse("/administration", 303)
    if not same_name(name, row["name"]):
        data = views.confirm_user(service, who, row, wrong=True)
        return service.page(request, "confirm", data, status=422)
    auth.remove_user(service.database, row["name"], who.name)
    return RedirectResponse("/administration", 303)


@router.get("/tokens")
def show_tokens(request: Request, service: TheService, who: Researcher) -> Response:
    """Show the API tokens."""
    return service.page(request, "tokens", views.tokens_page(service, who))


@router.post("/tokens", dependencies=[CsrfChecked])
def make_token(
    request: Request,
    service: TheService,
    who: Researcher,
    name: FormText = "",
    scopes: Annotated[list[str] | None, Form()] = None,
    days: Annotated[int, Form()] = auth.TOKEN_DAYS,
) -> Response:
    """Create a token and show it once."""
    try:
        token = auth.make_token(service.database, name, scopes or [], who.name, days=days)
    except PairseekError as error:
        problem = problem_of(error)
        data = views.tokens_page(service, who, error=problem)
        return service.page(request, "tokens", data, status=problem.status)
    return service.page(request, "tokens", views.tokens_page(service, who, fresh=token))


@router.post("/tokens/{number}/revoke", dependencies=[CsrfChecked])
def revoke_token(number: int, service: TheService, who: Researcher) -> Response:
    """Revoke a token."""
    auth.revoke_token(service.database, number, who.name, None if who.is_admin else who.name)
    return RedirectResponse("/tokens", 303)


def _user(service: Service, number: int) -> JSON | None:
    return next((row for row in service.database.read(people.all_users) if row["id"] == number), None)
