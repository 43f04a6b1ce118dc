"""Command group ``pairseek user``: accounts of researchers."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from pairseek.cli.database import open_database
from pairseek.cli.options import DatabaseOption

app = typer.Typer(help="Create accounts of researchers, and list them.", no_args_is_help=True)


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name for signing in.")],
    *,
    ask: Annotated[
        bool, typer.Option("--ask", metavar="", help="Prompt for the password instead of generating one.")
    ] = False,
    database: DatabaseOption = None,
) -> None:
    """Create a user, or set a new password. A generated password is shown only once."""
    with open_database(database) as opened:
        from pairseek.web.auth import set_password

        password = typer.prompt("Password", hide_input=True) if ask else secrets.token_urlsafe(12)
        set_password(opened, name, password)
    typer.echo(f"{name} can sign in{'' if ask else f' with the password {password}'}")


@app.command("list")
def show(*, database: DatabaseOption = None) -> None:
    """List the users."""
    with open_database(database) as opened:
        from pairseek.store import people

        names = opened.read(people.user_names)
    for name in names:
        typer.echo(name)
