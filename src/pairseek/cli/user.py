"""Command group ``pairseek user``: accounts of researchers."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from pairseek.cli.database import confirm, current_user, open_database
from pairseek.cli.options import DatabaseOption, Yes
from pairseek.core.text import plural
from pairseek.errors import InvalidParameter

app = typer.Typer(help="Create, list and remove accounts of researchers.", no_args_is_help=True)


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name for signing in.")],
    *,
    ask: Annotated[
        bool, typer.Option("--ask", metavar="", help="Prompt for the password instead of generating one.")
    ] = False,
    admin: Annotated[
        bool | None,
        typer.Option(
            "--admin/--no-admin",
            help="Whether the user may see the audit log and remove users. The first user may.",
            show_default=False,
        ),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Create a user, or set a new password. A generated password is shown only once.

    A new password ends the user's logins and revokes their tokens.
    """
    with open_database(database) as opened:
        from pairseek.web.access.auth import set_password

        password = typer.prompt("Password", hide_input=True) if ask else secrets.token_urlsafe(12)
        set_password(opened, name, password, is_admin=admin)
    typer.echo(f"{name} can sign in{'' if ask else f' with the password {password}'}")


@app.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the user.")],
    *,
    yes: Yes = False,
    database: DatabaseOption = None,
) -> None:
    """Remove a user and their tokens, and sign them out. Their studies stay."""
    with open_database(database, create=False) as opened:
        from pairseek.store import people
        from pairseek.web.access.auth import remove_user

        if name not in opened.read(people.user_names):
            raise InvalidParameter(f"there is no user {name!r}: see pairseek user list")
        confirm(name, f"The user {name} and all of their tokens will be removed.", yes=yes)
        count = remove_user(opened, name, current_user())
    typer.echo(f"{name} was removed, with {plural(count, 'token')}.")


@app.command("list")
def show(*, database: DatabaseOption = None) -> None:
    """List the users, and which of them are administrators."""
    with open_database(database, create=False) as opened:
        from pairseek.store import people

        rows = opened.read(people.all_users)
    for row in rows:
        typer.echo(f"{row['name']}\tadministrator" if row["is_admin"] else row["name"])
