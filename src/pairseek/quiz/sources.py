"""Sources of quizzes: study files, items files, and studies in the database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa

from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.people.population import Population
from pairseek.quiz.content import QuizSource
from pairseek.quiz.plan import DEFAULT_ANSWERS
from pairseek.store import media, populations
from pairseek.store.database import Database
from pairseek.store.media import StoredPicture
from pairseek.web.sessions.history import populations_of
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.checks import check
from pairseek.web.studies.configuration import StudyConfiguration, configured
from pairseek.web.studies.creation import from_file, items_in
from pairseek.web.studies.media import copies, with_pictures
from pairseek.web.studies.names import readable_name
from pairseek.web.studies.uploads import Files


def from_study_file(path: Path) -> QuizSource:
    """Read a study file and its items file."""
    study = from_file(path)
    return _with_files(study.configuration, study.items, study.files)


def from_items_file(path: Path, population: Path | None = None, coordinates: Sequence[str] | None = None) -> QuizSource:
    """Read an items file; the quiz is named after it."""
    title = readable_name(path.resolve().stem)[:200]
    columns = None if coordinates is None else list(coordinates)
    configuration = configured({"title": title, "answers": DEFAULT_ANSWERS, "coordinates": columns})
    items, files = items_in(path, configuration)
    return _with_files(configuration, items, files, None if population is None else Population.load(population))


def from_database(database: Database, study: Study) -> QuizSource:
    """Read a study from the database, with the population that new sessions start with."""
    _check_kind(study.configuration)
    study_id = study.row.id
    version = database.read(lambda connection: populations.newest(connection, study_id))
    population = populations_of(database, [(study_id, version)]).get((study_id, version))

    def stored_pictures(name: str) -> Sequence[StoredPicture]:
        def read(connection: sa.Connection) -> list[StoredPicture]:
            sizes = study.pictures.get(name, [])
            stored_copies = [media.picture(connection, study_id, name, width) for width, _ in sizes]
            return [picture for picture in stored_copies if picture is not None]

        return database.read(read)

    return QuizSource(
        study.configuration, study.items, stored_pictures, population if isinstance(population, Population) else None
    )


def _check_kind(configuration: StudyConfiguration) -> None:
    if configuration.is_similarity:
        raise InvalidParameter(
            f"the study {configuration.slug_or_default()!r} asks for similarity judgements, but a quiz asks for "
            f"preferences: make a preference study of its map with pairseek study create --from, and compile that"
        )


def _with_files(
    configuration: StudyConfiguration, items: Items, files: Files, population: Population | None = None
) -> QuizSource:
    _check_kind(configuration)
    check(configuration, items)
    items, readers = with_pictures(items, files)
    return QuizSource(configuration, items, lambda name: tuple(copies(0, name, readers[name]())), population)
