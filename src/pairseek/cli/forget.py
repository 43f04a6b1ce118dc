"""Command ``pairseek forget``: deletion of a participant's data, or of all data whose retention period is over."""

from __future__ import annotations

from typing import Annotated

import typer

from pairseek.cli.database import confirm, current_user, find_study, open_database
from pairseek.cli.options import DatabaseOption, Yes
from pairseek.core.text import plural
from pairseek.errors import InvalidParameter


def command(
    study: Annotated[str | None, typer.Argument(metavar="STUDY", help="Name of the study in its link.")] = None,
    participant: Annotated[
        str | None,
        typer.Argument(metavar="PARTICIPANT", help="Id in the participant's link, Prolific id, or id of a session."),
    ] = None,
    *,
    expired: Annotated[
        bool, typer.Option("--expired", metavar="", help="Delete all data whose retention period is over.")
    ] = False,
    yes: Yes = False,
    database: DatabaseOption = None,
) -> None:
    """Delete a participant's sessions in a study, and what was learned from them.

    Nothing of the person remains in the database. Exports and backups that
    were made before still contain the data; see docs/how-to/service.md.
    """
    if expired == (study is not None) or (study is None) != (participant is None):
        raise InvalidParameter("give a STUDY and a PARTICIPANT, or --expired alone; see pairseek forget --help")
    with open_database(database, create=False) as opened:
        from pairseek.web import forgetting
        from pairseek.web.studies.catalogue import Catalogue

        if study is None or participant is None:
            found = forgetting.expire(opened, Catalogue(opened))
            for one in found:
                typer.echo(f"{one.slug}: {forgetting.in_words(one.deleted)}")
            if not found:
                typer.echo("No retention period is over: nothing was deleted.")
        else:
            known = find_study(opened, study)
            count = len(forgetting.find(opened, known, participant))
            if not count:
                raise InvalidParameter(
                    f"the study {study!r} has no participant {participant!r}: give the id as it is in the export"
                )
            confirm(participant, f"{plural(count, 'session')} of {participant} will be deleted.", yes=yes)
            typer.echo(forgetting.in_words(forgetting.forget(opened, known, participant, current_user())))
        if not forgetting.scrub(opened):
            typer.echo("The database is in use: the service, or the next deletion, cleans its files.", err=True)
