"""``pairseek user``: who may sign in."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from pairseek.cli.service import DatabaseOption, opened

app = typer.Typer(help="Let researchers sign in, and list who may.", no_args_is_help=True)


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="To sign in with.")],
    *,
    ask: Annotated[
        bool, typer.Option("--ask", metavar="", help="Ask for the password instead of drawing one.")
    ] = False,
    database: DatabaseOption = None,
) -> None:
    """Make a user, or give one a new password; it is said once."""
    found = opened(database)
    try:
        from pairseek.web.auth import set_password

        password = typer.prompt("Password", hide_input=True) if ask else secrets.token_urlsafe(12)
        set_password(found, name, password)
    finally:
        found.close()
    typer.echo(f"{name} can sign in{'' if ask else f' with the password {password}'}")


@app.command("list")
def show(*, database: DatabaseOption = None) -> None:
    """List the users."""
    found = opened(database)
    try:
        from pairseek.store import people

        names = found.read(people.user_names)
    finally:
        found.close()
    for name in names:
        typer.echo(name)
