"""Access to the researcher's pages: sign-in, roles and CSRF tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Form, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from pairseek.web.access import auth
from pairseek.web.access.auth import Account
from pairseek.web.access.security import check_form
from pairseek.web.errors import Problem
from pairseek.web.service import Service, service_of

TheService = Annotated[Service, Depends(service_of)]
MAX_FORM_FILES = 10_050
"""Largest number of files in a form."""
MAX_FORM_FIELDS = 600
"""Largest number of fields in a form."""
FormText = Annotated[str, Form(max_length=200)]


class SignInFirst(Exception):
    """Raised when nobody is signed in; ``path`` is the page that was requested."""

    def __init__(self, path: str) -> None:
        self.path = path


def who_is_in(request: Request, service: TheService) -> Account:
    """Return the researcher who is signed in."""
    account = auth.account_of_login(service.database, request.cookies.get(auth.LOGIN_COOKIE))
    if account is None:
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            raise SignInFirst(request.url.path)
        raise Problem(401, "not_signed_in", "nobody is signed in", hint="Sign in at /login.")
    return account


Researcher = Annotated[Account, Depends(who_is_in)]


def who_administers(who: Researcher) -> Account:
    """Return the administrator who is signed in."""
    if not who.is_admin:
        raise Problem(
            403, "not_administrator", "this page is for administrators", hint="Ask an administrator of this server."
        )
    return who


Administrator = Annotated[Account, Depends(who_administers)]


def checked_form(request: Request, service: TheService, csrf: FormText = "") -> None:
    """Require the CSRF token of the form."""
    check_form(request, service.secret, csrf)


CsrfChecked = Depends(checked_form)


@asynccontextmanager
async def submitted_form(
    request: Request, service: Service, *, max_files: int = MAX_FORM_FILES
) -> AsyncIterator[FormData]:
    """Read a form with files, and require its CSRF token."""
    async with request.form(max_files=max_files, max_fields=MAX_FORM_FIELDS) as form:
        check_form(request, service.secret, form.get("csrf"))
        yield form


def same_name(typed: str, name: str) -> bool:
    """Return whether a name was typed, ignoring differences in blanks, which a browser may change."""
    return typed.split() == name.split()


async def sign_in_first(_: Request, error: Exception) -> Response:
    """Redirect to the sign-in form."""
    assert isinstance(error, SignInFirst)
    return RedirectResponse("/login?" + urlencode({"next": error.path}), 303)
