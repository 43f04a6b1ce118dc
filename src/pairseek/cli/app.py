"""Root command: registration of the commands, version, help, errors and notes."""

from __future__ import annotations

import codecs
import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TextIO

import typer

from pairseek._version import __version__
from pairseek.cli import (
    backup,
    check,
    compare,
    compile,
    db,
    doctor,
    embed,
    evaluate,
    export,
    fit_noise,
    forget,
    link,
    plan,
    population,
    rank,
    replay,
    report,
    reproduce,
    serve,
    simulate,
    study,
    token,
    user,
    warm,
)
from pairseek.cli.demo import demo
from pairseek.cli.examples import add_examples
from pairseek.errors import InvalidParameter, ScaleWarning

# ASCII substitutes for characters that the terminal's encoding cannot represent.
_ASCII_SUBSTITUTES = {"←": "<", "→": ">", "·": "-", "━": "=", "╸": "-", "─": "-", "│": "|", "●": "*", "…": "."}
_ASCII_SUBSTITUTES |= dict.fromkeys("┌┐└┘", "+")

app = typer.Typer(name="pairseek", pretty_exceptions_enable=False, rich_markup_mode="rich")
app.command()(demo)
app.command("doctor")(doctor.command)
app.command("warm")(warm.command)
app.command("reproduce")(reproduce.command)
app.command("simulate")(simulate.command)
app.command("plan")(plan.command)
app.command("embed")(embed.command)
app.command("fit-noise")(fit_noise.command)
app.command("check")(check.command)
app.command("evaluate")(evaluate.command)
app.command("compare")(compare.command)
app.command("serve")(serve.command)
app.command("link")(link.command)
app.command("compile")(compile.command)
app.command("export")(export.command)
app.command("forget")(forget.command)
app.command("rank")(rank.command)
app.command("replay")(replay.command)
app.command("report")(report.command)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.add_typer(population.app, name="population")
app.add_typer(study.app, name="study")
app.add_typer(user.app, name="user")
app.add_typer(token.app, name="token")
app.add_typer(db.app, name="db")

add_examples(app)

OVERVIEW = """\
pairseek learns what someone likes by showing them two things at a time.

  A search        pairseek demo                        find a colour in this terminal
                  import pairseek as ps                ask and tell from Python

  A study         pairseek serve --demo                a study of colours in the browser
                  pairseek serve --study wine.yaml     your own, with a link to send

  The paper       pairseek reproduce figure2           the figures of Canal et al., ICML 2019

pairseek --help lists all commands, and pairseek doctor shows what is installed.
"""


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", metavar="", help="Show the version and exit.")] = False,
) -> None:
    """Learn what someone likes from paired comparisons.

    Each question shows two items and asks which one the person prefers. The
    next pair is the one from whose answer pairseek expects to learn most.

    Start with [bold]pairseek demo[/bold]. The exit code is 0 on success, 1 if a check
    found a problem, 2 after an error, and 130 after an interruption.
    """
    if version:
        typer.echo(f"pairseek {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(OVERVIEW, nl=False)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; raise `InvalidParameter` for an invalid command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="pairseek")
    try:
        with _scale_notes():
            code = app(args=None if arguments is None else list(arguments), standalone_mode=False)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except Exception as error:
        # Typer's versions keep their exceptions in different modules, but all of them have this method.
        if not hasattr(error, "format_message"):
            raise
        raise InvalidParameter(f"{_message_of(error)}; see {_command_of(error)} --help") from None
    if sys.stdout is not None:
        sys.stdout.flush()
    return int(code or 0)


def _message_of(error: Any) -> str:
    """Return the message of a Typer error in plain words."""
    message: str = error.format_message().rstrip(".?")
    for expected, words in (("an integer", "a whole number"), ("a number", "a number")):
        typer_words = f"Input should be a valid {expected.split()[1]}, unable to parse string as {expected}"
        message = message.replace(typer_words, f"give {words}")
    return message


def _command_of(error: object) -> str:
    """Return the command in which an error occurred, as the user types it."""
    names = []
    context = getattr(error, "ctx", None)
    while context is not None and context.parent is not None:
        names.append(context.info_name)
        context = context.parent
    return " ".join(["pairseek", *reversed(names)])


@contextlib.contextmanager
def _scale_notes() -> Iterator[None]:
    """Print each distinct `ScaleWarning` once, as one plain line on standard error."""
    printed = set()
    with warnings.catch_warnings():
        show_other = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, ScaleWarning):
                show_other(message, category, filename, lineno, file, line)
            elif str(message) not in printed:
                printed.add(str(message))
                typer.echo(f"Note: {message}", err=True)

        warnings.simplefilter("always", ScaleWarning)
        warnings.showwarning = show
        yield


def _substitute_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(
        _ASCII_SUBSTITUTES.get(character, "?") for character in error.object[error.start : error.end]
    ), error.end


codecs.register_error("pairseek", _substitute_ascii)
