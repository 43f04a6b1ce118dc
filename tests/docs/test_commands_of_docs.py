"""The commands in the docs, which a newcomer can run in a terminal after `make demo`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ACTIVATE = ". .venv/bin/activate"
INSTALL = ROOT / "docs" / "how-to" / "install.md"
GUIDES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if "benchmarks" not in path.parts and path != INSTALL]
# A line that a reader types.
TYPED = re.compile(r"^pairseek [a-z]", re.MULTILINE)


def blocks(path: Path) -> str:
    """Return the code blocks of a page that have no language."""
    return "\n".join(re.findall(r"^```\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE))


@pytest.fixture
def checkout(tmp_path):
    """Make a checkout that has its environment, with a command that prints how it was called."""
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    (tmp_path / "pyproject.toml").write_text("")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True)
    command = tmp_path / ".venv" / "bin" / "pairseek"
    command.write_text("#!/bin/sh\necho pairseek was called with $*\n")
    command.chmod(0o755)
    (tmp_path / ".venv" / ".installed-web").touch()
    return tmp_path


def sh(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Run lines in a shell without an active environment."""
    path = os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin"])
    return subprocess.run(
        ["sh", "-c", "\n".join(lines)], cwd=folder, env={"PATH": path}, capture_output=True, text=True, check=False
    )


def test_the_line_that_the_demo_prints_makes_the_command_available(checkout) -> None:
    demo = sh(checkout, "make --no-print-directory demo")
    assert demo.returncode == 0, demo.stderr
    assert "pairseek was called with serve --demo" in demo.stdout
    activation = re.search(r"To use it in a terminal: +(.+)", demo.stdout)[1]
    assert activation == ACTIVATE
    assert sh(checkout, "pairseek serve").returncode == 127
    assert sh(checkout, activation, "pairseek serve").stdout == "pairseek was called with serve\n"


def test_the_installation_page_the_readme_and_the_first_page_activate_the_environment() -> None:
    section = INSTALL.read_text(encoding="utf-8").partition("## The command\n")[2].partition("\n## ")[0]
    assert f"\n{ACTIVATE}\n" in section
    for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        text = page.read_text(encoding="utf-8")
        assert f"`{ACTIVATE}`" in text
        assert text.index("make demo") < text.index(ACTIVATE)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_a_page_that_uses_the_command_links_to_its_installation(path) -> None:
    text = path.read_text(encoding="utf-8")
    if not TYPED.search(blocks(path)):
        return
    link = re.search(r"\]\((?:\.\./how-to/)?install\.md#the-command\)", text)
    assert link, f"{path.name} types the command: link to install.md#the-command before it"
    assert link.start() < TYPED.search(text).start()


# Commands that draw figures, some only with an option.
DRAWING = re.compile(r"^pairseek (?:evaluate|plan|simulate|reproduce|check .*--html|embed .*--plot)\b", re.MULTILINE)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_a_page_whose_commands_draw_names_the_extra(path) -> None:
    if DRAWING.search(blocks(path)):
        assert "`plots`" in path.read_text(encoding="utf-8"), path.name
