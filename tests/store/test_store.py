"""What the store promises, on SQLite and on PostgreSQL alike."""

import base64
import contextlib
import gzip
import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from pairseek.errors import InvalidFile, InvalidParameter, StoreOutdated, StoreUnavailable
from pairseek.store import backups, deletion, events, media, migrate, parts, people, sessions, studies
from pairseek.store.database import Database, now
from pairseek.store.events import AskedPair, EventRow
from pairseek.store.schema import metadata
from pairseek.testing import StoreContract

PARTS = {"model": 3, "prior": {"name": "gaussian", "mean": [0.1 + 0.2, 1e-300]}}


@pytest.fixture
def database(database_url):
    made = Database(database_url)
    migrate.prepare(made)
    yield made
    made.close()


def add_session(connection):
    number = studies.add(connection, "which", {"title": "t"}, b"items", size=(2, 1), is_open=True, who="me")
    key = parts.add(connection, PARTS)
    values = {"id": "s", "study_id": number, "kind": "person", "token_hash": "h", "seed": 2**62 + 1}
    sessions.add(connection, values | {"participant": "ann", "parts": key})


@pytest.fixture
def session(database):
    """A study with one session, ``s``."""
    database.write(add_session)
    return "s"


class TestStore(StoreContract):
    @pytest.fixture(params=["sqlite", "postgresql"])
    def database_url(self, request, tmp_path):
        if request.param == "sqlite":
            return f"sqlite:///{tmp_path / 'store.db'}"
        return request.getfixturevalue("cluster").database()


def an_answer(number, query, outcome="left"):
    return EventRow("s", number, query, "answer", outcome, 700, None, None, 1, now(), 1.5)


def test_the_migrations_make_the_tables_that_the_program_knows(database):
    difference = database.read(lambda c: compare_metadata(MigrationContext.configure(c), metadata))
    assert difference == []
    assert migrate.current_version(database) == migrate.newest_version()
    migrate.prepare(database)


def test_a_database_of_version_0004_is_upgraded_with_its_data(database_url):
    made = Database(database_url)
    config = migrate._config()
    with made.transaction() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0004")
    old = [
        "INSERT INTO users (id, name, password, created_at) VALUES (1, 'admin', 'x', '2026'), (2, 'ann', 'x', '2026')",
        "INSERT INTO studies (id, slug, configuration, items, is_open, created_at, created_by) "
        "VALUES (1, 'open', '{}', 'x', TRUE, '2026', 'ann'), (2, 'shut', '{}', 'x', FALSE, '2026', 'ann')",
        "INSERT INTO tokens (id, name, token_hash, scopes, user_name, created_at) "
        "VALUES (1, 't', 'h', '[]', 'ann', '2026')",
        "INSERT INTO parts (key, content) VALUES ('k', '{}')",
        "INSERT INTO populations (study_id, version, content, created_at, created_by) "
        "VALUES (1, 1, 'x', '2026-02', 'ann')",
        *(
            "INSERT INTO sessions (id, study_id, kind, token_hash, seed, created_at, version, parts) "
            f"VALUES ('{name}', 1, '{kind}', '{name}', 1, '{time}', 1, 'k')"
            for name, kind, time in (
                ("a", "person", "2026-01"),
                ("b", "person", "2026-03"),
                ("c", "simulated", "2026-01"),
            )
        ),
    ]
    made.write(lambda c: [c.execute(sa.text(line)) for line in old])
    assert migrate.upgrade(made) == migrate.newest_version()
    assert [(row["name"], row["is_admin"]) for row in made.read(people.all_users)] == [("admin", True), ("ann", False)]
    assert made.read(people.list_tokens)[0]["expires_at"] > now()
    assert [row.closed_at is None for row in made.read(studies.all_studies)] == [False, True]
    # The sessions that an older population was learned from are unknown: every session that had begun counts.
    assert made.read(lambda c: deletion.populations_learned_from(c, ["a", "b", "c"])) == [(1, 1)]
    assert made.read(lambda c: deletion.populations_learned_from(c, ["b", "c"])) == []
    made.close()


def test_an_older_database_is_refused_with_its_version_and_what_to_do(database, session):
    """Versions 0001 to 0003 have no parts of their sessions, and nothing could say what these were."""
    database.write(lambda c: events.add_event(c, an_answer(0, "p1"), version=0))
    database.write(lambda c: c.execute(sa.text("UPDATE alembic_version SET version_num = '0003'")))
    for refuse in (migrate.prepare, migrate.upgrade):
        with pytest.raises(StoreOutdated) as refused:
            refuse(database)
        assert str(refused.value) == (
            f"the database has tables of version 0003, but this pairseek needs {migrate.newest_version()}: tables "
            "before version 0004 cannot be upgraded; with the pairseek that wrote it, export its studies (pairseek "
            "export), then create a new database"
        )
    # Nothing was changed.
    assert migrate.current_version(database) == "0003"
    assert [event.query for event in database.read(lambda c: events.events_of(c, ["s"]))] == ["p1"]


def test_a_newer_database_and_one_of_another_program_are_refused(database):
    database.write(lambda c: c.execute(sa.text("UPDATE alembic_version SET version_num = '0999'")))
    with pytest.raises(StoreOutdated):
        migrate.prepare(database)
    with pytest.raises(StoreOutdated):
        database.write(lambda _: None)
    with database.transaction() as connection:
        connection.execute(sa.text("DROP TABLE alembic_version"))
    for refuse in (migrate.prepare, migrate.upgrade):
        with pytest.raises(StoreOutdated):
            refuse(database)


def test_a_backup_of_an_older_database_is_refused(database_url, tmp_path):
    path = tmp_path / "old.gz"
    with gzip.open(path, "wt") as lines:
        lines.write(json.dumps({"format": backups.FORMAT, "version": "0002"}) + "\n" + json.dumps({"rows": 0}) + "\n")
    empty = Database(database_url)
    with pytest.raises(InvalidFile):
        backups.read(empty, path)
    assert migrate.current_version(empty) is None
    empty.close()


@pytest.mark.parametrize("version", ["0004", "0010"])
def test_a_backup_of_tables_that_can_be_upgraded_is_restored_and_upgraded(database_url, tmp_path, version):
    row = {"id": 3, "slug": "old", "configuration": {"title": "t"}, "items": base64.b64encode(b"items").decode()}
    row |= {"is_open": True, "created_at": "2026", "created_by": "ann"}
    rows = [{"table": "studies", "row": row}, {"table": "parts", "row": {"key": "k", "content": PARTS}}]
    row = {"id": "s", "study_id": 3, "kind": "person", "token_hash": "h", "seed": 2**62 + 1, "created_at": "2026"}
    row |= {"version": 0, "parts": "k", "truth": None, "final": None}
    rows.append({"table": "sessions", "row": row})
    head = {"format": backups.FORMAT, "version": version}
    path = tmp_path / "old.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, [head, *rows, {"rows": 3}])).encode()))
    with contextlib.closing(Database(database_url)) as new:
        assert backups.read(new, path) == 3
        migrate.prepare(new)
        assert new.read(lambda c: compare_metadata(MigrationContext.configure(c), metadata)) == []
        assert new.read(lambda c: studies.with_items(c, 3))[1] == b"items"
        row = new.read(lambda c: sessions.by_id(c, "s"))
        assert (row.seed, row.final, row.truth) == (2**62 + 1, None, None)
        empty = sa.text("SELECT count(*) FROM sessions WHERE final IS NULL AND truth IS NULL")
        assert new.read(lambda c: c.execute(empty).scalar()) == 1
        assert new.write(lambda c: studies.add(c, "new", {}, b"", size=(0, 0), is_open=True, who="me")) == 4


def test_a_session_needs_parts(database, session):
    values = {"id": "t", "study_id": 1, "kind": "person", "token_hash": "g", "seed": 1}
    for missing in ({}, {"parts": "none"}):
        with pytest.raises(sa.exc.IntegrityError):
            database.write(lambda c, more=missing: sessions.add(c, values | more))


def test_a_study_is_read_as_it_was_written(database, session):
    row = database.read(lambda c: studies.by_slug(c, "which"))
    assert (row.slug, row.configuration, row.is_open, row.created_by) == ("which", {"title": "t"}, True, "me")
    assert database.read(lambda c: studies.with_items(c, row.id))[1] == b"items"
    database.write(lambda c: studies.set_open(c, row.id, is_open=False))
    assert not database.read(lambda c: studies.by_id(c, row.id)).is_open
    assert not database.read(lambda c: sessions.by_id(c, session)).is_open
    with pytest.raises(sa.exc.IntegrityError):
        database.write(lambda c: studies.add(c, "which", {}, b"", size=(0, 0), is_open=True, who="me"))


def test_a_session_is_found_by_token_by_person_and_by_id(database, session):
    rows = [
        database.read(lambda c: sessions.by_token(c, "h")),
        database.read(lambda c: sessions.by_id(c, "s")),
        database.read(lambda c: sessions.of_person(c, 1, {"participant": "ann"})),
    ]
    assert {row.id for row in rows} == {"s"}
    assert rows[0].seed == 2**62 + 1
    assert database.read(lambda c: sessions.of_person(c, 1, {"participant": None})) is None
    assert database.read(lambda c: sessions.of_person(c, 1, {"participant": "bob"})) is None


def test_marks_are_added_and_move_the_version(database, session):
    database.write(lambda c: sessions.mark(c, "s", "p1", "void", "asleep", "ann"))
    database.write(lambda c: sessions.mark(c, "s", "p1", "restore", "awake", "bob"))
    marks = database.read(lambda c: sessions.marks_of(c, ["s"]))
    assert [(m["action"], m["reason"], m["who"]) for m in marks] == [
        ("void", "asleep", "ann"),
        ("restore", "awake", "bob"),
    ]
    assert database.read(lambda c: sessions.by_id(c, "s")).version == 2


def test_only_old_previews_are_forgotten(database, session):
    number = database.read(lambda c: sessions.by_id(c, "s")).study_id
    values = {"id": "preview", "study_id": number, "kind": "preview", "token_hash": "g", "seed": 1}
    database.write(lambda c: sessions.add(c, values | {"parts": parts.add(c, PARTS)}))
    query = AskedPair("preview", "p1", 0, "strategy", "a", "b", now(), {})
    database.write(lambda c: events.add_pair(c, query))
    database.write(lambda c: sessions.delete_previews(c, "2000"))
    assert database.read(lambda c: sessions.by_id(c, "preview")) is not None
    database.write(lambda c: sessions.delete_previews(c, "9999"))
    assert database.read(lambda c: sessions.by_id(c, "preview")) is None
    assert database.read(lambda c: sessions.by_id(c, "s")) is not None


def test_pictures_are_listed_by_size(database, session):
    number = database.read(lambda c: sessions.by_id(c, "s")).study_id
    for width in (800, 400):
        picture = media.StoredPicture(number, "cat", width, width // 2, "image/webp", b"x" * width)
        database.write(lambda c, p=picture: media.add(c, p))
    assert database.read(lambda c: media.sizes(c, number)) == {"cat": [(400, 200), (800, 400)]}
    assert database.read(lambda c: media.picture(c, number, "cat", 400)).content == b"x" * 400
    assert database.read(lambda c: media.picture(c, number, "cat", 401)) is None


def test_users_sign_in_and_out_and_a_new_password_ends_all_sign_ins(database):
    database.write(lambda c: people.set_password(c, "ann", "hash"))
    user = database.read(lambda c: people.user(c, "ann"))
    database.write(lambda c: people.add_login(c, "t", user["id"], "9999"))
    assert database.read(lambda c: people.user_of_login(c, "t")) == ("ann", True)
    database.write(lambda c: people.set_password(c, "ann", "other"))
    assert database.read(lambda c: people.user_of_login(c, "t")) is None
    database.write(lambda c: people.add_login(c, "old", user["id"], "2000"))
    assert database.read(lambda c: people.user_of_login(c, "old")) is None


def test_a_token_is_revoked_once_and_stays_on_record(database):
    owner = {"study_id": None, "who": "ann", "expires_at": "9999"}
    database.write(lambda c: people.add_token(c, "robot", "hash", ["read"], **owner))
    token = database.read(lambda c: people.token(c, "hash"))
    assert database.write(lambda c: people.revoke(c, token["id"]))
    assert not database.write(lambda c: people.revoke(c, token["id"]))
    listed = database.read(people.list_tokens)
    assert listed[0]["revoked_at"] is not None
    assert "token_hash" not in listed[0]


def test_all_workers_share_one_secret(database):
    assert database.write(lambda c: people.secret(c, "first")) == "first"
    assert database.write(lambda c: people.secret(c, "second")) == "first"


def test_workers_that_start_at_once_share_one_secret(database):
    with ThreadPoolExecutor(6) as pool:
        secrets = set(pool.map(lambda k: database.write(lambda c: people.secret(c, f"of {k}")), range(24)))
    assert len(secrets) == 1


def test_an_error_does_not_say_what_was_stored(database, session):
    with pytest.raises(sa.exc.IntegrityError) as refused:
        database.write(lambda c: sessions.mark(c, "nobody", None, "void", "zaphod said so", "ann"))
    assert "zaphod" not in str(refused.value)


def test_what_another_process_commits_is_seen(database, session):
    script = (
        "import sys; from pairseek.store.database import Database, now; from pairseek.store import events;"
        "d = Database(sys.argv[1]);"
        "e = events.EventRow('s', 0, 'p1', 'answer', 'left', None, None, None, None, now(), None);"
        "d.write(lambda c: events.add_event(c, e, version=0)); d.close()"
    )
    url = database.url.render_as_string(hide_password=False)
    subprocess.run([sys.executable, "-c", script, url], check=True, env=os.environ)
    assert len(database.read(lambda c: events.events_of(c, ["s"]))) == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://a/b", "'mysql' is not supported: use"),
        ("sqlite://", "needs a file"),
        (":::://", "is not valid: give a path"),
    ],
)
def test_an_address_that_is_no_database_is_refused(url, words):
    with pytest.raises(InvalidParameter, match=words):
        Database(url)


def test_a_database_without_an_encoding_is_refused(cluster):
    """Made by createdb in a cluster that was set up with the locale C."""
    url = cluster.database("--encoding", "SQL_ASCII", "--template", "template0", "--locale", "C")
    database = Database(url)
    with pytest.raises(InvalidParameter, match=r"SQL_ASCII.*createdb --encoding UTF8"):
        migrate.prepare(database)
    database.close()


def test_a_file_that_is_no_database_is_named_as_such(tmp_path):
    (tmp_path / "x.db").write_bytes(b"not a database at all" * 100)
    database = Database(str(tmp_path / "x.db"))
    with pytest.raises(StoreUnavailable) as caught:
        migrate.prepare(database)
    assert caught.value.summary == "the file is not a database"
    database.close()


def test_a_number_that_no_column_holds_is_refused(database):
    with pytest.raises(InvalidParameter):
        database.write(lambda c: people.revoke(c, 10**20))


def test_only_the_owner_reads_the_file_of_a_new_database(tmp_path):
    old = os.umask(0o022)
    try:
        made = Database(str(tmp_path / "new.db"))
        migrate.prepare(made)
        made.write(lambda c: studies.log_action(c, "me", "test"))
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        made.close()
    finally:
        os.umask(old)
    assert modes == {f"new.db{ending}": 0o600 for ending in ("", "-wal", "-shm", "-turns.lock")}
    # The mode that somebody gave a file on purpose stays.
    (tmp_path / "new.db").chmod(0o640)
    again = Database(str(tmp_path / "new.db"))
    again.write(lambda c: studies.log_action(c, "me", "test"))
    again.close()
    assert (tmp_path / "new.db").stat().st_mode & 0o777 == 0o640


@pytest.fixture
def lines(tmp_path):
    """The lines of a backup with a study and a session."""
    (tmp_path / "source").mkdir()
    with contextlib.closing(Database(str(tmp_path / "source" / "s.db"))) as made:
        migrate.prepare(made)
        made.write(add_session)
        backups.write(made, tmp_path / "good.gz")
    return gzip.decompress((tmp_path / "good.gz").read_bytes()).decode().splitlines()


def empty_database(kind, cluster, tmp_path):
    return f"sqlite:///{tmp_path / 'empty.db'}" if kind == "sqlite" else cluster.database()


def spoiled(lines, change):
    """The lines with other values in the row of the session."""
    out = []
    for line in lines:
        record = json.loads(line)
        if record.get("table") == "sessions":
            change(record)
        out.append(json.dumps(record))
    return out


CHANGES = {
    "a column that is not there": lambda record: record["row"].update(more=1),
    "a table that is not there": lambda record: record.update(table="nobody"),
    "a study that is not there": lambda record: record["row"].update(study_id=99),
    "no row": lambda record: record.pop("row"),
    "a row that is a list": lambda record: record.update(row=[]),
    "no seed": lambda record: record["row"].update(seed=None),
    "a seed that is a list": lambda record: record["row"].update(seed=[1]),
}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_restore_that_fails_leaves_nothing_and_the_next_one_works(lines, tmp_path, cluster, kind, change):
    url, bad = empty_database(kind, cluster, tmp_path), tmp_path / "bad.gz"
    bad.write_bytes(gzip.compress("\n".join(spoiled(lines, change)).encode()))
    with contextlib.closing(Database(url)) as target, pytest.raises(InvalidFile):
        backups.read(target, bad)
    assert not list(tmp_path.glob("empty.db*"))
    with contextlib.closing(Database(url)) as target:
        assert target.read(lambda c: sa.inspect(c).get_table_names()) == []
        assert backups.read(target, tmp_path / "good.gz") > 0
        assert target.read(lambda c: sessions.by_id(c, "s")).participant == "ann"


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "5",
        "null\n5",
        "{",
        "[" * 100_000,
        '{"format": "pairseek backup"}',
        '{"format": "pairseek backup", "version": []}',
    ],
)
def test_a_file_that_is_no_backup_is_refused(tmp_path, text):
    (tmp_path / "no.gz").write_bytes(gzip.compress(text.encode()))
    target = Database(str(tmp_path / "empty.db"))
    with pytest.raises(InvalidFile):
        backups.read(target, tmp_path / "no.gz")
    target.close()
    assert not (tmp_path / "empty.db").exists()


def test_a_backup_that_was_killed_leaves_nothing_behind(lines, tmp_path):
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from pairseek.store import backups\n"
        "from pairseek.store.database import Database\n"
        "dump = backups._dump\n"
        "def killed(*args):\n    dump(*args)\n    os.kill(os.getpid(), 9)\n"
        "backups._dump = killed\n"
        "backups.write(Database(sys.argv[1]), Path(sys.argv[2]))\n"
    )
    folder = tmp_path / "nightly"
    folder.mkdir()
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "source/s.db", folder / "b.gz"], check=False)
    assert done.returncode == -9
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("can", ["nameless", "named"])
def test_a_backup_is_private_and_replaces_nothing(lines, tmp_path, monkeypatch, can):
    if can == "named":
        # As on systems and file systems that have no files without a name.
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    folder = tmp_path / "nightly"
    folder.mkdir()
    with contextlib.closing(Database(str(tmp_path / "source/s.db"))) as source:
        backups.write(source, folder / "b.gz")
        assert (folder / "b.gz").stat().st_mode & 0o777 == 0o600
        with pytest.raises(InvalidFile):
            backups.write(source, folder / "b.gz")
        monkeypatch.setattr(backups, "_dump", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            backups.write(source, folder / "c.gz")
    assert [path.name for path in folder.iterdir()] == ["b.gz"]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("kind", "x" * 17, "it has 17 characters, and at most 16 can be stored"),
        ("name", "a\0b", "it contains the character NUL"),
        ("name", "\ud800", "it contains a lone surrogate"),
        ("name", "p" * 65, "it has 65 characters, and at most 64 can be stored"),
        ("position", 2**31, "it is larger than 2,147,483,647"),
    ],
)
def test_both_databases_refuse_what_one_of_them_cannot_store(database, session, column, value, words):
    pair = AskedPair("s", "p1", 0, "strategy", "a", "b", now(), {})
    with pytest.raises(InvalidParameter, match=f"the value of '{column}' for the table 'queries' cannot .*: {words}"):
        database.write(lambda c: events.add_pair(c, replace(pair, **{column: value})))
    database.write(lambda c: events.add_pair(c, replace(pair, left="\N{ROBOT FACE}" * 200, right="\x01\n")))


def test_ids_of_an_earlier_version_go_on_in_sqlite_and_are_named_where_they_do_not_fit(tmp_path, cluster):
    """SQLite once took ids of any length; such a study goes on, and its backup fits another SQLite database."""
    pair = AskedPair("s", "p1", 0, "strategy", "x" * 201, "a\0b", now(), {})
    with contextlib.closing(Database(str(tmp_path / "old.db"))) as source:
        migrate.prepare(source)
        source.write(add_session)
        source.write(lambda c: events.add_pair(c, pair))
        backups.write(source, tmp_path / "old.gz")
    with contextlib.closing(Database(str(tmp_path / "new.db"))) as target:
        backups.read(target, tmp_path / "old.gz")
        assert target.read(lambda c: events.queries_of(c, ["s"])) == [pair]
        with pytest.raises(InvalidParameter):
            target.write(lambda c: events.add_pair(c, replace(pair, name="n" * 65)))
    with contextlib.closing(Database(cluster.database())) as target:
        with pytest.raises(InvalidFile):
            backups.read(target, tmp_path / "old.gz")
        assert target.read(lambda c: sa.inspect(c).get_table_names()) == []


def test_a_backup_of_sqlite_restores_into_postgresql_with_the_oddest_ids(tmp_path, cluster):
    with contextlib.closing(Database(str(tmp_path / "odd.db"))) as source:
        migrate.prepare(source)
        source.write(add_session)
        pair = AskedPair("s", "p1", 0, "strategy", "\N{ROBOT FACE}" * 200, "\x01\n'\\", now(), {"text": "\0\ud800"})
        source.write(lambda c: events.add_pair(c, pair))
        backups.write(source, tmp_path / "odd.gz")
    with contextlib.closing(Database(cluster.database())) as target:
        backups.read(target, tmp_path / "odd.gz")
        assert target.read(lambda c: events.queries_of(c, ["s"])) == [pair]


def test_a_restore_that_was_killed_does_not_block_the_next(lines, tmp_path):
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from pairseek.store import backups\n"
        "from pairseek.store.database import Database\n"
        "fill = backups._fill\n"
        "def killed(*args):\n    fill(*args)\n    os.kill(os.getpid(), 9)\n"
        "backups._fill = killed\n"
        "backups.read(Database(sys.argv[1]), Path(sys.argv[2]))\n"
    )
    path = tmp_path / "killed.db"
    done = subprocess.run([sys.executable, "-c", script, path, tmp_path / "good.gz"], check=False)
    assert done.returncode == -9
    target = Database(str(path))
    assert backups.read(target, tmp_path / "good.gz") > 0
    target.close()


def test_a_file_that_is_damaged_while_it_is_open_is_named(tmp_path):
    path = tmp_path / "s.db"
    made = Database(str(path))
    migrate.prepare(made)
    assert made.scrub()
    # Another connection changes the file, so that the first one reads its header again.
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE more (x)")
        other.commit()
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.write(b"x" * 96)
    with pytest.raises(StoreUnavailable) as caught:
        made.write(lambda _: None)
    assert caught.value.summary == "the file is not a database"
    made.close()


def test_a_writer_has_the_file_from_the_beginning_and_a_reader_hinders_nobody(tmp_path):
    made = Database(str(tmp_path / "s.db"))
    migrate.prepare(made)
    with contextlib.closing(sqlite3.connect(tmp_path / "s.db", timeout=0, isolation_level=None)) as other:
        with made.transaction(), pytest.raises(sqlite3.OperationalError):
            other.execute("BEGIN IMMEDIATE")
        with made.transaction(writes=False):
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
    with contextlib.suppress(KeyError), made.transaction() as connection:
        connection.execute(sa.text("CREATE TABLE half (x INTEGER)"))
        raise KeyError
    assert "half" not in made.read(lambda c: sa.inspect(c).get_table_names())
    made.close()
