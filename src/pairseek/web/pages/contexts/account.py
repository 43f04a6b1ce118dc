"""Contexts of the pages about accounts, tokens, deletions and the HTTP API."""

from __future__ import annotations

from typing import TypedDict

from pairseek.web.pages.contexts.shared import ErrorSchema


class User(TypedDict):
    """Signed-in user; ``admin`` says whether they are an administrator."""

    name: str
    admin: bool


class LoginPage(TypedDict):
    """``login``: the sign-in form."""

    next: str | None
    name: str
    error: ErrorSchema | None


class ChangeContext(TypedDict):
    """Setting before and after a change."""

    field: str
    before: str | bool | None
    after: str | bool | None


class AuditRow(TypedDict):
    """Entry of the audit log; ``action`` is a message key under ``audit.``.

    ``study`` is given if the page shows entries of several studies.
    """

    when: str
    who: str
    action: str
    what: str
    reason: str | None
    changes: list[ChangeContext]
    session: str | None
    study: str | None


class TokenRow(TypedDict):
    """API token, without its secret."""

    id: str
    name: str
    scopes: list[str]
    created: str
    used: str | None
    revoked: str | None
    owner: str
    expires: str
    expired: bool


class TokensPage(TypedDict):
    """``tokens``: the API tokens.

    ``fresh`` is a token that was just created and is shown only once, and ``expires`` is its expiry. ``lifetimes`` are
    the numbers of days to choose from, and ``lifetime`` is the default.
    """

    user: User
    tokens: list[TokenRow]
    scopes: list[str]
    fresh: str | None
    expires: str | None
    lifetimes: list[int]
    lifetime: int
    error: ErrorSchema | None


class ConfirmPage(TypedDict):
    """``confirm``: confirmation of a deletion by typing a name; ``wrong`` if a different name was typed.

    ``kind`` is ``participant``, ``study`` or ``user``, and ``count`` the number of sessions, participants or tokens
    deleted with it. ``consequences`` are message keys under ``confirm.also.``.
    """

    user: User
    kind: str
    name: str
    count: int
    consequences: list[str]
    action: str
    back: str
    wrong: bool


class UserRow(TypedDict):
    """Researcher's account; the last administrator is not ``removable``."""

    id: int
    name: str
    admin: bool
    tokens: int
    created: str
    removable: bool


class AdministrationPage(TypedDict):
    """``administration``: users, and the audit log of all studies."""

    user: User
    users: list[UserRow]
    audit: list[AuditRow]


class Shape(TypedDict):
    """Schema of a request or response: its name and text."""

    name: str
    schema: str


class Parameter(TypedDict):
    """Path or query parameter of an operation."""

    name: str
    place: str
    description: str | None


class Operation(TypedDict):
    """Operation of the HTTP API."""

    id: str
    method: str
    path: str
    description: str
    parameters: list[Parameter]
    takes: Shape | None
    gives: Shape | None


class DocsPage(TypedDict):
    """``docs``: reference of the HTTP API."""

    operations: list[Operation]
