"""The service's commands: study, export, replay, backup, db, user."""

import csv
import gzip
import json
import zipfile

import numpy as np
import pytest
import sqlalchemy as sa

from helpers.serving import some_items
from pairseek import cli
from pairseek.cli.database import place_of
from pairseek.store import events, migrate, sessions
from pairseek.store.database import Database
from pairseek.web.results import bundle, tables
from pairseek.web.sessions import simulated as simulating
from pairseek.web.sessions.prefetch import Gate
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.catalogue import Catalogue

YAML = """
title: Wine
items: wines.csv
answers: 5
seed: 3
repeated: 0.3
offer: {tie: true}
"""


def run(capsys, *arguments):
    """Run a command, and return exit code, output and errors."""
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return ended.value.code, captured.out, captured.err


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    some_items(30).to_csv("wines.csv")
    (tmp_path / "wine.yaml").write_text(YAML)
    return tmp_path


def filled(url, people=3):
    """Let simulated people answer the study wine."""
    database = Database(url)
    sessions = Sessions(database, Catalogue(database))
    study = sessions.catalogue.by_slug("wine")
    simulating.simulate_sessions(sessions, Gate(), study, people, np.random.default_rng(1))
    database.close()


def test_from_a_file_to_a_bundle_and_back(folder, capsys):
    code, out, _ = run(capsys, "study", "create", "wine.yaml", "--database", "w.db")
    assert (code, "Created the study wine with 30 items, open." in out) == (0, True)
    filled("w.db")
    assert run(capsys, "study", "list", "--database", "w.db")[1] == "wine\topen\tWine\n"
    assert run(capsys, "export", "wine", "--database", "w.db")[1] == "Wrote wine.zip\n"
    with zipfile.ZipFile("wine.zip") as archive:
        codebook = list(csv.DictReader(archive.read("codebook.csv").decode().splitlines()))
        for table in tables.TABLES:
            header = archive.read(f"{table}.csv").decode().splitlines()[0].split(",")
            assert [row["column"] for row in codebook if row["table"] == table] == header
        assert json.loads(archive.read("study.json"))["versions"]["numpy"] == np.__version__
    code, out, _ = run(capsys, "replay", "wine.zip", "--out", "r.csv")
    assert code == 0
    assert "3 sessions with answers, recomputed with the same versions and processor" in out
    assert "identical to the bit" in out
    assert len((folder / "r.csv").read_text().splitlines()) == 4


def test_a_bundle_replays_with_another_strategy(folder, capsys):
    run(capsys, "study", "create", "wine.yaml", "--database", "w.db")
    filled("w.db", 2)
    run(capsys, "export", "wine", "--database", "w.db", "--out", "b.zip")
    code, out, _ = run(capsys, "replay", "b.zip", "--strategy", "random", "--out", "other.csv")
    assert code == 0
    assert "10 answers from 2 sessions, replayed with random" in out
    rows = list(csv.DictReader((folder / "other.csv").read_text().splitlines()))
    assert len(rows) == 10
    # What was asked to learn most was expected to tell more than a random pair would have.
    asked = [row for row in rows if row["kind"] == "strategy"]
    mean = [np.mean([float(row[name]) for row in asked]) for name in ("information", "would_tell")]
    assert mean[0] > mean[1]
    assert "unknown strategy 'guess'" in run(capsys, "replay", "b.zip", "--strategy", "guess")[2]
    code, _, err = run(capsys, "replay", "b.zip", "--strategy", "gausscloud")
    assert code == 2
    assert "the strategy 'gausscloud' needs settings" in err


def test_a_replay_reports_different_estimates(folder, capsys):
    run(capsys, "study", "create", "wine.yaml", "--database", "w.db")
    filled("w.db", 1)
    run(capsys, "export", "wine", "--database", "w.db")
    read = bundle.read(folder / "wine.zip")
    with zipfile.ZipFile("wine.zip") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    session = read.sessions[0]
    session["estimate"]["mean"][0] += session["estimate"]["radius"]
    with zipfile.ZipFile("changed.zip", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, json.dumps(session) + "\n" if name == "sessions.jsonl" else content)
    code, out, _ = run(capsys, "replay", "changed.zip")
    assert code == 1
    assert "differ by up to 1 of their radius; the tolerance is 0.1" in out
    (folder / "bad.zip").write_bytes(b"nonsense")
    assert "cannot be read as a bundle" in run(capsys, "replay", "bad.zip")[2]


def test_the_place_of_a_database_names_no_password():
    database = Database("postgresql://ann:secret@db/studies?password=secret&sslpassword=secret&connect_timeout=3")
    assert place_of(database) == (
        "postgresql+psycopg://ann:***@db/studies?connect_timeout=3&password=hidden&sslpassword=hidden"
    )


def test_a_single_table_can_be_exported(folder, capsys):
    run(capsys, "study", "create", "wine.yaml", "--database", "w.db")
    filled("w.db", 1)
    run(capsys, "export", "wine", "--table", "answers", "--database", "w.db")
    rows = list(csv.DictReader((folder / "wine-answers.csv").read_text().splitlines()))
    assert [int(row["answer_index"]) for row in rows] == [1, 2, 3, 4, 5]
    for row in rows:
        assert {row["winner"], row["loser"]} == {row["left"], row["right"]}
    run(capsys, "export", "wine", "--table", "estimates", "--out", "e.parquet", "--database", "w.db")
    import pyarrow.parquet as pq

    assert pq.read_table("e.parquet").num_rows == 1
    run(capsys, "export", "wine", "--database", "w.db")
    for name in ("wine-answers.csv", "e.parquet", "wine.zip"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
    assert "there is no table 'x'" in run(capsys, "export", "wine", "--table", "x", "--database", "w.db")[2]
    assert "there is no study 'beer'" in run(capsys, "export", "beer", "--database", "w.db")[2]


def test_a_backup_is_restored_into_either_kind_of_database(folder, capsys, database_url):
    run(capsys, "study", "create", "wine.yaml", "--database", "w.db")
    filled("w.db", 2)
    code, out, _ = run(capsys, "backup", "all.gz", "--database", "w.db")
    assert code == 0
    assert "Wrote" in out
    assert "already exists" in run(capsys, "backup", "all.gz", "--database", "w.db")[2]
    assert run(capsys, "restore", "all.gz", "--database", database_url)[0] == 0
    old, new = Database("w.db"), Database(database_url)
    assert migrate.current_version(new) == migrate.newest_version()
    for read in (
        lambda c: sessions.of_study(c, 1, ["simulated"]),
        lambda c: events.events_of(c, [row.id for row in sessions.of_study(c, 1, ["simulated"])]),
        lambda c: events.queries_of(c, [row.id for row in sessions.of_study(c, 1, ["simulated"])]),
    ):
        assert old.read(read) == new.read(read)
        assert old.read(read)
    # The restored database continues the numbering of rows.
    new.write(lambda c: sessions.mark(c, sessions.of_study(c, 1, ["simulated"])[0].id, None, "void", "x", "y"))
    old.close()
    new.close()
    assert "is not empty" in run(capsys, "restore", "all.gz", "--database", database_url)[2]


def test_a_truncated_backup_restores_nothing(folder, capsys):
    run(capsys, "study", "create", "wine.yaml", "--database", "w.db")
    run(capsys, "backup", "all.gz", "--database", "w.db")
    content = (folder / "all.gz").read_bytes()
    (folder / "cut.gz").write_bytes(content[: len(content) // 2])
    assert "damaged or truncated" in run(capsys, "restore", "cut.gz", "--database", "new.db")[2]
    assert run(capsys, "restore", "all.gz", "--database", "new.db")[0] == 0


def test_tables_are_upgraded_and_users_added(folder, capsys):
    assert "The tables have version" in run(capsys, "db", "upgrade", "--database", "n.db")[1]
    assert f"needed {migrate.newest_version()}" in run(capsys, "db", "version", "--database", "n.db")[1]
    assert "ann can sign in with the password" in run(capsys, "user", "add", "ann", "--database", "n.db")[1]
    assert run(capsys, "user", "list", "--database", "n.db")[1] == "ann\tadministrator\n"
    assert "there is no study 'x'" in run(capsys, "study", "close", "x", "--database", "n.db")[2]


def test_an_older_database_and_backup_are_refused_in_one_line(folder, capsys):
    newest = migrate.newest_version()
    run(capsys, "study", "create", "wine.yaml", "--database", "w.db")
    run(capsys, "backup", "all.gz", "--database", "w.db")
    database = Database("w.db")
    database.write(lambda c: c.execute(sa.text("UPDATE alembic_version SET version_num = '0003'")))
    database.close()
    commands = [("db", "upgrade"), ("export", "wine"), ("study", "list"), ("backup", "b.gz"), ("serve", "--port", "0")]
    for command in commands:
        code, _, err = run(capsys, *command, "--database", "w.db")
        assert code != 0, command
        message = " ".join(err.split())
        refusal = f"tables of version 0003, but this pairseek needs {newest}: tables before version 0004 cannot"
        assert refusal in message, command
        assert "export its studies (pairseek export), then create a new database" in message
        assert "Traceback" not in err
    assert run(capsys, "db", "version", "--database", "w.db")[1] == f"tables 0003, needed {newest}\n"
    content = gzip.decompress((folder / "all.gz").read_bytes())
    older = content.replace(f'"version": "{newest}"'.encode(), b'"version": "0003"')
    (folder / "old.gz").write_bytes(gzip.compress(older))
    code, _, err = run(capsys, "restore", "old.gz", "--database", "new.db")
    assert code != 0
    assert f"has tables of version 0003, but this pairseek needs {newest}" in err
    assert "restore it with the pairseek that wrote it and export its studies" in " ".join(err.split())


@pytest.mark.parametrize(
    "command", [("export", "wine"), ("population", "fit", "wine"), ("backup", "all.gz"), ("study", "close", "wine")]
)
def test_a_missing_database_is_not_created(folder, capsys, command):
    status, _, err = run(capsys, *command, "--database", "typo.db")
    assert status != 0
    assert "there is no database typo.db: give another with --database" in " ".join(err.split())
    assert not (folder / "typo.db").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title: [", "line 1"),
        ("title: Wine\n", "names no items"),
        ("title: Wine\nitems: none.csv\n", "there is no file"),
        ("title: Wine\nitems: wines.csv\nopen: maybe\n", "'open' is 'maybe'"),
        ("title: Wine\nitems: wines.csv\nprior: {name: uniform_box, low: 3, high: 1}\n", "is empty"),
        ("title: Wine\nitems: wines.csv\nanswer: 3\n", "there is no setting 'answer' (did you mean 'answers'?)"),
        ("- a\n- b\n", "names no items"),
        ("title: &a Wine\nitems: wines.csv\nquestion: *a\n", "contains aliases"),
    ],
)
def test_a_wrong_study_file_is_refused_with_the_reason(folder, capsys, text, words):
    (folder / "bad.yaml").write_text(text)
    code, _, err = run(capsys, "study", "create", "bad.yaml", "--database", "w.db")
    assert code == 2
    assert words in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("serve", "--port", "99999"), "a port is a number from 0 to 65535; give another --host or --port"),
        (("serve", "--port", "many"), "see pairseek serve --help"),
        (("study", "add"), "see pairseek study add --help"),
        (("study", "list"), "there is no database"),
        (("study", "create", "none.yaml"), "there is no file none.yaml"),
        (("study", "create", "wines.csv"), "write a YAML file with title: ... and items: wines.csv, and give that"),
        (("study", "create", "."), "contains items and is not a study file"),
    ],
)
def test_a_wrong_command_line_prints_one_line_with_a_remedy(folder, capsys, arguments, words):
    code, _, err = run(capsys, *arguments, *([] if arguments == ("study", "add") else ["--database", "fresh.db"]))
    assert code == 2
    assert words in err
    assert "Input should" not in err
    assert len(err.splitlines()) == 1
    assert arguments[0] == "serve" or not (folder / "fresh.db").exists()


def test_a_backup_into_a_missing_folder_is_refused(folder, capsys):
    assert run(capsys, "user", "add", "ann", "--database", "w.db")[0] == 0
    code, _, err = run(capsys, "backup", "nowhere/b.gz", "--database", "w.db")
    assert (code, err) == (2, "pairseek: cannot write nowhere/b.gz: there is no folder 'nowhere'; create it first\n")


class TestTheDatabaseNote:
    def test_a_new_database_is_noted_and_an_existing_one_is_named(self, folder, capsys):
        code, out, err = run(capsys, "study", "create", "wine.yaml")
        assert (code, f"Database: {folder / 'pairseek.db'}" in out) == (0, True)
        assert err == (
            f"Note: created the database {folder / 'pairseek.db'}, which did not exist. A server started in another "
            f"folder uses another database; to use that one, give --database or set PAIRSEEK_DATABASE.\n"
        )
        (folder / "other.yaml").write_text(YAML.replace("title: Wine", "title: Other"))
        code, out, err = run(capsys, "study", "create", "other.yaml")
        assert (code, f"Database: {folder / 'pairseek.db'}" in out, err) == (0, True, "")

    def test_the_note_is_shorter_if_the_option_names_the_database(self, folder, capsys):
        _, _, err = run(capsys, "user", "add", "ann", "--database", "w.db")
        assert err == f"Note: created the database {folder / 'w.db'}, which did not exist.\n"

    @pytest.mark.parametrize(
        "arguments", [("user", "list"), ("db", "version"), ("study", "list"), ("study", "create", "bad.yaml")]
    )
    def test_a_command_that_only_reads_or_fails_creates_no_database(self, folder, capsys, arguments):
        (folder / "bad.yaml").write_text(YAML + "prior: {name: uniform_box, low: 3, high: 1}\n")
        code, _, err = run(capsys, *arguments)
        assert (code, err.count("\n")) == (2, 1)
        assert not (folder / "pairseek.db").exists()


class TestColumns:
    @pytest.fixture
    def priced(self, folder):
        rows = "".join(f"i{n},{n % 5}.5,{n % 3},{10 + n},fr\n" for n in range(12))
        (folder / "priced.csv").write_text("id,sweet,dry,price,country\n" + rows)
        (folder / "priced.yaml").write_text("title: Priced\nitems: priced.csv\nanswers: 3\n")
        return folder

    def test_a_study_says_which_columns_are_coordinates(self, priced, capsys):
        code, out, _ = run(capsys, "study", "create", "priced.yaml", "--database", "w.db")
        note = "Columns: coordinates: sweet, dry, price; kept as data: country; choose with the setting coordinates."
        assert (code, note in out) == (0, True)

    def test_a_study_says_so_whatever_the_columns_are_called(self, folder, capsys):
        (folder / "prices.csv").write_text("id;price1;price2\n" + "".join(f"i{n};{n};1.{n}00,5\n" for n in range(4)))
        (folder / "prices.yaml").write_text("title: Prices\nitems: prices.csv\n")
        code, out, _ = run(capsys, "study", "create", "prices.yaml", "--database", "w.db")
        assert (code, "Columns: coordinates: price1; kept as data: price2;" in out) == (0, True)

    @pytest.mark.parametrize(("chosen", "d"), [("[sweet, dry]", 2), ("[]", 0)])
    def test_the_setting_decides_and_the_rest_is_exported(self, priced, capsys, chosen, d):
        with (priced / "priced.yaml").open("a") as file:
            file.write(f"coordinates: {chosen}\n")
        code, out, _ = run(capsys, "study", "create", "priced.yaml", "--database", "w.db")
        assert (code, "Columns" in out) == (0, False)
        database = Database("w.db")
        items = Catalogue(database).by_slug("priced").items
        database.close()
        assert (items.d, items.columns, items.data["price"][1], items.data["country"][1]) == (
            d, ("sweet", "dry")[:d], "11", "fr",
        )  # fmt: skip
        run(capsys, "export", "priced", "--table", "items", "--out", "items.csv", "--database", "w.db")
        rows = list(csv.DictReader((priced / "items.csv").read_text().splitlines()))
        assert [(row["price"], row["country"], row["sweet"]) for row in rows][:2] == [
            ("10", "fr", "0.5"), ("11", "fr", "1.5"),
        ]  # fmt: skip
        run(capsys, "export", "priced", "--out", "b.zip", "--database", "w.db")
        with zipfile.ZipFile("b.zip") as archive:
            codebook = list(csv.DictReader(archive.read("codebook.csv").decode().splitlines()))
        meanings = {row["column"]: row["meaning"] for row in codebook if row["table"] == "items"}
        assert meanings["price"] == "Column of the list of items, kept unchanged; the search does not use it."
        if not d:
            (priced / "more.csv").write_text("id,price\ni99,7\n")
            assert run(capsys, "study", "add", "priced", "more.csv", "--database", "w.db")[0] == 0

    def test_data_may_have_the_name_of_a_column_of_exports(self, folder, capsys):
        rows = "".join(f"i{n},{n % 5},{n},yes,{n}\n" for n in range(6))
        (folder / "odd.csv").write_text("id,x,answers,finished,seed\n" + rows)
        (folder / "odd.yaml").write_text("title: Odd\nitems: odd.csv\nanswers: 3\ncoordinates: [x]\n")
        assert run(capsys, "study", "create", "odd.yaml", "--database", "w.db")[0] == 0
        for name in ("odd.zip", "odd.csv.parquet"):
            table = () if name.endswith("zip") else ("--table", "items")
            assert run(capsys, "export", "odd", *table, "--out", name, "--database", "w.db")[0] == 0
        with zipfile.ZipFile("odd.zip") as archive:
            header = archive.read("items.csv").decode().splitlines()[0]
        assert header == "id,label,appeal,answers_data,finished_data,seed_data,x"

    @pytest.mark.parametrize(
        "arguments",
        [
            ("check", "priced.csv", "--people", "1", "--json"),
            ("compile", "priced.csv", "--out", "quiz", "--answers", "2"),
        ],
        ids=["check", "compile"],
    )
    def test_commands_take_the_columns_too(self, priced, capsys, arguments):
        code, _, err = run(capsys, *arguments, "--coordinates", "sweet,none")
        assert (code, "has no column 'none': its columns are id, sweet, dry, price, country" in err) == (2, True)
        code, _, err = run(capsys, *arguments, "--coordinates", "sweet,dry")
        assert (code, "Columns of" in err) == (0, False), err

    @pytest.mark.parametrize(
        "name", ["check", "compile", "embed", "evaluate", "fit-noise", "plan", "population fit", "rank"]
    )
    def test_every_command_that_reads_items_has_the_option(self, capsys, name):
        assert "--coordinates" in run(capsys, *name.split(), "--help")[1]
