"""Examples of the commands, which ``--help`` shows below the options."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from typer.models import CommandInfo

EXAMPLES = {
    "demo": ("pairseek demo --answers 20",),
    "doctor": ("pairseek doctor",),
    "warm": ("pairseek warm",),
    "reproduce": (
        "pairseek reproduce figure2 --preset quick",
        "pairseek reproduce figure2 --preset quick --data synthetic",
    ),
    "simulate": ("pairseek simulate --data colours --strategies infogain,random --queries 20 --trials 10",),
    "plan": ("pairseek plan --items wines.csv --users 50",),
    "embed": ("pairseek embed triplets.csv --out items.csv", "pairseek embed features.csv --method pca --dimensions 4"),
    "fit-noise": ("pairseek fit-noise items.csv triplets.csv",),
    "check": ("pairseek check wines.csv --html check.html",),
    "evaluate": ("pairseek evaluate ratings.csv --answers 5,10,20",),
    "compare": ("pairseek compare quick", 'pairseek compare first --data "music; food" --people 20'),
    "serve": ("pairseek serve --demo", "pairseek serve --study wine.yaml --host 0.0.0.0"),
    "link": ("pairseek link wine --participants people.csv --address https://study.example.org",),
    "compile": ("pairseek compile wine.yaml --out quiz --answers 8",),
    "export": ("pairseek export wine --out wine.zip",),
    "forget": ("pairseek forget wine p-17", "pairseek forget --expired"),
    "rank": ("pairseek rank wine --top 10", "pairseek rank choices.csv --items wines.csv"),
    "replay": ("pairseek replay wine.zip",),
    "report": ("pairseek report wine --out wine.html",),
    "backup": ("pairseek backup studies.backup",),
    "restore": ("pairseek restore studies.backup --database new.db",),
    "population fit": ("pairseek population fit ratings.csv --items wines.csv", "pairseek population fit wine"),
    "study create": ("pairseek study create wine.yaml",),
    "study list": ("pairseek study list",),
    "study open": ("pairseek study open wine",),
    "study close": ("pairseek study close wine",),
    "study add": ("pairseek study add wine more-wines.csv",),
    "study duplicate": ("pairseek study duplicate wine",),
    "study delete": ("pairseek study delete wine",),
    "user add": ("pairseek user add maria",),
    "user remove": ("pairseek user remove maria",),
    "user list": ("pairseek user list",),
    "token create": ("pairseek token create shop --scope read --scope answer",),
    "token list": ("pairseek token list",),
    "token revoke": ("pairseek token revoke 1",),
    "db upgrade": ("pairseek db upgrade",),
    "db version": ("pairseek db version",),
}
"""Example command lines, by command."""


def add_examples(app: typer.Typer) -> None:
    """Add the examples of each command below its help."""
    for name, command in commands_of(app):
        lines = EXAMPLES.get(name, ())
        if lines:
            # Rich prints each paragraph of an epilogue as one line.
            title = "Example:" if len(lines) == 1 else "Examples:"
            command.epilog = "\n\n".join([title, *(f"  {line}" for line in lines)])


def commands_of(app: typer.Typer, prefix: str = "") -> Iterator[tuple[str, CommandInfo]]:
    """Iterate over all commands and their full names."""
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        yield f"{prefix}{name}", command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from commands_of(group.typer_instance, f"{prefix}{group.name} ")
