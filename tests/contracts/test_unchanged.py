"""Tests of `benchmarks/unchanged.py`: it reports no differences for an unchanged program, else case and path."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "unchanged.py"
CHOSEN = ("--only", "searches", "-k", "goal best")


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    made = run("record", folder, *CHOSEN)
    assert made.returncode == 0, made.stderr
    return folder / "searches.json"


def test_the_same_program_has_no_differences(recorded):
    found = run("compare", recorded.parent, *CHOSEN)
    assert found.returncode == 0, found.stdout + found.stderr
    count = len(json.loads(recorded.read_text())["cases"])
    assert count > 4
    assert f"searches: {count} of {count} cases equal" in found.stdout


def test_each_difference_is_told_by_its_case_and_path(recorded, tmp_path):
    record = json.loads(recorded.read_text())
    cases = record["cases"]
    mean = cases["goal best"]["looks"]["at the end"]["mean"]
    # One bit differs, or the mean that is 0.
    mean[0] = float.fromhex(mean[0].hex()[:-5] + "1" + mean[0].hex()[-4:]) if mean[0] else 1e-300
    cases["goal best, unknown k"]["steps"][3]["query"]["left"] = "i1000"
    missing = next(name for name in cases if name not in ("goal best", "goal best, unknown k"))
    del cases[missing]
    cases["goal best of all"] = {}
    (tmp_path / "searches.json").write_text(json.dumps(record))
    found = run("compare", tmp_path, *CHOSEN)
    assert found.returncode == 1
    for expected in (
        "searches, goal best:\n   /looks/at the end/mean/0:",
        "/steps/3/query/left: 'i1000' -> 'i",
        f"searches, {missing}:\n   /: (nothing) -> ",
        "searches, goal best of all:\n   this case was recorded but not run",
    ):
        assert expected in found.stdout


def test_a_part_without_a_record_is_no_success(tmp_path):
    found = run("compare", tmp_path, *CHOSEN)
    assert found.returncode == 1
    assert "searches.json is missing: record it first" in found.stdout
