"""The commands under one name, and what they have in common: version, help, the shape of errors."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from pairseek._version import __version__
from pairseek.cli import (
    backup,
    check,
    db,
    embed,
    evaluate,
    export,
    fit_noise,
    plan,
    population,
    replay,
    reproduce,
    serve,
    simulate,
    study,
    user,
)
from pairseek.cli.demo import demo
from pairseek.errors import InvalidParameter

# What stands in for a character that the terminal's encoding lacks.
_PLAIN = {"←": "<", "→": ">", "·": "-", "━": "=", "╸": "-", "─": "-", "│": "|", "●": "*", "…": "."}
_PLAIN |= dict.fromkeys("┌┐└┘", "+")

app = typer.Typer(name="pairseek", pretty_exceptions_enable=False, rich_markup_mode="rich")
app.command()(demo)
app.command("reproduce")(reproduce.command)
app.command("simulate")(simulate.command)
app.command("plan")(plan.command)
app.command("embed")(embed.command)
app.command("fit-noise")(fit_noise.command)
app.command("check")(check.command)
app.command("evaluate")(evaluate.command)
app.command("serve")(serve.command)
app.command("export")(export.command)
app.command("replay")(replay.command)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.add_typer(population.app, name="population")
app.add_typer(study.app, name="study")
app.add_typer(user.app, name="user")
app.add_typer(db.app, name="db")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Say which pairseek this is, and leave.")
    ] = False,
) -> None:
    """Find a person's taste by asking which of two they prefer.

    Each answer narrows down where in a space of items the person stands; the
    next pair is the one whose answer will tell most.

    Begin with [bold]pairseek demo[/bold].
    """
    if version:
        typer.echo(f"pairseek {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code; a wrong command line is an `InvalidParameter`."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="pairseek")
    try:
        code = app(args=None if arguments is None else list(arguments), standalone_mode=False)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except Exception as error:
        # Typer's own exceptions have changed their home between versions; this method is what they share.
        if not hasattr(error, "format_message"):
            raise
        raise InvalidParameter(f"{error.format_message().rstrip('.')}; see pairseek --help") from None
    if sys.stdout is not None:
        sys.stdout.flush()
    return int(code or 0)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(character, "?") for character in error.object[error.start : error.end]), error.end


codecs.register_error("pairseek", _plain)
