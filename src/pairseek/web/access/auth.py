"""Authentication and authorization: passwords of researchers, API tokens and their scopes."""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

import sqlalchemy as sa
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from pairseek.errors import InvalidParameter
from pairseek.store import people, studies
from pairseek.store.database import Database, stamp
from pairseek.web.access.tokens import hash_token, new_token
from pairseek.web.errors import Problem, not_found

LOGIN_COOKIE = "pairseek_login"
FIRST_USER = "admin"
SCOPES = ("read", "write", "answer", "delete")
"""read: read studies and their data. write: create, open and close studies, and make participants' links. answer: open
sessions and answer in them. delete: forget participants, and delete sessions and studies."""
TOKEN_DAYS = 90
"""Default lifetime of a token."""
MAX_TOKEN_DAYS = 366
LOGIN_HOURS = 12
MIN_PASSWORD_LENGTH = 10
ATTEMPT_MINUTES = 15
# Failed attempts allowed within ATTEMPT_MINUTES: per name and address, per address, and per name from all addresses
# together. The last limit is high, so that an attacker cannot lock a user out.
_MAX_FAILED_ATTEMPTS = (10, 50, 300)
_TOKEN_PREFIX = "psk_"
MAX_CONCURRENT_HASHES = 2
"""Largest number of password hashes that a process computes at once; each needs 64 MiB."""
_hashing = threading.BoundedSemaphore(MAX_CONCURRENT_HASHES)


@cache
def _hasher() -> PasswordHasher:
    return PasswordHasher()


@cache
def _dummy_hash() -> str:
    # Verified for unknown users, so that the response time does not reveal which users exist. It costs as much as a
    # real hash, but is assembled from random bytes, because computing one would slow down the first response.
    hasher = _hasher()
    salt, digest = (
        base64.b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (hasher.salt_len, hasher.hash_len)
    )
    cost = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v=19${cost}${salt}${digest}"


def set_password(
    database: Database, name: str, password: str, *, is_admin: bool | None = None, new: bool = False
) -> None:
    """Create a user, or set a new password for an existing one, which ends their logins and tokens.

    With ``is_admin`` None, the first user becomes an administrator and an existing user's role stays as it is. With
    ``new``, an existing user raises `IntegrityError`.
    """
    if not 1 <= len(name) <= 200 or not name.isprintable():
        raise InvalidParameter(f"the name {name[:50]!r} cannot be used: give 1 to 200 printable characters")
    if len(password) < MIN_PASSWORD_LENGTH:
        raise InvalidParameter(f"the password has {len(password)} characters: give at least {MIN_PASSWORD_LENGTH}")
    with _hashing:
        password_hash = _hasher().hash(password)

    def change(connection: sa.Connection) -> None:
        if is_admin is False and people.admin_names(connection) == [name]:
            raise _last_admin(name)
        people.set_password(connection, name, password_hash, is_admin=is_admin, is_new=new)
        studies.log_action(connection, name, "password")

    database.write(change)


def create_first_user(database: Database, password: str) -> str | None:
    """Create the first user unless one exists; return the password if it had to be generated."""
    if database.read(people.user_names):
        return None
    generated = None if password else secrets.token_urlsafe(12)
    try:
        set_password(database, FIRST_USER, password or str(generated), new=True)
    except sa.exc.IntegrityError:
        # Another server has created the user at the same time and printed the password.
        return None
    return generated


@dataclass(frozen=True, slots=True)
class Attempt:
    """Sign-in attempt that has been counted, but whose password has not been verified."""

    name: str
    user_id: int | None
    password_hash: str
    attempt_ids: tuple[int, ...]


def sign_in(database: Database, name: str, password: str, address: str) -> str:
    """Check name and password and return a new login token.

    Raises a `Problem` for a wrong password and after too many failed attempts.
    """
    return verify_attempt(database, register_attempt(database, name, address), password)


def register_attempt(database: Database, name: str, address: str) -> Attempt:
    """Register a sign-in attempt, which counts as failed until its password is verified.

    Raises a `Problem` if there were too many failed attempts.

    The attempt is counted before its password is verified, in the transaction that counts earlier attempts, so that
    concurrent attempts cannot exceed the limits.
    """
    keys = [_key("name at address", f"{name}\n{address}"), _key("address", address), _key("name", name)]
    since = stamp(datetime.now(UTC) - timedelta(minutes=ATTEMPT_MINUTES))

    def too_many(connection: sa.Connection) -> bool:
        failed = [people.count_attempts(connection, key, since) for key in keys]
        return any(count >= limit for count, limit in zip(failed, _MAX_FAILED_ATTEMPTS, strict=True))

    def count(connection: sa.Connection) -> tuple[int, ...] | None:
        people.lock_attempts(connection, forget_before=since)
        return None if too_many(connection) else tuple(people.add_attempt(connection, key) for key in keys)

    # Read first, so that a flood of refused attempts does not hold up the writing of answers.
    attempt_ids = None if database.read(too_many) else database.write(count)
    if attempt_ids is None:
        hint, wait_seconds = f"Wait {ATTEMPT_MINUTES} minutes.", 60 * ATTEMPT_MINUTES
        raise Problem(429, "too_many_attempts", "too many failed attempts to sign in", hint=hint, wait=wait_seconds)
    user = database.read(lambda connection: people.user(connection, name))
    if user is None:
        return Attempt(name, None, _dummy_hash(), attempt_ids)
    return Attempt(name, int(user["id"]), str(user["password"]), attempt_ids)


def verify_attempt(database: Database, attempt: Attempt, password: str) -> str:
    """Check the password of an attempt and return a new login token; raise a `Problem` if it is wrong."""
    with _hashing:
        verified = _is_correct(attempt.password_hash, password)
    token, expires = new_token(), stamp(datetime.now(UTC) + timedelta(hours=LOGIN_HOURS))

    def enter(connection: sa.Connection) -> bool:
        user = people.user(connection, attempt.name, lock=True)
        if user is None or user["password"] != attempt.password_hash:
            # The user was removed or got a new password after the attempt was admitted.
            return False
        people.delete_attempts(connection, attempt.attempt_ids)
        people.add_login(connection, hash_token(token), int(user["id"]), expires)
        return True

    if not verified or attempt.user_id is None or not database.write(enter):
        raise Problem(
            401, "wrong_password", "name or password is wrong", received=attempt.name[:100], hint="Try again."
        )
    return token


@dataclass(frozen=True, slots=True)
class Account:
    """User who is signed in."""

    name: str
    is_admin: bool = False


def account_of_login(database: Database, token: str | None) -> Account | None:
    """Return the user of a login token; None if the token is not valid."""
    if not token:
        return None
    user = database.read(lambda connection: people.user_of_login(connection, hash_token(token)))
    return None if user is None else Account(*user)


def sign_out(database: Database, token: str | None) -> None:
    """Delete a login."""
    if token:
        database.write(lambda connection: people.delete_login(connection, hash_token(token)))


def remove_user(database: Database, name: str, who: str) -> int:
    """Delete a user with all logins and tokens, and return the number of tokens.

    The last administrator cannot be removed, because nobody could administer the service then.
    """

    def remove(connection: sa.Connection) -> int | None:
        if people.admin_names(connection) == [name]:
            raise _last_admin(name)
        count = people.remove_user(connection, name)
        if count is not None:
            studies.log_action(connection, who, "remove_user", None, user=name, tokens=count)
        return count

    count = database.write(remove)
    if count is None:
        raise not_found("user", name[:100])
    return count


def _last_admin(name: str) -> Problem:
    return Problem(
        409,
        "last_administrator",
        "this user is the only administrator",
        received=name,
        hint="Make another user an administrator first: pairseek user add NAME --admin.",
    )


def make_token(
    database: Database, name: str, scopes: list[str], who: str, study_id: int | None = None, *, days: int = TOKEN_DAYS
) -> str:
    """Create an API token that expires after ``days``, and return it; only its hash is stored."""
    if not 1 <= len(name.strip()) <= 100:
        raise InvalidParameter(f"the name of the token is {name[:50]!r}: give 1 to 100 characters")
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise InvalidParameter(f"the scopes are {scopes!r}: give one or more of {', '.join(SCOPES)}")
    if not 1 <= days <= MAX_TOKEN_DAYS:
        raise InvalidParameter(f"the lifetime of the token is {days} days: give 1 to {MAX_TOKEN_DAYS}")
    token = _TOKEN_PREFIX + new_token()
    expires = stamp(datetime.now(UTC) + timedelta(days=days))

    def add(connection: sa.Connection) -> None:
        if people.user(connection, who, lock=True) is None:
            # The user was removed after the request was authenticated.
            raise Problem(401, "not_signed_in", "nobody is signed in", hint="Sign in at /login.")
        people.add_token(
            connection, name.strip(), hash_token(token), scopes, study_id=study_id, who=who, expires_at=expires
        )
        studies.log_action(connection, who, "token", None, name=name.strip(), scopes=scopes, days=days)

    database.write(add)
    return token


def revoke_token(database: Database, number: int, who: str, owner: str | None = None) -> None:
    """Revoke an API token, which must belong to ``owner`` if one is given.

    Raises a `Problem` if there is no such active token.
    """

    def revoke(connection: sa.Connection) -> bool:
        revoked = people.revoke(connection, number, owner)
        if revoked:
            studies.log_action(connection, who, "revoke", None, token=number)
        return revoked

    if not database.write(revoke):
        raise not_found("active token", number)


@dataclass(frozen=True, slots=True)
class Caller:
    """Caller of the HTTP API: the holder of an API token, which is valid for one study or for all."""

    name: str
    user: str
    scopes: frozenset[str]
    token_hash: str
    study_id: int | None = None

    @property
    def label(self) -> str:
        """Name of the caller in the audit log, short enough for its column."""
        return f"{self.user[:90]} (token {self.name})"

    def require_scope(self, scope: str, study_id: int | None = None) -> None:
        """Raise a `Problem` unless the token has this scope for this study."""
        if scope not in self.scopes:
            raise Problem(
                403,
                "scope_missing",
                f"this token lacks the scope {scope!r}",
                received=sorted(self.scopes),
                hint="Create a token with this scope: pairseek token create, or the page of API tokens.",
            )
        if self.study_id is not None and self.study_id != study_id:
            raise Problem(
                403, "other_study", "this token is for another study", hint="Use a token for this study or for all."
            )


def authenticated_caller(database: Database, header: str | None) -> Caller:
    """Return the caller who sent this ``Authorization`` header."""
    kind, _, token = (header or "").partition(" ")
    if kind.lower() != "bearer" or not token:
        raise Problem(
            401, "token_missing", "the request has no token", hint="Send the header Authorization: Bearer TOKEN."
        )
    token_hash = hash_token(token.strip())
    token_row = database.read(lambda connection: people.token(connection, token_hash))
    if token_row is None:
        raise Problem(401, "token_unknown", "the token is not valid", hint="Check it, or create a new one.")
    if token_row["revoked_at"] is not None:
        raise Problem(401, "token_revoked", "this token was revoked", hint="Create a new one.")
    if token_row["expires_at"] <= stamp(datetime.now(UTC)):
        raise Problem(401, "token_expired", "this token has expired", hint="Create a new one.")
    minute_ago = stamp(datetime.now(UTC) - timedelta(minutes=1))
    if (token_row["used_at"] or "") < minute_ago:
        # A resolution of one minute saves a write per request.
        database.write(lambda connection: people.use_token(connection, token_row["id"]))
    return Caller(
        token_row["name"], token_row["user_name"], frozenset(token_row["scopes"]), token_hash, token_row["study_id"]
    )


def _is_correct(password_hash: str, password: str) -> bool:
    try:
        return _hasher().verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False


def _key(kind: str, value: str) -> str:
    return hashlib.sha256(f"{kind}:{value}".encode()).hexdigest()
