"""Files of a release, which must agree and be well-formed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import pairseek as ps

ROOT = Path(__file__).resolve().parents[2]


def test_the_citation_and_the_changelog_have_the_version_and_its_date():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == ps.__version__
    heading = re.search(r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading is not None
    assert heading.groups() == (ps.__version__, citation["date-released"])
    assert citation["preferred-citation"]["year"] == 2019


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_workflows_and_templates_are_yaml_and_use_targets_that_exist(path):
    assert isinstance(yaml.safe_load(path.read_text()), dict)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"run: make ([a-z-]+)", path.read_text())) <= targets


def test_the_matrix_covers_the_supported_pythons():
    matrix = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["test"]["strategy"]["matrix"]
    assert matrix == {"os": ["ubuntu-latest", "macos-latest"], "python": ["3.11", "3.12", "3.13"]}
