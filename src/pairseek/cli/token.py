"""Command group ``pairseek token``: tokens for programs that use the HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from pairseek.cli.database import find_study, open_database
from pairseek.cli.options import DatabaseOption
from pairseek.errors import InvalidParameter

app = typer.Typer(help="Create, list and revoke tokens for programs that use the HTTP API.", no_args_is_help=True)


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the token is for, such as 'shop'.")],
    *,
    scope: Annotated[
        list[str],
        typer.Option(
            "--scope", metavar="SCOPE", help="read, write, answer or delete; repeat the option for several scopes."
        ),
    ],
    user: Annotated[str, typer.Option(metavar="NAME", help="User who owns the token.")] = "admin",
    study: Annotated[
        str | None,
        typer.Option(metavar="SLUG", help="The only study for which the token is valid.", show_default="all"),
    ] = None,
    days: Annotated[int, typer.Option(metavar="NUMBER", help="Days until the token expires, at most 366.")] = 90,
    database: DatabaseOption = None,
) -> None:
    """Create a token, and print it on standard output.

    The token cannot be shown again, because the database stores only its hash.
    The user must exist: see [bold]pairseek user add[/].
    """
    with open_database(database, create=False) as opened:
        from pairseek.store import people
        from pairseek.web.access.auth import make_token

        if user not in opened.read(people.user_names):
            raise InvalidParameter(
                f"there is no user {user!r}: see pairseek user list, or create one with pairseek user add"
            )
        study_id = None if study is None else find_study(opened, study).row.id
        typer.echo(make_token(opened, name, scope, user, study_id, days=days))


@app.command("list")
def show(*, database: DatabaseOption = None) -> None:
    """List the tokens with their number, name, user, scopes and date of expiry."""
    with open_database(database, create=False) as opened:
        from pairseek.store import people
        from pairseek.store.database import now

        rows, time = opened.read(people.list_tokens), now()
    for row in rows:
        state = "revoked" if row["revoked_at"] else "expired" if row["expires_at"] <= time else row["expires_at"][:10]
        typer.echo(f"{row['id']}\t{row['name']}\t{row['user_name']}\t{','.join(row['scopes'])}\t{state}")


@app.command()
def revoke(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="Number of the token in pairseek token list.")],
    *,
    database: DatabaseOption = None,
) -> None:
    """Revoke a token: the service refuses requests with it from now on."""
    with open_database(database, create=False) as opened:
        from pairseek.cli.database import current_user
        from pairseek.web.access.auth import revoke_token

        revoke_token(opened, number, current_user())
    typer.echo(f"Token {number} was revoked.")
