"""Command ``pairseek forget``: deletion of a participant's data, or of all data past the retention period."""

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
        typer.Argument(
            metavar="PARTICIPANT", help="The participant's id in the link, Prolific id, or the id of a session."
        ),
    ] = None,
    *,
    expired: Annotated[
        bool, typer.Option("--expired", metavar="", help="Delete all data whose retention period is over.")
    ] = False,
    yes: Yes = False,
    database: DatabaseOption = None,
) -> None:
    """Delete a participant's sessions in a study, and all that was learned from them.

    Nothing about the person remains in the database. Earlier exports and
    backups still contain the data; see docs/how-to/service.md.
    """
    if expired == (study is not None) or (study is None) != (participant is None):
        raise InvalidParameter("give either a STUDY and a PARTICIPANT, or only --expired; see pairseek forget --help")
    with open_database(database, create=False) as opened:
        from pairseek.web.sessions import forgetting
        from pairseek.web.studies.catalogue import Catalogue

        if study is None or participant is None:
            deletions = forgetting.expire(opened, Catalogue(opened))
            for deletion in deletions:
                typer.echo(f"{deletion.slug}: {forgetting.deletion_summary(deletion.deleted)}")
            if not deletions:
                typer.echo("No retention period is over, so nothing was deleted.")
        else:
            study_row = find_study(opened, study)
            count = len(forgetting.sessions_of_person(opened, study_row, participant))
            if not count:
                raise InvalidParameter(
                    f"the study {study!r} has no participant {participant!r}: give the id as in the export"
                )
            confirm(participant, f"{plural(count, 'session')} of {participant} will be deleted.", yes=yes)
            deleted = forgetting.forget(opened, study_row, participant, current_user())
            typer.echo(forgetting.deletion_summary(deleted))
        if not forgetting.scrub(opened):
            typer.echo("The database is in use: the service or the next deletion will clean up its files.", err=True)
