"""Help, examples, overview and doctor of the command line."""

from __future__ import annotations

import re
import shlex

import pytest
import typer

from helpers.languages import with_catalogues
from pairseek.cli import app as _app
from pairseek.cli import main
from pairseek.cli.examples import EXAMPLES, commands_of

COMMANDS = dict(commands_of(_app.app))


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PAIRSEEK_DATABASE", raising=False)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run


def test_without_arguments_the_command_line_shows_an_overview(command):
    code, output, _ = command()
    assert code == 0
    for line in ("pairseek demo", "pairseek serve --study wine.yaml", "pairseek reproduce figure2", "pairseek doctor"):
        assert line in output
    assert max(map(len, output.splitlines())) <= 100


def test_every_command_has_an_example():
    assert set(EXAMPLES) == set(COMMANDS), "add the command to src/pairseek/cli/examples.py"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_shows_examples_that_can_be_parsed(name, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    code, output, _ = command(*name.split(), "--help")
    assert code == 0
    assert re.search("Examples?:", output)
    parsed = typer.main.get_command(_app.app)
    for word in name.split():
        parsed = parsed.commands[word]
    for line in EXAMPLES[name]:
        assert line in output
        words = shlex.split(line)[1 + len(name.split()) :]
        # Parsing checks the options, their types and the number of arguments.
        parsed.make_context(name, words, resilient_parsing=False).close()


def test_the_doctor_lists_what_is_installed(command):
    code, output, errors = command("doctor")
    assert code == 0, output + errors
    assert "Everything that is installed works." in output
    for topic in ("pairseek", "Python", "core", "web", "frames", "kernels", "food10k", "database"):
        assert re.search(rf"^(ok|--)  {topic} ", output, re.MULTILINE), topic
    assert "pairseek serve creates it" in output


def test_the_doctor_lists_languages_and_messages_that_they_lack(command, tmp_path):
    with with_catalogues(tmp_path, {"it": {"language.name": "Italiano", "run.undo": "Annulla", "run.gone": "?"}}):
        code, output, _ = command("doctor")
        assert code == 0
        assert "de, es, fr, it" in output
        assert "it         lacks: administration.admin, " in output
        assert "it         has unknown messages: run.gone" in output
        assert "fr         lacks" not in output


def test_the_doctor_reports_an_invalid_catalogue(command, tmp_path):
    with with_catalogues(tmp_path, {"it": "{"}):
        code, output, _ = command("doctor")
    assert code == 1
    assert "it.json is not JSON" in output
    assert "1 problem: languages" in output


def test_the_doctor_fails_if_the_database_does_not_reply(command, tmp_path):
    (tmp_path / "bad.db").write_bytes(b"not a database" * 100)
    code, output, _ = command("doctor", "--database", "bad.db")
    assert code == 1
    assert re.search(r"^!!  database", output, re.MULTILINE)
    assert "1 problem: database" in output
    assert command("db", "upgrade", "--database", "good.db")[0] == 0
    code, output, _ = command("doctor", "--database", "good.db")
    assert code == 0
    assert re.search(r"^ok  database   good.db replies", output, re.MULTILINE)


def test_the_doctor_hides_passwords_and_names_folders_without_data(command, monkeypatch, tmp_path):
    monkeypatch.setenv("PAIRSEEK_DATA", str(tmp_path))
    code, output, _ = command("doctor", "--database", "postgresql://ann:secret@127.0.0.1:1/none")
    assert code == 1
    assert "secret" not in output
    assert "2 problems: food10k, database" in output


def test_the_doctor_hides_a_password_among_the_parameters_of_a_database_that_replies(command, cluster):
    code, output, _ = command("doctor", "--database", f"{cluster.database()}&password=secret")
    assert code == 1
    assert "has tables of version None" in output
    assert "secret" not in output


def test_errors_have_the_exit_code_2(command):
    code, _, errors = command("check", "missing.csv")
    assert code == 2
    assert errors.startswith("pairseek: ")
    assert command("unknown")[0] == 2
