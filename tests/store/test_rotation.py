"""Dated backups: how many are kept, and what is never removed."""

import gzip
import itertools
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pairseek.errors import InvalidFile
from pairseek.store import backups, migrate, rotation
from pairseek.store.database import Database


@pytest.fixture
def database(tmp_path):
    made = Database(f"sqlite:///{tmp_path / 'a.db'}")
    migrate.prepare(made)
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of backups, in which every backup is made a day after the one before."""
    days = itertools.count()

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 1, 1, 3, tzinfo=tz or UTC) + timedelta(days=next(days))

    monkeypatch.setattr(rotation, "datetime", Clock)
    made = tmp_path / "backups"
    made.mkdir()
    return made


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def day(number):
    return f"pairseek-202601{number:02d}T030000Z.backup.gz"


def test_the_newest_are_kept(database, folder):
    removed = [rotation.write(database, folder, keep=3).removed for _ in range(5)]
    assert names(folder) == [day(3), day(4), day(5)]
    assert [[path.name for path in paths] for paths in removed] == [[], [], [], [day(1)], [day(2)]]
    rotation.write(database, folder, keep=1)
    assert names(folder) == [day(6)]


def test_files_of_others_stay(database, folder, tmp_path):
    rotation.write(database, folder, keep=1)
    backups.write(database, folder / "by-hand.gz")
    (folder / "pairseek-20200101T030000Z.backup.gz").write_bytes(b"no backup")
    with gzip.open(folder / "pairseek-20200102T030000Z.backup.gz", "wt") as file:
        file.write(json.dumps({"format": backups.FORMAT, "source": "another database"}) + "\n")
    with gzip.open(folder / "pairseek-20200103T030000Z.backup.gz", "wt") as file:
        file.write("[]\n")
    (folder / "pairseek-20200104T030000Z.backup.gz").symlink_to(folder / day(1))
    (folder / "pairseek-20200105T030000Z.backup.gz").mkdir()
    other = Database(f"sqlite:///{tmp_path / 'b.db'}")
    migrate.prepare(other)
    rotation.write(other, folder, keep=1)
    other.close()
    before = names(folder)
    made = rotation.write(database, folder, keep=1)
    assert [path.name for path in made.removed] == [day(1)]
    assert set(before) - set(names(folder)) == {day(1)}
    assert backups._verified(made.path)


def test_a_backup_that_fails_removes_nothing(database, folder, monkeypatch):
    rotation.write(database, folder, keep=1)
    monkeypatch.setattr(backups, "_dump", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rotation.write(database, folder, keep=1)
    assert names(folder) == [day(1)]


def test_a_clock_that_went_back_does_not_remove_the_new_backup(database, folder):
    late = folder / "pairseek-20990101T030000Z.backup.gz"
    backups.write(database, late)
    made = rotation.write(database, folder, keep=1)
    assert names(folder) == [made.path.name]


def test_a_path_that_is_no_folder_is_refused(database, tmp_path):
    with pytest.raises(InvalidFile, match="is not a folder: with --keep, give the folder"):
        rotation.write(database, tmp_path / "none", keep=7)


def test_an_older_backup_that_cannot_be_removed_is_named(database, folder, monkeypatch):
    rotation.write(database, folder, keep=1)

    def refuse(*_, **__):
        raise PermissionError("not yours")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(InvalidFile, match=r"is complete, but the older backup .* cannot be removed: not yours"):
        rotation.write(database, folder, keep=1)
    assert len(names(folder)) == 2
