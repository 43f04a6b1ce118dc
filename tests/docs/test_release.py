"""Files of a release, which must agree and be well-formed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

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


# Packages whose major version is a year, or grows with every few releases.
WITHOUT_AN_END = {"argon2-cffi", "dask", "distributed", "pillow", "pyarrow"}


def requirements(*extras) -> list[Requirement]:
    """The requirements of the package with extras, without those on itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [Requirement(line) for line in lines if not line.startswith("pairseek[")]


def test_ranges_of_dependencies_end_before_the_next_major_version():
    extras = (
        "cli",
        "baselines",
        "plots",
        "frames",
        "data",
        "cluster",
        "web",
        "faiss",
        "qdrant",
        "pgvector",
        "postgres",
    )
    ends = {
        requirement.name: [part for part in requirement.specifier if part.operator == "<"]
        for requirement in requirements(*extras)
    }
    assert {name for name, end in ends.items() if not end} == WITHOUT_AN_END
    assert all(re.fullmatch(r"\d+", part.version) for end in ends.values() for part in end)


def test_the_image_has_exact_versions_within_the_ranges():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pinned = dict(line.split("==") for line in lines)
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", line) for line in lines)
    for requirement in requirements("cli", "web", "postgres", "data"):
        assert requirement.specifier.contains(pinned[requirement.name]), requirement
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert re.search(r"^FROM python:\d+\.\d+\.\d+-slim-[a-z]+$", dockerfile, re.MULTILINE)
    assert "--constraint constraints.txt" in dockerfile


def test_the_containers_have_exact_versions_and_no_privileges():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "build" in service or re.fullmatch(r"[a-z]+:\d+\.\d+(\.\d+)?", service["image"]), name
    assert {name: service["cap_add"] for name, service in services.items() if "cap_add" in service} == {
        "proxy": ["NET_BIND_SERVICE"],
        "tls": ["NET_BIND_SERVICE"],
    }
