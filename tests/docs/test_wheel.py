"""Tests of the wheel: its files, an installation, and its annotations as a user's type checker sees them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
import pairseek as ps
from pairseek.pairs.strategies.base import Utility

items = ps.Items([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
search = ps.Search(items, response=ps.Logistic(k=2.0), rng=1)
query = search.ask()
search.tell(query, winner=query.left)
strategy: Utility = ps.InfoGain()
answers: int = search.answers
wrong: str = search.answers
search = ps.Search(items, response="logistic")
"""

pytestmark = pytest.mark.slow


def run(*command, **settings):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, timeout=300, **settings
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    code, output = run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT)
    assert code == 0, output
    return next(folder.glob("pairseek-*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Install the wheel in an environment with the packages of this one, and return its interpreter."""
    folder = tmp_path_factory.mktemp("environment")
    assert run(sys.executable, "-m", "venv", "--without-pip", folder)[0] == 0
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel)
    code, output = run(*install)
    assert code == 0, output
    _, site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    # This appends to the path, so the installed pairseek comes first; .pth files in that folder are not read.
    Path(site.strip(), "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_the_wheel_has_every_file_of_the_package_and_no_tests(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "pairseek").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "pairseek/py.typed" in files
    assert files - names == set()
    assert not [name for name in names if name.startswith("tests")]


@pytest.mark.long
def test_the_installed_package_runs(python, tmp_path):
    program = PROGRAM.split("wrong")[0] + "print(ps.__file__, search.answers)\n"
    code, output = run(python, "-c", program, cwd=tmp_path)
    assert code == 0, output
    # The output may also have a notice about compilation.
    place, answers = next(line for line in output.splitlines() if "__init__" in line).rsplit(" ", 1)
    assert Path(place).is_relative_to(python.parents[1])
    assert answers == "1"


@pytest.mark.long
def test_a_type_checker_sees_the_annotations(python, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    checker = (sys.executable, "-m", "mypy", "--python-executable", python, "--no-error-summary")
    code, output = run(*checker, "--cache-dir", tmp_path / "cache", "program.py", cwd=tmp_path)
    errors = [line for line in output.splitlines() if ": error:" in line]
    assert code == 1, output
    assert [line.split(":")[1] for line in errors] == ["10", "11"], output
    assert errors[0].endswith("[assignment]")
    assert '"response"' in errors[1]
