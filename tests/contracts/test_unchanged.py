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


def altered(recorded, tmp_path, change):
    """Compare with an altered copy of the record."""
    record = json.loads(recorded.read_text())
    change(record["cases"])
    (tmp_path / "searches.json").write_text(json.dumps(record))
    return run("compare", tmp_path, *CHOSEN)


def test_the_same_program_has_no_differences(recorded):
    found = run("compare", recorded.parent, *CHOSEN)
    assert found.returncode == 0, found.stdout + found.stderr
    count = len(json.loads(recorded.read_text())["cases"])
    assert count > 4
    assert f"searches: {count} of {count} cases equal" in found.stdout


def test_one_bit_is_a_difference_and_is_told_by_its_path(recorded, tmp_path):
    def one_bit(cases):
        mean = cases["goal best"]["looks"]["at the end"]["mean"]
        mean[0] = float.fromhex(mean[0].hex()[:-5] + "1" + mean[0].hex()[-4:]) if mean[0] else 1e-300

    def another_question(cases):
        cases["goal best, unknown k"]["steps"][3]["query"]["left"] = "i1000"

    found = altered(recorded, tmp_path, one_bit)
    assert found.returncode == 1
    assert "searches, goal best:\n   /looks/at the end/mean/0:" in found.stdout
    found = altered(recorded, tmp_path, another_question)
    assert found.returncode == 1
    assert "/steps/3/query/left: 'i1000' -> 'i" in found.stdout


def test_a_case_that_is_missing_on_either_side_is_a_difference(recorded, tmp_path):
    found = altered(recorded, tmp_path, lambda cases: cases.pop("goal best"))
    assert found.returncode == 1
    assert "searches, goal best:\n   /: (nothing) -> " in found.stdout
    found = altered(recorded, tmp_path, lambda cases: cases.update({"goal best of all": {}}))
    assert found.returncode == 1
    assert "searches, goal best of all:\n   this case was recorded but not run" in found.stdout


def test_a_part_without_a_record_is_no_success(tmp_path):
    found = run("compare", tmp_path, *CHOSEN)
    assert found.returncode == 1
    assert "searches.json is missing: record it first" in found.stdout
