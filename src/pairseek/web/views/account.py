"""Views of the pages about users, API tokens and the audit log."""

from __future__ import annotations

from collections import Counter

from pairseek.core.types import JSON
from pairseek.store import people, studies
from pairseek.store.database import now
from pairseek.web.access.auth import MAX_TOKEN_DAYS, SCOPES, TOKEN_DAYS, Account
from pairseek.web.errors import Problem
from pairseek.web.pages.contexts.account import AdministrationPage, AuditRow, ConfirmPage, TokensPage, User
from pairseek.web.service import Service

LIFETIMES = (7, 30, TOKEN_DAYS, MAX_TOKEN_DAYS)
"""Lifetimes of an API token in days to choose from."""


def user_context(user: Account) -> User:
    """Return the context of the signed-in user."""
    return {"name": user.name, "admin": user.is_admin}


def tokens_page(service: Service, user: Account, fresh: str | None = None, error: Problem | None = None) -> TokensPage:
    """Return the context of the page of API tokens, which shows administrators the tokens of all users."""
    owner = None if user.is_admin else user.name
    rows, time = service.database.read(lambda connection: people.list_tokens(connection, owner)), now()
    return {
        "user": user_context(user),
        "tokens": [
            {
                "id": str(row["id"]),
                "name": row["name"],
                "scopes": row["scopes"],
                "created": row["created_at"],
                "used": row["used_at"],
                "revoked": row["revoked_at"],
                "owner": row["user_name"],
                "expires": row["expires_at"],
                "expired": row["expires_at"] <= time,
            }
            for row in rows
        ],
        "scopes": list(SCOPES),
        "fresh": fresh,
        "expires": next(row["expires_at"] for row in rows if row["user_name"] == user.name) if fresh else None,
        "lifetimes": list(LIFETIMES),
        "lifetime": TOKEN_DAYS,
        "error": None if error is None else error.record()["error"],
    }


def audit_row(note: JSON, *, study: bool = False) -> AuditRow:
    """Return the context of an entry of the audit log, which names its study with ``study``."""
    details = note["details"]
    objects = [details[name] for name in ("quota", "closes") if details.get(name)]
    objects += [details[name] for name in ("count", "version", "sessions", "user", "name") if name in details]
    return {
        "when": note["at"],
        "who": note["who"],
        "action": note["action"],
        "what": ", ".join(map(str, objects)) if note["action"] == "limits" else str(objects[0]) if objects else "",
        "reason": details.get("reason"),
        "changes": details.get("changes", []),
        "session": None,
        "study": note["study"] if study else None,
    }


def administration_page(service: Service, user: Account) -> AdministrationPage:
    """Return the context of the administration page."""
    rows, tokens, notes = service.database.read(
        lambda connection: (
            people.all_users(connection),
            people.list_tokens(connection),
            studies.audit_log(connection),
        )
    )
    time = now()
    valid_tokens = Counter(
        token["user_name"] for token in tokens if token["revoked_at"] is None and token["expires_at"] > time
    )
    admins = sum(row["is_admin"] for row in rows)
    return {
        "user": user_context(user),
        "users": [
            {
                "id": row["id"],
                "name": row["name"],
                "admin": row["is_admin"],
                "tokens": valid_tokens[row["name"]],
                "created": row["created_at"],
                "removable": not row["is_admin"] or admins > 1,
            }
            for row in rows
        ],
        "audit": [audit_row(note, study=True) for note in notes],
    }


def confirm_user(service: Service, user: Account, row: JSON, *, wrong: bool) -> ConfirmPage:
    """Return the context of the page on which to confirm the removal of a user."""
    return {
        "user": user_context(user),
        "kind": "user",
        "name": row["name"],
        "count": len(service.database.read(lambda connection: people.list_tokens(connection, row["name"]))),
        "consequences": ["studies", "record", "undone"],
        "action": f"/administration/users/{row['id']}/remove",
        "back": "/administration",
        "wrong": wrong,
    }
