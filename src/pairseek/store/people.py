"""Users, logins, API tokens and failed login attempts."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from pairseek.core.types import JSON
from pairseek.store import meta
from pairseek.store.database import now
from pairseek.store.schema import attempts, logins, tokens, users


def user(connection: sa.Connection, name: str, *, lock: bool = False) -> JSON | None:
    """Return the user with this name; with ``lock``, nobody else can change or remove them during this transaction."""
    chosen = sa.select(users).where(users.c.name == name)
    return _first(connection, chosen.with_for_update() if lock else chosen)


def user_names(connection: sa.Connection) -> list[str]:
    """Return the names of all users."""
    return list(connection.execute(sa.select(users.c.name).order_by(users.c.id)).scalars())


def every_user(connection: sa.Connection) -> list[JSON]:
    """Return all users without their passwords, oldest first."""
    columns = [column for column in users.c if column.name != "password"]
    return [dict(row) for row in connection.execute(sa.select(*columns).order_by(users.c.id)).mappings()]


def set_password(
    connection: sa.Connection, name: str, password: str, *, is_admin: bool | None = None, new: bool = False
) -> None:
    """Set the hashed password of a new or existing user, and end the user's logins and tokens.

    With ``is_admin`` None, the first user becomes an administrator and an existing user's role stays as it is. With
    ``new``, an existing user raises `IntegrityError`.
    """
    existing = None if new else user(connection, name, lock=True)
    if existing is None:
        first = not user_names(connection)
        values = {"name": name, "password": password, "is_admin": first if is_admin is None else is_admin}
        connection.execute(users.insert().values(created_at=now(), **values))
        return
    changes = {"password": password} if is_admin is None else {"password": password, "is_admin": is_admin}
    connection.execute(users.update().where(users.c.id == existing["id"]).values(changes))
    connection.execute(logins.delete().where(logins.c.user_id == existing["id"]))
    live = (tokens.c.user_name == name) & tokens.c.revoked_at.is_(None)
    connection.execute(tokens.update().where(live).values(revoked_at=now()))


def admin_names(connection: sa.Connection) -> list[str]:
    """Return the names of the administrators; nobody else changes them until this transaction ends."""
    chosen = sa.select(users.c.name).where(users.c.is_admin).order_by(users.c.id).with_for_update()
    return list(connection.execute(chosen).scalars())


def remove_user(connection: sa.Connection, name: str) -> int | None:
    """Delete a user with all logins and tokens; return the number of tokens, or None if the user does not exist."""
    existing = user(connection, name, lock=True)
    if existing is None:
        return None
    connection.execute(logins.delete().where(logins.c.user_id == existing["id"]))
    count = connection.execute(tokens.delete().where(tokens.c.user_name == name)).rowcount
    connection.execute(users.delete().where(users.c.id == existing["id"]))
    return count


def add_login(connection: sa.Connection, token_hash: str, user_id: int, expires_at: str) -> None:
    """Store a login."""
    connection.execute(logins.delete().where(logins.c.expires_at < now()))
    values = {"token_hash": token_hash, "user_id": user_id, "expires_at": expires_at}
    connection.execute(logins.insert().values(created_at=now(), **values))


def signed_in(connection: sa.Connection, token_hash: str) -> tuple[str, bool] | None:
    """Return the user of an unexpired login, and whether they are an administrator."""
    joined = sa.select(users.c.name, users.c.is_admin).join(logins, logins.c.user_id == users.c.id)
    valid = (logins.c.token_hash == token_hash) & (logins.c.expires_at > now())
    row = connection.execute(joined.where(valid)).first()
    return None if row is None else (str(row.name), bool(row.is_admin))


def drop_login(connection: sa.Connection, token_hash: str) -> None:
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


def every_token(connection: sa.Connection, who: str | None = None) -> list[JSON]:
    """Return the tokens of a user, or of all users, newest first, without their hashes."""
    columns = [column for column in tokens.c if column.name != "token_hash"]
    chosen = sa.select(*columns).order_by(tokens.c.id.desc())
    rows = connection.execute(chosen if who is None else chosen.where(tokens.c.user_name == who))
    return [dict(row) for row in rows.mappings()]


def revoke(connection: sa.Connection, token_id: int, who: str | None = None) -> bool:
    """Revoke a token, if ``who`` is given only one of theirs; return whether it was valid."""
    live = (tokens.c.id == token_id) & tokens.c.revoked_at.is_(None)
    if who is not None:
        live &= tokens.c.user_name == who
    return connection.execute(tokens.update().where(live).values(revoked_at=now())).rowcount == 1


def lock_attempts(connection: sa.Connection, *, forget_before: str) -> None:
    """Block other transactions that count attempts until this one ends, and delete old attempts."""
    if connection.dialect.name == "postgresql":
        # In SQLite every write transaction excludes the others.
        connection.execute(sa.text("LOCK TABLE attempts IN SHARE ROW EXCLUSIVE MODE"))
    connection.execute(attempts.delete().where(attempts.c.at < forget_before))


def count_attempts(connection: sa.Connection, key: str, since: str) -> int:
    """Return the number of failed attempts with this key since a time."""
    chosen = sa.select(sa.func.count(attempts.c.id)).where((attempts.c.key == key) & (attempts.c.at >= since))
    return int(connection.execute(chosen).scalar_one())


def add_attempt(connection: sa.Connection, key: str) -> int:
    """Store a failed attempt and return its id."""
    number = connection.execute(attempts.insert().values(key=key, at=now())).inserted_primary_key
    assert number is not None
    return int(number[0])


def drop_attempts(connection: sa.Connection, numbers: Sequence[int]) -> None:
    """Delete attempts that succeeded."""
    connection.execute(attempts.delete().where(attempts.c.id.in_(numbers)))


def tidy(connection: sa.Connection, *, attempts_before: str) -> None:
    """Delete attempts before a time, and expired logins."""
    connection.execute(attempts.delete().where(attempts.c.at < attempts_before))
    connection.execute(logins.delete().where(logins.c.expires_at < now()))


def secret(connection: sa.Connection, fresh: str, key: str = "secret") -> str:
    """Return a secret shared by all workers; store ``fresh`` if there is no secret yet."""
    return meta.put_first(connection, key, fresh)


def _first(connection: sa.Connection, statement: sa.Select[tuple[object, ...]]) -> JSON | None:
    row = connection.execute(statement).mappings().first()
    return None if row is None else dict(row)
