"""Users, logins, API tokens and failed login attempts."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store import meta
from pairseek.store.database import now
from pairseek.store.schema import attempts, logins, tokens, users


def user(connection: sa.Connection, name: str, *, lock: bool = False) -> JSON | None:
    """Return the user with this name; ``lock`` keeps them from being changed or removed until the transaction ends."""
    statement = sa.select(users).where(users.c.name == name)
    return _first(connection, statement.with_for_update() if lock else statement)


def user_names(connection: sa.Connection) -> list[str]:
    """Return the names of all users."""
    return list(connection.execute(sa.select(users.c.name).order_by(users.c.id)).scalars())


def all_users(connection: sa.Connection) -> list[JSON]:
    """Return all users without their passwords, oldest first."""
    columns = [column for column in users.c if column.name != "password"]
    return [dict(row) for row in connection.execute(sa.select(*columns).order_by(users.c.id)).mappings()]


def set_password(
    connection: sa.Connection, name: str, password: str, *, is_admin: bool | None = None, is_new: bool = False
) -> None:
    """Set the hashed password of a new or existing user, and end the user's logins and tokens.

    With ``is_admin`` None, the first user becomes an administrator, and an existing user keeps their role. With
    ``is_new``, an existing user raises `IntegrityError`.
    """
    existing = None if is_new else user(connection, name, lock=True)
    if existing is None:
        is_first = not user_names(connection)
        values = {"name": name, "password": password, "is_admin": is_first if is_admin is None else is_admin}
        connection.execute(users.insert().values(created_at=now(), **values))
        return
    changes = {"password": password} if is_admin is None else {"password": password, "is_admin": is_admin}
    connection.execute(users.update().where(users.c.id == existing["id"]).values(changes))
    connection.execute(logins.delete().where(logins.c.user_id == existing["id"]))
    condition = (tokens.c.user_name == name) & tokens.c.revoked_at.is_(None)
    connection.execute(tokens.update().where(condition).values(revoked_at=now()))


def admin_names(connection: sa.Connection) -> list[str]:
    """Return the names of the administrators; nobody else can change them until the transaction ends."""
    statement = sa.select(users.c.name).where(users.c.is_admin).order_by(users.c.id).with_for_update()
    return list(connection.execute(statement).scalars())


def remove_user(connection: sa.Connection, name: str) -> int | None:
    """Delete a user with their logins and tokens; return the number of tokens, or None if the user does not exist."""
    existing = user(connection, name, lock=True)
    if existing is None:
        return None
    connection.execute(logins.delete().where(logins.c.user_id == existing["id"]))
    count = connection.execute(tokens.delete().where(tokens.c.user_name == name)).rowcount
    connection.execute(users.delete().where(users.c.id == existing["id"]))
    return count


def add_login(connection: sa.Connection, token_hash: str, user_id: int, expires_at: str) -> None:
    """Store a login, and delete expired ones."""
    connection.execute(logins.delete().where(logins.c.expires_at < now()))
    values = {"token_hash": token_hash, "user_id": user_id, "expires_at": expires_at}
    connection.execute(logins.insert().values(created_at=now(), **values))


def user_of_login(connection: sa.Connection, token_hash: str) -> tuple[str, bool] | None:
    """Return the user of a login and whether they are an administrator; None if the login has expired."""
    statement = sa.select(users.c.name, users.c.is_admin).join(logins, logins.c.user_id == users.c.id)
    condition = (logins.c.token_hash == token_hash) & (logins.c.expires_at > now())
    row = connection.execute(statement.where(condition)).first()
    return None if row is None else (str(row.name), bool(row.is_admin))


def delete_login(connection: sa.Connection, token_hash: str) -> None:
    """Delete a login."""
    connection.execute(logins.delete().where(logins.c.token_hash == token_hash))


def add_token(
    connection: sa.Connection,
    name: str,
    token_hash: str,
    scopes: Sequence[str],
    *,
    study_id: int | None,
    who: str,
    expires_at: str,
) -> None:
    """Add an API token of a user; with ``study_id``, it is valid only for that study."""
    values = {"name": name, "token_hash": token_hash, "scopes": list(scopes), "study_id": study_id}
    values |= {"user_name": who, "created_at": now(), "expires_at": expires_at}
    connection.execute(tokens.insert().values(values))


def token(connection: sa.Connection, token_hash: str) -> JSON | None:
    """Return the token with this hash, revoked or not."""
    return _first(connection, sa.select(tokens).where(tokens.c.token_hash == token_hash))


def use_token(connection: sa.Connection, token_id: int) -> None:
    """Store the time at which a token was used."""
    connection.execute(tokens.update().where(tokens.c.id == token_id).values(used_at=now()))


def list_tokens(connection: sa.Connection, who: str | None = None) -> list[JSON]:
    """Return the tokens of a user, or of all users, newest first, without their hashes."""
    columns = [column for column in tokens.c if column.name != "token_hash"]
    statement = sa.select(*columns).order_by(tokens.c.id.desc())
    rows = connection.execute(statement if who is None else statement.where(tokens.c.user_name == who))
    return [dict(row) for row in rows.mappings()]


def revoke(connection: sa.Connection, token_id: int, who: str | None = None) -> bool:
    """Revoke a token, which must belong to ``who`` if given; return whether it was valid."""
    condition = (tokens.c.id == token_id) & tokens.c.revoked_at.is_(None)
    if who is not None:
        condition &= tokens.c.user_name == who
    return connection.execute(tokens.update().where(condition).values(revoked_at=now())).rowcount == 1


def lock_attempts(connection: sa.Connection, *, forget_before: str) -> None:
    """Delete old attempts, and block other transactions that count attempts until this one ends."""
    if connection.dialect.name == "postgresql":
        # SQLite needs no lock, because a write transaction excludes all others.
        connection.execute(sa.text("LOCK TABLE attempts IN SHARE ROW EXCLUSIVE MODE"))
    connection.execute(attempts.delete().where(attempts.c.at < forget_before))


def count_attempts(connection: sa.Connection, key: str, since: str) -> int:
    """Return the number of failed attempts with this key since a time."""
    statement = sa.select(sa.func.count(attempts.c.id)).where((attempts.c.key == key) & (attempts.c.at >= since))
    return int(connection.execute(statement).scalar_one())


def add_attempt(connection: sa.Connection, key: str) -> int:
    """Store a failed attempt and return its id."""
    number = connection.execute(attempts.insert().values(key=key, at=now())).inserted_primary_key
    assert number is not None
    return int(number[0])


def delete_attempts(connection: sa.Connection, numbers: Sequence[int]) -> None:
    """Delete attempts whose login succeeded after all."""
    connection.execute(attempts.delete().where(attempts.c.id.in_(numbers)))


def delete_expired(connection: sa.Connection, *, attempts_before: str) -> None:
    """Delete attempts before a time, and expired logins."""
    connection.execute(attempts.delete().where(attempts.c.at < attempts_before))
    connection.execute(logins.delete().where(logins.c.expires_at < now()))


def secret(connection: sa.Connection, new: str, key: str = "secret") -> str:
    """Return a secret shared by all workers; store ``new`` if none is stored yet."""
    return meta.put_if_missing(connection, key, new)


def _first(connection: sa.Connection, statement: sa.Select[tuple[object, ...]]) -> JSON | None:
    row = connection.execute(statement).mappings().first()
    return None if row is None else dict(row)
